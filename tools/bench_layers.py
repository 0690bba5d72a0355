# SPDX-License-Identifier: MIT
"""The part of tools/bench-table.py about layers: required figures and goals, networks summed by depth, the table of errors."""
import csv
import sys

AUTO, DIRECTIONS = ("auto", 1), ("forward", "backward-data", "backward-weight")
BEST = (("onednn", "onednn-winograd"), 1)  # the faster of the two
ENGINES = ("cpu/direct", "cpu/gemm", "cpu/winograd", "cpu/tiles", "cpu/depthwise", "cpu/overlap-save", "cpu/blocks")
CHOICES = "all cases"
POINTWISE = ("resnet-2-expand", "resnet-3-reduce", "resnet-4-expand", "resnet-5-reduce")  # of ResNet-50
# Where oneDNN's Winograd convolution refuses a layer of a network, its direct one is taken.
SUBSTITUTES = {"onednn-winograd": "onednn"}
MAX_SPREAD = 0.3  # of a row in README.md


def interpolate(low, high, r):
    """A bound at kernel size r, interpolated geometrically between those at 11 and at 29."""
    return low * (high / low) ** ((r - 11) / 18)


# As TARGETS of bench-table.py.
TARGETS = []
for n in (1, 16):
    for direction in DIRECTIONS:
        case = f"vgg-e-n{n}-{direction}"
        for threads in (1, 2):
            TARGETS.append((f"oneDNN's direct, {threads} thread{'s' * (threads > 1)}", case, ("auto", threads),
                           ("onednn", threads), "ratio", 1.8, None))
            TARGETS.append((f"oneDNN's best, {threads} thread{'s' * (threads > 1)}", case, ("auto", threads),
                           (BEST[0], threads), "ratio", 1, 1.3))
        TARGETS.append(("oneDNN's direct, reorders included", case, AUTO, ("onednn+reorder", 1), "ratio", None, None))
for layer, required, goal in ((1, 1.15, 2), (2, 3, 4), (3, 1.15, 2), (4, 1.15, 2), (5, 1.15, 2)):
    for direction in DIRECTIONS:
        TARGETS.append(("oneDNN's best", f"caffenet-{layer}-{direction}", AUTO, BEST, "ratio", required, goal))
for layer, required in ((1, 3), (2, 3), (3, 4), (4, 3), (5, 4)):
    for direction in DIRECTIONS:
        TARGETS.append(("oneDNN's best", f"dieleman-{layer}-{direction}", AUTO, BEST, "ratio", required, 6))
for r, required, weight, goal in ((9, 8, 9, 20), (15, 15, 25, 40), (31, 20, 25, 60)):
    for direction in DIRECTIONS:
        TARGETS.append(("oneDNN's best", f"thesis-4.6-r{r}-{direction}", AUTO, BEST, "ratio",
                       weight if direction == "backward-weight" else required, goal))
for r in (11, 19, 29):
    for direction in DIRECTIONS:
        TARGETS.append(("oneDNN's best", f"thesis-4.5-r{r}-{direction}", AUTO, BEST, "ratio",
                       interpolate(2, 8, r), interpolate(4, 25, r)))
for r, others, weight in ((3, (2, None), (2, None)), (7, (2, None), (2, None)), (15, (4, 8), (4, 8)), (31, (12, 25), (300, 500))):
    for direction in DIRECTIONS:
        floors = weight if direction == "backward-weight" else others
        TARGETS.append(("oneDNN's best", f"depthwise-{r}-{direction}", AUTO, BEST, "ratio", *floors))
for r in (3, 7):
    for direction in DIRECTIONS:
        TARGETS.append(("direct sums, peak", f"depthwise-{r}-{direction}", AUTO, ("fma-peak", 1), "peak", None, 85))
for layer in POINTWISE:
    for direction in DIRECTIONS:
        TARGETS.append(("1 x 1, oneDNN's best", f"{layer}-{direction}", AUTO, BEST, "ratio", 0.95, 1.1))
for direction in DIRECTIONS:
    TARGETS.append(("oneDNN's best", f"conv1d-1024-{direction}", AUTO, BEST, "ratio", 20, 80))
for layer in ("1.2", "2.2", "3.2", "4.2"):
    for direction in DIRECTIONS:
        TARGETS.append(("direct sums, peak", f"vgg-{layer}-n16-{direction}", ("cpu/direct", 1), ("fma-peak", 1), "peak",
                       60, 85))
for case in ("vgg-e-n1", "vgg-e-n16", *(f"caffenet-{layer}" for layer in (1, 2, 3, 4, 5)), "dieleman-2", "dieleman-3",
             "dieleman-5", *(f"thesis-4.6-r{r}" for r in (9, 15, 31)), "depthwise-3", "depthwise-7", "depthwise-31", *POINTWISE,
             "conv1d-1024"):
    for direction in DIRECTIONS:
        TARGETS.append(("two threads against one", f"{case}-{direction}", ("auto", 2), AUTO, "ratio", 1.7, 1.9))


def read_weights(path):
    """The rows of `bench_layer --weights`, by case."""
    return {row["case"]: row for row in csv.DictReader(path.open())} if path.exists() else {}


def add_networks(times, weights):
    """Adds each network as a case: all its layers, as often as it has them."""
    members = {}
    for case, row in weights.items():
        if row["network"]:
            members.setdefault(row["network"], []).append((case, int(row["depth"]) * int(row["multiply_adds"])))
    for network, layers in members.items():
        if all(case in times for case, _ in layers):
            sums = {key: total(times, layers, key) for key in {key for case, _ in layers for key in times[case]}}
            times[network] = {key: figures for key, figures in sums.items() if figures is not None}


def network_rows(times, weights):
    """The rows of the networks that add_networks added, as those of a CSV."""
    networks = sorted({row["network"] for row in weights.values()} & set(times))
    return [{"case": network, "contender": name, "threads": threads, "ns_per_item": f"{figures['ns']:.5g}",
             "spread": f"{figures['spread']:.3f}", "bytes": "", "check": ""}
            for network in networks for (name, threads), figures in times[network].items()]


def total(times, layers, key):
    """Mean time of a multiply-add over the layers and a bound of its spread, which is their mean; None if a row is missing."""
    rows = [times[case].get(key) or times[case].get((SUBSTITUTES.get(key[0]), key[1])) for case, _ in layers]
    if None in rows:
        return None
    parts = [(row["ns"] * weight, row["spread"]) for row, (_, weight) in zip(rows, layers)]
    ns = sum(part for part, _ in parts)
    return {"ns": ns / sum(weight for _, weight in layers), "flat": None, "bytes": 0,
            "spread": sum(part * spread for part, spread in parts) / ns}


def is_steady(case, rows):
    """Whether no row's spread is above MAX_SPREAD; names those where it is. `rows` has figures by contender."""
    unsteady = [name for name, figures in rows.items() if figures["spread"] > MAX_SPREAD]
    for name in unsteady:
        print(f"README.md: {case} left out: the spread of {name} is {rows[name]['spread']:.3f}, at most {MAX_SPREAD} is "
              "allowed; repeat it on an idle machine", file=sys.stderr)
    return not unsteady


def choice_shares(times):
    """The speed of the planner's choice relative to our fastest engine, by case."""
    shares = {}
    for case, rows in times.items():
        engines = [figures["ns"] for (name, threads), figures in rows.items() if name in ENGINES and threads == 1]
        if AUTO in rows and engines:
            shares[case] = min(engines) / rows[AUTO]["ns"]
    return shares


def add_choices(times):
    """Adds as a case in how many percent of the cases the planner's choice takes at most 5 % longer than our fastest engine."""
    near = [share >= 1 / 1.05 for share in choice_shares(times).values()]
    if near:
        times[CHOICES] = {AUTO: {"ns": 100 * sum(near) / len(near), "flat": None, "bytes": 0}}


def with_choices(times):
    """TARGETS, the slowest of VGG-E's layers, and the planner's choices, at their worst and in most cases."""
    targets = list(TARGETS)
    for n in (1, 16):
        for direction in DIRECTIONS:
            ratios = {}
            for case, rows in times.items():
                peers = [rows[name, 1]["ns"] for name in BEST[0] if (name, 1) in rows]
                if case.startswith("vgg-") and case.endswith(f"-n{n}-{direction}") and AUTO in rows and peers:
                    ratios[case] = min(peers) / rows[AUTO]["ns"]
            ratios.pop(f"vgg-e-n{n}-{direction}", None)
            targets.append(("oneDNN's best, VGG-E's slowest layer", min(ratios, key=ratios.get, default="every layer"), AUTO,
                            BEST, "ratio", 1, 1.3))
    shares = choice_shares(times)
    worst = min(shares, key=shares.get, default="every case")
    targets.append(("the planner's choice, our fastest engine, worst case", worst, AUTO, (ENGINES, 1), "ratio", 1 / 1.15, None))
    targets.append(("the planner's choice within 5 % of our fastest engine", CHOICES, AUTO, None, "share", 95, None))
    return targets


def flatness(times, weights):
    """A sentence on how the time grows with the kernel's size in the thesis's sweep; "" if it was not measured."""
    ends = []
    for r in (11, 29):
        case = f"thesis-4.5-r{r}-forward"
        if AUTO not in times.get(case, {}) or case not in weights:
            return ""
        ends.append(times[case][AUTO]["ns"] * int(weights[case]["multiply_adds"]))
    return f"\nOver `thesis-4.5`, forward, the time at r = 29 is {ends[1] / ends[0]:.3g} times that at r = 11.\n"


def rows_table(rows):
    lines = ["| case | contender | threads | effective GFLOP/s | ns a multiply-add | spread | bytes | error |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        rate = 2 / float(row["ns_per_item"])
        lines.append(f"| `{row['case']}` | {row['contender']} | {row['threads']} | {rate:.4g} | {row['ns_per_item']} "
                     f"| {row['spread']} | {row['bytes']} | {row['check']} |")
    return "\n".join(lines)


def accuracy_table(path):
    """The output of bench_accuracy; "" if there is none."""
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    if not rows:
        return ""
    lines = ["\n### Errors\n",
             "`build/bench/bench_accuracy`: forward on one image, samples and weights uniform in [-1, 1), against sums in",
             "float64 over the whole result, as table 4 of A. Lavin & S. Gray, *Fast Algorithms for Convolutional Neural",
             "Networks* (2015). Tile: the edge of the transformed tile; Winograd's F(2x2, 3x3) has 4, F(4x4, 3x3) 6,",
             "F(6x6, 3x3) 8.\n",
             "| layer | engine | tile | largest error | relative L2 error |", "|---|---|---|---|---|"]
    for row in rows:
        tile = row["tile"] if row["tile"] != "0" else ""
        lines.append(f"| {row['layer']} | {row['engine']} | {tile} | {row['largest_error']} | {row['relative_l2']} |")
    return "\n".join(lines) + "\n"


def digits(value, n=3):
    """n significant digits, without an exponent for large numbers."""
    return f"{value:.0f}" if abs(value) >= 10**n else f"{value:.{n}g}"


def short_table(times, version_of):
    """Rates for the README; "" if layers were not measured."""
    wanted = [("VGG-E, 3x3, all layers, 16 images", "vgg-e-n16"), ("CaffeNet, 5x5", "caffenet-2"),
              ("96x55x55 to 256, 15x15", "thesis-4.6-r15"), ("depthwise, 31x31", "depthwise-31")]
    lines = []
    for label, case in wanted:
        # oneDNN 2.6 has no fast weight gradient of large depthwise kernels: that row would compare with a fallback.
        for direction in ("forward",) if case == "depthwise-31" else ("forward", "backward-weight"):
            rows = times.get(f"{case}-{direction}", {})
            peers = {name: rows[name, 1] for name in BEST[0] if (name, 1) in rows}
            best = min(peers, key=lambda name: peers[name]["ns"], default=None)
            if AUTO in rows and best and is_steady(f"{case}-{direction}", {AUTO[0]: rows[AUTO], best: peers[best]}):
                ours, theirs = rows[AUTO]["ns"], peers[best]["ns"]
                lines.append(f"| {label}, {direction.replace('-', ' ')} | {digits(2 / ours)} | {digits(2 / theirs)} ({best}) "
                             f"| {theirs / ours:.3g}x |")
    head = [f"\n\n| layers, one thread, effective GFLOP/s | Partita | oneDNN {version_of('onednn')}, its best | ratio |", "|---|---|---|---|"]
    return "\n".join(head + lines) if lines else ""
