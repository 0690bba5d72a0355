#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the tests of a meson run, every TAP line of a program for itself: "N passed, N failed[, N skipped]".

A program that ended badly although none of its lines failed (it crashed, timed out, stopped early) counts as one more
failure. Exit status 1 when anything failed or nothing ran.
    count-tests.py MESON-LOGS
    count-tests.py --junit REPORT          a report that pytest wrote
    count-tests.py --sum < LINES           adds up such lines
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree


def short(name):
    """A test's own name: meson puts the suite in front of it, "project:suite / name"."""
    return name.split(" / ")[-1]


def count_junit(path):
    """Outcomes of single cases, by program: {name: [passed, failed, skipped]}."""
    programs = {}
    for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            # A TAP program is a suite "project.program"; other programs are cases of the suite "project".
            _, _, program = suite.get("name").partition(".")
            counts = programs.setdefault(short(program or case.get("name")), [0, 0, 0])
            failed = case.find("failure") is not None or case.find("error") is not None
            counts[1 if failed else 2 if case.find("skipped") is not None else 0] += 1
    return programs


def count_run(logs):
    total = [0, 0, 0]
    programs = {}
    for path in logs.glob("testlog*.junit.xml"):
        for name, counts in count_junit(path).items():
            programs[name] = counts
            total = [a + b for a, b in zip(total, counts)]
    for path in logs.glob("testlog*.json"):
        for line in path.read_text().splitlines():
            test = json.loads(line)
            bad = test["result"] in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS")
            if bad and programs.get(short(test["name"]), [0, 0, 0])[1] == 0:
                total[1] += 1
    return total


def count_sum(lines):
    total = [0, 0, 0]
    for line in lines:
        found = re.fullmatch(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", line.strip())
        if found:
            total = [a + int(b or 0) for a, b in zip(total, found.groups())]
    return total


def count_report(path):
    # Without a report nothing ran to its end.
    programs = count_junit(path) if path.exists() else {"report": [0, 1, 0]}
    return [sum(counts) for counts in zip(*programs.values())] if programs else [0, 0, 0]


def main():
    if sys.argv[1] == "--sum":
        total = count_sum(sys.stdin)
    elif sys.argv[1] == "--junit":
        total = count_report(pathlib.Path(sys.argv[2]))
    else:
        total = count_run(pathlib.Path(sys.argv[1]))
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    sys.exit(1 if total[1] or not total[0] else 0)


main()
