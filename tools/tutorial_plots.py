#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures of the tutorials docs/*-in-python.md: runs the programs of a page and plots what they have computed.

    tools/tutorial_plots.py [PAGE...]        pages: reverb radio long-recordings layers

Run it in the environment of tools/python.sh, with matplotlib: build-ci/python/bin/pip install matplotlib
"""
import copy
import pathlib
import re
import sys

import matplotlib
import numpy as np

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
BLUE, BROWN, GREY = "#0060a8", "#b04a00", "#a0a0a0"


def variables(page):
    """What the programs of a page leave. The last one of long-recordings removes the files, and is left out."""
    programs = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}-in-python.md").read_text(encoding="utf-8"), re.M | re.S)
    names = {}
    for program in programs[:-1] if page == "long-recordings" else programs:
        exec(compile(program, page, "exec"), names)  # noqa: S102
    return names


def decibels(power):
    return 10 * np.log10(np.maximum(power, 1e-12))


def envelope(x, rate):
    """Time and level of stretches of 20 ms."""
    n = rate // 50
    stretches = x[:len(x) // n * n].reshape(-1, n)
    return np.arange(len(stretches)) * n / rate, decibels(np.mean(stretches.astype(float) ** 2, axis=1))


def spectrum(x, rate, n):
    """Frequency and power density, by Welch's method."""
    window = np.hanning(n)
    parts = np.stack([x[at:at + n] * window for at in range(0, len(x) - n + 1, n // 2)])
    power = np.mean(abs(np.fft.fftshift(np.fft.fft(parts), axes=1)) ** 2, axis=0) / (window @ window)
    return np.fft.fftshift(np.fft.fftfreq(n, 1 / rate)), decibels(power)


def reverb():
    v = variables("reverb")
    rate, dry, wet = v["rate"], v["dry"], v["wet"]
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 5.5))
    tail = v["reverb"].drain()
    above.plot(*envelope(np.concatenate([wet[0], tail[0]]), rate), color=BLUE, label="with the hall, and its tail")
    above.plot(*envelope(dry[0], rate), color=BROWN, label="the recording")
    moved = np.concatenate([v["before"][0], v["after"][0]])
    below.plot(*envelope(wet[0], rate), color=GREY, label="the hall all along")
    below.plot(*envelope(v["in_chapel"][0], rate), color=BROWN, ls="--", label="the chapel all along")
    below.plot(*envelope(moved, rate), color=BLUE, label="swap called at 1 s")
    above.set(ylabel="level, dB", xlim=(0, 6), ylim=(-85, -5))
    below.set(xlabel="time, s", ylabel="level, dB", xlim=(0, 4), ylim=(-50, -5))
    return figure, (above, below)


def radio():
    v = variables("radio")
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 5.5))
    f, level = spectrum(v["capture"], v["rate"], 4096)
    above.plot(f / 1e3, level, color=BROWN, label="the capture")
    # The same noise has an eighth of the power at an eighth of the rate.
    f, level = spectrum(v["baseband"], v["rate"] / v["step"], 512)
    above.plot(f / 1e3, level + decibels(v["step"]), color=BLUE, label="the channel")
    above.set(xlabel="frequency, kHz", ylabel="power, dB", xlim=(-500, 500))
    below.plot(abs(v["match"]), color=BLUE, lw=0.6, label="match with the preamble")
    below.set(xlabel="symbol", ylabel="magnitude", xlim=(0, len(v["match"])), ylim=(0, 1))
    return figure, (above, below)


def long_recordings():
    v = variables("long-recordings")
    figure, axes = pyplot.subplots(figsize=(8, 3.2))
    for x, color, label in ((v["x"], BROWN, "the recording"), (v["y"], BLUE, "filtered")):
        f, level = spectrum(x[:, 0], v["rate"], 48_000)
        axes.plot(f, level, color=color, label=label)
    axes.set(xlabel="frequency, Hz", ylabel="power, dB", xlim=(0, 300), ylim=(-100, None))
    return figure, (axes,)


def layers():
    import torch

    import partita.nn

    v = variables("layers")
    x, target, start = v["x"], v["target"], v["model"]

    def losses(model, steps=60):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(x) - target).square().mean()
            loss.backward()
            optimizer.step()
            yield loss.item()

    figure, axes = pyplot.subplots(figsize=(8, 3.2))
    theirs = copy.deepcopy(start)
    partita.nn.restore_(theirs)
    axes.plot(list(losses(theirs)), color=GREY, lw=5, label="layers of PyTorch")
    axes.plot(list(losses(copy.deepcopy(start))), color=BLUE, lw=1.5, label="the large layer replaced")
    axes.set(xlabel="step", ylabel="loss")
    return figure, (axes,)


PAGES = {"reverb": reverb, "radio": radio, "long-recordings": long_recordings, "layers": layers}


def main():
    for page in sys.argv[1:] or PAGES:
        figure, panels = PAGES[page]()
        for axes in panels:
            axes.grid(color="#dddddd")
            axes.legend(loc="best")
        figure.tight_layout()
        figure.savefig(DOCS / "images" / f"{page}-in-python.png", dpi=90, metadata={"Software": None})


main()
