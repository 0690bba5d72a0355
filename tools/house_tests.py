# SPDX-License-Identifier: MIT
"""Tests that docs/faults.md names must exist: in the last cell of a row, names of `meson test --list` with a case behind
a slash."""
import pathlib
import re

PAGE = "docs/faults.md"


def source_of(folder, name):
    """The text of a test: apps-x, live-x and fuzz-x are in a folder of that name; x-hostdev has the file of x."""
    words = name.split("-")
    if len(words) > 1 and (folder / words[0]).is_dir():
        folder = folder / words.pop(0)
    while words:
        stem = "_".join(words)
        for pattern in (f"test_{stem}.c", f"test_{stem}.py", f"{stem}.c", f"{stem}.py", f"{stem}_files.py"):
            found = sorted(folder.rglob(pattern))
            if found:
                return found[0].read_text(encoding="utf-8")
        words.pop()
    return None


def has_case(text, case):
    """Class.method or Class or method of Python; a case of a test in C, or the beginning of its name."""
    if re.fullmatch(r"[A-Z]\w*(\.\w+)?|test_\w+", case):
        names = case.split(".")
        return all(re.search(rf"(class|def) {name}\b", text) for name in names)
    return f'"{case}' in text


def unknown_tests(root):
    page = pathlib.Path(root, PAGE)
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    unknown = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or set(cells[-2]) <= {"-"} or cells[-2] == "held by":
            continue
        text = None
        for name in filter(None, cells[-2].split(", ")):
            test, _, case = name.partition("/")
            if test.startswith("test_"):  # of the test named before
                case = test
            else:
                text = source_of(pathlib.Path(root, "tests"), test)
            if text is None or (case and not has_case(text, case)):
                unknown.append(f"{PAGE}:{number} {name}")
    return unknown
