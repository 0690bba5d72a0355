# SPDX-License-Identifier: MIT
"""Measures of words and documents: words that the project no longer uses, links, names of tests."""
import os
import pathlib
import re

from house_arrows import LIBRARY
from house_source import NOT_CODE

DOCS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
NOTES = "docs/notes/"  # laboratory notes quote what was measured when


def word(*alternatives):
    """A word by itself or a part of an identifier."""
    return re.compile(r"(?<![a-zA-Z])(?:%s)(?![a-zA-Z])" % "|".join(alternatives))


# Where they stand in comments, code, messages or documents.
ANYWHERE = (
    (word("kits?", "Kits?"), "context"),
    (word("mailbox(?:es)?"), "swap queue"),
    (word("keepers?"), "backend of spectra"),
    (word("tainted", "taints?"), "non-finite"),
    (word("crews?", "teams?"), "workers"),
    (re.compile(r"(?<![a-zA-Z#])bundle[sd]?(?![a-zA-Z])"), "block batch"),  # "#bundle" is a term of OSC
    (word("dealt", "deals? out", "dealing out"), "deinterleaved, distributed"),
    (word("hears", "hearing", "unheard"), "active input, depends on"),
    (word("ticks?"), "quantum"),
    (word("lesser", "common_divisor"), "min, gcd"),
    (word("MOST", "ENOUGH", "LEAST", "USUAL", "FEW", "MANY"), "MAX, MIN, TARGET, DEFAULT"),
)
# Where they name something in lib/, which is what code is without comments and strings; they are plain English besides.
NAMES = (
    (word("letters?"), "pending"),
    (word("poison", "poisons", "poisoned"), "non-finite"),
    (word("heard"), "active_inputs"),
    (word("deal", "deals"), "deinterleave"),
    (re.compile(r"\bgreater\s*\("), "max"),
    (word("at_most"), "min"),
    (re.compile(r"\bheldv?\s*\("), "keep_in_register"),
    (word("consider\\w*", "decide", "account"), "try_candidate, fill_estimate"),
    (word("turns?", "turned"), "rotate, transposed, iteration"),
    (word("quiet", "loud"), "silent"),
    (word("ways?"), "algorithm, direction, variant"),
    (word("pieces?"), "split, shard, micro-batch"),
    (word("rooms?"), "capacity"),
    (re.compile(r"(?<![A-Za-z])(?<!in_)places?(?![A-Za-z])"), "index, coordinates"),  # in_place is the field's word
    (word("cuts?"), "split, layout, carve"),
    (word("like"), "compatible_with"),
)

# Identifiers that say nothing of what they name. One that names something better: operands, worker, max, prefetch,
# tile_batch, overwrite.
EMPTY_NAMES = ("of", "own", "most", "walk", "together", "fresh")


def names(tree):
    pattern = re.compile(r"\b(?:%s)\b" % "|".join(EMPTY_NAMES))
    return [f"{file.path}:{file.line_of(m.start())} {m.group()}" for file in tree.files for m in pattern.finditer(file.code)]


def what(tree):
    comments = ((file, c) for file in tree.under(*LIBRARY) for c in NOT_CODE.finditer(file.text) if c.group()[0] == "/")
    return [f"{file.path}:{file.line_of(c.start() + m.start())} {m.group()}" for file, c in comments
            for m in re.finditer(r"\bwhat\b", c.group(), re.I)]


def lines_of_text(tree, folder, *suffixes):
    lines = {path.relative_to(tree.root): path.read_text(encoding="utf-8").count("\n")
             for path in (tree.root / folder).rglob("*") if path.suffix in suffixes}
    return sum(lines.values()), [f"{n} in {path}" for path, n in sorted(lines.items(), key=lambda item: -item[1])]


def docs(tree):
    return lines_of_text(tree, "docs", ".md", ".json", ".py", ".build")


def tools(tree):
    return lines_of_text(tree, "tools", ".sh", ".py", ".ini")


def pages(tree):
    """Text that users and contributors read: path, text."""
    paths = [tree.root / d for d in DOCS] + sorted((tree.root / "docs").rglob("*.md"))
    for path in paths:
        relative = str(path.relative_to(tree.root))
        if path.is_file() and not relative.startswith(NOTES):
            yield relative, path.read_text(encoding="utf-8")


def hits(path, text, table):
    for pattern, better in table:
        for match in pattern.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1} {match.group()} -> {better}"


def words(tree):
    found = [hit for path, text in pages(tree) for hit in hits(path, text, ANYWHERE)]
    for file in tree.files:
        found += hits(file.path, file.text, ANYWHERE)
        if file.path.parts[0] in ("lib", "design"):
            found += hits(file.path, file.code, NAMES)
    return found


# Links and pictures, [text](target) and ![text](target), also with a title behind the target.
LINK = re.compile(r'\]\(\s*<?([^\s()<>]+)>?(?:\s+"[^"]*")?\s*\)')
BUILT = re.compile(r"build|subprojects|\.")  # folders that hold nothing of the tree


def documents(root):
    """The paths of all Markdown files, relative to the root."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not BUILT.match(f))
        for name in sorted(names):
            if name.endswith(".md"):
                yield pathlib.Path(folder, name).relative_to(root)


def without_code(text):
    """The text with blanks in place of code, so that lines and columns stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"^```.*?^```$|^(?:    |\t)[^\n]*$", blank, text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", blank, text)


def links_of(text):
    """Each link to something other than a web page: line, path (empty: this page), name of a heading or None."""
    for match in LINK.finditer(without_code(text)):
        target = match.group(1)
        if not re.match(r"[a-z]+:", target):
            path, sharp, name = target.partition("#")
            yield text.count("\n", 0, match.start()) + 1, path, name if sharp else None


def headings(text):
    """Names by which links reach the headings of a page: words in lower case, joined by hyphens."""
    # Headings may have code, which is part of the name; only blocks of code are left out.
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#{1,6} +(.*?) *$", text, re.M)}


def links(tree):
    return list(broken_links(tree.root))


def broken_links(root):
    for page in documents(root):
        text = (root / page).read_text(encoding="utf-8")
        for line, path, name in links_of(text):
            target = root / page.parent / path if path else root / page
            if not target.is_file():
                yield f"{page}:{line} {path}: " + ("a folder, not a file" if target.is_dir() else "no such file")
            elif name is not None and name not in headings(target.read_text(encoding="utf-8")):
                yield f"{page}:{line} {path}#{name}: no such heading"


# Tests that these pages name must exist: in the last cell of a row, names of `meson test --list` with a case behind a
# slash; python-x is python/tests/test_x.py.
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


def named_tests(tree):
    return [name for page in PAGES for name in unknown_tests(tree.root, page)]


def unknown_tests(root, name_of_page):
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
