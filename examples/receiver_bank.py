#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Demodulates every annotated channel of a SigMF recording as narrow-band FM, each into a WAV file of its own.

receiver_bank.py RECORDING FOLDER          RECORDING.sigmf-meta and .sigmf-data of cf32_le; FOLDER/LABEL.wav
receiver_bank.py --make N RECORDING        writes a recording of N channels, 12.5 kHz apart, each with a tone of its own

One transform of each block serves all channels (partita.Channelizer). The file of a channel has the label of its annotation.
"""
import argparse
import json
import pathlib
import wave

import numpy as np

import partita

SPACING, AUDIO, DEVIATION = 12_500, 12_500, 2_500  # Hz: from channel to channel, of the outputs, of the transmitters


def tone_of(channel):
    """Hz."""
    return 300 + 10 * (channel % 200)


def make(recording, channels, seconds=0.2):
    """
    Writes a recording of channels that are as strong as one another, and noise 40 dB below them. All have whole periods in
    it, so that the spectrum of a channel, at a rate of its own, is a part of the recording's.
    """
    rate = SPACING * max(2 * channels, 16)
    n, random = round(seconds * rate), np.random.default_rng(1)
    t = np.arange(round(seconds * 2 * SPACING)) / (2 * SPACING)
    spectrum = 0.01 * np.sqrt(n) * (random.normal(size=n) + 1j * random.normal(size=n))
    notes = []
    for channel in range(channels):
        centre = SPACING * (channel - channels // 2)
        signal = np.exp(1j * DEVIATION / tone_of(channel) * np.sin(2 * np.pi * tone_of(channel) * t))
        bins = np.round(np.fft.fftfreq(t.size, 1 / t.size) + centre * seconds).astype(int)
        spectrum[bins] += np.fft.fft(signal) * n / t.size
        notes.append({"core:sample_start": 0, "core:label": f"channel-{channel}",
                      "core:freq_lower_edge": centre - SPACING / 2, "core:freq_upper_edge": centre + SPACING / 2})
    np.fft.ifft(spectrum).astype("<c8").tofile(f"{recording}.sigmf-data")
    meta = {"global": {"core:datatype": "cf32_le", "core:sample_rate": rate, "core:version": "1.0.0"},
            "captures": [{"core:sample_start": 0, "core:frequency": 0}], "annotations": notes}
    pathlib.Path(f"{recording}.sigmf-meta").write_text(json.dumps(meta, indent=1), encoding="utf-8")


def demodulate(y):
    """Audio in [-1, 1]: the rate of the phase over the deviation."""
    return np.angle(y[1:] * np.conj(y[:-1])) * AUDIO / (2 * np.pi * DEVIATION)


def receive(recording, folder):
    """Writes a file for each annotation."""
    meta = json.loads(pathlib.Path(f"{recording}.sigmf-meta").read_text(encoding="utf-8"))
    rate, middle = meta["global"]["core:sample_rate"], meta["captures"][0].get("core:frequency", 0)
    if meta["global"]["core:datatype"] != "cf32_le" or rate % AUDIO:
        raise SystemExit(f"{recording}: samples must be cf32_le, at a multiple of {AUDIO} Hz")
    stride = int(rate // AUDIO)
    taps = partita.design("lowpass", 4_500, rate=rate, width=3_000, attenuation=70)
    receiver = partita.Channelizer(len(taps), stride=stride, sample_rate=rate, channels=len(meta["annotations"]))
    narrow = receiver.filter(taps, stride=stride, bandwidth=SPACING)
    channels = {}
    for note in meta["annotations"]:
        centre = (note["core:freq_lower_edge"] + note["core:freq_upper_edge"]) / 2 - middle
        channels[receiver.open(narrow, centre)] = note["core:label"]
    outputs = {channel: [] for channel in channels}
    samples = np.memmap(f"{recording}.sigmf-data", "<c8", "r")
    for at in range(0, len(samples), receiver.block):
        for channel, y in receiver.process(samples[at:at + receiver.block]).items():
            outputs[channel].append(y)
    for channel, label in channels.items():
        audio = demodulate(np.concatenate(outputs[channel]))
        with wave.open(str(pathlib.Path(folder) / f"{label}.wav"), "wb") as file:
            file.setparams((1, 2, AUDIO, 0, "NONE", None))
            file.writeframes(np.int16(np.clip(audio, -1, 1) * 32767).astype("<i2").tobytes())
    return len(channels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=int, metavar="N")
    parser.add_argument("recording")
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.recording, arguments.make)
    elif arguments.folder is None:
        parser.error("FOLDER is missing")
    else:
        pathlib.Path(arguments.folder).mkdir(parents=True, exist_ok=True)
        print(f"{receive(arguments.recording, arguments.folder)} channels in {arguments.folder}")


if __name__ == "__main__":
    main()
