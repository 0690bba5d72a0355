#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the built library with the binary interface that tests/abi/ holds: functions may be added, and members
appended to structs whose size calls pass (decision 31), and must then be stored too; any other change fails. Prints
TAP.

usage: test_abi_changes.py LIBRARY
"""
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools"))
import abi  # noqa: E402

RENEW = """
tools/abi.py --renew LIBRARY stores the interface of this library."""
ADVICE = """
Programs that were compiled with the earlier library would misbehave. Append members instead, to a struct whose size
calls pass, or add a function beside the one that cannot stay. A change that must be is one of a version with another
soname (lib/meson.build), unless no version with the earlier interface was released. Then: """ + RENEW
count = failed = 0


def report(good, name, message=""):
    global count, failed
    count += 1
    failed += not good
    print(("ok" if good else "not ok") + f" {count} - {name}")
    if not good:
        print("\n".join("# " + line for line in message.strip().split("\n")))


def skip_all(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def differences(older, newer, *options):
    """What abidiff finds; nothing if both are the same."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("older.abi", "newer.abi")]
        for path, corpus in zip(files, (older, newer)):
            with open(path, "w") as file:
                file.write(abi.text(corpus))
        found = subprocess.run(["abidiff", *options, *files], capture_output=True, text=True)
    return found.stdout + found.stderr or "abidiff failed" if found.returncode else ""


def changes(older, newer):
    """What a program that was compiled with the older interface would notice; nothing if it would work."""
    newer = abi.without_growth(edited(newer, lambda copy: None), older)
    return differences(older, newer, "--no-added-syms")


def edited(corpus, edit):
    copy = ET.fromstring(abi.text(corpus))
    edit(copy)
    return copy


def struct(corpus, name):
    return next(each for each in corpus.iter("class-decl") if each.get("name") == name)


def append_member(corpus, name):
    at = struct(corpus, name)
    size = at.get("size-in-bits")
    at.set("size-in-bits", str(int(size) + 64))
    member = ET.SubElement(at, "data-member", {"access": "public", "layout-offset-in-bits": size})
    size_t = next(each for each in corpus.iter("typedef-decl") if each.get("name") == "size_t")
    ET.SubElement(member, "var-decl", {"name": "future", "type-id": size_t.get("id"), "visibility": "default"})


def swap_members(corpus, name):
    first, second = struct(corpus, name).findall("data-member/var-decl")[:2]
    for attribute in ("name", "type-id"):
        a, b = first.get(attribute), second.get(attribute)
        first.set(attribute, b)
        second.set(attribute, a)


def remove_function(corpus, name):
    for parent in corpus.iter():
        for child in [child for child in parent if child.get("name") == name]:
            parent.remove(child)


def add_function(corpus, like):
    for parent in list(corpus.iter()):
        for child in [child for child in parent if child.get("name") == like]:
            parent.append(ET.fromstring(ET.tostring(child, encoding="unicode").replace(like, like + "_future")))


def main(library):
    missing = [tool for tool in ("abidw", "abidiff") if not shutil.which(tool)]
    if missing:
        skip_all(f"no {missing[0]} (abigail-tools)")
    older = ET.parse(abi.DUMP).getroot()
    if platform.machine() != "x86_64":
        skip_all("the stored interface is that of x86_64")
    try:
        newer = abi.interface(library)
    except abi.Unreadable as error:
        skip_all(error)

    found = changes(older, newer)
    report(not found, "programs of the stored interface work with this library", found + ADVICE)
    found = differences(older, newer, "--harmless")
    report(not found, "the stored interface is that of this library", found + RENEW)
    # Each kind of change is made in the stored interface, to see that it is found, or allowed.
    for name, allowed, edit in (
            ("a function is removed", False, lambda new: remove_function(new, "partita_plan_latency")),
            ("a function is added", True, lambda new: add_function(new, "partita_plan_latency")),
            ("members change places", False, lambda new: swap_members(new, "partita_call")),
            ("a member is appended to a struct that may grow", True, lambda new: append_member(new, "partita_call")),
            ("a member is appended to one that may not", False, lambda new: append_member(new, "partita_path"))):
        found = changes(older, edited(older, edit))
        report(bool(found) != allowed, name, found or "not found")
    with open(abi.SYMBOLS) as file:
        listed = {line.split()[0] for line in file if line.startswith(" ")}
    exported = {f"{symbol.get('name')}@{symbol.get('version')}" for symbol in newer.find("elf-function-symbols")}
    report(exported <= listed, "packaging/debian/libpartita0.symbols lists every function",
           "\n".join(sorted(exported - listed)) + RENEW)
    print(f"1..{count}")
    sys.exit(failed > 0)


main(*sys.argv[1:])
