#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times short causal convolution in one process, in turns: `partita.nn.causal_conv1d` and `causal_conv1d_update`,
PyTorch's conv1d, and sums over taps written by hand and compiled by torch.compile. The contender `copy` copies x: the
speed of memory. Prints rows as the other benchmarks do; an item is one call, and `check` is the relative L2 distance
from conv1d in float64.

    bench/programs/python_causal.py [--quick] [--case PATTERN]

Cases: causal-conv1d-4-d8192-t1024-TYPE, one sequence of 1024 frames, channels last as in models, and
causal-update-4-d8192-bBATCH-TYPE, one new frame of each sequence, with the states that follow."""
import sys

import rows
import torch
import torch.nn.functional as F

import partita.nn

CHANNELS, FRAMES, TAPS = 8192, 1024, 4
SECONDS = 1.0  # of each contender at least, and at least three calls
# Some ten roundings, each of half the distance of two numbers of the type: PyTorch may round every product and sum.
LARGEST_ERROR = {torch.float32: 1e-6, torch.bfloat16: 4e-2}
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def conv1d(x, w, b):
    return F.silu(F.conv1d(F.pad(x, (TAPS - 1, 0)), w.unsqueeze(1), b, groups=CHANNELS))


def by_hand(x, w, b):
    padded = F.pad(x, (TAPS - 1, 0))
    y = b[:, None]
    for k in range(TAPS):
        y = y + w[:, k, None] * padded[..., k:k + x.shape[-1]]
    return F.silu(y)


def update_by_hand(x, state, w, b):
    window = torch.cat([state, x[..., None]], -1)
    state.copy_(window[..., 1:])
    return F.silu((window * w).sum(-1) + b)


def whole(dtype, batch):
    """The functions of a case, and the exact result."""
    x = torch.randn(batch, FRAMES, CHANNELS).to(dtype).transpose(1, 2)
    w, b = torch.randn(CHANNELS, TAPS).to(dtype), torch.randn(CHANNELS).to(dtype)
    compiled = torch.compile(by_hand)
    return {"partita": lambda: partita.nn.causal_conv1d(x, w, b, "silu"), "torch": lambda: conv1d(x, w, b),
            "torch-compiled": lambda: compiled(x, w, b), "copy": x.clone}, conv1d(x.double(), w.double(), b.double())


def update(dtype, batch):
    x, w, b = (torch.randn(*shape).to(dtype) for shape in ((batch, CHANNELS), (CHANNELS, TAPS), (CHANNELS,)))
    state = torch.randn(batch, CHANNELS, TAPS - 1).to(dtype)
    exact = update_by_hand(x.double(), state.double(), w.double(), b.double())
    states, compiled = (state.clone(), state.clone()), torch.compile(update_by_hand)
    return {"partita": lambda: partita.nn.causal_conv1d_update(x, states[0], w, b, "silu"),
            "torch-compiled": lambda: compiled(x, states[1], w, b)}, exact


def measure(case, make, dtype, batch, quick):
    """Prints the rows of one case."""
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        calls, exact = make(dtype, batch)
        errors = {who: rows.distance(call(), exact) for who, call in calls.items() if who != "copy"}
        if not max(errors.values()) <= LARGEST_ERROR[dtype]:
            sys.exit(f"{case}: errors {errors}")
        for who, times in rows.interleaved(calls, seconds=0 if quick else SECONDS * len(calls)).items():
            rows.print_row(case, who, threads, times, errors.get(who, 0))


def cases():
    """The name, function, type and batch of each case."""
    for name, dtype in TYPES.items():
        yield f"causal-conv1d-{TAPS}-d{CHANNELS}-t{FRAMES}-{name}", whole, dtype, 1
        for batch in (1, 64):
            yield f"causal-update-{TAPS}-d{CHANNELS}-b{batch}-{name}", update, dtype, batch


with torch.no_grad():
    rows.run(__doc__, cases(), measure)
