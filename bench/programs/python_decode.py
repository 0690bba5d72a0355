#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times decoding with long filters in one process, in turns: a frame of `partita.nn.DecodeState`; `direct`, sums over a
kept history, which read the taps and the history of each sequence once, compiled by torch.compile; and for one sequence
`torch-fft`, the layer on the whole history again, with the spectra of its taps kept. Prints rows as the other benchmarks
do; an item is one frame of all sequences, `p999_over_mean` is the largest frame over the mean, each position the least of
five passes over a period of the blocks, and `check` the relative L2 distance from sums in float64.

    bench/programs/python_decode.py [--quick] [--case PATTERN]

Cases: decode-cCHANNELS-tTAPS-bBATCH, f32, after a prompt as long as the filter. Those of 32 sequences need 20 GB."""
import argparse
import fnmatch
import os
import sys
import time

import rows
import torch

from partita.nn import DecodeState

PERIOD = 1024  # the longest block of 8192 taps: the work of calls repeats
SECONDS = 1.0  # of each contender at least, and at least three calls


def flatness(step, passes):
    """The largest over the mean, of the least times of each position, on one core."""
    cores, best = os.sched_getaffinity(0), [float("inf")] * PERIOD
    os.sched_setaffinity(0, {min(cores)})
    for _ in range(passes):
        for i in range(PERIOD):
            begin = time.perf_counter()
            step()
            best[i] = min(best[i], time.perf_counter() - begin)
    os.sched_setaffinity(0, cores)
    return max(best) * PERIOD / sum(best)


def filled(channels, taps, batch, threads):
    """A state whose sequences have had a prompt, the prompt and the taps."""
    h, prompt = torch.randn(channels, taps) / taps ** 0.5, torch.randn(channels, taps)
    state = DecodeState(h, batch, threads=threads)
    state.prefill(state.join(), prompt)
    for _ in range(1, batch):
        state.clone(0)
    return state, h, prompt


def contenders(state, h, prompt, batch):
    """Calls for a frame, and the outputs of the first one. Those of the peers leave their history as it is."""
    channels, taps = h.shape
    frame = torch.randn(batch, channels)
    history = torch.empty(channels, batch, taps)  # of each sequence, the newest frame last
    history[..., :-1] = prompt[:, None, 1:]
    history[..., -1] = frame.T
    backwards = h.flip(1)[:, None].contiguous()
    exact = torch.stack([(history[:, b].double() * backwards[:, 0]).sum(1) for b in range(batch)])
    sums = torch.compile(lambda history, taps: (history * taps).sum(-1))
    calls = {"partita": lambda: state.step(frame), "direct": lambda: sums(history, backwards).T}
    if batch == 1:
        spectra, x = torch.fft.rfft(h, 2 * taps), history[:, 0]
        calls["torch-fft"] = lambda: torch.fft.irfft(torch.fft.rfft(x, 2 * taps) * spectra)[None, :, taps - 1]
    return calls, exact


def measure(case, sizes, quick):
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        state, h, prompt = filled(*sizes, threads)
        calls, exact = contenders(state, h, prompt, sizes[2])
        errors = {who: float((call().double() - exact).norm() / exact.norm()) for who, call in calls.items()}
        if not max(errors.values()) <= 1e-5:
            sys.exit(f"{case}: errors {errors}")
        times = rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls))
        flat = f"{flatness(calls['partita'], 1 if quick else 5):.3g}" if threads == 1 else ""
        for who, seconds in times.items():
            rows.print_row(case, who, threads, seconds, errors[who], state.nbytes if who == "partita" else "",
                           flat if who == "partita" else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three calls a row, and one pass")
    parser.add_argument("--case", default="*")
    arguments = parser.parse_args()
    print(rows.HEADER)
    with torch.no_grad():
        for batch in (1, 32):
            case = f"decode-c4096-t8192-b{batch}"
            if fnmatch.fnmatch(case, arguments.case):
                measure(case, (4096, 8192, batch), arguments.quick)


main()
