#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the files that the commands of README.md and docs/tutorials.md read. Needs nothing but Python."""
import argparse
import array
import cmath
import itertools
import math
import pathlib
import random
import sys
import wave

RATE = 48000  # of the sounds
SEATS = ((3.3, 2.1, 1.2), (3.0, 1.8, 1.2), (3.6, 2.3, 1.1))  # where the microphone stands, in metres


def write_wav(path, channels, bits):
    """Channels are lists of numbers within -1 and 1."""
    scale, size = 2.0 ** (bits - 1) - 1, bits // 8
    frames = b"".join(round(scale * x).to_bytes(size, "little", signed=True) for frame in zip(*channels) for x in frame)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(len(channels))
        file.setsampwidth(size)
        file.setframerate(RATE)
        file.writeframes(frames)


def write_npy(path, kind, shape, numbers):
    """Numbers of NumPy's type `kind`, f4 or c8: of c8 real and imaginary parts in turn."""
    header = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"  # 10 bytes before it
    numbers = array.array("f", numbers)
    if sys.byteorder == "big":
        numbers.byteswap()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + numbers.tobytes())


def response(noise, frames, channels):
    """Noise that decays by 60 dB: what a room makes of a click. Its first sample is the loudest."""
    decay = [0.05 * 10 ** (-3 * n / frames) for n in range(frames)]
    return [[max(-1.0, min(1.0, d * noise.gauss(0, 1))) for d in decay] for _ in range(channels)]


def note(hz):
    """One second of a tone with two overtones, struck four times."""
    times = [n / RATE for n in range(RATE)]
    return [0.25 * math.exp(-8 * (t % 0.25)) * sum(math.sin(2 * math.pi * k * hz * t) / k for k in (1, 2, 3)) for t in times]


def sweep():
    """1.5 s of a tone that rises from 10 Hz to 22 kHz by octaves of equal length, with soft ends."""
    frames, octaves = 72000, math.log2(2200)
    turns = [10 * 1.5 / octaves / math.log(2) * (2 ** (octaves * n / frames) - 1) for n in range(frames)]
    ends = [min(1, n / 2400, (frames - 1 - n) / 480) for n in range(frames)]
    return [0.5 * end * math.sin(2 * math.pi * turn) for end, turn in zip(ends, turns)]


def song(noise):
    """Four seconds of chords, with a drum on each beat."""
    tones = [pair for pitch in (165, 220, 196, 165) for pair in zip(note(pitch), note(1.5 * pitch))]
    return [0.3 * (a + b) + 0.1 * math.exp(-20 * (n / RATE % 0.25)) * noise.gauss(0, 1) for n, (a, b) in enumerate(tones)]


def loudspeaker(samples):
    """A closed box whose bass falls below 45 Hz: a high pass of second order, by the bilinear transform."""
    w = math.tan(math.pi * 45 / RATE)
    norm = 1 / (1 + math.sqrt(2) * w + w * w)
    x1 = x2 = y1 = y2 = 0.0
    out = []
    for x in samples:
        y = norm * (x - 2 * x1 + x2 - 2 * (w * w - 1) * y1 - (1 - math.sqrt(2) * w + w * w) * y2)
        x1, x2, y1, y2 = x, x1, y, y1
        out.append(y)
    return out


def images(seat, size=(5.1, 3.9, 2.7), source=(0.7, 0.6, 1), reflection=0.75):
    """The 60 strongest paths in a room of this size, in metres, from a loudspeaker to a seat: delay in frames, and gain. Walls
    mirror the loudspeaker and its images (Allen and Berkley, 1979)."""
    paths = []
    for cell in itertools.product(range(-2, 3), repeat=3):
        for mirrored in itertools.product((0, 1), repeat=3):
            away = math.dist(seat, [(1 - 2 * m) * s + 2 * n * a for m, s, n, a in zip(mirrored, source, cell, size)])
            walls = sum(abs(n - m) + abs(n) for n, m in zip(cell, mirrored))
            paths.append((round(away / 343 * RATE), reflection**walls / away))
    return sorted(paths, key=lambda path: -path[1])[:60]


def record(noise, played, seat):
    """What a microphone at the seat hears, and half a second after it."""
    heard = [noise.gauss(0, 1e-5) for _ in range(len(played) + RATE // 2)]
    for delay, gain in images(seat):
        end = delay + len(played)
        heard[delay:end] = [h + 0.25 * gain * x for h, x in zip(heard[delay:end], played)]
    return heard


def burst():
    """256 symbols of magnitude 1: a Zadoff-Chu sequence."""
    return [cmath.exp(1j * math.pi * n * n / 256) for n in range(256)]


def capture(noise):
    """0.3 s of radio samples at 1 MHz: three bursts of 8 samples a symbol, 100 kHz above the middle, a strong neighbour at
    300 kHz, and noise."""
    samples = [complex(noise.gauss(0, 0.05), noise.gauss(0, 0.05)) + cmath.exp(0.6j * math.pi * n) for n in range(300000)]
    symbols = burst()
    for start in (80004, 160004, 240004):
        for n in range(8 * len(symbols)):
            samples[start + n] += 0.2j * symbols[n // 8] * cmath.exp(0.2j * math.pi * (start + n))
    return samples


def parts(samples):
    return [part for z in samples for part in (z.real, z.imag)]


def heartbeat(noise):
    """Four seconds of heart beats at 1 kHz with mains hum and noise; a beat is a sum of pulses: their times after the main
    one, heights and widths."""
    pulses = ((-0.2, 0.15, 0.025), (-0.03, -0.1, 0.01), (0, 1, 0.012), (0.03, -0.2, 0.01), (0.25, 0.3, 0.05))
    beats = []
    for n in range(4000):
        phase = n / 1000 % 0.8 - 0.3
        beat = sum(height * math.exp(-0.5 * ((phase - at) / width) ** 2) for at, height, width in pulses)
        beats.append(beat + 0.3 * math.sin(0.1 * math.pi * n) + noise.gauss(0, 0.1))
    return beats


def sensors(noise, events):
    """200 s of three sensors at 100 Hz: a wave that reaches the second 7 frames and the third 15 frames later than the first,
    events at their times, and noise."""
    wave_form = [noise.gauss(0, 1) for _ in range(20015)]
    rows = [[wave_form[15 - late + n] + noise.gauss(0, 1) for n in range(20000)] for late in (0, 7, 15)]
    for event, start in events:
        for row, samples in zip(rows, event):
            for n, x in enumerate(samples):
                row[start + n] += 2 * x
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path, help="where the files go; it is made if needed")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(1)
    write_wav(folder / "hall.wav", response(noise, 12000, 2), 24)
    write_wav(folder / "church.wav", response(noise, 24000, 4), 24)
    write_wav(folder / "voice.wav", [note(220)], 16)
    write_wav(folder / "piano.wav", [note(220), note(330)], 16)
    write_wav(folder / "day.wav", [note(165) * 5, note(247) * 5], 16)
    write_npy(folder / "noisy.npy", "f4", (4000,), heartbeat(noise))
    write_npy(folder / "capture.npy", "c8", (300000,), parts(capture(noise)))
    write_npy(folder / "burst.npy", "c8", (256,), parts(burst()))
    for name, shape in (("x", (2, 3, 32, 32)), ("w", (8, 3, 3, 3)), ("b", (8,)), ("gy", (2, 8, 32, 32))):
        write_npy(folder / f"{name}.npy", "f4", shape, [noise.gauss(0, 1) for _ in range(math.prod(shape))])
    quake, blast = ([[noise.gauss(0, 1) for _ in range(frames)] for _ in range(3)] for frames in (200, 120))
    (folder / "events").mkdir(exist_ok=True)
    write_npy(folder / "events" / "quake.npy", "f4", (3, 200), sum(quake, []))
    write_npy(folder / "events" / "blast.npy", "f4", (3, 120), sum(blast, []))
    write_npy(folder / "array.npy", "f4", (3, 20000),
              sum(sensors(noise, ((quake, 3000), (blast, 9000), (quake, 15000))), []))
    write_wav(folder / "sweep.wav", [sweep()], 24)
    played = loudspeaker(sweep())
    for number, seat in enumerate(SEATS, 1):
        write_wav(folder / f"seat{number}.wav", [record(noise, played, seat)], 24)
    melody = song(noise)
    write_wav(folder / "song.wav", [melody], 24)
    write_wav(folder / "recorded.wav", [record(noise, loudspeaker(melody + RATE // 10 * [0.0]), SEATS[0])], 24)


if __name__ == "__main__":
    main()
