#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how the sources are ordered and fails where a measure is beyond its limit. Limits only fall.

house.py [--report] [--all MEASURE] [--tap] [ROOT]
  --report       says the figure of each measure and its first offenders; the exit status is 0 all the same
  --all MEASURE  lists every offender of one measure
  --tap          one TAP test a measure; those beyond their limit are TODO with --report
Needs Universal Ctags for the measures of functions, and git for that of limits; without it they are skipped.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import house_arrows  # noqa: E402
import house_code  # noqa: E402
import house_links  # noqa: E402
import house_source  # noqa: E402
import house_tests  # noqa: E402
import house_words  # noqa: E402

MAX_FILES = 25       # C and CUDA files in a folder
MAX_PARAMETERS = 6
MAX_LINES = 80       # of a function
MAX_COLUMNS = 100
LIBRARY = house_arrows.LIBRARY

# Measure: limit, what is counted; one line each. The functions below have the same names. A limit is the largest figure
# that will do, but for those in AT_LEAST.
LIMITS = {
    "raised": (0, "limits that are less strict than in an earlier commit"),
    "arrows": (0, "includes within lib/ and design/ that go up or sideways"),
    "circles": (0, "circles among folders"),
    "calls_up": (8, "calls within lib/ and design/ that go up or sideways"),
    "call_circles": (10, "circles among the files of lib/ and design/ by calls"),
    "folders": (0, f"folders with more than {MAX_FILES} C and CUDA files"),
    "loose": (3, "files loose in lib/"),
    "prefixes": (0, "files that repeat their folder's name"),
    "shared_names": (3, "% of the functions of lib/ and design/ share their name"),
    "parameters": (16, f"functions of lib/ and design/ with more than {MAX_PARAMETERS} parameters"),
    "long_functions": (0, f"functions of more than {MAX_LINES} lines"),
    "columns": (3, f"lines beyond {MAX_COLUMNS} columns"),
    "assert_share": (4.5, "asserts in 1000 lines of lib/"),
    "conditionals": (0, "lines of lib/ and design/ with nested conditional operators"),
    "lines_cpu": (35480, "lines in lib/ without lib/cuda"),  # the aim is 31 000
    "lines_design": (1480, "lines in design/"),
    "lines_cuda": (18710, "lines in lib/cuda"),  # the aim is 15 500
    "docs": (7380, "lines of text in docs/"),
    "words": (0, "words that are no longer used"),
    "links": (0, "links of documents that lead nowhere"),
    "named_tests": (0, "tests named in docs/faults.md that do not exist"),
}
AT_LEAST = ("assert_share",)
SINCE = "9876b01e9f8877e03b524bbdff68bb3a5fd5b417"  # limits are compared with those of this commit and later ones
LIMIT = re.compile(r'^\+?    "(\w+)": \(([\d.]+),', re.M)

Measured = collections.namedtuple("Measured", "figure offenders")


def counted(offenders):
    return Measured(len(offenders), offenders)


def measure_raised(tree):
    return raised(tree.root, LIMITS, SINCE)


def raised(root, limits, since):
    """Limits that were stricter in a commit since the given one; None where git does not know that commit."""
    texts = [subprocess.run(["git", "-C", root, *command], capture_output=True, text=True, check=False)
             for command in (("show", f"{since}:tools/house.py"),
                             ("log", "-p", "-U0", "--format=", f"{since}..HEAD", "--", "tools/house.py"))]
    if any(t.returncode for t in texts):
        return None
    found = set()
    for name, value in (match for t in texts for match in LIMIT.findall(t.stdout)):
        if name in limits and within(name, float(value), limits[name][0]) and float(value) != limits[name][0]:
            found.add(f"{name}: {limits[name][0]}, and {value} before")
    return counted(sorted(found))


def within(name, figure, limit):
    return figure >= limit if name in AT_LEAST else figure <= limit


def measure_arrows(tree):
    return counted(house_arrows.arrows(tree))


def measure_circles(tree):
    return counted(house_arrows.circles(house_arrows.folder_edges(tree)))


def measure_calls_up(tree):
    return counted(house_arrows.calls_up(tree))


def measure_call_circles(tree):
    return counted(house_arrows.circles(house_arrows.calls(tree)))


def measure_folders(tree):
    files = collections.Counter(f.folder for f in tree.under(*LIBRARY, "apps", "plugins", "bench", "tests"))
    return counted([f"{folder}: {n} files" for folder, n in files.most_common() if n > MAX_FILES])


def measure_loose(tree):
    return counted([f"lib/{p.name}" for p in sorted((tree.root / "lib").iterdir()) if p.is_file()])


def measure_prefixes(tree):
    return counted([str(f.path) for f in tree.under(*LIBRARY, "apps", "plugins", "bench", "tests")
                    if f.path.name.startswith((f.path.parent.name + "_", f.path.parent.name + "-"))])


def measure_shared_names(tree):
    # What a file defines twice, under #if or for another type, is one function.
    places = collections.defaultdict(dict)
    for function in functions_of(tree, *LIBRARY):
        places[function.name].setdefault(function.file.path, function)
    total = sum(len(p) for p in places.values())
    shared = sorted((p for p in places.values() if len(p) > 1), key=lambda p: -len(p))
    return Measured(100 * sum(len(p) for p in shared) / max(total, 1),
                    [f"{len(p)} x " + ", ".join(f.place() for f in p.values()) for p in shared])


def measure_parameters(tree):
    many = [f for f in functions_of(tree, *LIBRARY) if f.parameters > MAX_PARAMETERS]
    return counted([f"{f.parameters}: {f.place()}" for f in sorted(many, key=lambda f: -f.parameters)])


def measure_long_functions(tree):
    long = [f for f in functions_of(tree, *house_source.TREES) if f.lines > MAX_LINES]
    return counted([f"{f.lines}: {f.place()}" for f in sorted(long, key=lambda f: -f.lines)])


def functions_of(tree, *tops):
    return [f for f in tree.functions() if f.file.path.parts[0] in tops]


def measure_columns(tree):
    wide = []
    for file in tree.files:
        for number, line in enumerate(file.text.split("\n"), 1):
            if len(line.expandtabs(8)) > MAX_COLUMNS:
                wide.append(f"{file.path}:{number} {len(line.expandtabs(8))} columns")
    return counted(wide)


def measure_assert_share(tree):
    asserts = sum(house_code.asserts(file) for file in tree.under("lib"))
    lines = sum(file.text.count("\n") for file in tree.under("lib"))
    return Measured(1000 * asserts / max(lines, 1), [])


def measure_conditionals(tree):
    return counted([line for f in tree.under(*LIBRARY) for line in house_code.nested_conditionals(f)])


def measure_lines_cpu(tree):
    return lines_of([f for f in tree.under("lib") if f.path.parts[1] != "cuda"])


def measure_lines_cuda(tree):
    return lines_of([f for f in tree.under("lib") if f.path.parts[1] == "cuda"])


def measure_lines_design(tree):
    return lines_of(tree.under("design"))


def lines_of(files):
    lines = collections.Counter()
    for file in files:
        lines[file.folder] += file.text.count("\n")
    return Measured(sum(lines.values()), [f"{n} in {folder}" for folder, n in lines.most_common()])


def measure_docs(tree):
    lines = {path.relative_to(tree.root): path.read_text(encoding="utf-8").count("\n")
             for path in (tree.root / "docs").rglob("*") if path.suffix in (".md", ".json", ".py", ".build")}
    return Measured(sum(lines.values()), [f"{n} in {path}" for path, n in sorted(lines.items(), key=lambda item: -item[1])])


def measure_words(tree):
    return counted(house_words.old_words(tree))


def measure_links(tree):
    return counted(list(house_links.broken_links(tree.root)))


def measure_named_tests(tree):
    return counted(house_tests.unknown_tests(tree.root))


def measure(name, tree):
    """The measure of this name, None where its tool is missing."""
    try:
        return globals()["measure_" + name](tree)
    except FileNotFoundError:
        return None


def number(value):
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def summary(name, offenders):
    """What to show of many offenders: the first ones; of words how often each stands where."""
    if name != "words":
        return offenders
    words = collections.Counter(o.split(" ", 1)[1] for o in offenders)
    first = {o.split(" ", 1)[1]: o.split(" ", 1)[0] for o in reversed(offenders)}
    return [f"{n} x {word}, first in {first[word]}" for word, n in words.most_common()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--all", choices=LIMITS)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    tree = house_source.Tree(arguments.root)
    if arguments.all:
        print("\n".join((measure(arguments.all, tree) or counted([])).offenders))
        return 0
    broken = False
    if arguments.tap:
        print(f"1..{len(LIMITS)}")
    for index, (name, (limit, what)) in enumerate(LIMITS.items(), 1):
        measured = measure(name, tree)
        if measured is None:
            reason = "no git, or no history of the limits" if name == "raised" else "no Universal Ctags (universal-ctags)"
            print(f"ok {index} - {name} # SKIP {reason}" if arguments.tap else f"{name}: not measured, {reason}")
            continue
        good = within(name, measured.figure, limit)
        broken = broken or not good
        line = f"{name}: {number(measured.figure)} {what} ({'at least' if name in AT_LEAST else 'limit'} {limit})"
        if arguments.tap:
            todo = "" if good or not arguments.report else " # TODO reported only"
            print(f"{'ok' if good else 'not ok'} {index} - {line}{todo}")
        elif not good or arguments.report:
            print(("" if good else "BEYOND  ") + line)
        if not good:
            for offender in summary(name, measured.offenders)[:6]:
                print(("# " if arguments.tap else "    ") + str(offender))
    return 1 if broken and not arguments.report else 0


if __name__ == "__main__":
    sys.exit(main())
