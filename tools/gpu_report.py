#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes docs/gpu-verified.json and docs/gpu-bench.md from the results of bench/gpu.sh on a machine with a GPU.

    gpu_report.py [--print] RESULTS      --print: the page goes to stdout, nothing is written
    gpu_report.py --source               prints a hash of the sources

RESULTS has: *.outcome (of gpu_suite.py), driver, source, cases.csv, engines.csv and rates (of bench_gpu), rows/, logs/ and
calls/ with one file for each case, torch.csv, torch.log, and *.failed for steps that failed. Nothing is written unless
a device ran these sources and produced times; a stand-in is not a device. The page lists all failures at its top.

gpu-verified.json has a verdict for each engine, of its rows alone: "verified" if all were right, "failed" with the rows
that were wrong, or "not run". The suite and compute-sanitizer have results of their own beside; what is not an engine's is
in "doubts". "predictions" compares the times with docs/bench/gpu-predictions.csv. The measured rates also become those
by which plans for GPUs of that name are made from then on: they replace the GPU's line in lib/cuda/gpu/measured.h, which
is no part of the hash.
"""
import collections
import csv
import datetime
import hashlib
import json
import math
import pathlib
import re
import subprocess
import sys

import gpu_predict

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = "auto"
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1}
RATES = ("launch", "host_graph", "graph", "pass", "bytes", "fma", "tf32")  # of struct cuda_gpu_rates
TABLE = "lib/cuda/gpu/measured.h"
CUDNN, RFFT = "torch-cudnn-tf32-off", "torch-rfft-cached"
DIRECTIONS = ("forward", "backward-data", "backward-weight")

# Target figures: (what, case, the contender that ours is compared with, figure, floor, goal).
FIGURES = {
    "ratio": (lambda ours, theirs: theirs["ms"] / ours["ms"], "x", False),
    "limit": (lambda ours, _: ours["ms"], " ms", True),
    "p99.9": (lambda ours, _: ours["p999_ms"], " ms", True),
}
FLOORS = []
for case, *bounds in (("dieleman-1-n64", 1, 3), ("dieleman-2-n64", 1, 3), ("dieleman-3-n128", 1, 3), ("dieleman-4", 1, 3),
                      ("dieleman-5-n128", 1, 3), ("thesis-4.6-r9-n200", 1, 3), ("thesis-4.6-r15-n200", 3, 8), ("thesis-4.6-r31-n200", 3, 8)):
    FLOORS += [("cuDNN's best, TF32 off", f"{case}-{direction}", CUDNN, "ratio", *bounds) for direction in DIRECTIONS]
FLOORS += [("PyTorch's depthwise", f"depthwise-31-c384-n64-{direction}", CUDNN, "ratio", 5, 15) for direction in DIRECTIONS]
for length in ("1K", "2K", "4K", "8K", "16K", "32K"):
    FLOORS += [("PyTorch, filters transformed beforehand", f"causal-{length}-{direction}", RFFT, "ratio", 2, 4)
               for direction in (DIRECTIONS if length in ("1K", "4K", "32K") else DIRECTIONS[:1])]
FLOORS += [("PyTorch, filters transformed beforehand", "causal-1M-forward", RFFT, "ratio", 1.5, 2.5),
           ("4 and 2 times the time of writing the result", "overlap-save-2M-c32-t257", None, "limit", 0.5, 0.25),
           ("arrays in device memory", "lags-1000-of-2p30", None, "limit", 12, 6),
           ("a block of 64 frames, p99.9", "stream-c128-t96000-b64", None, "p99.9", 1.33, 0.4),
           ("rows, then columns, as CUDA's samples", "separable-3072-r8-forward", "two-passes", "ratio", 1, 1.7)]


def read(results, pattern):
    """The text of all files of this name."""
    return "".join(path.read_text() for path in sorted(results.glob(pattern)))


def read_rows(results, pattern):
    return [row for path in sorted(results.glob(pattern)) for row in csv.DictReader(path.open())]


def nearest(values, share):
    """A percentile of sorted values by the nearest rank, rounded up."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def read_times(results):
    """{case: {contender: {"ms": of a call, "spread", "error", "bytes"}}}; a call of a stream is a block, with percentiles."""
    cases = {row["case"]: row for row in read_rows(results, "cases.csv")}
    times = {}
    for row in read_rows(results, "rows/*.csv") + read_rows(results, "torch.csv"):
        case = cases[row["case"]]
        items = int(case["block"]) * int(case["in"]) if case["kind"] == "stream" else int(case["items"])
        figures = {"ms": float(row["ns_per_item"]) * items * 1e-6, "spread": float(row["spread"]),
                   "error": float(row["check"]), "bytes": int(row["bytes"])}
        if case["kind"] == "stream":
            calls = read_rows(results, f"calls/{row['case']}.{row['contender'].replace('/', '-')}.csv")
            calls = sorted(1e3 * float(call["seconds"]) for call in calls)
            figures.update({f"{name}_ms": nearest(calls, share) for name, share in PERCENTILES.items() if calls})
        times.setdefault(row["case"], {})[row["contender"]] = figures
    return times


def read_messages(text):
    """({contender: {reason: number of cases left out}}, [line of a wrong answer or a failure])."""
    left_out, wrong = {}, []
    for text_line in text.splitlines():
        found = re.fullmatch(r"(\S+): (\S+) left out: (.*)", text_line)
        if found:
            left_out.setdefault(found[2], collections.Counter())[found[3]] += 1
        elif " is WRONG: " in text_line or text_line.endswith(" failed"):
            wrong.append(text_line)
    return left_out, wrong


def source_hash(root):
    """Of the names and contents of all files that take part, so that a record identifies its sources."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in ("bench", "include", "lib", "tests") for path in (root / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path != root / TABLE:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def read_rates(text):
    """{rate: value} of bench_gpu --rates; empty if one is missing or not positive (tf32 may be 0)."""
    rates = {name: float(value) for name, value in re.findall(r"(\w+) (\d[-+.\de]*)", text)}
    good = set(RATES) <= set(rates) and all(rates[name] > 0 or name == "tf32" for name in RATES)
    return {name: rates[name] for name in RATES} if good and text.strip().endswith("; measured") else {}


def gpu_key(device):
    """What the library calls a GPU: its name without spaces."""
    return re.sub(r"^cuda:\d+ +", "", device).split(",")[0][:40].replace(" ", "-")


def with_rates(table, key, rates):
    """The text of TABLE with this GPU's line, in place of an older one or of that for none."""
    head, rest = table.split("measured_gpus[] = {\n")
    lines, tail = rest.split("};", 1)
    lines = [line for line in lines.splitlines() if not line.startswith((f'    {{"{key}", ', '    {.key = ""}'))]
    lines.append(f'    {{"{key}", {{{", ".join(f".{name} = {rates[name]:.4g}" for name in RATES)}}}}},')
    return f"{head}measured_gpus[] = {{\n" + "".join(f"{line}\n" for line in sorted(lines)) + "};" + tail


def measure(times, floor):
    """The figure of one line of FLOORS; None if a row is missing."""
    _, case, peer, figure, _, _ = floor
    ours, theirs = times.get(case, {}).get(OURS), times.get(case, {}).get(peer)
    if ours is None or (peer and theirs is None) or (figure == "p99.9" and "p999_ms" not in ours):
        return None
    return FIGURES[figure][0](ours, theirs)


def verdict(value, bound, figure):
    if value is None:
        return "not measured"
    return "yes" if (value <= bound if FIGURES[figure][2] else value >= bound) else "no"


def verdicts(states, times, wrong):
    """{engine: {"verdict", "cases": number of right ones, "rows": lines of wrong ones}}."""
    found = {}
    for engine in states:
        rows = [line for line in wrong if re.match(rf"\S+: {re.escape(engine)} is WRONG: ", line)]
        right = sum(engine in contenders for contenders in times.values())
        found[engine] = {"verdict": "failed" if rows else "verified" if right else "not run", "cases": right, "rows": rows}
    return found


def collect(results, root):
    """All facts of a run, as docs/gpu-verified.json has them."""
    times = read_times(results)
    # {"device": the line of `partita devices`, "suite": "N passed, N failed", "memcheck": "passed", ...}
    outcome = dict(line.split(" ", 1) for line in read(results, "*.outcome").splitlines() if " " in line)
    left_out, wrong = read_messages(read(results, "logs/*.log") + read(results, "torch.log"))
    engines = {row["engine"]: row["state"] for row in read_rows(results, "engines.csv")}
    peer = re.search(r"^peer: (.*)$", read(results, "torch.log"), re.M)
    floors = [dict(zip(("what", "case", "against", "figure", "floor", "goal"), floor), measured=(value := measure(times, floor)),
                   floor_met=verdict(value, floor[4], floor[3]), goal_met=verdict(value, floor[5], floor[3])) for floor in FLOORS]
    record = {
        "device": outcome.get("device", ""),
        "driver": read(results, "driver").strip(),
        "date": datetime.date.today().isoformat(),
        "commit": command("git", "-C", str(root), "describe", "--always", "--dirty"),
        "sources": source_hash(root),
        "sources_run": read(results, "source").strip(),
        "suite": outcome.get("suite", ""),
        "compute-sanitizer": {tool: outcome.get(tool, "not run") for tool in ("memcheck", "racecheck")},
        "peer": peer[1] if peer else "PyTorch: not run",
        "engines": engines,
        "rates": read_rates(read(results, "rates")),
        "verdicts": verdicts([*engines, OURS], times, wrong),
        "cases": times,
        "floors": floors,
        "predictions": gpu_predict.compare(read(root, gpu_predict.PREDICTIONS), outcome.get("device", ""), times),
        "left_out": left_out,
        "wrong": wrong,
        "failed_steps": [path.stem for path in sorted(results.glob("*.failed"))],
    }
    record["doubts"] = doubts(record)
    return record


def refusal(record):
    """Why nothing is written; None if a device ran these sources and produced times."""
    if not re.match(r"cuda:\d+ ", record["device"]):
        return "no CUDA device"
    if "hostdev" in record["device"]:
        return "hostdev is not a device"
    if record["sources"] != record["sources_run"]:
        return "the sources have changed since the suite or the benchmarks ran"
    return None if record["cases"] else "nothing was timed"


def doubts(record):
    """All that was wrong or is missing, whichever engine it is of."""
    found = []
    if not re.fullmatch(r"[1-9]\d* passed, 0 failed(, \d+ skipped)?", record["suite"]):
        found.append(f"the suite gpu did not pass: {record['suite'] or 'not run'}")
    found += [f"compute-sanitizer's {tool} {result}" for tool, result in record["compute-sanitizer"].items()
              if result.startswith("failed")]
    return found + record["wrong"] + [f"step {step} failed" for step in record["failed_steps"]]


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


HEAD = """# Benchmarks on a GPU

Written by `tools/gpu_report.py` from one run of `bench/gpu.sh`; do not edit. `gpu-verified.json` has all rows, with the
result of the suite. Arrays are in the device's memory, filters are made beforehand, and every call waits for its result,
ours and the peers': times of small problems include that wait. Answers are checked against sums in float64 before they
are timed. Each time is the median of the repetitions. Streams read from and write to host memory; the times of single
calls are those of one pass.

`cufft-complex` pads causal sequences to twice their length and transforms sequences and filters as complex numbers in
each call; `cufft-real` transforms only the sequences, as reals; `cufft-blocks` is overlap-save in blocks of 8192.
`torch-fft-complex` and `torch-rfft-cached` are the first two in PyTorch.
"""


def table(columns, rows):
    """A table of Markdown; cells are texts."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def number(value, unit=""):
    return "" if value is None else f"{value:.3g}{unit}"


def floors_table(record):
    rows = []
    for floor in record["floors"]:
        unit = FIGURES[floor["figure"]][1]
        contenders = record["cases"].get(floor["case"], {})
        times = [number(contenders.get(name, {}).get("ms"), " ms") for name in (OURS, floor["against"])]
        bounds = [number(floor[name], unit) for name in ("floor", "goal")]
        met = ["**no**" if floor[name] == "no" else floor[name] for name in ("floor_met", "goal_met")]
        rows.append([floor["what"], f"`{floor['case']}`", *bounds, *times, number(floor["measured"], unit), *met])
    return table(("what", "case", "required", "goal", "ours", "theirs", "measured", "required met", "goal met"), rows)


def predictions_text(record):
    """How many predictions hold, and all that were measured; those that are furthest off come first."""
    predictions = record["predictions"]
    judged = sorted((row for row in predictions if row["ratio"]), key=lambda row: -abs(math.log(row["ratio"])))
    held = sum(row["state"] == gpu_predict.HOLDS for row in judged)
    if not predictions:
        return "There are none for this device."
    rows = [[f"`{row['case']}`", row["engine"], row["row"], number(row["predicted_ms"], " ms"),
             number(row["measured_ms"], " ms"), number(row["ratio"], "x"),
             row["state"] if row["state"] == gpu_predict.HOLDS else f"**{row['state']}**"] for row in judged]
    return (f"Of {len(predictions)} times in `{gpu_predict.PREDICTIONS}` {len(judged)} were measured, of which {held} are "
            f"within a factor of {gpu_predict.FACTOR:g} and {len(judged) - held} are not.\n\n"
            + table(("case", "predicted engine", "row", "predicted", "measured", "ratio", ""), rows))


def page(record):
    facts = [("device", record["device"]), ("driver", record["driver"]), ("date", record["date"]),
             ("commit", record["commit"]), ("suite gpu", record["suite"]),
             ("compute-sanitizer", ", ".join(f"{tool} {result}" for tool, result in record["compute-sanitizer"].items())),
             ("peer", record["peer"]),
             ("rates", ", ".join(f"{name} {value:.4g}" for name, value in record["rates"].items()) or "not measured")]
    missing = [name for name, state in record["engines"].items() if state != "there"]
    left_out = [f"- {name}: {reason} ({count} cases)" for name, reasons in record["left_out"].items()
                for reason, count in reasons.items()]
    doubted = "".join(f"- {line}\n" for line in record["doubts"])
    verdicts = ([engine, row["verdict"], str(row["cases"]), str(len(row["rows"]))] for engine, row in record["verdicts"].items())
    parts = [HEAD, f"**Not verified:**\n{doubted}" if doubted else "",
             "\n".join(f"- {name}: {value}" for name, value in facts),
             f"\nEngines that are not there: {', '.join(missing)}." if missing else "",
             "\n## Engines\n", table(("engine", "verdict", "right cases", "wrong cases"), verdicts),
             "\n## Targets\n", floors_table(record),
             "\n## Predictions\n", predictions_text(record),
             "\n## Left out\n", "\n".join(left_out)]
    return "\n".join(parts) + "\n"


def write(record, docs, rates):
    """Writes the page, the record, and the GPU's line of TABLE in the file `rates`. Returns why nothing was written, or None."""
    why_not = refusal(record)
    if why_not is None:
        (docs / "gpu-bench.md").write_text(page(record))
        (docs / "gpu-verified.json").write_text(json.dumps(record, indent=1) + "\n")
        if record["rates"]:
            rates.write_text(with_rates(rates.read_text(), gpu_key(record["device"]), record["rates"]))
    return why_not


def main():
    words = sys.argv[1:]
    if words == ["--source"]:
        print(source_hash(ROOT))
        return 0
    record = collect(pathlib.Path(words[-1]), ROOT)
    if "--print" in words:
        print(page(record))
        return 0
    why_not = write(record, ROOT / "docs", ROOT / TABLE)
    if why_not:
        print(f"nothing written: {why_not}", file=sys.stderr)
        return 1
    met = sum(floor["floor_met"] == "yes" for floor in record["floors"])
    print(f"docs/gpu-bench.md: {met} required figures met, {len(FLOORS) - met} not")
    print(predictions_text(record).partition("\n")[0])
    for line in record["doubts"]:
        print(f"not verified: {line}", file=sys.stderr)
    return 1 if record["doubts"] else 0


if __name__ == "__main__":
    sys.exit(main())
