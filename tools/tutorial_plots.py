#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures of README.md and of the tutorials docs/*-in-python.md that show what the commands or programs of
the page compute, in the environment of tools/python.sh with matplotlib (build-ci/python/bin/pip install matplotlib).

usage: tutorial_plots.py [PICTURE...]      names without .png, all if none is given; before-after runs build/apps/partita
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
HEIGHTS = {1: 3.2, 2: 5.5}  # inches of a picture, by its number of panels


def variables(page):
    """The variables that the programs of a page leave. The last one of long-recordings removes the files and is left out."""
    programs = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.M | re.S)
    names = {}
    for program in programs[:-1] if page.startswith("long") else programs:
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


def before_after(above, below):
    """The commands of README.md on the file of examples/make_files.py."""
    rate = 1000
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.search(r"### Design a filter and apply it\n+```sh\n(.*?)```", text, re.S).group(1)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "examples/make_files.py", folder], check=True)
        path = f"{ROOT}/build/apps:{os.environ['PATH']}"
        subprocess.run(["sh", "-e", "-c", commands], cwd=folder, env=os.environ | {"PATH": path}, check=True)
        noisy, clean = (np.load(f"{folder}/{name}.npy") for name in ("noisy", "clean"))
    for x, color, width, label in ((noisy, BROWN, 0.6, "before"), (clean, BLUE, 1.6, "after")):
        above.plot(np.arange(len(x)) / rate, x, color=color, lw=width, label=label)
        below.plot(*spectrum(x, rate, 1024), color=color, label=label)
    above.set(xlabel="time, s", ylabel="amplitude", xlim=(0, 4))
    below.set(xlabel="frequency, Hz", ylabel="power, dB", xlim=(0, 120), ylim=(-80, None))


def reverb(v, above, below):
    rate, dry, wet = v["rate"], v["dry"], v["wet"]
    tail = v["reverb"].drain()
    above.plot(*envelope(np.concatenate([wet[0], tail[0]]), rate), color=BLUE, label="with the hall, and its tail")
    above.plot(*envelope(dry[0], rate), color=BROWN, label="the recording")
    moved = np.concatenate([v["before"][0], v["after"][0]])
    below.plot(*envelope(wet[0], rate), color=GREY, label="the hall all along")
    below.plot(*envelope(v["in_chapel"][0], rate), color=BROWN, ls="--", label="the chapel all along")
    below.plot(*envelope(moved, rate), color=BLUE, label="swap called at 1 s")
    above.set(ylabel="level, dB", xlim=(0, 6), ylim=(-85, -5))
    below.set(xlabel="time, s", ylabel="level, dB", xlim=(0, 4), ylim=(-50, -5))


def radio(v, above, below):
    f, level = spectrum(v["capture"], v["rate"], 4096)
    above.plot(f / 1e3, level, color=BROWN, label="the capture")
    # The same noise has an eighth of the power at an eighth of the rate.
    f, level = spectrum(v["baseband"], v["rate"] / v["step"], 512)
    above.plot(f / 1e3, level + decibels(v["step"]), color=BLUE, label="the channel")
    above.set(xlabel="frequency, kHz", ylabel="power, dB", xlim=(-500, 500))
    below.plot(abs(v["match"]), color=BLUE, lw=0.6, label="match with the preamble")
    below.set(xlabel="symbol", ylabel="magnitude", xlim=(0, len(v["match"])), ylim=(0, 1))


def long_recordings(v, axes):
    for x, color, label in ((v["x"], BROWN, "the recording"), (v["y"], BLUE, "filtered")):
        axes.plot(*spectrum(x[:, 0], v["rate"], 48_000), color=color, label=label)
    axes.set(xlabel="frequency, Hz", ylabel="power, dB", xlim=(0, 300), ylim=(-100, None))


def layers(v, axes):
    import torch

    import partita.nn

    def losses(model, steps=60):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(v["x"]) - v["target"]).square().mean()
            loss.backward()
            optimizer.step()
            yield loss.item()

    theirs = copy.deepcopy(v["model"])
    partita.nn.restore_(theirs)
    axes.plot(list(losses(theirs)), color=GREY, lw=5, label="layers of PyTorch")
    axes.plot(list(losses(copy.deepcopy(v["model"]))), color=BLUE, lw=1.5, label="the large layer replaced")
    axes.set(xlabel="step", ylabel="loss")


# Name: number of panels and what draws them; of a tutorial from the variables of the page of that name.
PICTURES = {"before-after": (2, before_after), "reverb-in-python": (2, reverb), "radio-in-python": (2, radio),
            "long-recordings-in-python": (1, long_recordings), "layers-in-python": (1, layers)}

for name in sys.argv[1:] or PICTURES:
    n, draw = PICTURES[name]
    figure, panels = pyplot.subplots(n, 1, figsize=(8, HEIGHTS[n]), squeeze=False)
    draw(*([variables(name)] if draw is not before_after else []), *panels[:, 0])
    for axes in panels[:, 0]:
        axes.grid(color="#dddddd")
        # Above the panel, where it covers no curve.
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncol=3, frameon=False, borderaxespad=0.2)
    figure.tight_layout()
    figure.savefig(DOCS / f"images/{name}.png", dpi=90, metadata={"Software": None})
