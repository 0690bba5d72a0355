#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The binary interface of a built library, as abidw (abigail-tools) reads it from debug information: the exported
functions and every type that a program can see through them. Structs that the public headers declare without members
stay without; paths, and types that only the library sees, are left out.

usage: abi.py --renew LIBRARY     writes what the library is compared with: tests/abi/libpartita.abi and, with functions
                                  that are new, packaging/debian/libpartita0.symbols
"""
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
DUMP = ROOT / "tests/abi/libpartita.abi"
SYMBOLS = ROOT / "packaging/debian/libpartita0.symbols"
OPTIONS = ("--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--no-parameter-names",
           "--drop-undefined-syms", "--exported-interfaces-only", "--type-id-style", "hash")
# Structs to which members may be appended: calls pass their size (decision 31).
GROWING_STRUCTS = ("problem", "options", "call", "taps", "load", "stream_stats", "bank_options", "design",
                   "design_result", "causal", "channelizer_options", "channel", "pairs_options", "match_options", "decode_options",
                   "adaptive_options", "adaptive_stats", "equalizer", "equalizer_result", "crossover", "correction", "correction_report")
REFERENCES = ("type-id", "naming-typedef-id")


class Unreadable(Exception):
    """The types of the library are unknown; the message says why."""


def public_structs():
    """Names of structs whose members are part of the interface."""
    return {name for path in (ROOT / "include/partita").glob("*.h")
            for name in re.findall(r"^(?:struct|union) (partita_\w+) \{", path.read_text(), re.M)}


def interface(library):
    """The root element of the dump."""
    made = subprocess.run(["abidw", *OPTIONS, library], capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(f"abidw: {made.stderr or made.stdout}")
    corpus = ET.fromstring(made.stdout)
    members = [child for unit in corpus.findall("abi-instr") for child in unit]
    functions = [child for child in members if child.tag in ("function-decl", "var-decl")]
    if not functions:
        raise Unreadable("the library was built without debug information (-Ddebug=true)")
    if any(child.tag == "type-decl" and child.get("name") == "complex" for child in members):
        raise Unreadable("the library was built with clang, whose complex types are all one for abidw")

    visible = public_structs()
    types = {}
    for child in members:
        if child.tag in ("class-decl", "union-decl") and child.get("name") not in visible \
                and not child.get("is-anonymous"):
            child[:], child.text = [], None
            child.attrib.pop("size-in-bits", None)
            child.set("is-declaration-only", "yes")
        # A type that a file only declares may be complete in another one.
        if child.get("id") and (child.get("id") not in types or types[child.get("id")].get("is-declaration-only")):
            types[child.get("id")] = child

    seen, left = set(), functions[:]
    while left:
        for element in left.pop().iter():
            for identity in filter(None, map(element.get, REFERENCES)):
                if identity not in seen and identity in types:
                    seen.add(identity)
                    left.append(types[identity])

    unit = ET.Element("abi-instr", {"address-size": "64", "path": "partita.h", "language": "LANG_C11"})
    unit.extend(sorted(map(types.get, seen), key=lambda t: (t.tag, t.get("name", ""), t.get("id"))))
    unit.extend(sorted(functions, key=lambda function: function.get("name")))
    for old in corpus.findall("abi-instr"):
        corpus.remove(old)
    corpus.append(unit)
    return corpus


def without_growth(corpus, older):
    """The dump without the members that were appended, since an older dump, to structs that may grow."""
    sizes = {struct.get("name"): int(struct.get("size-in-bits"))
             for struct in older.iter("class-decl") if struct.get("size-in-bits")}
    for struct in corpus.iter("class-decl"):
        name = struct.get("name")
        if name not in sizes or name.removeprefix("partita_") not in GROWING_STRUCTS:
            continue
        for member in struct.findall("data-member"):
            if int(member.get("layout-offset-in-bits")) >= sizes[name]:
                struct.remove(member)
        struct.set("size-in-bits", str(min(sizes[name], int(struct.get("size-in-bits")))))
    return corpus


def text(corpus):
    ET.indent(corpus)
    return ET.tostring(corpus, encoding="unicode") + "\n"


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "--renew":
        sys.exit(__doc__)
    try:
        corpus = interface(arguments[1])
    except Unreadable as error:
        sys.exit(f"abi.py: {error}")
    DUMP.write_text(text(corpus))
    version = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text())[1]
    subprocess.run(["dpkg-gensymbols", "-q", "-c0", "-plibpartita0", f"-v{version}", f"-e{arguments[1]}", f"-I{SYMBOLS}",
                    f"-O{SYMBOLS}"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
