#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the pages from which Sphinx makes the web site: the documents of the tree and what they link to, the reference of
the C functions from the comments of the headers, that of the commands from what --help prints.

usage: pages.py PROGRAM FOLDER      FOLDER is new or empty
"""
import pathlib
import re
import shutil
import subprocess
import sys

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True

import api_pages  # noqa: E402
import house_text  # noqa: E402

# Titles of the groups of pages, and their pages. Other pages of docs/ are added to the first group.
GROUPS = {
    "Use it": ["docs/tutorials", "docs/configurations", "docs/routes", "docs/live", "docs/plugin", "docs/jobs",
               "docs/many-machines", "docs/c", "docs/gpu"],
    "Python": ["python/README", "docs/reverb-in-python", "docs/radio-in-python", "docs/long-recordings-in-python",
               "docs/signals-in-python", "docs/images-in-python", "docs/vision-in-python", "docs/speech-in-python",
               "docs/sequence-models-in-python", "docs/layers-in-python"],
    "Reference": ["reference/commands", "docs/json", "reference/c/index", "reference/python"],
    "Results": ["docs/bench", "docs/faults"],
    "Understand it": ["docs/theory", "docs/parts", "docs/seeds", "ARCHITECTURE", "docs/decisions/README", "docs/notes/README"],
    "Take part": ["CONTRIBUTING", "SECURITY", "CHANGELOG"],
}
OF_FOLDERS = ("docs/decisions/README.md", "docs/notes/README.md")  # pages that list the others of their folder

PYTHON = "# Python reference\n\n" + "\n".join(f"""## `{module}`

```{{eval-rst}}
.. automodule:: {module}
```
""" for module in ("partita", "partita.signal", "partita.ndimage", "partita.dask", "partita.nn", "partita.nn.functional", "partita.nn.testing"))


def toctree(pages, *options):
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *pages, "```", ""])


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def to_index(page, text):
    """README.md of the root is the site's first page."""
    up = "../" * (len(page.parts) - 1)
    return text.replace(f"]({up}README.md", f"]({up}index.md")


def copy_documents(folder):
    for page in house_text.documents(ROOT):
        text = (ROOT / page).read_text(encoding="utf-8")
        for _, path, _ in house_text.links_of(text):
            target = ROOT / page.parent / path
            if path and target.suffix != ".md":
                copy = folder / target.resolve().relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(target, copy)
        if str(page) in OF_FOLDERS:
            text += toctree(["[!R]*"], ":glob:")  # all but README.md
        if str(page) == "docs/README.md":  # the site has a list of pages of its own
            text = "---\norphan: true\n---\n" + text
        if page.name != "README.md" or len(page.parts) > 1:
            write(folder / page, to_index(page, text))
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {page for pages in GROUPS.values() for page in pages} | {"docs/README"}
    others = [f"docs/{path.stem}" for path in sorted(ROOT.glob("docs/*.md")) if f"docs/{path.stem}" not in named]
    for title, pages in GROUPS.items():
        first += toctree(["/" + page for page in pages + others], f":caption: {title}")
        others = []
    write(folder / "index.md", first)


class CReference:
    """A page for each public header, with a heading for each function and type."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = api_pages.Pages(api_pages.read_headers(ROOT / "include/partita"))

    def link(self, match):
        page = self.pages.owner.get(match[0])
        if not page:
            return re.sub(r"_", r"\\_", match[0])
        target = f"/reference/c/{page[:-2]}.md" if page.endswith(".h") else f"#{page.lower()}"
        return f"[`{match[0]}`]({target})"

    def prose(self, text):
        out = []
        for piece in re.split(r"(`[^`]*`)", text):
            if piece.startswith("`"):
                out.append(piece)
                continue
            # Names are linked; what else could be markup is escaped.
            at = 0
            for name in api_pages.NAME.finditer(piece):
                out += [self.plain(piece[at:name.start()]), self.link(name)]
                at = name.end()
            out.append(self.plain(piece[at:]))
        return "".join(out)

    @staticmethod
    def plain(text):
        return re.sub(r"([\\*_\[\]<>#|])", r"\\\1", text)

    def body(self, blocks):
        out = []
        for label, kind, text in blocks:
            if label:
                out.append(f"{label}\n: {self.prose(text)}\n")
            elif kind == "code":
                out.append(f"```c\n{text}\n```\n")
            else:
                out.append(self.prose(text) + "\n")
        return out

    def section(self, page, items):
        out = [f"({page.lower()})=", "## " + ", ".join(f"`{name}`" for name in api_pages.names_of(items)) + "\n"]
        for item in items:
            out.append("```c\n" + "\n".join(item.code()) + "\n```\n")
            out += self.body(item.blocks)
            for first, members in item.types:
                if members:
                    out.append(f"Members of `{first}`:\n")
                out += [f"- `{member}`" + (f": {self.prose(comment)}" if comment else "") for member, comment in members]
                out.append("")
        return out

    def write(self):
        index = ["# C reference\n"]
        for header in self.pages.headers:
            intro = self.body(header.blocks)
            index += [f"## [{header.name}.h]({header.name}.md)\n"] + (intro if header.name == "partita" else [])
            out = [f"# {header.name}.h\n"] + intro
            for page, items in self.pages.of_header(header).items():
                index.append(f"- [`{page}`](#{page.lower()}): {self.prose(items[0].summary())}")
                out += self.section(page, items)
            index.append("")
            write(self.folder / f"{header.name}.md", "\n".join(out))
        write(self.folder / "index.md", "\n".join(index) + toctree([header.name for header in self.pages.headers]))


def commands(program):
    """What --help of each command prints; their names are those of the overview."""
    def said(*arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    overview = said("help")
    out = ["# Commands\n", f"```text\n{overview}```\n"]
    for name in re.findall(r"^  partita (\w+)", overview, re.M):
        out.append(f"## `partita {name}`\n\n```text\n{said(name, '--help')}```\n")
    return "\n".join(out)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} has files: name a new folder")
    copy_documents(folder)
    CReference(folder / "reference/c").write()
    write(folder / "reference/commands.md", commands(program))
    write(folder / "reference/python.md", PYTHON)


main()
