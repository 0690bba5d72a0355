#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the tests in reports of meson and pytest, each TAP line of a program as one test: "N passed, N failed[, N
skipped]". Exit status 1 if anything failed or nothing ran.

usage: count_tests.py FILE...      *.junit.xml and *.json of meson's logs, or pytest's report

A program that ended badly although none of its lines failed (it crashed, timed out, stopped early) counts as one more
failure, and so does a report that does not exist.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree

BAD = ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS")


def short(name):
    """A test's own name: meson puts the suite in front of it, "project:suite / name"."""
    return name.split(" / ")[-1]


def cases(path):
    """(program, 0 if it passed, 1 if it failed, 2 if it was skipped) of each case of a report."""
    for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            # A TAP program is a suite "project.program"; other programs are cases of the suite "project".
            program = suite.get("name").partition(".")[2] or case.get("name")
            failed = case.find("failure") is not None or case.find("error") is not None
            yield short(program), 1 if failed else 2 if case.find("skipped") is not None else 0


def main():
    paths = [pathlib.Path(word) for word in sys.argv[1:]]
    counted = [case for path in paths if path.suffix == ".xml" and path.exists() for case in cases(path)]
    passed, failed, skipped = ([outcome for _, outcome in counted].count(i) for i in range(3))
    failed += sum(not path.exists() for path in paths)
    tests = [json.loads(line) for path in paths if path.suffix == ".json" and path.exists() for line in path.read_text().splitlines()]
    failed += sum(test["result"] in BAD and (short(test["name"]), 1) not in counted for test in tests)
    print(f"{passed} passed, {failed} failed" + f", {skipped} skipped" * (skipped > 0))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
