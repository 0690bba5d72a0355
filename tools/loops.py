#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions in the inner loops of the kernels for aarch64, and compares them with what a core with vectors
of 128 bits can do at most.

    meson setup BUILD --cross-file tools/cross-aarch64.ini -Dbench=false -Dcuda=disabled
    ninja -C BUILD lib/kernels/libkernels_f32_neon.a
    tools/loops.py BUILD                 the table of docs/decisions/0048-aarch64-loops.md
    tools/loops.py BUILD PATTERN         all loops of the functions whose names match

A loop is a natural loop of the function's flow graph, with all its branches. Of a function the innermost loop with most
arithmetic is shown, or of those with the number of multiply-adds that its row in LOOPS names the first one.
"""
import argparse
import collections
import functools
import pathlib
import re
import subprocess

# What a cycle can do at most: vector operations, accesses of memory, and instructions of any kind.
Core = collections.namedtuple("Core", "name pipes loads stores width")
CORES = (Core("2 pipes, 1 load", 2, 1, 1, 3), Core("2 pipes, 2 loads", 2, 2, 1, 4), Core("4 pipes, 2 loads", 4, 2, 2, 8))
LATENCY = 4  # cycles from a multiply-add to the next one of the same sum

# What the table shows: words, function, multiply-adds of the loop where it is not the largest one.
LOOPS = (
    ("`fir`, real taps, 16 vectors of outputs", "k_fir_f32_neon", None),
    ("`fir_complex`", "k_fir_complex_f32_neon", None),
    ("`resample`", "k_resample_f32_neon", None),
    ("`conv` (direct, gemm, winograd, tiles): 8 channels x 3 vectors", "k_conv_f32_neon", 24),
    ("`conv_weight`", "k_conv_weight_f32_neon", None),
    ("`lanes_conv`, 3 taps of a depthwise layer", "k_lanes_conv_f32_neon", 48),
    ("`lanes_conv`, 7 taps", "k_lanes_conv_f32_neon", 112),
    ("`lanes_weight`", "k_lanes_weight_f32_neon", None),
    ("`lanes_product`", "k_lanes_product_f32_neon", None),
    ("`cmac`, one product a spectrum", "k_cmac_f32_neon", None),
    ("`cmac_partitions`", "k_cmac_partitions_f32_neon", None),
    ("`cmac_partitions_i16`", "k_cmac_partitions_i16_f32_neon", None),
    ("transform, pass", "fft_pass", None),
    ("transform, inverse pass", "fft_pass_inverse", None),
    ("transform, leaves", "fft_leaves", None),
    ("transform, inverse leaves", "fft_leaves_inverse", None),
    ("`tile_forward`", "k_tile_forward_f32_neon", None),
    ("`tile_inverse`", "k_tile_inverse_f32_neon", None),
    ("`lanes_dft`", "k_lanes_dft_f32_neon", None),
    ("`winograd_input`", "k_winograd_input_f32_neon", None),
    ("`winograd_output`", "k_winograd_output_f32_neon", None),
)

ARITHMETIC = r"f(mla|mls|mul|add|sub|neg|abs|max|min|nmul|madd|msub|cvt\w*)|scvtf|ucvtf"
LOADED = {"ldp": 2, "ldnp": 2}


class Instruction:
    def __init__(self, address, name, operands):
        self.address, self.name, self.operands = address, name, operands
        found = re.search(r"\b([0-9a-f]+) <", operands)
        jumps = re.fullmatch(r"b(\.\w+)?|cbn?z|tbn?z", name)
        self.target = int(found.group(1), 16) if found and jumps else None
        self.falls = name not in ("b", "ret", "br")

    def registers(self):
        return len(re.findall(r"v\d+", self.operands.partition("}")[0])) if "{" in self.operands else 1

    def counts(self):
        """What it adds to the counts of its loop."""
        memory = "[" in re.sub(r"v\d+\.\w+\[|\}\[", "", self.operands)
        vector = bool(re.search(r"\b[qv]\d+", self.operands))
        ret = collections.Counter(instructions=1, stack=int(vector and "[sp" in self.operands))
        if self.name.startswith(("ld", "prfm")) and memory:
            ret["loads"] = LOADED.get(self.name, self.registers())
            ret["shuffles"] = int(self.name in ("ld1r", "ld2", "ld3", "ld4")) * self.registers()
        elif self.name.startswith("st") and memory:
            ret["stores"] = 2 if self.name in ("stp", "stnp") else self.registers()
            ret["shuffles"] = int(self.name in ("st2", "st3", "st4")) * self.registers()
        elif re.fullmatch(ARITHMETIC, self.name) and re.search(r"\bv\d+", self.operands):
            ret["arithmetic"] = 1
            ret["fma"] = int(self.name in ("fmla", "fmls"))
        elif vector:
            ret["shuffles"] = 1
        else:
            ret["others"] = 1
        return ret


def functions(build):
    """The functions of the kernels' archive: name and instructions."""
    archive = pathlib.Path(build, "lib/kernels/libkernels_f32_neon.a")
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", str(archive)], check=True,
                          capture_output=True, text=True).stdout
    for part in re.split(r"\n(?=[0-9a-f]{16} <)", text)[1:]:
        name = re.match(r"\w+ <(.*)>:", part)[1]
        found = re.findall(r"^\s+([0-9a-f]+):\s+(\S+)[ \t]*(.*)$", part, re.M)
        yield name, [Instruction(int(address, 16), operation, operands.partition("//")[0])
                     for address, operation, operands in found]


def flow(code):
    """The instructions that may come before and after each one."""
    index = {instruction.address: i for i, instruction in enumerate(code)}
    before, after = [[] for _ in code], [[] for _ in code]
    for i, instruction in enumerate(code):
        following = [index[instruction.target]] if instruction.target in index else []
        if instruction.falls and i + 1 < len(code):
            following.append(i + 1)
        after[i] = following
        for j in following:
            before[j].append(i)
    return before, after


def visit(after):
    """All instructions, each after those that follow it, and where ways begin: at the function's begin, and wherever
    only a jump by a table leads."""
    order, seen, begins = [], set(), []
    for begin in range(len(after)):
        if begin in seen:
            continue
        begins.append(begin)
        seen.add(begin)
        stack = [(begin, iter(after[begin]))]
        while stack:
            at, rest = stack[-1]
            following = next((j for j in rest if j not in seen), None)
            if following is None:
                order.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(after[following])))
    return order, set(begins)


def dominators(before, after):
    """Of each instruction the set of those that every way to it goes through, as bits."""
    order, begins = visit(after)
    sets = [None] * len(after)
    changed = True
    while changed:
        changed = False
        for i in reversed(order):
            known = [sets[j] for j in before[i] if sets[j] is not None]
            now = 1 << i
            if known and i not in begins:
                now |= functools.reduce(int.__and__, known)
            changed |= sets[i] != now
            sets[i] = now
    return sets


def loops(code):
    """Natural loops as sets of indices into the code; the innermost ones only."""
    before, after = flow(code)
    through = dominators(before, after)
    found = {}
    for i, following in enumerate(after):
        for head in following:
            if not through[i] >> head & 1:
                continue
            body, todo = {head}, [i]
            while todo:
                at = todo.pop()
                if at not in body:
                    body.add(at)
                    todo += before[at]
            found[head] = found.get(head, set()) | body
    return [body for body in found.values() if not any(other < body for other in found.values())]


def sums_chain(code, body):
    """The most multiply-adds in one iteration that add to the same register, which nothing else writes."""
    chains, written = collections.Counter(), collections.Counter()
    for i in body:
        found = re.match(r"[qv](\d+)", code[i].operands)
        if found and not code[i].name.startswith("st"):
            written[found[1]] += 1
            chains[found[1]] += code[i].name in ("fmla", "fmls")
    return max((n for register, n in chains.items() if written[register] == n), default=0)


def cycles(counts, chain, core):
    """The least cycles of an iteration, by what limits it."""
    return max((counts["arithmetic"] + counts["shuffles"]) / core.pipes, counts["loads"] / core.loads,
               counts["stores"] / core.stores, counts["instructions"] / core.width, chain * LATENCY)


def measure(code, body):
    counts = sum((code[i].counts() for i in body), collections.Counter())
    chain = sums_chain(code, body)
    shares = [100 * counts["arithmetic"] / core.pipes / cycles(counts, chain, core) for core in CORES]
    return counts, shares


def row(words, counts, shares):
    numbers = [counts[key] for key in ("fma", "arithmetic", "shuffles", "loads", "stores", "others", "stack")]
    return f"| {words} | " + " | ".join(map(str, numbers)) + " | " + " | ".join(f"{share:.0f} %" for share in shares) + " |"


def table(by_name):
    for words, name, wanted in LOOPS:
        code = by_name[name]
        measured = [measure(code, body) for body in loops(code)]
        if wanted:
            measured = [m for m in measured if m[0]["fma"] == wanted]
        counts, shares = max(measured, key=lambda m: m[0]["arithmetic"])
        yield row(words, counts, shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("pattern", nargs="?")
    arguments = parser.parse_args()
    by_name = dict(functions(arguments.build))
    heads = ["loop", "multiply-adds", "arithmetic", "other vector", "loads", "stores", "others", "on the stack"]
    heads += [core.name for core in CORES]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    if not arguments.pattern:
        print("\n".join(table(by_name)))
        return
    for name, code in by_name.items():
        if not re.search(arguments.pattern, name):
            continue
        for body in loops(code):
            counts, shares = measure(code, body)
            if counts["arithmetic"]:
                print(row(f"{name} {code[min(body)].address:x}", counts, shares))


if __name__ == "__main__":
    main()
