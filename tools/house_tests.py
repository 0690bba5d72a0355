# SPDX-License-Identifier: MIT
"""Tests that these pages name must exist: in the last cell of a row, names of `meson test --list` with a case behind a
slash; python-x is python/tests/test_x.py."""
import pathlib
import re

PAGES = ("docs/faults.md",)


def source_of(folder, name):
    """The text of a test, of all its languages: apps-x, live-x and fuzz-x are in a folder of that name; x-hostdev has the
    file of x."""
    words = name.split("-")
    if len(words) > 1 and (folder / words[0]).is_dir():
        folder = folder / words.pop(0)
    while words:
        stem = "_".join(words)
        names = [before + stem + end for before in ("test_", "") for end in (".c", ".cc", ".py", ".sh")] + [stem + "_files.py"]
        found = sorted(path for name in names for path in folder.rglob(name))
        if found:
            return "".join(path.read_text(encoding="utf-8") for path in found)
        words.pop()
    return None


def has_case(text, case):
    """Class.method or Class or method of Python; a case of a test in C, or the beginning of its name."""
    if re.fullmatch(r"[A-Z]\w*(\.\w+)?|test_\w+", case):
        names = case.split(".")
        return all(re.search(rf"(class|def) {name}\b", text) for name in names)
    return f'"{case}' in text


def unknown_tests(root):
    return [name for page in PAGES for name in unknown_tests_of(root, page)]


def unknown_tests_of(root, name_of_page):
    page = pathlib.Path(root, name_of_page)
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    unknown = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 5 or set(cells[-2]) <= {"-"} or cells[-2] == "checked by":
            continue
        text = None
        for name in filter(None, cells[-2].split(", ")):
            test, _, case = name.partition("/")
            if test.startswith("test_"):  # of the test named before
                case = test
            elif test.startswith("python-"):
                text = source_of(pathlib.Path(root, "python", "tests"), test.removeprefix("python-"))
            else:
                text = source_of(pathlib.Path(root, "tests"), test)
            if text is None or (case and not has_case(text, case)):
                unknown.append(f"{name_of_page}:{number} {name}")
    return unknown
