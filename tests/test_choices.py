#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the planner chooses for the cases of the benchmarks with tests/plan/choices-*.csv, a file for each
instruction set: engine, variant, transform and hop exactly, predicted seconds within 1 %. Prints each changed choice with
the old and the new one. TAP.

usage: test_choices.py [--write] BENCH_CHOICES
  --write  stores the choices of this build instead; in the commit that changes them
"""
import csv
import io
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "plan"
LEVELS = ("avx512bf16", "avx512", "avx2", "c")
TOLERANCE = 0.01


def rows(text):
    found = list(csv.DictReader(io.StringIO(text)))
    by_case = {row["case"]: row for row in found}
    assert len(by_case) == len(found), "two cases have one name"
    return by_case


def choice(row):
    return tuple(row[name] for name in ("engine", "variant", "transform", "hop"))


def words(row):
    engine = row["engine"] + (":" + row["variant"] if row["variant"] else "")
    return f"{engine} transform {row['transform']} hop {row['hop']} {row['seconds']} s"


def same(old, new):
    if choice(old) != choice(new):
        return False
    return not old["seconds"] or abs(float(new["seconds"]) / float(old["seconds"]) - 1) <= TOLERANCE


def changes(old, new):
    """A line for each case whose choice differs."""
    for case in old.keys() | new.keys():
        if case not in old or case not in new:
            yield f"{case}: " + ("is new" if case in new else "is gone")
        elif not same(old[case], new[case]):
            ratio = float(new[case]["seconds"] or 0) / float(old[case]["seconds"] or 1)
            yield f"{case}: {words(old[case])} -> {words(new[case])} ({ratio:.3f})"


def main():
    write, program = sys.argv[1:2] == ["--write"], sys.argv[-1]
    if len(sys.argv) != 2 + write:
        sys.exit(__doc__.split("\n\n")[1])
    if not write:
        print(f"1..{len(LEVELS)}")
    for number, level in enumerate(LEVELS, 1):
        path = FOLDER / f"choices-{level}.csv"
        text = subprocess.run([program, level], capture_output=True, text=True, check=True).stdout
        found = sorted(changes(rows(path.read_text() if path.exists() else ""), rows(text)))
        if write:
            path.write_text(text)
            print(f"{path.name}: {len(found)} choices changed", *found, sep="\n  ")
            continue
        print(("not ok" if found else "ok") + f" {number} - choices with {level}")
        print("".join(f"# {line}\n" for line in found), end="")
        if found:
            print(f"# tests/test_choices.py --write {program} stores the new choices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
