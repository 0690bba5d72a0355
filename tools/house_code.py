# SPDX-License-Identifier: MIT
"""Measures of files, functions and tokens."""
import collections
import re

from house_arrows import LIBRARY
from house_source import TREES

MAX_FILES = 25       # C and CUDA files in a folder
MAX_PARAMETERS = 6
MAX_LINES = 80       # of a function
MAX_COLUMNS = 100

TOKEN = re.compile(r"\\\n|\n|[?,;(){}\[\]#]|[A-Za-z_]\w*|\S")
OPENS, CLOSES = "([{", ")]}"


def nested_conditionals(file):
    """Lines with a conditional operator in a branch of another one."""
    found = []
    line = 1
    inside = [False]  # for each open bracket: whether it is within a branch
    here = [0]        # and how many operators its expression has by now
    directive = False
    for match in TOKEN.finditer(file.code):
        token = match.group()
        if token == "\\\n":
            line += 1
        elif token == "\n":
            line += 1
            if directive:
                inside, here, directive = [False], [0], False
        elif token == "#":
            # A macro's body is an expression of its own, wherever it stands.
            if not file.code[:match.start()].rpartition("\n")[2].strip():
                inside, here, directive = [False], [0], True
        elif token in OPENS:
            inside.append(inside[-1] or here[-1] > 0)
            here.append(0)
        elif token in CLOSES:
            if len(here) > 1:
                inside.pop()
                here.pop()
            if token == "}":
                here[-1] = 0
        elif token in ",;":
            here[-1] = 0
        elif token == "?":
            here[-1] += 1
            if here[-1] > 1 or inside[-1]:
                found.append(f"{file.path}:{line}")
    return list(dict.fromkeys(found))


def conditionals(tree):
    return [line for file in tree.under(*LIBRARY) for line in nested_conditionals(file)]


def folders(tree):
    files = collections.Counter(f.folder for f in tree.under(*LIBRARY, "apps", "plugins", "bench", "tests"))
    return [f"{folder}: {n} files" for folder, n in files.most_common() if n > MAX_FILES]


def loose(tree):
    return [f"lib/{path.name}" for path in sorted((tree.root / "lib").iterdir()) if path.is_file()]


def prefixes(tree):
    return [str(f.path) for f in tree.under(*LIBRARY, "apps", "plugins", "bench", "tests")
            if f.path.name.startswith((f.path.parent.name + "_", f.path.parent.name + "-"))]


def shared_names(tree):
    # What a file defines twice, under #if or for another type, is one function.
    places = collections.defaultdict(dict)
    for function in tree.functions(*LIBRARY):
        places[function.name].setdefault(function.file.path, function)
    total = sum(len(p) for p in places.values())
    shared = sorted((p for p in places.values() if len(p) > 1), key=lambda p: -len(p))
    return (100 * sum(len(p) for p in shared) / max(total, 1),
            [f"{len(p)} x " + ", ".join(f.place() for f in p.values()) for p in shared])


def parameters(tree):
    many = [f for f in tree.functions(*LIBRARY) if f.parameters > MAX_PARAMETERS]
    return [f"{f.parameters}: {f.place()}" for f in sorted(many, key=lambda f: -f.parameters)]


def long_functions(tree):
    long = [f for f in tree.functions(*TREES) if f.lines > MAX_LINES]
    return [f"{f.lines}: {f.place()}" for f in sorted(long, key=lambda f: -f.lines)]


def columns(tree):
    return [f"{file.path}:{number} {len(line.expandtabs(8))} columns" for file in tree.files
            for number, line in enumerate(file.text.split("\n"), 1) if len(line.expandtabs(8)) > MAX_COLUMNS]


def assert_share(tree):
    asserts = sum(len(re.findall(r"(?<!\w)assert\s*\(", file.code)) for file in tree.under("lib"))
    return 1000 * asserts / max(sum(file.text.count("\n") for file in tree.under("lib")), 1), []


def part_of(file):
    return "morph" if file.path.name.startswith("morph") else file.path.parts[1]


def lines_in(top, *parts, inside=True):
    return lambda tree: lines_of(f for f in tree.under(top) if (part_of(f) in parts) == inside)


lines_adaptive, lines_bank, lines_cuda, lines_morph, lines_sequence = (
    lines_in("lib", part) for part in ("adaptive", "bank", "cuda", "morph", "sequence"))
lines_cpu = lines_in("lib", "adaptive", "bank", "cuda", "morph", "sequence", inside=False)
lines_design = lines_in("design", "correction", "equalizer", inside=False)
lines_measured = lines_in("design", "correction", "equalizer")


def lines_of(files):
    lines = collections.Counter()
    for file in files:
        lines[file.folder] += file.text.count("\n")
    return sum(lines.values()), [f"{n} in {folder}" for folder, n in lines.most_common()]
