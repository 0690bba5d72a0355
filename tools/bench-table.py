#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes docs/bench.md, the short tables of README.md and python/README.md and the chart of README.md, from the CSV
that the benchmarks printed.

    bench-table.py [--print] BUILD RESULTS      RESULTS holds one CSV a program; --print writes to stdout only
    bench-table.py --avx2 BUILD RESULTS         writes docs/bench-avx2.md only, from RESULTS of tools/bench.sh --avx2

Results of a tree with changes that are not committed are refused, unless they are only printed. Rows whose times differ
by more than 0.3 of their median from repetition to repetition do not get into README.md; stderr names them.
"""
import csv
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

import bench_chart
import bench_layers
import bench_python

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Target figures: (what, case, our row, the row it is compared with, figure, required, goal). A row is
# (contender, threads); several contenders, or threads None, mean the fastest. A figure says how it
# is computed from both rows, its unit, and whether less is better.
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
AUTO, LIQUID, PEAK = ("auto", 1), ("liquid-dsp", 1), ("fma-peak", 1)
PARTITIONED, WHOLE = ("cpu/partitioned", 1), ("cpu/partitioned-whole", 1)
SIXTEEN_BIT = "cpu/partitioned-16-bit"
ZITA = ("zita-convolver", 1)
TARGETS = []
for taps in (16, 64, 256):
    TARGETS.append(("real f32 stream, liquid-dsp", f"direct-f32-t{taps}", AUTO, LIQUID, "ratio", 15, None))
for taps in (64, 256):
    TARGETS.append(("real f32 stream, peak", f"direct-f32-t{taps}", AUTO, PEAK, "peak", 60, 85))
for taps_type in ("real", "complex"):
    for taps in (16, 64, 256):
        case = f"direct-cf32-{taps_type}-t{taps}"
        TARGETS.append((f"cf32 stream, {taps_type} taps, liquid-dsp", case, AUTO, LIQUID, "ratio", 10, None))
        TARGETS.append((f"cf32 stream, {taps_type} taps, peak", case, AUTO, PEAK, "peak", None, 80))
for taps in (64, 1024, 65536):
    case = f"long-10M-x-{taps}"
    TARGETS.append(("whole signal, oaconvolve", case, ("auto", 1), ("scipy-oaconvolve", 1), "ratio", 4, 8))
for taps in (64, 1024, 65536):
    TARGETS.append(("two threads against one", f"long-10M-x-{taps}", ("auto", 2), ("auto", 1), "ratio", 1.7, 1.9))
for case, peer, required, goal, two in (("square-4M", "scipy-fftconvolve", 2.5, 5, 1.8),
                                        ("long-10M-x-1M", "scipy-oaconvolve", 4, 8, 1.8),
                                        ("lags-1000-of-2p26", "scipy-correlate", 25, None, 1.7)):
    TARGETS.append((f"whole signal, {peer}", case, ("auto", 1), (peer, 1), "ratio", required, goal))
    TARGETS.append(("two threads against one", case, ("auto", 2), ("auto", 1), "ratio", two, 1.9))
for peer in ("ffmpeg", "sox"):
    case = "convolve-10min-stereo-t4096"
    TARGETS.append((f"whole command, {peer}'s fastest", case, ("partita", 1), (peer, None), "ratio", 4, None))
for case in ("stream-f32-t64", "stream-f32-t65536", "signal-f32-t65536", "signal-cf64-t65536"):
    TARGETS.append(("plan creation", f"plan-{case}", ("auto", 1), None, "limit", 5, None))
for kind in ("f32", "f64", "cf32", "cf64"):
    for size in ("10-x-3", "64-x-64", "1000-x-32"):
        case = f"small-{kind}-{size}"
        TARGETS.append(("one-shot call, numpy", case, ("one-shot", 1), ("numpy", 1), "ratio", 0.5, 2))
        TARGETS.append(("plan of a small signal", case, ("plan", 1), None, "microseconds", 5, None))
TARGETS.append(("plan in all directions", "small-layer-3x3-64-56x56", ("plan", 1), None, "microseconds", None, 30))
# The figures for any call, and for calls of whole blocks.
for what, case, any_call, whole in (("long filter", "mono-b64-t480000", (6, 9), (7, 10)),
                                    ("long filter", "mono-b64-t65536", (5, 8), (5, 8)),
                                    ("long filter", "mono-b256-t480000", (6, 9), (6, 9)),
                                    ("dense matrix", "matrix-16x16-b64-t48000", (4.5, 8), (4.5, 8))):
    TARGETS.append((f"{what}, zita-convolver", case, PARTITIONED, ZITA, "ratio", *any_call))
    TARGETS.append(("the same in whole blocks, zita-convolver", case, WHOLE, ZITA, "ratio", *whole))
    TARGETS.append((f"{what}, p99.9 over mean", case, PARTITIONED, None, "flat", 1.6, 1.3))
    TARGETS.append(("the same in whole blocks, p99.9 over mean", case, WHOLE, None, "flat", 1.6, 1.3))
for case, required in (("zero-b32-t480000", 3), ("zero-b32-t2880000", 8)):
    TARGETS.append(("a call of 32 frames", case, PARTITIONED, None, "call", required, None))
    TARGETS.append(("a call of 32 frames, p99.9 over mean", case, PARTITIONED, None, "flat", 1.6, 1.3))
TARGETS.append(("two threads against one", "matrix-16x16-b64-t48000", ("cpu/partitioned", 2), PARTITIONED, "ratio",
                1.7, 1.9))
for case in ("matrix-16x16-b64-t48000", "matrix-16x16-b256-t48000"):
    TARGETS.append(("spectra in 16 bits against f32", case, (SIXTEEN_BIT, 1), PARTITIONED, "ratio", 1.5, None))
    TARGETS.append(("the same, two threads", case, (SIXTEEN_BIT, 2), ("cpu/partitioned", 2), "ratio", None, None))
    TARGETS.append(("the same, memory with the stream", case, (SIXTEEN_BIT, 1), PARTITIONED, "smaller", None, None))
for case in ("mono-b64-t480000", "matrix-16x16-b64-t48000"):
    TARGETS.append(("extra cost while a swap fades", case, ("cpu/partitioned-swap", 1), WHOLE, "extra", 60, 30))
    TARGETS.append(("p99.9 over mean while a swap fades", case, ("cpu/partitioned-swap", 1), None, "flat", 1.6, 1.3))
for taps in (4800, 48000):
    TARGETS.append(("control and copies of a stream", f"mono-b64-t{taps}", ("control-and-copies", 1), PARTITIONED, "part", 8, 4))
BANK, STREAMS = ("bank", 1), ("streams", 1)
for slots in (64, 512, 4096):
    for case, required in ((f"bank-own-{slots}", 1.5), (f"bank-shared-{slots}", 3)):
        TARGETS.append(("a bank, as many streams", case, BANK, STREAMS, "ratio", required, None))
        TARGETS.append(("a bank, as many of zita-convolver", case, BANK, ZITA, "ratio", None, None))
        TARGETS.append(("a bank, p99.9 over mean", case, BANK, None, "flat", 1.5, None))
for case in ("f32-1M-x-1024", "cf32-1M-x-1024", "f32-500k-x-500k", "3x3-64-forward", "3x3-64-backward-data",
             "3x3-64-backward-weight", "11x11-16-forward", "depthwise-31x31-forward"):
    TARGETS.append(("search for samples that are not finite", f"nonfinite-{case}", ("call", 1), ("run", 1), "times", 1.05, None))
TARGETS.append(("file against memory, both cores", "file-4G-t65536", ("partita", None), ("in-memory", None), "times", 1.3, None))
TARGETS.append(("file against cp", "file-4G-t65536", ("partita", None), ("cp", None), "times", 1.5, None))
TARGETS.append(("resident memory", "file-4G-t65536", ("partita", None), None, "memory", 128, None))
TARGETS.append(("memory against scipy's", "lags-1000-of-2p26", ("auto", 1), ("scipy-correlate", 1), "smaller", 20, None))
for network, required, goal in (("resnet18-224-train", 1.3, 2), ("resnet18-32-train", 1.2, 2), ("vgg11-64-train", 1.5, 2),
                                ("convnext-t-train", 1.6, 2.5), ("large-kernels-train", 8, 15), ("taps-513-train", 20, 60),
                                ("resnet50-infer-n1", 1.3, 2), ("resnet50-infer-n16", 1.3, 2),
                                ("mobilenet-infer-n1", 1.3, 2), ("mobilenet-infer-n16", 1.3, 2),
                                ("vgg-e-train", 2.5, 3.5), ("vgg-e-infer-n1", 2.5, 3.5), ("caffenet-train", 1.5, 2.5),
                                ("caffenet-infer-n16", 1.5, 2.5), ("resnet50-train", 1.5, 2.5), ("convnext-t-infer-n16", 1.5, 2.5)):
    for threads in (1, 2):
        TARGETS.append((f"convolutions of a network, PyTorch, {threads} thread{'s' * (threads > 1)}", network,
                        ("auto", threads), ("torch", threads), "ratio", required, goal))
    TARGETS.append(("two threads against one", network, ("auto", 2), ("auto", 1), "ratio", 1.7, 1.9))
    TARGETS.append(("channels last, channels first", network, ("auto-last", 1), ("auto", 1), "ratio", 0.95, None))
TARGETS += bench_python.TARGETS


def read_results(folder):
    """All rows, by program, and the figures as {case: {(contender, threads): {"ns": time, "spread": of its
    repetitions, "flat": p99.9 / mean, "bytes": held}}}."""
    tables, times = {}, {}
    for path in sorted(folder.glob("*.csv")):
        tables[path.stem] = list(csv.DictReader(path.open()))
        for row in tables[path.stem]:
            key = (row["contender"], int(row["threads"]))
            flat = row["p999_over_mean"]
            figures = {"ns": float(row["ns_per_item"]), "spread": float(row["spread"] or 0), "flat": float(flat) if flat else None,
                       "bytes": int(row["bytes"] or 0)}
            times.setdefault(row["case"], {})[key] = figures
    return tables, times


def find(times, case, row):
    """Figures of a row; None if it was not measured."""
    rows = times.get(case, {})
    names = row[0] if isinstance(row[0], tuple) else (row[0],)
    found = [figures for (contender, threads), figures in rows.items()
             if contender in names and row[1] in (None, threads)]
    return min(found, key=lambda figures: figures["ns"], default=None)


def commits(results):
    """The commit of the run, and the commits of benchmarks that were repeated later."""
    text = (results / "commit").read_text().strip()
    for path in sorted(results.glob("*.commit")):
        text += f"; bench_{path.stem}: {path.read_text().strip()}"
    return text


def measure(times, target):
    """The figure of one line of TARGETS; None if a row is missing."""
    _, case, ours, theirs, figure, _, _ = target
    own = find(times, case, ours)
    other = find(times, case, theirs) if theirs else {}
    return None if own is None or other is None else FIGURES[figure][0](own, other)


def number(value, figure, bounds=()):
    """Three digits, one more where they would not tell a value from a bound, and never an exponent."""
    if value is None:
        return ""
    text = bench_layers.digits(value, 4 if any(bound and f"{value:.3g}" == f"{bound:.3g}" for bound in bounds) else 3)
    return text + FIGURES[figure][1]


def verdict(value, bound, figure):
    if bound is None:
        return ""
    if value is None:
        return "not measured"
    return "yes" if (value <= bound if FIGURES[figure][2] else value >= bound) else "**no**"


def targets_table(times, targets):
    lines = ["| what | case | measured | floor | goal |", "|---|---|---|---|---|"]
    for target in targets:
        what, case, _, _, figure, required, goal = target
        value = measure(times, target)
        measured = number(value, figure, (required, goal)) or "not measured"
        lines.append(f"| {what} | `{case}` | {measured} | {number(required, figure)} | {number(goal, figure)} |")
    return "\n".join(lines)


def rows_table(rows):
    lines = ["| case | contender | threads | ns an item | spread | p99.9 / mean | bytes | error |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| `{row['case']}` | {row['contender']} | {row['threads']} | {row['ns_per_item']} "
                     f"| {row['spread']} | {row['p999_over_mean']} | {row['bytes']} | {row['check']} |")
    return "\n".join(lines)


PACKAGES = {"liquid-dsp": "libliquid1", "scipy": "python3-scipy", "ffmpeg": "ffmpeg", "sox": "sox",
            "zita-convolver": "libzita-convolver4", "fftw": "libfftw3-single3", "onednn": "libdnnl2"}


def version_of(contender):
    """The version of a peer, without what Debian adds to it; "" if the contender is none."""
    package = next((name for peer, name in PACKAGES.items() if contender.startswith(peer)), None)
    version = package and command("dpkg-query", "-W", "-f=${Version}\n", package)
    return re.split(r"[-+]", version.splitlines()[0].split(":")[-1])[0] if version else ""


def short_table(times):
    """For the README: the cases a newcomer asks about, fastest peer against the row that TARGETS compare with it."""
    wanted = [("FIR filter, 64 taps, f32 stream", "direct-f32-t64", AUTO),
              ("FIR filter, 256 taps, cf32 stream, complex taps", "direct-cf32-complex-t256", AUTO),
              ("10 M samples with 1024 taps", "long-10M-x-1024", AUTO),
              ("10 M samples with 65536 taps", "long-10M-x-65536", AUTO),
              ("480 000 taps live: 64 frames a call, no latency", "mono-b64-t480000", PARTITIONED),
              ("2 880 000 taps live: 32 frames a call, no latency", "zero-b32-t2880000", PARTITIONED),
              ("`partita convolve`, 10 minutes of stereo, 4096 taps", "convolve-10min-stereo-t4096", ("partita", 1))]
    lines = ["| one thread, ns per sample | Partita | fastest of the measured peers | ratio |", "|---|---|---|---|"]
    for label, case, ours in wanted:
        own = find(times, case, ours)
        peers = {name: figures for (name, threads), figures in times.get(case, {}).items()
                 if threads == 1 and name not in ("auto", "partita", "fma-peak")
                 and not name.startswith(("cpu/", "textbook-"))}
        if own is None or not peers:
            continue
        best = min(peers, key=lambda name: peers[name]["ns"])
        if bench_layers.is_steady(case, {ours[0]: own, best: peers[best]}):
            theirs = peers[best]["ns"]
            lines.append(f"| {label} | {own['ns']:.3g} | {theirs:.3g} ({' '.join((best, version_of(best))).strip()}) | {theirs / own['ns']:.3g}x |")
    return "\n".join(lines)


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def isa():
    """The instruction set that the library selects: the processor's, lowered by PARTITA_CPU."""
    flags = set(re.search(r"^(?:flags|Features)\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    if "asimd" in flags:
        sets = ["neon", "c"]
    else:
        sets = [name for name, needed in (("avx512", {"avx512f", "avx512dq", "avx512bw", "avx512vl"}),
                                          ("avx2", {"avx2", "fma"}), ("c", set())) if needed <= flags]
    limit = os.environ.get("PARTITA_CPU")
    return limit if limit in sets else sets[0]


def compiler(build):
    """The first line of the version of the build's compiler."""
    targets = json.loads(command("meson", "introspect", "--targets", str(build)) or "[]")
    words = {tuple(source["compiler"]) for target in targets for source in target["target_sources"]
             if source["language"] == "c"}
    return ", ".join(command(*names, "--version").splitlines()[0] for names in sorted(words)) or "?"


def python_peers(results):
    path = results / "python-peers"
    return ", ".join(path.read_text().replace("==", " ").split("\n")).strip(", ") if path.exists() else "not measured"


def machine(build, results):
    """Properties of the run as (name, value) pairs."""
    info = dict(line.split(":", 1) for line in command("lscpu").splitlines() if ":" in line)
    info = {key.strip(): value.strip() for key, value in info.items()}
    options = {o["name"]: o["value"] for o in
               json.loads(command("meson", "introspect", "--buildoptions", str(build)) or "[]")}
    packages = {name: (command("dpkg-query", "-W", "-f=${Version}\n", name).splitlines() or ["absent"])[0] for name in
                ("libliquid1", "python3-scipy", "ffmpeg", "sox", "libfftw3-single3", "libzita-convolver4",
                 "libavfilter8", "libdnnl2", "libopenblas0-pthread")}
    return [("date", datetime.date.today().isoformat()),
            ("processor", f"{info.get('Model name', '?')}, family {info.get('CPU family', '?')} model "
                          f"{info.get('Model', '?')}, {len(os.sched_getaffinity(0))} cores, "
                          f"L1d {info.get('L1d cache', '?')}, L2 {info.get('L2 cache', '?')}, "
                          f"L3 {info.get('L3 cache', '?')}"),
            ("instruction set used", isa()),
            ("compiler", f"{compiler(build)}, buildtype {options.get('buildtype', '?')}, fft={options.get('fft', '?')}"),
            ("commit", commits(results)),
            ("load average before the run", (results / "load").read_text().split()[0]),
            ("peers", ", ".join(f"{name} {version}" for name, version in packages.items())),
            ("peers of the package for Python", python_peers(results))]


HEAD = """# Benchmarks

`tools/bench-table.py` writes this page from one run of `tools/bench.sh`, or, where `commit` says
so, from a later run of one benchmark. Do not edit it. Absolute times hold for the machine below;
only ratios within one run are meaningful. Contenders alternate from repetition to repetition; while one
of a case's medians is more than 5 % above the least time there are more, for two seconds at most. Every
result is checked against direct sums in float64 or long double before it is timed; `error` is its
relative L2 distance from them. An item is one sample of one channel (one plan in `plan-*`; one call
or plan in `small-*`, each the mean of 1000). The spread is (max - min) / median over the
repetitions. p99.9 / mean is taken over the calls of a stream; the time of each call is the least of
at least five identical passes, because a shared
machine adds delays of its own to single calls. `bytes` is the memory that the contender holds
besides its input and output; for commands it is the peak resident memory, for SciPy its growth.

`nonfinite-*` compare calls (`call`) with runs of the plan's engine (`run`), which do not look for
samples that are not finite. All samples are finite.

`fma-peak` is the time of the multiply-adds of the direct filter at the peak rate of this processor,
measured between the other contenders. The signal rows of Partita time the whole call, as SciPy's
do: planning, transforming the taps and allocating the workspace. Only the memory of the result is
the caller's, which SciPy allocates itself. ffmpeg and SoX run with the settings that were fastest
here (partitions of 4096; a buffer of 65536), with one and two threads; the tables of targets use
the faster. All commands read and write 16-bit files in memory.

Streams: `delayed-*` allow one block of latency; all others allow none beyond the call, and are
timed after as many frames as the filter is long. zita-convolver, ffmpeg's afir (in this process,
call by call) and the two-stage textbook method run with the partition sizes that are fastest here.
In rows of one thread zita-convolver's threads share one core with their caller, so that all work
counts. `cpu/partitioned` would accept calls of any length. `cpu/partitioned-whole` relies on calls
of whole blocks (`problem.whole_blocks`), as those peers do, and so does `cpu/partitioned-swap`,
which fades from one filter to another in every call. `cpu/partitioned-16-bit` has an error budget
of 1e-4, with which filters from memory have spectra of 16 bits.
`build/bench/bench_stream --case 'matrix-64x64-*'` runs cases that are not in the table.

`auto` is Partita with the engine that its planner chooses, `cpu/*` are its engines by name.
`textbook-*` are methods of textbooks written for this page, and count as no peer. In the table of
targets a larger figure is better for ratios to other libraries and programs, to the peak, to one
thread, to f32, to channels first and to slots with filters of their own; a smaller one is better
for times, memory, p99.9 over mean, extra costs, shares of control and copies, and times of one
file over those of `cp` or of memory. The authors set floors and goals before they measured;
[missed-targets.md](notes/missed-targets.md) says what bounds the rows that miss them.
"""

AVX2_HEAD = """# Benchmarks with AVX2 alone

`tools/bench-table.py` writes this page from one run of `tools/bench.sh --avx2`. Do not edit it.
[bench.md](bench.md) explains contenders and columns. Every contender that can be limited to AVX2
is limited to it: Partita and `fma-peak` by `PARTITA_CPU`, oneDNN, also the one in PyTorch, by
`ONEDNN_MAX_CPU_ISA`, PyTorch by `ATEN_CPU_CAPABILITY`, OpenBLAS by `OPENBLAS_CORETYPE`, MKL by
`MKL_ENABLE_INSTRUCTIONS`. FFTW cannot be limited: it and programs that use it may use AVX-512. The run is short (`--quick`): three repetitions, and an eighth of
the images of each batch (at least one) and of the frames of each stream and signal, whatever a
case's name says.
"""

LAYERS_HEAD = """Effective GFLOP/s count two operations for each multiply-add of the direct sums, whatever the
algorithm does. All contenders pack their filters beforehand. `onednn` works on arrays in the
formats it prefers, `onednn+reorder` reads and writes plain ones, and `onednn-winograd` is its
Winograd convolution, where it has one. `openblas` multiplies what Caffe's im2col copies, on one
thread. A contender whose first pass takes more than 0.4 s is timed by that pass. `vgg-e-*` are the
layers of network E, each counted as often as the network has it. `thesis-4.5-*` and `thesis-4.6-*` are the layers of the
sections 4.5 and 4.6 of a thesis on Caffe with FFT, `dieleman-*` those of a comparison of convolutions in Theano;
`bench/workloads/layer_cases.c` has the sources.
"""

PLOTTED = "mono-b64-t480000"
SUBJECTS = {"fir": "Direct filters, streams in blocks of 1024", "fft": "Transforms, forward and inverse",
            "nonfinite": "Calls with finite samples, and the runs of their engines",
            "stream": "Streams", "control": "What control and copies cost in streams", "bank": "Many streams at once", "signal": "Whole signals", "cli": "Whole commands",
            "layer": "Layers", "network": "Convolutions of networks", "long_file": "A file of 4 GiB", "plan": "Plan creation, in a fresh process",
            "small": "Small signals, in one call each, and their plans",
            "python_signal": "SciPy's functions and streams, called from Python", "python_networks": "Networks of PyTorch"}
NETWORK_HEAD = """An item is a step: each layer of the network, as often as the network has it. A training step updates the
filter of every layer, then computes forward and both gradients; in inference filters are kept. PyTorch is a process with
as many threads and the same samples; in `torch-last` and `auto-last` arrays lie channels last. A contender whose
second step takes more than 4 s is timed by that step. The error is the largest of all results.
"""
CONTROL_HEAD = """`control-and-copies` is the part of the time of `cpu/partitioned`, which accepts calls of any length, that is neither
in multiply-adds nor in transforms, by sampling with perf.
"""
HEADS = {"network": NETWORK_HEAD, "control": CONTROL_HEAD, "python_signal": bench_python.SIGNAL_HEAD, "python_networks": bench_python.NETWORKS_HEAD}


def layers_page(results, rows, times, weights):
    return "\n".join([f"\n## {SUBJECTS['layer']}\n\n`build/bench/bench_layer`\n", LAYERS_HEAD,
                      "### Targets of layers\n", targets_table(times, bench_layers.with_choices(times)),
                      bench_layers.flatness(times, weights), bench_layers.accuracy_table(results / "layer-accuracy"),
                      "### Rows\n", bench_layers.rows_table(rows + bench_layers.network_rows(times, weights))])


def program_of(subject):
    """The command that prints the rows of a subject."""
    if subject in ("control", "long_file"):
        return f"bench/programs/{subject}.py build"
    return f"bench/programs/{subject}.py" if subject.startswith("python_") else f"build/bench/bench_{subject}"


def page(build, results, tables, times, weights, avx2):
    targets = [target for target in TARGETS if not avx2 or measure(times, target) is not None]
    parts = [AVX2_HEAD if avx2 else HEAD, "\n".join(f"- {name}: {value}" for name, value in machine(build, results)),
             "\n## Targets\n", targets_table(times, targets)]
    for name, title in SUBJECTS.items():
        if tables.get(name) and name == "layer":
            parts.append(layers_page(results, tables[name], times, weights))
        elif tables.get(name):
            picture = f"![time of each call](images/load-{PLOTTED}.png)\n\n" if name == "stream" and not avx2 else ""
            head = HEADS[name] + "\n" if name in HEADS else ""
            parts.append(f"\n## {title}\n\n`{program_of(name)}`\n\n{head}{picture}{rows_table(tables[name])}")
    return "\n".join(parts) + "\n"


def insert(path, table):
    text = path.read_text()
    begin, end = "<!-- bench: begin, written by tools/bench.sh -->\n", "<!-- bench: end -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    path.write_text(before + begin + table + "\n" + end + after)


def write_readmes(times):
    insert(ROOT / "README.md", short_table(times) + bench_layers.short_table(times, version_of))
    picture = bench_chart.chart(times, version_of)
    if picture:
        (ROOT / "docs/images/live-cost.svg").write_text(picture)
    measured = [(target, measure(times, target)) for target in bench_python.TARGETS if target[4] == "ratio"]
    insert(ROOT / "python/README.md", bench_python.slower_table([pair for pair in measured if pair[1] is not None]))


def main():
    words = [word for word in sys.argv[1:] if word not in ("--print", "--avx2")]
    avx2 = "--avx2" in sys.argv
    build, results = pathlib.Path(words[0]), pathlib.Path(words[1])
    if "--print" not in sys.argv and "-dirty" in commits(results):
        sys.exit(f"bench-table.py: {results} was measured with changes that no commit has ({commits(results)}): commit them "
                 "and measure again, or --print the page")
    tables, times = read_results(results)
    weights = bench_layers.read_weights(results / "layer-weights")
    bench_layers.add_networks(times, weights)
    bench_layers.add_choices(times)
    text = page(build, results, tables, times, weights, avx2)
    if "--print" in sys.argv:
        print(text)
        return
    (ROOT / ("docs/bench-avx2.md" if avx2 else "docs/bench.md")).write_text(text)
    if avx2:
        return
    write_readmes(times)
    targets = TARGETS + bench_layers.with_choices(times)
    missed = [target for target in targets if verdict(measure(times, target), target[5], target[4]) not in ("yes", "")]
    print(f"docs/bench.md: {len(targets) - len(missed)} required figures met or not set, {len(missed)} missed")


main()
