#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes docs/bench/gpu-predictions.csv: the times that the planner predicts for the cases of bench_gpu on devices whose
figures are published. gpu_report.py compares the times of a device with them.

    gpu_predict.py BUILD        BUILD has the stand-in for a device, which is given the figures of each
"""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREDICTIONS = "docs/bench/gpu-predictions.csv"
LANES = 128  # of f32 of a processor of compute capability 9.0
FACTOR = 1.5  # a prediction fails if the time is more than this many times as long, or as short
HOLDS = "as predicted"
# Multiprocessors, f32 operations and bytes a second, bits of the memory's bus. H100 SXM and H200 SXM: NVIDIA's data sheets
# (rates), NVIDIA H100 Tensor Core GPU Architecture (processors, bus).
DEVICES = {"H100": (132, 67e12, 3.35e12, 5120), "H200": (132, 67e12, 4.8e12, 6144)}


def environment(name):
    """The variables that give the stand-in the figures of a device. Clocks are in kHz."""
    processors, flops, rate, bus = DEVICES[name]
    return {"HOSTDEV_CAPABILITY": "90", "HOSTDEV_PROCESSORS": str(processors), "HOSTDEV_BUS": str(bus),
            "HOSTDEV_CLOCK": str(round(flops / (2 * LANES * processors) / 1e3)),
            "HOSTDEV_MEMORY_CLOCK": str(round(rate / (bus / 4) / 1e3)), "HOSTDEV_MEMORY": "16384"}


def read_plans(program, name):
    """{case: row of bench_gpu_plans}. The host's share of a stream is that of a processor with AVX2."""
    variables = {**os.environ, **environment(name)}
    if os.uname().machine == "x86_64":
        variables["PARTITA_CPU"] = "avx2"
    run = subprocess.run([str(program)], env=variables, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{program}: status {run.returncode}: {run.stderr}")
    sys.stderr.write(run.stderr)
    return {row["case"]: row for row in csv.DictReader(run.stdout.splitlines())}


def predictions(program):
    """The text of PREDICTIONS: of each case on each device the plan, the time of moving the caller's arrays once through
    memory (0: a stream's are in host memory), and the time of a call, of streams of a block."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["device", "case", "engine", "plan", "arrays_ms", "ms"])
    for name, (_, _, rate, _) in DEVICES.items():
        for case, row in read_plans(program, name).items():
            plan = row["summary"] or (f"fft {row['transform']}" if row["transform"] != "0" else "")
            write([name, case, row["engine"], plan, f"{1e3 * float(row['arrays']) / rate:.3g}", f"{1e3 * float(row['seconds']):.3g}"])
    return text.getvalue()


def device_of(line):
    """The name of the device of DEVICES in the line of bench_gpu --device, or None."""
    return next((name for name, (processors, *_) in DEVICES.items()
                 if re.search(rf"\b{name}\b", line) and f" {processors} processors" in line), None)


def judge(row, measured):
    if measured < float(row["arrays_ms"]):
        return "shorter than moving the arrays once"
    if measured > FACTOR * float(row["ms"]):
        return "slower"
    return "faster" if measured < float(row["ms"]) / FACTOR else HOLDS


def compare(text, line, times):
    """The result of each prediction in the text of PREDICTIONS for the device of this line: a list of dicts. times: {case:
    {contender: {"ms"}}}. The row of the predicted engine counts; if it has none, the planner's choice."""
    found, device = [], device_of(line)
    for row in csv.DictReader(text.splitlines()):
        if row["device"] == device:
            contenders = times.get(row["case"], {})
            names = (row["engine"], row["engine"].partition(":")[0], "auto")
            name = next((name for name in names if name in contenders), "")
            measured = contenders.get(name, {}).get("ms")
            found.append({"case": row["case"], "engine": row["engine"], "row": name,
                          "predicted_ms": float(row["ms"]), "measured_ms": measured,
                          "ratio": None if measured is None else measured / float(row["ms"]),
                          "state": "not measured" if measured is None else judge(row, measured)})
    return found


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    os.environ["PARTITA_CUDA_MODULE"] = str(build / "tests/hostdev/libpartita-cuda.so")
    os.environ["PARTITA_CUFFT"] = str(build / "tests/hostdev/libhostdev-cufft.so")
    (ROOT / PREDICTIONS).write_text(predictions(build / "bench/bench_gpu_plans"))


if __name__ == "__main__":
    main()
