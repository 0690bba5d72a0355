#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes docs/gpu-predictions.md: the times that the planner predicts for the cases of bench_gpu on devices whose
figures are published, what bounds them, and what the machine code of the kernels says of them.

    gpu_predict.py BUILD        renews the cases: BUILD has the stand-in for a device
    gpu_predict.py --kernels    renews the kernels: needs nvcc and nvdisasm, and takes minutes

The planner is asked on the stand-in, which has a device's figures in place of its own. In its model a kernel takes as
long as issuing its instructions or as moving its bytes, whichever takes longer, and its launches. With a clock that is
higher by a ten-thousandth a prediction is shorter by that share of the kernels that issue bounds, and likewise with
memory: this divides it into issue, memory and the rest (launches; of streams also the host and typed times of passes).

gpu_report.py compares the times of a device with the page.
"""
import csv
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sass

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/gpu-predictions.md"
LANES = 128  # of f32 of a processor of compute capability 9.0
FACTOR = 1.5  # a prediction fails if the time is more than this many times as long, or as short
HOLDS = "as predicted"
STEP = 1e-4  # by which a rate is raised


@dataclasses.dataclass
class Device:
    """Published figures: multiprocessors, f32 operations and bytes a second, bits of the memory's bus; for the page
    also operations of TF32 a second and bytes of L2."""
    processors: int
    flops: float
    bytes: float
    bus: int
    tf32: float = 494e12
    l2: float = 50e6

    def environment(self, clock=1.0, memory=1.0):
        """What gives the stand-in these figures, with rates that many times as high. Clocks are in kHz."""
        return {"HOSTDEV_CAPABILITY": "90", "HOSTDEV_PROCESSORS": str(self.processors), "HOSTDEV_BUS": str(self.bus),
                "HOSTDEV_CLOCK": str(round(clock * self.flops / (2 * LANES * self.processors) / 1e3)),
                "HOSTDEV_MEMORY_CLOCK": str(round(memory * self.bytes / (self.bus / 4) / 1e3)),
                "HOSTDEV_MEMORY": "16384"}


# H100 SXM and H200 SXM: NVIDIA's data sheets (rates), NVIDIA H100 Tensor Core GPU Architecture (processors, bus).
DEVICES = {"H100": Device(132, 67e12, 3.35e12, 5120), "H200": Device(132, 67e12, 4.8e12, 6144)}
FIGURES = "\n".join(f"| {name} SXM | {of.processors} | {of.flops / 1e12:g} | {of.tf32 / 1e12:g} | {of.bytes / 1e12:g} | "
                    f"{of.l2 / 1e6:g} |" for name, of in DEVICES.items())


@dataclasses.dataclass
class Prediction:
    """Seconds of a call, and those of them that issue and memory bound."""
    engine: str
    choice: str    # the plan in words
    arrays: float  # bytes of samples and taps; 0: a stream
    seconds: float
    issue: float
    memory: float

    @property
    def rest(self):
        return self.seconds - self.issue - self.memory


def read_plans(program, figures):
    """{case: row of bench_gpu_plans}. The host's share of a stream is that of a processor with AVX2."""
    environment = {**os.environ, **figures}
    if os.uname().machine == "x86_64":
        environment["PARTITA_CPU"] = "avx2"
    run = subprocess.run([str(program)], env=environment, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{program}: status {run.returncode}: {run.stderr}")
    sys.stderr.write(run.stderr)
    return {row["case"]: row for row in csv.DictReader(run.stdout.splitlines())}


def describe(row):
    """What distinguishes a plan from another one of its engine."""
    if row["summary"]:
        return row["summary"]
    return f"fft {row['transform']}" if row["transform"] != "0" else ""


def bound_share(row, other, ratio):
    """The seconds that a rate bounds, from the prediction with `ratio` times that rate."""
    same = all(row[key] == other[key] for key in ("engine", "summary", "transform", "hop", "workspace"))
    before, after = float(row["seconds"]), float(other["seconds"])
    return min(max((before - after) / (1 - 1 / ratio), 0), before) if same else 0


def predict(program, device):
    """{case: Prediction}, in the order of bench_gpu."""
    usual, faster, wider = (device.environment(), device.environment(clock=1 + STEP), device.environment(memory=1 + STEP))
    plans, with_clock, with_memory = (read_plans(program, figures) for figures in (usual, faster, wider))
    clock = int(faster["HOSTDEV_CLOCK"]) / int(usual["HOSTDEV_CLOCK"])
    memory = int(wider["HOSTDEV_MEMORY_CLOCK"]) / int(usual["HOSTDEV_MEMORY_CLOCK"])
    return {case: Prediction(row["engine"], describe(row), float(row["arrays"]), float(row["seconds"]),
                             bound_share(row, with_clock[case], clock), bound_share(row, with_memory[case], memory))
            for case, row in plans.items()}


HEAD = f"""# What a GPU should show

**Predicted, not measured: nothing on this page has run on a device.** It has the times that the planner predicts for
every case of `bench_gpu` that runs by default, so that the first run on a device says where the model is wrong.
`tools/gpu_report.py` compares a run on one of these devices with this page: a prediction holds if the time is at most
{FACTOR:g} times as long or as short. Written by `tools/gpu_predict.py`; do not edit.

| device | processors | f32, Tflop/s | TF32 dense, Tflop/s | memory, TB/s | L2, MB |
|---|---|---|---|---|---|
{FIGURES}

Sources: NVIDIA's data sheets *H100 Tensor Core GPU* and *H200 Tensor Core GPU*, and *NVIDIA H100 Tensor Core GPU
Architecture*; the f32 rate is that of the highest clock. The planner does not use the rate of TF32, of which it assumes
five times that of f32 ([decision 43](decisions/0043-tensor-cores.md)), nor the size of L2.

In the model a kernel takes as long as issuing its instructions or as moving its bytes through memory, whichever takes
longer, and 3 us for each launch. Instructions were counted from the machine code (notes [19](notes/0019-cuda.md) to
[25](notes/0025-cuda-streams.md)); a device with too few threads issues in proportion to them. What the model does not
see makes a call slower: waits at barriers and for memory, the wait for the result. Arrays that stay in L2 make it faster.
"""

CASES = "## Cases"
CASES_TEXT = """\
*arrays* are the samples and taps of the caller, and the time of moving them once through memory, which no algorithm
undercuts (a stream's are in host memory). *slots* are the multiply-adds, or what takes as long, of the kernels that
issue bounds; *bytes* are those moved by the kernels that memory bounds. Then the predicted time of a call, for streams
of a block, divided into that of these kernels and the rest: launches, for streams also the host's part. All of these are
for an H100; the last column is the predicted time on an H200, for the plan that is best there.
"""
COLUMNS = ("case", "plan", "arrays, MB", "once, ms", "slots, G", "bytes, GB", "issue, ms", "memory, ms", "rest, ms", "H100, ms",
           "H200, ms")


def table_row(cells):
    return "| " + " | ".join(cells) + " |"


def digits(value):
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 5e-4 else "0"


def cases_table(predictions):
    """predictions: {device: {case: Prediction}}."""
    first, second = predictions["H100"], predictions["H200"]
    device = DEVICES["H100"]
    lines = [table_row(COLUMNS), "|" + "---|" * len(COLUMNS)]
    for case, of in first.items():
        arrays = [digits(of.arrays / 1e6), digits(1e3 * of.arrays / device.bytes)] if of.arrays else ["", ""]
        parts = [of.issue * device.flops / 2e9, of.memory * device.bytes / 1e9]
        times = [1e3 * seconds for seconds in (of.issue, of.memory, of.rest, of.seconds, second[case].seconds)]
        lines.append(table_row([f"`{case}`", f"{of.engine} {of.choice}".strip(), *arrays, *map(digits, parts + times)]))
    return "\n".join(lines)


def read_page(text, device):
    """{case: {"engine", "predicted" and "arrays" in ms}} of a device of DEVICES, from the page."""
    rows = {}
    for line in text.partition(CASES)[2].splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and re.fullmatch(r"\d[\d.e+-]*", cells[-1]):
            row = dict(zip(COLUMNS, cells))
            once = float(row["once, ms"] or 0) * DEVICES["H100"].bytes / DEVICES[device].bytes
            rows[row["case"]] = {"engine": row["plan"].split(" ")[0], "predicted": float(row[f"{device}, ms"]), "arrays": once}
    return rows


def device_of(line):
    """The name of the device of DEVICES in the line of bench_gpu --device, or None."""
    return next((name for name, device in DEVICES.items()
                 if re.search(rf"\b{name}\b", line) and f" {device.processors} processors" in line), None)


def judge(row, measured):
    if measured < row["arrays"]:
        return "shorter than moving the arrays once"
    if measured > FACTOR * row["predicted"]:
        return "slower"
    return "faster" if measured < row["predicted"] / FACTOR else HOLDS


def compare(text, line, times):
    """What became of each prediction of the page for the device of this line: a list of dicts, in the order of the page.
    times: {case: {contender: {"ms"}}}. The predicted engine's row counts; where it has none, the planner's choice."""
    device = device_of(line)
    found = []
    for case, row in (read_page(text, device) if device else {}).items():
        contenders = times.get(case, {})
        names = (row["engine"], row["engine"].partition(":")[0], "auto")
        name = next((name for name in names if name in contenders), "")
        measured = contenders.get(name, {}).get("ms")
        found.append({"case": case, "engine": row["engine"], "row": name,
                      "predicted_ms": row["predicted"], "measured_ms": measured,
                      "ratio": None if measured is None else measured / row["predicted"],
                      "state": "not measured" if measured is None else judge(row, measured)})
    return found


# The kernels of the engines, by their sources.
KERNELS = (
    ("cuda/direct", "direct/plain", "direct_plain_kernel<float>"),
    ("cuda/direct", "direct/tiles", "direct_tile_kernel<float, 8>"),
    ("cuda/direct", "direct/tiles", "direct_span_kernel<float>"),
    ("cuda/separable", "separable/separable", "separable_kernel<float, 8>"),
    ("products", "kernels/product", "product_kernel<float, 4, 2, false>"),
    ("products", "kernels/product", "product_kernel<complex_of<float>, 4, 2, false>"),
    ("products", "kernels/tensor", "tensor_kernel<float, 2, 2, 4, false>"),
    ("products", "kernels/tensor", "tensor_kernel<complex_of<float>, 2, 2, 4, false>"),
    ("cuda/gemm", "gemm/panels", "gemm_load_kernel<float>"),
    ("cuda/gemm", "gemm/panels", "gemm_store_kernel<float>"),
    ("cuda/winograd", "winograd/tiles", "winograd_tiles_kernel<float, 6, 6>"),
    ("cuda/winograd", "winograd/tiles", "winograd_output_kernel<float, 6, 6>"),
    ("cuda/tiles", "tiles/samples", "load_tiles_kernel<float>"),
    ("cuda/tiles", "tiles/samples", "store_tiles_kernel<float>"),
    ("cuda/tiles", "tiles/fused", "tiles_fused_kernel<float>"),
    ("cuda/overlap-save", "overlap/filter", "filter_kernel<float>"),
    ("cuda/overlap-save", "overlap/gradient", "gradient_kernel<float>"),
    ("cuda/overlap-save", "overlap/long_rows", "long_rows_kernel<float>"),
    ("cuda/blocks", "blocks/lags", "lags_kernel<float>"),
    ("cuda/blocks", "blocks/pairs", "pairs_kernel<float>"),
    ("cuda/blocks", "kernels/spectra", "windows_kernel<float>"),
    ("cuda/blocks", "kernels/spectra", "results_kernel<float>"),
    ("cuda/partitioned", "partitioned/partitioned", "partition_forward_kernel<float>"),
    ("cuda/partitioned", "partitioned/partitioned", "partition_products_kernel<float, tap_bins<float>>"),
    ("cuda/partitioned", "partitioned/partitioned", "partition_products_kernel<float, tap_bins_i16>"),
    ("cuda/partitioned", "partitioned/partitioned", "partition_inverse_kernel<float>"),
)
KERNELS_HEADING = "## Kernels"
KERNELS_TEXT = """\
Counted from the machine code for compute capability 9.0 by {compiler}, with `tools/sass.py`. *resident* are the warps
that a processor's 65 536 registers hold, of the 64 that it can have, for thread blocks of the size that the kernel is
compiled for; shared memory may allow fewer. *loop* is the inner loop with the most arithmetic, or the kernel if it has
none: instructions, those of f32 arithmetic and of tensor cores, and their share. Without tensor cores, one of whose
instructions takes several slots, the loop issues f32 arithmetic at no more than this share of the f32 rate.
"""
KERNEL_COLUMNS = ("engine", "kernel", "registers", "threads", "resident warps", "loop", "f32", "tensor", "share")
ARITHMETIC = ("multiply-add", "add or multiply")


@dataclasses.dataclass
class Kernel:
    registers: int
    threads: int  # of a thread block, at most
    issued: int   # instructions of the loop
    f32: int
    tensor: int

    @property
    def resident(self):
        """Warps: registers are allocated by 256 of a warp, 65536 are there (CUDA C++ Programming Guide)."""
        warps_of_block = -(-self.threads // 32)
        warps = 65536 // (32 * (-(-self.registers // 8) * 8))
        return min(warps // warps_of_block, 64 // warps_of_block, 32) * warps_of_block


def read_kernels(text):
    """{mangled name: Kernel} from what nvdisasm prints of a cubin."""
    word = r"[^/]*?/\*\w+\*/\s+\.word\s+"
    registers = dict(re.findall(rf"EIATTR_REGCOUNT\n.*?\.word\s+index@\((\S+)\){word}(0x[0-9a-f]+)", text, re.S))
    kernels = {}
    for function in re.split(r"\n\s*\.section\s+\.text\.", text)[1:]:
        name = function.partition(",")[0]
        loops, operations = sass.loops_of(function.splitlines())
        information = text.partition(f".nv.info.{name},")[2].partition("\n\t.section\t")[0]
        threads = re.search(r"EIATTR_MAX_THREADS\n.*?\.word\s+(0x[0-9a-f]+)", information, re.S)
        kernels[name] = Kernel(int(registers[name], 16), int(threads[1], 16) if threads else 1024, *count_loop(loops, operations))
    return kernels


def count_loop(loops, operations):
    """(instructions, of f32 arithmetic, of tensor cores) of the inner loop with the most of these."""
    inner = [loop for loop in loops if not any(other != loop and other[0] >= loop[0] and other[1] <= loop[1] for other in loops)]
    counts = []
    for first, last in inner or [(0, len(operations) - 1)]:
        classes = [sass.class_of(operation) for operation in operations[first:last + 1]]
        counts.append((last - first + 1, sum(name in ARITHMETIC for name in classes), classes.count("matrix multiply-add")))
    return max(counts, key=lambda of: (of[2], of[1], of[0]))


def compile_kernels(source, folder):
    cubin = folder / (source.replace("/", "_") + ".cubin")
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, "-std=c++17", "-O3", "-DNDEBUG", "-Iinclude", "-Ilib", "-arch=sm_90", "-cubin", f"lib/cuda/{source}.cu",
                    "-o", str(cubin)], cwd=ROOT, check=True)
    return read_kernels(subprocess.run(["nvdisasm", str(cubin)], capture_output=True, text=True, check=True).stdout)


def mangled(name):
    """The beginning of a template's mangled name, after its length; there may be more arguments."""
    name = name.replace("complex_of<float>", "complex").replace("tap_bins<float>", "tap_bins")
    name, _, arguments = name.rstrip(">").partition("<")
    codes = {"float": "f", "complex": "10complex_ofIfE", "false": "Lb0E", "tap_bins": "8tap_binsIfE",
             "tap_bins_i16": "12tap_bins_i16E"}
    return name + "I" + "".join(codes.get(word) or f"Li{word}E" for word in arguments.split(", "))


def kernels_table():
    lines = [table_row(KERNEL_COLUMNS), "|" + "---|" * len(KERNEL_COLUMNS)]
    with tempfile.TemporaryDirectory() as folder:
        compiled = {source: compile_kernels(source, pathlib.Path(folder)) for source in dict.fromkeys(row[1] for row in KERNELS)}
    for engine, source, name in KERNELS:
        found = next((kernel for symbol, kernel in compiled[source].items() if re.search(rf"\d{mangled(name)}", symbol)), None)
        if found is None:
            raise RuntimeError(f"lib/cuda/{source}.cu: no kernel {name}")
        counts = (found.registers, found.threads, found.resident, found.issued, found.f32, found.tensor)
        share = (found.f32 + found.tensor) / found.issued
        lines.append(table_row([engine, f"`{name}`", *map(str, counts), f"{share:.2f}"]))
    return "\n".join(lines)


def compiler():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return "nvcc " + re.search(r"release ([\d.]+)", text)[1]


def new_cases(build):
    os.environ["PARTITA_CUDA_MODULE"] = str(build / "tests/hostdev/libpartita-cuda.so")
    os.environ["PARTITA_CUFFT"] = str(build / "tests/hostdev/libhostdev-cufft.so")
    predictions = {name: predict(build / "bench/bench_gpu_plans", device) for name, device in DEVICES.items()}
    return f"\n\n{CASES_TEXT}\n{cases_table(predictions)}\n\n"


def main():
    of_kernels = sys.argv[1] == "--kernels"
    if of_kernels:
        renewed = f"\n\n{KERNELS_TEXT.format(compiler=compiler())}\n{kernels_table()}\n"
    else:
        renewed = new_cases(pathlib.Path(sys.argv[1]).resolve())
    page = ROOT / PAGE
    before = page.read_text() if page.exists() else f"{CASES}\n\n{KERNELS_HEADING}\n"
    cases, _, kernels = before.partition(CASES)[2].partition(KERNELS_HEADING)
    parts = (cases, renewed) if of_kernels else (renewed, kernels)
    sections = [f"{HEAD}\n{CASES}{parts[0].rstrip()}\n"]
    if parts[1].strip():
        sections.append(f"{KERNELS_HEADING}{parts[1].rstrip()}\n")
    page.write_text("\n".join(sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
