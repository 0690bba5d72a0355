# SPDX-License-Identifier: MIT
"""Reads a source tree for house.py: files, code without comments, includes, functions."""
import pathlib
import re
import subprocess

SUFFIXES = {".c", ".h", ".cu", ".cuh", ".cc"}
TREES = ("lib", "design", "include", "apps", "plugins", "bench", "tests")

# Comments, strings and characters; everything else is code.
NOT_CODE = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|"(?:[^"\\\n]|\\.|\\\n)*"|'(?:[^'\\\n]|\\.)*'""", re.S)


def blank(match):
    """As many lines and columns as the text had; quotes stay, so that a string is still a token."""
    text = match.group()
    hidden = re.sub(r"[^\n]", " ", text)
    return hidden if text[0] == "/" else text[0] + hidden[1:-1] + text[-1]


class File:
    """One source file; its path is relative to the root of the tree."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.code = NOT_CODE.sub(blank, self.text)
        self.folder = str(path.parent)

    def line_of(self, offset):
        return self.code.count("\n", 0, offset) + 1


class Function:
    """A definition. kernel: named by a macro that a build of each type fills in."""

    def __init__(self, name, file, first, last, parameters):
        self.name, self.file, self.first, self.last = name, file, first, last
        self.parameters = parameters
        self.lines = last - first + 1

    def place(self):
        return f"{self.file.path}:{self.first} {self.name}"

    def body(self):
        return "\n".join(self.file.code.split("\n")[self.first - 1:self.last]).partition("{")[2]


class Tree:
    """All sources below a root."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        paths = sorted(p.relative_to(self.root) for top in TREES for p in (self.root / top).rglob("*")
                       if p.is_file() and p.suffix in SUFFIXES)
        self.files = [File(self.root, p) for p in paths]
        self.by_path = {str(f.path): f for f in self.files}
        self._functions = None

    def under(self, *tops):
        return [f for f in self.files if f.path.parts[0] in tops]

    def includes(self, file):
        """Each quoted include of a file: (line, name, path of the file that it names or None)."""
        top = file.path.parts[0]
        roots = [self.root / file.folder, self.root / top, self.root / "lib", self.root]
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', file.text, re.M):
            name = match.group(1)
            yield file.line_of(match.start()), name, self.find(name, roots, top)

    def find(self, name, roots, top):
        for root in roots:
            path = root / name
            if path.is_file():
                return str(path.resolve().relative_to(self.root.resolve()))
        # A folder that the build names besides: the one folder of the tree that has such a file.
        places = [p for p in self.by_path if p.startswith(top + "/") and p.endswith("/" + name)]
        return places[0] if len(places) == 1 else None

    def functions(self, *tops):
        """The definitions below some folders that Universal Ctags finds."""
        if self._functions is None:
            self._functions = [f for line in run_ctags(self.root) for f in self.definition(line)]
        return [f for f in self._functions if f.file.path.parts[0] in tops]

    def definition(self, line):
        name, path, *fields = line.rstrip("\n").split("\t")
        values = dict(f.split(":", 1) for f in fields if ":" in f)
        file = self.by_path.get(path)
        if file is None or "end" not in values:
            return
        first, last = int(values["line"]), int(values["end"])
        head = " ".join(file.code.split("\n")[first - 1:last]).split("{", 1)[0]
        kernel = re.search(r"\b[A-Z][A-Z0-9_]*\((\w+)\)\s*\(", head)
        if kernel:  # one symbol for each instruction set
            name = "k_" + kernel.group(1)
        yield Function(name, file, first, last, count_parameters(head))


def count_parameters(head):
    """Parameters of the last parenthesised list before a function's body."""
    end = head.rfind(")")
    depth, commas, start = 0, 0, end
    for start in range(end, -1, -1):
        depth += (head[start] in ")]>") - (head[start] in "([<")
        commas += head[start] == "," and depth == 1
        if depth == 0:
            break
    inside = head[start + 1:end].strip()
    return 0 if inside in ("", "void") else commas + 1


def run_ctags(root):
    """Exuberant Ctags will not do: it knows neither CUDA nor where a function ends."""
    try:
        version = subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        version = ""
    if "Universal Ctags" not in version:
        raise FileNotFoundError("no Universal Ctags (universal-ctags)")
    command = ["ctags", "-f", "-", "--sort=no", "--langmap=C:.c.h,CUDA:.cu.cuh", "--languages=C,CUDA",
               "--kinds-C=f", "--kinds-CUDA=f", "--fields=ne", "-R"]
    tops = [t for t in TREES if (root / t).is_dir()]
    done = subprocess.run(command + tops, cwd=root, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("!")]
