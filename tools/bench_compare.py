#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the benchmarks of two builds case by case in alternation, since only ratios taken in one run mean anything.

usage: bench_compare.py OLD NEW PROGRAM [--case PATTERN] [--contender PATTERN] [--threads N] [--rounds N] [--quick]

OLD and NEW are build folders, PROGRAM is the name of a benchmark without "bench_", for example layer. A line for each
row: ns an item, each the least of the medians of all rounds, and new / old. "slower" marks new times that are more than
3 % above the old ones, "missing" a row that only one of the builds has. Exit status 1: a line has such a mark.
Defaults: all cases, the contender auto, as many threads as the benchmark takes, 3 rounds.
"""
import argparse
import csv
import fnmatch
import math
import pathlib
import subprocess
import sys

LIMIT = 1.03


def rows(build, arguments, case):
    """ns an item by case, contender and threads."""
    program = pathlib.Path(build, "bench", f"bench_{arguments.program}")
    command = [program, "--case", case, "--contender", arguments.contender]
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    if arguments.quick:
        command.append("--quick")
    # Standard error has the reasons why contenders are left out.
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return {(row["case"], row["contender"], row["threads"]): float(row["ns_per_item"])
            for row in csv.DictReader(printed.splitlines())}


def compare(arguments, case):
    """Prints the lines of a case; returns whether none has a mark."""
    least = {build: {} for build in (arguments.old, arguments.new)}
    for number in range(arguments.rounds):
        order = list(least) if number % 2 == 0 else reversed(list(least))
        for build in order:
            for key, time in rows(build, arguments, case).items():
                least[build][key] = min(time, least[build].get(key, time))
    held = True
    for key in sorted(least[arguments.old].keys() | least[arguments.new].keys()) or [(case, "", "")]:
        old, new = (least[build].get(key, math.nan) for build in least)
        mark = "missing" if math.isnan(old + new) else "slower" if new > LIMIT * old else ""
        held &= not mark
        print(*key, f"{old:.5g}", f"{new:.5g}", f"{new / old:.3f}", mark, sep=",", flush=True)
    return held


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("program")
    parser.add_argument("--case", default="*")
    parser.add_argument("--contender", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if pathlib.Path(arguments.old).resolve() == pathlib.Path(arguments.new).resolve():
        sys.exit("bench_compare.py: both builds are the same folder")
    for build in (arguments.old, arguments.new):
        if not pathlib.Path(build, "bench", f"bench_{arguments.program}").exists():
            sys.exit(f"bench_compare.py: {build} has no bench/bench_{arguments.program}")
    listed = subprocess.run([pathlib.Path(arguments.old, "bench", f"bench_{arguments.program}"), "--list"],
                            capture_output=True, text=True, check=True).stdout.split()
    cases = [case for case in listed if fnmatch.fnmatch(case, arguments.case)]
    if not cases:
        sys.exit(f"bench_compare.py: no case matches '{arguments.case}'")
    print("case,contender,threads,old,new,ratio,mark")
    held = [compare(arguments, case) for case in cases]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
