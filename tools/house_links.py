# SPDX-License-Identifier: MIT
"""Links of the documents: each leads to a file of the tree and, behind #, to a heading of it."""
import os
import pathlib
import re

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


def links(text):
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


def broken_links(root):
    root = pathlib.Path(root)
    for page in documents(root):
        text = (root / page).read_text(encoding="utf-8")
        for line, path, name in links(text):
            target = root / page.parent / path if path else root / page
            if not target.is_file():
                yield f"{page}:{line} {path}: " + ("a folder, not a file" if target.is_dir() else "no such file")
            elif name is not None and name not in headings(target.read_text(encoding="utf-8")):
                yield f"{page}:{line} {path}#{name}: no such heading"
