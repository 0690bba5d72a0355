#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Concatenates WAV files of one format: join-wav.py OUT IN..."""
import sys
import wave

with wave.open(sys.argv[1], "wb") as out:
    for number, path in enumerate(sys.argv[2:]):
        with wave.open(path, "rb") as part:
            if number == 0:
                out.setparams(part.getparams())
            elif part.getparams()[:3] != out.getparams()[:3]:
                sys.exit(f"{path}: channels, width or rate differ from {sys.argv[2]}")
            out.writeframes(part.readframes(part.getnframes()))
