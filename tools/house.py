#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how the sources are ordered and fails where a measure is beyond its limit.

house.py [--report] [--all MEASURE] [--tap] [ROOT]
  --report       says the figure of each measure and its first offenders; the exit status is 0 all the same
  --all MEASURE  lists every offender of one measure
  --tap          one TAP test a measure; those beyond their limit are TODO with --report
Needs Universal Ctags for the measures of functions; without it these are left out, or skipped with --tap.
"""
import argparse
import collections
import pathlib
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
COSTS = ("cost", "estimate", "search", "choose")  # in names of files that compute costs

# Measure: limit, what is counted. The measures stand below under the same names. A limit is the largest figure that
# will do, but for those in AT_LEAST.
LIMITS = {
    "arrows": (0, "includes within lib/ that go up or sideways"),
    "circles": (0, "circles among folders"),
    "folders": (0, f"folders with more than {MAX_FILES} C and CUDA files"),
    "loose": (3, "files loose in lib/"),
    "prefixes": (0, "files that repeat their folder's name"),
    "shared_names": (3, "% of the functions of lib/ share their name"),
    "parameters": (20, f"functions of lib/ with more than {MAX_PARAMETERS} parameters"),
    "long_functions": (0, f"functions of more than {MAX_LINES} lines"),
    "columns_lib": (0.1, f"% of the lines of lib/ are beyond {MAX_COLUMNS} columns"),
    "columns_include": (0.1, f"% of the lines of include/ are beyond {MAX_COLUMNS} columns"),
    "columns_apps": (0.1, f"% of the lines of apps/ are beyond {MAX_COLUMNS} columns"),
    "columns_plugins": (0.1, f"% of the lines of plugins/ are beyond {MAX_COLUMNS} columns"),
    "columns_bench": (0.1, f"% of the lines of bench/ are beyond {MAX_COLUMNS} columns"),
    "columns_tests": (0.1, f"% of the lines of tests/ are beyond {MAX_COLUMNS} columns"),
    "asserts": (150, "asserts in lib/"),
    "conditionals": (0, "lines of lib/ with nested conditional operators"),
    "declarations": (0, "statements with several declarations in code of costs"),
    "lines": (55950, "lines in lib/"),  # 32 000 is the aim
    "words": (0, "words that are no longer used"),
    "links": (0, "links of documents that lead nowhere"),
    "named_tests": (0, "tests named in docs/faults.md that do not exist"),
}
AT_LEAST = ("asserts",)
OF_FUNCTIONS = ("shared_names", "parameters", "long_functions")

Measured = collections.namedtuple("Measured", "figure offenders")


def counted(offenders):
    return Measured(len(offenders), offenders)


def measure_arrows(tree):
    return counted(house_arrows.arrows(tree))


def measure_circles(tree):
    return counted(house_arrows.circles(tree))


def measure_folders(tree):
    files = collections.Counter(f.folder for f in tree.under("lib", "apps", "plugins", "bench", "tests"))
    return counted([f"{folder}: {n} files" for folder, n in files.most_common() if n > MAX_FILES])


def measure_loose(tree):
    return counted([f"lib/{p.name}" for p in sorted((tree.root / "lib").iterdir()) if p.is_file()])


def measure_prefixes(tree):
    return counted([str(f.path) for f in tree.under("lib", "apps", "plugins", "bench", "tests")
                    if f.path.name.startswith((f.path.parent.name + "_", f.path.parent.name + "-"))])


def measure_shared_names(tree):
    # What a file defines twice, under #if or for another type, is one function.
    places = collections.defaultdict(dict)
    for function in functions_of(tree, "lib"):
        places[function.name].setdefault(function.file.path, function)
    total = sum(len(p) for p in places.values())
    shared = sorted((p for p in places.values() if len(p) > 1), key=lambda p: -len(p))
    return Measured(100 * sum(len(p) for p in shared) / max(total, 1),
                    [f"{len(p)} x " + ", ".join(f.place() for f in p.values()) for p in shared])


def measure_parameters(tree):
    many = [f for f in functions_of(tree, "lib") if f.parameters > MAX_PARAMETERS]
    return counted([f"{f.parameters}: {f.place()}" for f in sorted(many, key=lambda f: -f.parameters)])


def measure_long_functions(tree):
    long = [f for f in functions_of(tree, *house_source.TREES) if f.lines > MAX_LINES]
    return counted([f"{f.lines}: {f.place()}" for f in sorted(long, key=lambda f: -f.lines)])


def functions_of(tree, *tops):
    return [f for f in tree.functions() if f.file.path.parts[0] in tops]


def measure_columns(tree, top):
    lines, wide = 0, []
    for file in tree.under(top):
        for number, line in enumerate(file.text.removesuffix("\n").split("\n"), 1):
            lines += 1
            columns = len(line.expandtabs(8))
            if columns > MAX_COLUMNS:
                wide.append(f"{file.path}:{number} {columns} columns")
    return Measured(100 * len(wide) / max(lines, 1), wide)


def measure_asserts(tree):
    folders = collections.Counter()
    for file in tree.under("lib"):
        folders[file.folder] += house_code.asserts(file)
    return Measured(sum(folders.values()), [f"{n} in {folder}" for folder, n in reversed(folders.most_common())])


def measure_conditionals(tree):
    return counted([line for f in tree.under("lib") for line in house_code.nested_conditionals(f)])


def measure_declarations(tree):
    return counted([line for f in tree.under("lib") if any(word in f.path.stem for word in COSTS)
                    for line in house_code.joined_declarations(f)])


def measure_lines(tree):
    lines = collections.Counter()
    for file in tree.under("lib"):
        lines[file.folder] += file.text.count("\n")
    return Measured(sum(lines.values()), [f"{n} in {folder}" for folder, n in lines.most_common()])


def measure_words(tree):
    return counted(house_words.old_words(tree))


def measure_links(tree):
    return counted(list(house_links.broken_links(tree.root)))


def measure_named_tests(tree):
    return counted(house_tests.unknown_tests(tree.root))


def measure(name, tree):
    if name.startswith("columns_"):
        return measure_columns(tree, name.removeprefix("columns_"))
    return globals()["measure_" + name](tree)


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
        print("\n".join(measure(arguments.all, tree).offenders))
        return 0
    has_ctags = house_source.find_ctags() is not None
    broken = False
    if arguments.tap:
        print(f"1..{len(LIMITS)}")
    for index, (name, (limit, what)) in enumerate(LIMITS.items(), 1):
        if name in OF_FUNCTIONS and not has_ctags:
            print(f"ok {index} - {name} # SKIP no Universal Ctags (universal-ctags)" if arguments.tap
                  else f"{name}: not measured, there is no Universal Ctags (universal-ctags)")
            continue
        measured = measure(name, tree)
        good = measured.figure >= limit if name in AT_LEAST else measured.figure <= limit
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
