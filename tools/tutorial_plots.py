#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures of README.md and of the tutorials docs/*-in-python.md: runs the commands or programs of the page
and plots what they have computed.

    tools/tutorial_plots.py [PICTURE...]     their names in docs/images, without .png: before-after reverb-in-python
                                             radio-in-python long-recordings-in-python layers-in-python

Run it in the environment of tools/python.sh, with matplotlib: build-ci/python/bin/pip install matplotlib. The first
picture needs build/apps/partita.
"""
import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import matplotlib
import numpy as np

matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
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


def before_after():
    """The commands of README.md on the file of examples/make_files.py."""
    rate = 1000
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.search(r"### Design a filter and apply it\n+```sh\n(.*?)```", text, re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "examples" / "make_files.py", folder], check=True)
        path = f"{ROOT}/build/apps:{os.environ['PATH']}"
        subprocess.run(["sh", "-e", "-c", commands], cwd=folder, env=os.environ | {"PATH": path}, check=True)
        noisy, clean = (np.load(f"{folder}/{name}.npy") for name in ("noisy", "clean"))
    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 5.5))
    for x, color, width, label in ((noisy, BROWN, 0.6, "before"), (clean, BLUE, 1.6, "after")):
        above.plot(np.arange(len(x)) / rate, x, color=color, lw=width, label=label)
        f, level = spectrum(x, rate, 1024)
        below.plot(f, level, color=color, label=label)
    above.set(xlabel="time, s", ylabel="amplitude", xlim=(0, 4))
    below.set(xlabel="frequency, Hz", ylabel="power, dB", xlim=(0, 120), ylim=(-80, None))
    return figure, (above, below)


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


PICTURES = {"before-after": before_after, "reverb-in-python": reverb, "radio-in-python": radio,
            "long-recordings-in-python": long_recordings, "layers-in-python": layers}


def main():
    for name in sys.argv[1:] or PICTURES:
        figure, panels = PICTURES[name]()
        for axes in panels:
            axes.grid(color="#dddddd")
            # Above the panel, where it covers no curve.
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncol=3, frameon=False, borderaxespad=0.2)
        figure.tight_layout()
        figure.savefig(DOCS / "images" / f"{name}.png", dpi=90, metadata={"Software": None})


main()
