#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures how the sources are ordered and fails where a measure is beyond its limit. Limits only fall.

house.py [--report] [--all MEASURE] [--tap] [ROOT]
  --report       prints the figure of each measure and its first offenders; the exit status is 0 all the same
  --all MEASURE  lists every offender of one measure
  --tap          one TAP test a measure
Needs Universal Ctags for the measures of functions, and git for that of limits; without it they are skipped.
"""
import argparse
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import house_arrows  # noqa: E402
import house_code  # noqa: E402
import house_source  # noqa: E402
import house_text  # noqa: E402

# Measure: limit, what is counted; one line each. A limit is the largest figure that will do, but for those in AT_LEAST.
LIMITS = {
    "raised": (0, "limits that are less strict than in an earlier commit"),
    "arrows": (0, "includes within lib/ and design/ that go up or sideways"),
    "circles": (0, "circles among folders"),
    "calls_up": (0, "calls within lib/ and design/ that go up or sideways"),
    "call_circles": (0, "circles among the files of lib/ and design/ by calls"),
    "folders": (0, f"folders with more than {house_code.MAX_FILES} C and CUDA files"),
    "loose": (3, "files loose in lib/"),
    "prefixes": (0, "files that repeat their folder's name"),
    "shared_names": (3, "% of the functions of lib/ and design/ share their name"),
    "parameters": (15, f"functions of lib/ and design/ with more than {house_code.MAX_PARAMETERS} parameters"),
    "long_functions": (0, f"functions of more than {house_code.MAX_LINES} lines"),
    "columns": (3, f"lines beyond {house_code.MAX_COLUMNS} columns"),
    "assert_share": (4.5, "asserts in 1000 lines of lib/"),
    "conditionals": (0, "lines of lib/ and design/ with nested conditional operators"),
    "lines_cpu": (32762, "lines in lib/ without lib/adaptive, lib/bank, lib/cuda, lib/sequence and morphs"),  # the redesign reached 31 780
    "lines_design": (1478, "lines in design/ without design/correction and design/equalizer"),
    "lines_measured": (1200, "lines in design/correction and design/equalizer"),
    "lines_cuda": (17042, "lines in lib/cuda"),  # the redesign reached 17 190
    "lines_adaptive": (649, "lines in lib/adaptive"),
    "lines_bank": (1785, "lines in lib/bank"),
    "lines_morph": (819, "lines in files of lib/ whose names begin with morph"),
    "lines_sequence": (1479, "lines in lib/sequence"),
    "docs": (7380, "lines of text in docs/"),
    "tools": (3200, "lines in tools/"),
    "words": (0, "words that are no longer used"),
    "names": (0, "variables, fields and types whose name says nothing: " + ", ".join(house_text.EMPTY_NAMES)),
    "what": (32, "uses of \"what\" in comments of lib/ and design/"),
    "links": (0, "links of documents that lead nowhere"),
    "named_tests": (0, "tests named in docs/faults.md that do not exist"),
}
AT_LEAST = ("assert_share",)
SINCE = "616e8a5966719998b42bb2cbe8db979998402bcd"  # limits are compared with those of this commit and later ones
LIMIT = re.compile(r'^\+?    "(\w+)": \(([\d.]+),', re.M)


def within(name, figure, limit):
    return figure >= limit if name in AT_LEAST else figure <= limit


def raised(tree, limits=None, since=SINCE):
    """Limits that were stricter in a commit since the given one; FileNotFoundError if git does not know that commit."""
    limits = limits or LIMITS
    texts = [subprocess.run(["git", "-C", tree.root, *command], capture_output=True, text=True, check=False)
             for command in (("show", f"{since}:tools/house.py"),
                             ("log", "-p", "-U0", "--format=", f"{since}..HEAD", "--", "tools/house.py"))]
    if any(t.returncode for t in texts):
        raise FileNotFoundError("no history of the limits")
    return sorted({name: f"{name}: {limits[name][0]}, and {value} before"
                   for t in texts for name, value in LIMIT.findall(t.stdout)
                   if name in limits and within(name, float(value), limits[name][0]) and float(value) != limits[name][0]}.values())


def measure(name, tree):
    """The figure of a measure and its offenders; the function of this name returns both, or the offenders alone."""
    found = next(vars(m)[name] for m in (sys.modules[__name__], house_arrows, house_code, house_text) if name in vars(m))(tree)
    return found if isinstance(found, tuple) else (len(found), found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--all", choices=LIMITS)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    tree = house_source.Tree(arguments.root)
    if arguments.all:
        print("\n".join(measure(arguments.all, tree)[1]))
        return 0
    broken = False
    if arguments.tap:
        print(f"1..{len(LIMITS)}")
    for index, (name, (limit, what)) in enumerate(LIMITS.items(), 1):
        try:
            figure, offenders = measure(name, tree)
        except FileNotFoundError as missing:
            print(f"ok {index} - {name} # SKIP {missing}" if arguments.tap else f"{name}: not measured, {missing}")
            continue
        good = within(name, figure, limit)
        broken = broken or not good
        line = f"{name}: {round(figure, 2):g} {what} ({'at least' if name in AT_LEAST else 'limit'} {limit})"
        if arguments.tap:
            print(f"{'ok' if good else 'not ok'} {index} - {line}")
        elif not good or arguments.report:
            print(("" if good else "BEYOND  ") + line)
        if not good:
            print("\n".join(("# " if arguments.tap else "    ") + offender for offender in offenders[:6]))
    return 1 if broken and not arguments.report else 0


if __name__ == "__main__":
    sys.exit(main())
