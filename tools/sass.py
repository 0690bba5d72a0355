#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions in loops of CUDA kernels, from their machine code.

    nvcc -std=c++17 -O3 -Iinclude -arch=sm_90 -cubin lib/cuda/kernels/product.cu -Ilib -o product.cubin
    nvdisasm -c product.cubin | tools/sass.py 'product_kernelIfLi4ELi2'

Prints the instructions by class of every loop of the kernels whose names the expression matches; marks inner loops. It
is the source of figures of cost models and decision records that are 'counted from the machine code'.
"""
import collections
import re
import sys

CLASSES = (
    ("multiply-add", r"[FD]FMA"),
    ("matrix multiply-add", r"HMMA"),
    ("add or multiply", r"[FD](ADD|MUL)"),
    ("branch", r"BRA|BSSY|BSYNC|EXIT|CALL|RET|BAR|WARPSYNC|BREAK"),
    ("predicate", r"[IF]SETP|PLOP3|[F]?SEL"),
)


def class_of(operation):
    name, _, suffix = operation.partition(".")
    if re.fullmatch(r"(LD|ST)[SGLC]|ULDC", name):
        width = re.search(r"\b(64|128)\b", suffix)
        return name + "." + (width.group(1) if width else "32")
    for name_of_class, pattern in CLASSES:
        if re.fullmatch(pattern, name):
            return name_of_class
    return "other"


def loops_of(lines):
    """Pairs of a loop's first and last instruction, and all operations."""
    operations, labels, branches = [], {}, []
    for line in lines:
        if label := re.match(r"(\.L_\w+):", line):
            labels[label.group(1)] = len(operations)
        elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)(.*)", line):
            if found.group(1).startswith("BRA") and (target := re.search(r"`\((\.L_\w+)\)", found.group(2))):
                branches.append((target.group(1), len(operations)))
            operations.append(found.group(1))
    loops = {(labels[to], at) for to, at in branches if labels.get(to, at + 1) < at}
    return sorted(loops), operations


def main():
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    for function in re.split(r"\n\s*\.section\s+\.text\.", sys.stdin.read())[1:]:
        name = function.partition(",")[0]
        if not wanted.search(name):
            continue
        loops, operations = loops_of(function.splitlines())
        print(f"{name}: {len(operations)} instructions")
        for first, last in loops:
            inner = not any((a, b) != (first, last) and a >= first and b <= last for a, b in loops)
            counts = collections.Counter(map(class_of, operations[first : last + 1]))
            classes = ", ".join(f"{n} {name}" for name, n in counts.most_common())
            print(f"  {first}..{last}{' inner' if inner else ''}: {last - first + 1}: {classes}")


if __name__ == "__main__":
    main()
