#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Copies the rows that the benchmarks printed to docs/bench, and writes the tables of docs/bench.md, README.md and
python/README.md and the chart of README.md from all rows there.

    bench_table.py [OPTION] BUILD RESULTS       RESULTS holds one CSV a program; without arguments only the pages are written
      --again   RESULTS holds one program's rows; those of the others stay
      --avx2    the rows go to docs/bench/avx2
      --print   prints the table of targets and writes nothing

Results of a tree with changes that are not committed are refused, unless they are only printed.
"""
import csv
import datetime
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import bench_chart
from bench_targets import (AUTO, BEST, CHOICES, DIRECTIONS, ENGINES, PARTITA, PARTITIONED, SLOWEST, SLOWEST_NETWORK, TARGETS,
                           WORST_CHOICE)

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs/bench"
HEADER = ["case", "contender", "threads", "ns_per_item", "spread", "p999_over_mean", "bytes", "check"]
# How a figure is computed from our row and the peer's, its unit, and whether less is better.
FIGURES = {
    "ratio": (lambda ours, theirs: theirs["ns"] / ours["ns"], "x", False),
    "share": (lambda ours, _: ours["ns"], " %", False),
    "peak": (lambda ours, theirs: 100 * theirs["ns"] / ours["ns"], " %", False),
    "part": (lambda ours, theirs: 100 * ours["ns"] / theirs["ns"], " %", True),
    "extra": (lambda ours, theirs: 100 * (ours["ns"] / theirs["ns"] - 1), " %", True),
    "limit": (lambda ours, _: ours["ns"] * 1e-6, " ms", True),
    "microseconds": (lambda ours, _: ours["ns"] * 1e-3, " us", True),
    "overhead": (lambda ours, theirs: (ours["ns"] - theirs["ns"]) * 1e-3, " us", True),
    "call": (lambda ours, _: ours["ns"] * 1e-3 * 32, " us", True),  # of 32 frames
    "flat": (lambda ours, _: ours["flat"], "x", True),
    "times": (lambda ours, theirs: ours["ns"] / theirs["ns"], "x", True),
    "memory": (lambda ours, _: ours["bytes"] / 2**20, " MiB", True),
    "smaller": (lambda ours, theirs: theirs["bytes"] / max(ours["bytes"], 1), "x", False),
}
# Parts of names; cases that differ in these alone share a row of the page.
PARTS = f"-({'|'.join(DIRECTIONS)})$|(?<=network)-[a-z0-9-]+-bf16$|(?<=small)-c?f(32|64)(?=-)|(?<=bank-own|k-shared)-\\d+$|(?<=-f32|real|plex|-b64|-b32)-t\\d+$" \
        "|(?<=nonfinite)-.*$|(?<=plan)-s(tream|ignal)-.*$|-(step|infer)(-last|-autocast)?$|(?<=python)-(long|lags|pairs|templates)-.*$|(?<=python-call)-.*$|(?<=t1024|d8192)-b.*$|(?<=t1024)-f32$|(?<=sequence)-.*$"
MAX_SPREAD = 0.3  # (max - min) / median over the repetitions of a row in README.md
# Where oneDNN's Winograd convolution refuses a layer of a network, its direct one is taken.
SUBSTITUTES = {"onednn-winograd": "onednn"}
PACKAGES = {"liquid-dsp": "libliquid1", "scipy": "python3-scipy", "ffmpeg": "ffmpeg", "sox": "sox", "fftw": "libfftw3-single3",
            "zita-convolver": "libzita-convolver4", "ffmpeg-afir": "libavfilter8", "onednn": "libdnnl2",
            "openblas": "libopenblas0-pthread", "speexdsp": "libspeexdsp1"}


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def isa():
    """The instruction set that the library selects: the processor's, lowered by PARTITA_CPU."""
    flags = set(re.search(r"^(?:flags|Features)\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    needed = {"neon": {"asimd"}, "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"}, "avx2": {"avx2", "fma"}, "c": set()}
    sets = [name for name in needed if needed[name] <= flags]
    limit = os.environ.get("PARTITA_CPU")
    return limit if limit in sets else sets[0]


def machine(build, results):
    """Properties of the run, by name."""
    info = dict(re.findall(r"^ *(.*?): +(.*)$", command("lscpu"), re.M))
    options = {o["name"]: o["value"] for o in json.loads(command("meson", "introspect", "--buildoptions", str(build)) or "[]")}
    compilers = {tuple(source["compiler"])
                 for target in json.loads(command("meson", "introspect", "--targets", str(build)) or "[]")
                 for source in target["target_sources"] if source["language"] == "c"}
    versions = ", ".join(command(*words, "--version").split("\n")[0] for words in sorted(compilers))
    peers = [(name, command("dpkg-query", "-W", "-f=${Version}\n", name).split("\n")[0]) for name in PACKAGES.values()]
    python = results / "python-peers"
    return {"date": datetime.date.today().isoformat(),
            "processor": f"{info.get('Model name')}, family {info.get('CPU family')} model {info.get('Model')}, "
                         f"{len(os.sched_getaffinity(0))} cores, L1d {info.get('L1d cache')}, L2 {info.get('L2 cache')}, "
                         f"L3 {info.get('L3 cache')}",
            "instruction set used": isa(),
            "compiler": f"{versions}, buildtype {options.get('buildtype')}, fft={options.get('fft')}",
            "commit": (results / "commit").read_text().strip(),
            "load average before the run": (results / "load").read_text().split()[0],
            "peers": ", ".join(f"{name} {version or 'absent'}" for name, version in peers),
            "peers of the package for Python":
                ", ".join(python.read_text().replace("==", " ").split("\n")).strip(", ") if python.exists() else "not measured"}


def read_run(folder):
    path = folder / "run.csv"
    return {row["name"]: row["value"] for row in csv.DictReader(path.open())} if path.exists() else {}


def write_csv(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def publish(results, run, folder, again):
    """Writes rows, sums of networks and run.csv into a folder of docs/bench; into one of its own for another processor."""
    kept = read_run(folder) if again else {}
    if again and any(kept.get(name) != run[name] for name in ("processor", "instruction set used")):
        folder = folder / "-".join([*run["processor"].split(", ")[1].split(), run["instruction set used"]])
        kept = read_run(folder) or dict(run, commit="")
    for path in sorted(results.glob("*.csv")):
        header, *rows = csv.reader(path.open())
        if path.stem == "layer":
            rows += network_rows(read_rows(results), results / "layer-weights")
        write_csv(folder / path.name, header, rows)
        if again:
            others = [part for part in kept["commit"].split("; ") if part and not part.startswith(f"bench_{path.stem}:")]
            kept["commit"] = "; ".join([*others, f"bench_{path.stem}: {run['commit']}"])
            if path.stem.startswith(("python_", "network")):
                kept["peers of the package for Python"] = run["peers of the package for Python"]
    write_csv(folder / "run.csv", ["name", "value"], (kept or run).items())


def read_rows(folder):
    """Figures as {case: {(contender, threads): {"ns": time, "spread": of its repetitions, "flat": p99.9 / mean,
    "bytes": held}}}."""
    times = {}
    for path in sorted(folder.glob("*.csv")):
        rows = csv.DictReader(path.open())
        for row in rows if rows.fieldnames == HEADER else ():
            times.setdefault(row["case"], {})[row["contender"], int(row["threads"])] = {
                "ns": float(row["ns_per_item"]), "spread": float(row["spread"] or 0), "bytes": int(row["bytes"] or 0),
                "flat": float(row["p999_over_mean"]) if row["p999_over_mean"] else None}
    return times


def network_rows(times, weights):
    """Rows of the networks that `bench_layer --weights` lists: the mean time of a multiply-add of all layers, each as
    often as the network has it, and a bound of its spread, which is their mean."""
    networks = {}
    for row in csv.DictReader(weights.open()) if weights.exists() else ():
        if row["network"]:
            networks.setdefault(row["network"], []).append((row["case"], int(row["depth"]) * int(row["multiply_adds"])))
    for network, layers in sorted(networks.items()):
        for key in dict.fromkeys(key for case, _ in layers for key in times.get(case, ())):
            rows = [times.get(case, {}).get(key) or times.get(case, {}).get((SUBSTITUTES.get(key[0]), key[1])) for case, _ in layers]
            if None not in rows:
                ns = sum(row["ns"] * n for row, (_, n) in zip(rows, layers))
                spread = sum(row["ns"] * n * row["spread"] for row, (_, n) in zip(rows, layers)) / ns
                yield [network, *key, f"{ns / sum(n for _, n in layers):.5g}", f"{spread:.3f}", "", "", ""]


def find(times, case, row):
    """Figures of a row of TARGETS; None if it was not measured."""
    names = row[0] if isinstance(row[0], tuple) else (row[0],)
    found = [figures for (contender, threads), figures in times.get(case, {}).items()
             if contender in names and row[1] in (None, threads)]
    return min(found, key=lambda figures: figures["ns"], default=None)


def add_worst(times):
    """Adds as cases the slowest layers of VGG-E beside oneDNN, the planner's choice that is the slowest beside our
    fastest engine, and in how many percent of the cases its choice takes at most 5 % longer than that engine."""
    def add(name, cases, peers, ours=AUTO):
        ratios = {case: find(times, case, peers)["ns"] / times[case][ours]["ns"] for case in cases
                  if ours in times[case] and find(times, case, peers)}
        if ratios:
            worst = min(ratios, key=ratios.get)
            times[name] = {key: dict(figures, case=worst) for key, figures in times[worst].items()}
        return ratios.values()
    cases = list(times)
    for n in (1, 16):
        for direction in DIRECTIONS:
            pattern, network = f"vgg-*-n{n}-{direction}", f"vgg-e-n{n}-{direction}"
            add(SLOWEST.format(n, direction), (c for c in fnmatch.filter(cases, pattern) if c != network), BEST)
    for name in (SLOWEST_NETWORK.format(kind) for kind in ("step", "infer", "infer-autocast")):
        add(name, fnmatch.filter(cases, name.removeprefix("slowest ")), ("torch", 1), PARTITA)
    near = [share >= 1 / 1.05 for share in add(WORST_CHOICE, cases, (ENGINES, 1))]
    if near:
        times[CHOICES] = {AUTO: {"ns": 100 * sum(near) / len(near)}}


def measure(times, target):
    """The figure of one line of TARGETS; None if a row is missing."""
    _, case, ours, theirs, figure, _, _ = target
    row, peer = find(times, case, ours), find(times, case, theirs) if theirs else {}
    return None if row is None or peer is None else FIGURES[figure][0](row, peer)


def digits(value, n=3):
    """n significant digits, without an exponent for large numbers."""
    return f"{value:.0f}" if abs(value) >= 10**n else f"{value:.{n}g}"


def number(value, figure, bounds=()):
    """Three digits, one more where they would not tell a value from a bound, and never an exponent."""
    if value is None:
        return ""
    return digits(value, 3 + any(bound and f"{value:.3g}" == f"{bound:.3g}" for bound in bounds)) + FIGURES[figure][1]


def is_missed(times, target):
    value, figure, floor = measure(times, target), target[4], target[5]
    return floor is not None and (value is None or (value > floor if FIGURES[figure][2] else value < floor))


def targets_table(*runs):
    """All targets, with the figures of each run. A row has the cases that PARTS tells apart; a slash joins one thread and two."""
    def joined(cells, between):
        return cells[0] if len(set(cells)) == 1 else between.join(cell or "-" for cell in cells)
    rows = {}
    for target in TARGETS:
        what, case, ours, _, figure, *bounds = target
        worst = [(find(times, case, ours) or {}).get("case") for times in runs]
        cells = [number(measure(times, target), figure, bounds) + f" (`{layer}`)" * bool(layer) for times, layer in zip(runs, worst)]
        row = rows.setdefault((re.sub(", [12] threads?$", ", 1 / 2 threads", what), re.sub(PARTS, "-@", case)), {})
        figures = row.setdefault((re.search(PARTS, case) or " ")[0][1:], [])
        figures.append([*cells, *(number(bound, figure) for bound in bounds)])
    lines = ["| target | case | measured | with AVX2 alone | floor | goal |", "|---|---|---|---|---|---|"]
    for (what, layer), row in rows.items():
        name = "*" if row.keys() >= set(DIRECTIONS) else ("{%s}" if len(row) > 1 else "%s") % ",".join(row)
        columns = zip(*([joined(cells, " / ") for cells in zip(*figures)] for figures in row.values()))
        lines.append(f"| {what} | `{layer.replace('@', name)}` | {' | '.join(joined(column, ', ') for column in columns)} |")
    return "\n".join(lines)


def run_table(*runs):
    lines = ["| run | all benchmarks | with AVX2 alone |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {' | '.join(run.get(name, '') for run in runs)} |" for name in runs[0]])


def version_of(run, contender):
    """The version of a peer, without what Debian adds to it; "" if the contender is none."""
    package = next((name for peer, name in sorted(PACKAGES.items(), reverse=True) if contender.startswith(peer)), "?")
    version = re.search(re.escape(package) + r" (?:\d+:)?([^-+, ]+)", run.get("peers", ""))
    return version[1] if version and version[1] != "absent" else ""


def is_steady(case, rows):
    """Whether no row's spread is above MAX_SPREAD; names those where it is. `rows` has figures by contender."""
    unsteady = [name for name, figures in rows.items() if figures["spread"] > MAX_SPREAD]
    for name in unsteady:
        print(f"README.md: {case} left out: the spread of {name} is {rows[name]['spread']:.3f}, at most {MAX_SPREAD} is "
              "allowed; repeat it on an idle machine", file=sys.stderr)
    return not unsteady


def short_rows(times, wanted, peers_of, line):
    """Rows of README.md: the cases of `wanted` as (label, case, our row), beside the fastest peer."""
    for label, case, ours in wanted:
        peers = {name: figures for (name, threads), figures in times.get(case, {}).items() if threads == 1 and peers_of(name)}
        best, row = min(peers, key=lambda name: peers[name]["ns"], default=None), find(times, case, ours)
        if best and row and is_steady(case, {ours[0]: row, best: peers[best]}):
            yield f"| {label} | {line(row['ns'], peers[best]['ns'], best)} | {peers[best]['ns'] / row['ns']:.3g}x |"


def short_tables(times, run):
    """For the README: the cases a newcomer asks about, fastest peer against the row that TARGETS compare with it."""
    wanted = [("FIR filter, 64 taps, f32 stream", "direct-f32-t64", AUTO),
              ("FIR filter, 256 taps, cf32 stream, complex taps", "direct-cf32-complex-t256", AUTO),
              ("10 M samples with 1024 taps", "long-10M-x-1024", AUTO),
              ("10 M samples with 65536 taps", "long-10M-x-65536", AUTO),
              ("480 000 taps live: 64 frames a call, no latency", "mono-b64-t480000", PARTITIONED),
              ("2 880 000 taps live: 32 frames a call, no latency", "zero-b32-t2880000", PARTITIONED),
              ("`partita convolve`, 10 minutes of stereo, 4096 taps", "convolve-10min-stereo-t4096", ("partita", 1))]
    lines = ["| one thread, ns per sample | Partita | fastest of the measured peers | ratio |", "|---|---|---|---|"]
    lines += short_rows(
        times, wanted, lambda name: not name.startswith(("auto", "partita", "fma-peak", "cpu/", "textbook-")),
        lambda ours, theirs, name: f"{ours:.3g} | {theirs:.3g} ({' '.join((name, version_of(run, name))).strip()})")
    # oneDNN 2.6 has no fast weight gradient of large depthwise kernels: that row would compare with a fallback.
    wanted = [(f"{label}, {direction.replace('-', ' ')}", f"{case}-{direction}", AUTO)
              for label, case in (("VGG-E, 3x3, all layers, 16 images", "vgg-e-n16"), ("CaffeNet, 5x5", "caffenet-2"),
                                  ("96x55x55 to 256, 15x15", "thesis-4.6-r15"), ("depthwise, 31x31", "depthwise-31"))
              for direction in ("forward", "backward-weight") if (case, direction) != ("depthwise-31", "backward-weight")]
    layers = list(short_rows(times, wanted, lambda name: name in BEST[0],
                             lambda ours, theirs, name: f"{digits(2 / ours)} | {digits(2 / theirs)} ({name})"))
    if layers:
        lines += ["", f"| layers, one thread, effective GFLOP/s | Partita | oneDNN {version_of(run, 'onednn')}, its best | ratio |",
                  "|---|---|---|---|", *layers]
    return "\n".join(lines)


def slower_table(times):
    """For python/README.md: the rows in which the peer is faster."""
    lines = ["| case | peer | threads | the peer is faster by |", "|---|---|---|---|"]
    for target in TARGETS:
        _, case, (_, threads), theirs, figure, _, _ = target
        ratio = measure(times, target) if figure == "ratio" and re.match("(python|network|causal|decode|sequence)-", case) else None
        if ratio is not None and ratio < 1:
            lines.append(f"| `{case}` | {theirs[0]} | {threads} | {1 / ratio:.2f}x |")
    return "\n".join(lines if len(lines) > 2 else ["There is none."])


def insert(page, table):
    path = ROOT / page
    begin, end = "<!-- bench: begin, written by tools/bench.sh -->\n", "<!-- bench: end -->"
    before, rest = path.read_text().split(begin)
    path.write_text(before + begin + table + "\n" + end + rest.split(end)[1])


def write_pages():
    """All tables, from the rows in docs/bench."""
    runs, tables = zip(*((read_run(folder), read_rows(folder)) for folder in (ROWS, ROWS / "avx2")))
    for times in tables:
        add_worst(times)
    insert("docs/bench.md", f"{run_table(*runs)}\n\n{targets_table(*tables)}")
    insert("README.md", short_tables(tables[0], runs[0]))
    insert("python/README.md", slower_table(tables[0]))
    picture = bench_chart.chart(tables[0], lambda contender: version_of(runs[0], contender))
    if picture:
        (ROOT / "docs/images/live-cost.svg").write_text(picture)
    missed = sum(is_missed(tables[0], target) for target in TARGETS)
    print(f"docs/bench.md: {len(TARGETS) - missed} required figures met or not set, {missed} missed")


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if not words:
        write_pages()
        return
    results = pathlib.Path(words[1])
    if "--print" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            publish(results, {}, pathlib.Path(folder), False)
            times = read_rows(pathlib.Path(folder))
        add_worst(times)
        print(targets_table(times, {}))
        return
    run = machine(pathlib.Path(words[0]), results)
    if "-dirty" in run["commit"]:
        sys.exit(f"bench_table.py: {results} was measured with changes that no commit has ({run['commit']}): commit them "
                 "and measure again, or --print the table")
    publish(results, run, ROWS / "avx2" if "--avx2" in sys.argv else ROWS, "--again" in sys.argv)
    write_pages()


main()
