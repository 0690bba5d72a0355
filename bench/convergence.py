#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws how much of an echo is removed over time, by our filters and by SpeexDSP, from what their test prints.

convergence.py build/tests/test_speex   writes docs/images/echo-noise.svg and echo-speech.svg
"""
import pathlib
import subprocess
import sys

import seeds_chart

NAMES = ("Partita, state space", "Partita, NLMS", "SpeexDSP")
IMAGES = pathlib.Path(__file__).resolve().parent.parent / "docs/images"


def main():
    lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split()[2:] for line in lines if line.startswith("# curve ")]
    for kind in ("noise", "speech"):
        halves = [row for row in rows if row[0] == kind]
        series = {name: [10 ** (float(row[2 + k]) / 10) for row in halves] for k, name in enumerate(NAMES)}
        picture = seeds_chart.curves(f"Power of an echo over what is left of it; the far end is {kind}",
                                     "seconds; a voice at the near end from 4 to 8, another path from 10",
                                     ["" if int(row[1]) % 2 else int(row[1]) // 2 for row in halves], series)
        (IMAGES / f"echo-{kind}.svg").write_text(picture, encoding="utf-8")


main()
