#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds repetitions of known events in a seismic record, with ObsPy for files and filters.

find_events.py RECORD EVENTS        files that obspy.read takes, such as miniSEED; a folder with a file for each event
find_events.py --make FOLDER        writes FOLDER/record.mseed, a day of 3 channels at 100 Hz, and FOLDER/events

Prints the time of each repetition, the name of its event, and the mean of the correlations of the channels. Gaps may be in
the record; there is no match where an event would read one. Needs ObsPy.
"""
import argparse
import pathlib

import numpy as np

from partita import signal

RATE, LENGTH, CHANNELS = 100, 600, ("HHZ", "HHN", "HHE")
BAND = (2, 20)  # Hz


def read(path):
    """The stream of a file: a trace for each channel, filtered, from one time to one time. Gaps are masked."""
    import obspy
    stream = obspy.read(str(path))
    stream = stream.split().detrend("demean").filter("bandpass", freqmin=BAND[0], freqmax=BAND[1], zerophase=True)
    stream.merge(method=1)
    stream.sort(["channel"])
    stream.trim(min(trace.stats.starttime for trace in stream), max(trace.stats.endtime for trace in stream), pad=True)
    return stream


def search(stream, events, mad=9):
    """Pairs of a match and its time. events: streams of the same channels."""
    rates = {trace.stats.sampling_rate for trace in [*stream, *(trace for event in events for trace in event)]}
    names = {tuple(trace.stats.channel for trace in part) for part in (stream, *events)}
    if len(rates) > 1 or len(names) > 1:
        raise SystemExit(f"record and events need the same channels and rate, not {sorted(names)} at {sorted(rates)} Hz")
    found = signal.match_templates(np.ma.stack([trace.data for trace in stream]),
                                   [np.stack([trace.data for trace in event]) for event in events], mad=mad)
    start, rate = stream[0].stats.starttime, rates.pop()
    return [(match, start + match["time"] / rate) for match in np.sort(found, order="time")]


def make(folder, seconds=86_400, count=2, repeats=4):
    """Writes a record of noise with a gap and repetitions of events, whose beginnings are as strong as the noise; returns these."""
    import obspy
    random = np.random.default_rng(1)
    begin = obspy.UTCDateTime(2026, 1, 31)
    n, decay = seconds * RATE, np.exp(-np.arange(LENGTH) / 150)
    events = 1000 * decay * random.normal(size=(count, len(CHANNELS), LENGTH))
    x = 1000 * random.normal(size=(len(CHANNELS), n)).astype("f4")
    at = np.linspace(LENGTH, n - 2 * LENGTH, count * repeats).astype(int)
    for i, first in enumerate(at):
        x[:, first:first + LENGTH] += events[i % count] * (1 + i % 3)
    gap = slice(n // 3, n // 3 + RATE)

    def write(path, samples):
        traces = [obspy.Trace(np.int32(np.ascontiguousarray(part[0])), {"network": "XX", "station": "PART", "channel": name,
                                                                       "sampling_rate": RATE, "starttime": part[1]})
                  for name, channel in zip(CHANNELS, samples) for part in channel]
        obspy.Stream(traces).write(str(path), format="MSEED", encoding="STEIM2")

    (folder / "events").mkdir(parents=True, exist_ok=True)
    for i, event in enumerate(events):
        write(folder / "events" / f"event-{i}.mseed", [[(channel, begin)] for channel in event])
    cut = [(x[0, :gap.start], begin), (x[0, gap.stop:], begin + gap.stop / RATE)]
    write(folder / "record.mseed", [cut, *([(channel, begin)] for channel in x[1:])])
    return [(f"event-{i % count}", begin + int(first) / RATE) for i, first in enumerate(at)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("record", nargs="?")
    parser.add_argument("events", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.make:
        make(arguments.make)
        return
    if arguments.events is None:
        parser.error("RECORD and EVENTS are missing")
    paths = sorted(arguments.events.iterdir())
    for match, time in search(read(arguments.record), [read(path) for path in paths]):
        print(time, paths[match["template"]].stem, f"{match['value']:.3f}")


if __name__ == "__main__":
    main()
