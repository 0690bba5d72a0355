#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""PyTorch as a peer of bench_gpu, on the same cases. Layers use cuDNN with TF32 off and on, with the algorithm that is
fastest in its own measurement (torch.backends.cudnn.benchmark). Causal sequences use its transforms: complex, with the
filters transformed in each call, the baseline in comparisons of fast convolution; and real, with these cached.

    torch_gpu.py [--quick] CASES ROWS      CASES is the output of `bench_gpu --describe`, ROWS a CSV file like bench_gpu's

Each call waits for its result and is timed as in bench_gpu. Answers are compared with float64 on one image. Rows are
appended to the file; those that are there are not repeated, so that a stopped run can continue. GPU_UNTIL (seconds since
the epoch) is when the program stops, with status 75. Without PyTorch or a device it says so, writes only the first line
of the CSV and ends with status 0: rows of a missing peer are missing.
"""
import csv
import math
import os
import statistics
import sys
import time

HEAD = "case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check"
GATE = {"tf32-on": 5e-3}  # of TF32's 10 bits of fraction; others below
# as in bench_gpu; all but the first in seconds
REPETITIONS, MAX_PASS, MIN_SECONDS, WARM_UP = 7, 1.0, 5e-3, 0.5
UNTIL = float(os.environ.get("GPU_UNTIL", "inf"))
CASE_SECONDS = 30  # of one case; with fewer left no other case is started
TO_BE_CONTINUED = 75


def extents(text):
    return [int(n) for n in text.split("x")]


class Case:
    """A row of `bench_gpu --describe`."""

    def __init__(self, row):
        self.name, self.kind, self.direction, self.type = row["case"], row["kind"], row["direction"], row["type"]
        self.extra, self.batch, self.groups = row["extra"] == "1", int(row["batch"]), int(row["groups"])
        self.channels_in, self.channels_out = int(row["in"]), int(row["out"])
        self.kernel, self.size = extents(row["kernel"]), extents(row["size"])
        self.pads = [tuple(int(n) for n in pair.split(":")) for pair in row["pad"].split("x")]
        self.stride, self.dilation = extents(row["stride"]), extents(row["dilation"])
        self.items = int(row["items"])

    @property
    def is_causal_sequences(self):
        """One filter for each channel, as long as the sequences."""
        return (self.kind == "layer" and len(self.size) == 1 and self.kernel == self.size
                and self.groups == self.channels_in == self.channels_out
                and self.pads == [(self.kernel[0] - 1, 0)])

    @property
    def is_layer(self):
        """A layer that conv1d, conv2d or conv3d computes: the same padding on both sides."""
        return (self.kind == "layer" and self.type == "f32" and not self.is_causal_sequences
                and all(begin == end for begin, end in self.pads))

    def shrink(self):
        """As bench_gpu --quick: an eighth of the batch, times scaled by items."""
        batch = (self.batch + 7) // 8
        if self.kind == "layer":
            self.items = self.items // self.batch * batch
            self.batch = batch


def read_cases(path, quick):
    with open(path) as file:
        cases = [Case(row) for row in csv.DictReader(file)]
    cases = [case for case in cases if not case.extra]
    if quick:
        for case in cases:
            case.shrink()
    return cases


def csv_row(case, contender, seconds, n_bytes, error):
    """A row of the CSV; spread is (max - min) / median."""
    middle = statistics.median(seconds)
    spread = (max(seconds) - min(seconds)) / middle
    return f"{case.name},{contender},1,{1e9 * middle / case.items:.5g},{spread:.3f},,{n_bytes},{error:.3g}"


def layer_call(torch, case, x, w, gy):
    """The call of one direction; the arguments' types are the result's."""
    mask = {"forward": None, "backward-data": [True, False, False], "backward-weight": [False, True, False]}
    pad = [begin for begin, _ in case.pads]
    rank = len(case.size)
    if case.direction == "forward":
        conv = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][rank - 1]
        return lambda: conv(x, w, None, case.stride, pad, case.dilation, case.groups)
    which = mask[case.direction]
    return lambda: torch.ops.aten.convolution_backward(gy, x, w, None, case.stride, pad, case.dilation, False, [0] * rank,
                                                       case.groups, which)[which.index(True)]


def sequences_call(torch, case, x, w, gy, real):
    """Causal sequences by transforms of twice their length. Layers correlate, so the taps are reversed."""
    n, length = 2 * case.size[0], case.size[0]
    forward, back = (torch.fft.rfft, torch.fft.irfft) if real else (torch.fft.fft, torch.fft.ifft)
    taps = w.flip(-1)[:, 0]
    cached = forward(taps, n=n) if real else None

    def run():
        filters = cached if real else forward(taps, n=n)
        if case.direction == "forward":
            y = back(forward(x, n=n) * filters, n=n)[..., :length]
        elif case.direction == "backward-data":
            y = back(forward(gy, n=n) * filters.conj(), n=n)[..., :length]
        else:
            y = back((forward(gy, n=n) * forward(x, n=n).conj()).sum(0), n=n)[..., :length].flip(-1)[:, None]
        return y if real else y.real

    return run


def contenders(case):
    return ["torch-fft-complex", "torch-rfft-cached"] if case.is_causal_sequences else ["torch-cudnn-tf32-off", "torch-cudnn-tf32-on"]


def make_call(torch, case, name, arrays):
    if case.is_causal_sequences:
        return sequences_call(torch, case, *arrays, name == "torch-rfft-cached")
    return layer_call(torch, case, *arrays)


def make_arrays(torch, case):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(1)

    def noise(*shape):
        return torch.rand(shape, generator=generator, device="cuda") - 0.5

    x = noise(case.batch, case.channels_in, *case.size)
    w = noise(case.channels_out, case.channels_in // case.groups, *case.kernel)
    out = [(n + b + e - d * (k - 1) - 1) // s + 1
           for n, (b, e), d, k, s in zip(case.size, case.pads, case.dilation, case.kernel, case.stride)]
    return x, w, noise(case.batch, case.channels_out, *out)


def error_of(torch, case, name, arrays):
    """Relative L2 error of one image's result against the same call in float64."""
    one = [arrays[0][:1], arrays[1], arrays[2][:1]]
    got = make_call(torch, case, name, one)().double()
    torch.backends.cudnn.benchmark = False  # any algorithm of float64 will do
    expected = make_call(torch, case, name, [array.double() for array in one])()
    torch.backends.cudnn.benchmark = True
    return float((got - expected).norm() / expected.norm())


def time_calls(torch, call):
    """Seconds of a call, for each repetition. The first calls choose algorithms; then the clock rises."""

    def run(n):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / n

    run(1)
    seconds = run(1)
    if seconds > MAX_PASS:
        return [seconds]
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_UP:
        seconds = run(1)
    calls = math.ceil(MIN_SECONDS / max(seconds, 1e-6))
    return [run(calls) for _ in range(REPETITIONS)]


def run_contender(torch, case, name, arrays, write):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = name.endswith("-on")
    error = error_of(torch, case, name, arrays)
    gate = GATE.get(name.removeprefix("torch-cudnn-"), 1e-4)
    if not error <= gate:
        print(f"{case.name}: {name} is WRONG: error {error:.3g}, allowed {gate:.3g}; not timed", file=sys.stderr)
        return
    call = make_call(torch, case, name, arrays)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seconds = time_calls(torch, call)
    n_bytes = torch.cuda.max_memory_allocated() - before
    write(csv_row(case, name, seconds, n_bytes, error))


def run_case(torch, case, done, write):
    for name in contenders(case):
        if (case.name, name) in done:
            continue
        try:
            run_contender(torch, case, name, make_arrays(torch, case), write)
        except RuntimeError as error:  # no memory, or no algorithm in cuDNN
            print(f"{case.name}: {name} left out: {str(error).splitlines()[0]}", file=sys.stderr)
        torch.cuda.empty_cache()


def find_torch():
    """(PyTorch, its version) with a device, or (None, the reason)."""
    try:
        import torch
    except ImportError as error:
        return None, f"PyTorch: not installed ({error})"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__}: no CUDA device"
    return torch, f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"


def rows_of(path):
    """(case, contender) of the rows in a file."""
    with open(path) as file:
        return {(row["case"], row["contender"]) for row in csv.DictReader(file)}


def run_all(torch, cases, path):
    """Runs all cases; returns the status of the program."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0  # all algorithms are tried, not ten
    done = rows_of(path)

    def write(row):
        with open(path, "a") as file:
            print(row, file=file)

    for case in cases:
        if not (case.is_layer or case.is_causal_sequences) or all((case.name, name) in done for name in contenders(case)):
            continue
        if UNTIL - time.time() < CASE_SECONDS:
            return TO_BE_CONTINUED
        run_case(torch, case, done, write)
    return 0


def main():
    words = [word for word in sys.argv[1:] if word != "--quick"]
    if len(words) != 2:
        print("usage: torch_gpu.py [--quick] CASES ROWS", file=sys.stderr)
        return 2
    cases = read_cases(words[0], "--quick" in sys.argv)
    torch, what = find_torch()
    print(f"peer: {what}", file=sys.stderr)
    if not os.path.exists(words[1]):
        with open(words[1], "w") as file:
            print(HEAD, file=file)
    return 0 if torch is None else run_all(torch, cases, words[1])


if __name__ == "__main__":
    sys.exit(main())
