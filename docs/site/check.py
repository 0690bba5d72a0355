#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows the links of HTML pages to other files of a folder and to places in them; prints those that lead nowhere.

usage: check.py FOLDER
"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links of a page and the names of its places."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = set(), {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.names.add(value)


def broken(folder):
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            if not target.is_file():
                yield f"{path}: {link}: no such file"
            elif target in pages and urllib.parse.unquote(url.fragment) not in pages[target].names:
                yield f"{path}: {link}: no such place"


def main():
    folder = pathlib.Path(sys.argv[1])
    found = list(broken(folder))
    if not (folder / "index.html").is_file():
        found.append(f"{folder}: no index.html")
    sys.exit("\n".join(found) or None)


main()
