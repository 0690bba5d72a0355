#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mistakes of new users. Each message is one line that names the command, then the file or option with its value, and
what to do. The table has the line of the user, the exit status, and the message after "partita COMMAND: "."""
import shlex

import numpy as np

import rig
from rig import Case, wav_bytes

RAW = "for raw samples use --format, for example --format cf32"
MISTAKES = [
    # Commands and options.
    ("convlve ir.wav in.wav o.wav", 2, "convlve: no such command (did you mean convolve?)"),
    ("help corelate", 2, "corelate: no such command (did you mean correlate?)"),
    ("convolve ir.wav in.wav", 2, "needs IR... IN OUT, but 2 file names are given"),
    ("convolve -o o.wav ir.wav in.wav", 2,
     "--output-format o.wav: unknown sample type; file names are given without options: IR... IN OUT"),
    ("convolve --normalise ir.wav in.wav o.wav", 2, "--normalise: no such option (did you mean --normalize?)"),
    ("convolve --normalize -1 ir.wav in.wav o.wav", 2,
     "-1: no such option; the value of --normalize follows an equals sign: --normalize=-1"),
    ("correlate -1 ir.wav in.wav o.npy", 2, "-1: no such option"),
    ("convolve --peaks 3 ir.wav in.wav o.wav", 2, "--peaks: no such option; it belongs to correlate"),
    ("convolve --gain", 2, "--gain: needs a value"),
    ("convolve --gain loud ir.wav in.wav o.wav", 2,
     "--gain loud: is not auto or a number of decibels from -300 to 300, for example -6"),
    ("convolve --block 0 ir.wav in.wav o.wav", 2,
     "--block 0: is not a whole number of frames or a time in ms, s or min from 1 to 16777216, for example 4096 or 250ms"),
    ("convolve -m ful ir.wav in.wav o.wav", 2, "--mode ful: must be one of full|same|valid"),
    ("convolve -t many ir.wav in.wav o.wav", 2, "--threads many: is not auto or a whole number from 1 to 4096, for example 4"),
    ("convolve -f cf23 ir.wav raw.bin o.raw", 2, "--format cf23: unknown sample type (did you mean cf32?); there are f32, f64, "
     "i8, i16, i24, i32, u8, u16, u24, u32, cf32, cf64, ci8, ci16, ci24, ci32, cu8, cu16, cu24, cu32, and with be at the end big "
     "endian ones"),
    ("convolve -e partitoned ir.wav in.wav o.wav", 2, "--engine partitoned: no such engine (did you mean cpu/partitioned?); "
     "choose one of cpu/gemm, cpu/direct, cpu/winograd, cpu/tiles, cpu/depthwise, cpu/overlap-save, cpu/overlap-add, "
     "cpu/partitioned, cpu/blocks"),
    ("convolve -d gpu ir.wav in.wav o.wav", 1,
     '--device "gpu": no such device; there are "cpu", "cuda" and "cuda:N"'),
    ("convolve --range 5/4 ir.wav in.wav o.wav", 2, "--range 5/4: is not K/N with 1 <= K <= N, for example 2/8"),
    ("convolve --first 1h ir.wav in.wav o.wav", 2,
     "--first 1h: is not a whole number of frames or a time in ms, s or min, for example 4096 or 250ms"),
    ("convolve --first 2s --last 1s ir.wav in.wav o.wav", 2, "--first 96000 --last 48000: there is no sample in between"),
    ("convolve --tune 9k x.npy x.npy o.npy", 2, "--tune 9000: the sample rate of x.npy is unknown; add --rate"),
    ("convolve --first 1s x.npy x.npy o.npy", 2, "--first 1s: a time needs the sample rate, which is unknown; add --rate, for "
     "example --rate 48k, or give a number of frames"),
    ("convolve --block 10min ir.wav in.wav o.wav", 2, "--block 10min: is not a whole number of frames or a time in ms, s or min "
     "from 1 to 16777216, for example 4096 or 250ms; at 48000 Hz it is 28800000 frames"),
    ("convolve --up 1000000 ir.wav in.wav o.wav", 1, "ir.wav: sample rate 48000 Hz differs from the 48000 Hz of in.wav "
     "times 1000000; use --resample-ir"),
    # Files.
    ("convolve ir.wav missing.wav o.wav", 1, "missing.wav: cannot open: No such file or directory"),
    ("convolve ir.wav in.wav no/such/o.wav", 1, "no/such/o.wav: cannot create: No such file or directory"),
    ("convolve ir.wav in.wav in.wav", 1, "in.wav: is the input in.wav itself; name another output"),
    ("convolve ir.wav in.wav o", 1, "o: the name does not imply a format; use .wav, .flac, .npy, .raw and the like"),
    ("convolve ir.wav empty.wav o.wav", 1, "empty.wav: is empty"),
    ("convolve comma.txt in.wav o.wav", 1, "comma.txt: line 2: '0,5' is not one number; decimals are written with a point"),
    ("convolve ir.wav song.mp4 o.wav", 1,
     "song.mp4: begins like MP4; convert it to .wav or .flac, for example with ffmpeg"),
    ("convolve ir.wav x.csv o.npy", 1,
     "x.csv: 12 bytes of no known format; save the array with numpy.save, as .npy, and name that file"),
    ("convolve room.conf in.wav o.wav", 1,
     "room.conf: 12 bytes of no known format; name a configuration with --config, in place of IR"),
    ("convolve ir.wav raw.bin o.raw", 1, "raw.bin: 300 bytes of no known format; " + RAW),
    ("convolve ir.wav transposed.npy o.npy", 1, "transposed.npy: 4800 channels of 2 frames, more than the 1024 of --max-channels; "
     "the axes are [channels, frames], so if these are [frames, channels], save the transpose, x.T"),
    ("convolve ir44.wav in.wav o.wav", 1,
     "ir44.wav: sample rate 44100 Hz differs from the 48000 Hz of in.wav; use --resample-ir"),
    ("convolve c.npy in.wav o.wav", 1, "o.wav: cannot store complex samples, which the result has; use .npy or .raw, or --iq for I and Q in two channels"),
    ("convolve one.txt x.npy o.wav", 1, "o.wav: a WAV needs a sample rate and the input has none; use --rate"),
    ("convolve --config ir.wav in.wav o.wav", 1, "ir.wav: the name of a configuration ends with .conf (jconvolver), .cfg "
     "(Convolver), .yml or .yaml (CamillaDSP)"),
    ("convolve --channels 2 ir.wav in.wav o.wav", 2, "--channels 2: is for raw samples; name their type by --format, for example "
     "--format f32, or leave it out if in.wav states its channels"),
    ("convolve ir.wav ir44.wav in.wav o.wav", 1,
     "ir44.wav: sample rate 44100 Hz differs from the 48000 Hz of ir.wav; all files of IR need the same"),
    # Other commands.
    ("correlate ir.wav in.wav", 2, "needs OUT, unless it prints peaks: add --peaks or --threshold"),
    ("correlate --peaks 0 ir.wav in.wav", 2, "--peaks 0: is not a whole number from 1 to 1048576, for example 4"),
    ("design lowpas --cutoff 1k --rate 48k h.wav", 2, "lowpas: no such kind of filter (did you mean lowpass?); choose one of "
     "lowpass, highpass, bandpass, bandstop, hilbert, differentiator, raised-cosine, root-raised-cosine, table, eq, crossover"),
    ("design lowpass --rate 48k h.wav", 2, "lowpass needs --cutoff, for example --cutoff 1k"),
    ("design bandpass --cutoff 1k --rate 48k h.wav", 2, "bandpass needs two cutoffs, for example --cutoff 1k,2k"),
    ("design lowpass --cutoff 1k h.wav", 2,
     "frequencies are fractions of the sample rate, below 0.5, without --rate; add it, for example --rate 48k"),
    ("design lowpass --cutoff 30k --rate 48k --width 1k h.wav", 2,
     "--cutoff 30000: must be above 0 and below 24000, half of the rate"),
    ("design bandpass --cutoff 2k --cutoff 1k --rate 48k h.wav", 2, "--cutoff: given twice"),
    ("design bandpass --cutoff 2k,1k --rate 48k --width 100 h.wav", 2, "--cutoff 1000: must be above --cutoff 2000"),
    ("design lowpass --cutoff 1k --rate 48k h.wav", 2,
     "lowpass needs --width, the width of each transition, or --taps; for example --width 500"),
    ("design root-raised-cosine --cutoff 1k --rate 48k --taps 99 h.wav", 2,
     "root-raised-cosine needs --width, twice the cutoff times the roll-off: "
     "for example --cutoff 1k --width 700 for a roll-off of 0.35"),
    ("design lowpass --cutoff 1k --rate 48k --width 0 h.wav", 2,
     "--width 0: a transition is wider than 0, for example --width 500; or leave it out and set --taps"),
    ("design lowpass --cutoff 1k --rate 48k --width -5 h.wav", 2,
     "--width -5: a transition is wider than 0, for example --width 500; or leave it out and set --taps"),
    ("design lowpass --cutoff 1k --rate 48k --taps 31 --ripple 0 h.wav", 2,
     "--ripple 0: no filter has exactly the gain that is wanted; set the largest deviation, for example --ripple 0.01, "
     "or leave it out"),
    ("design lowpass --cutoff 1k --rate 48k --width 0.01 h.wav", 1,
     "--width 0.01: needs more than 262143 taps; use a larger width, less attenuation or more ripple"),
    ("design lowpass --cutoff 1k --rate 48k --attenuation 900 h.wav", 2,
     "--attenuation 900: is not a number of decibels from 10 to 200"),
    ("design table one.txt --rate 48k --width 100 h.wav", 1, "one.txt: line 1: '1' is not a frequency and decibels, such as 1000 -3"),
    ("deconvolve in.wav ir.wav h.wav", 1,
     "ir.wav: 100 frames, but in.wav has 4800; name the sweep first, and record it and what follows it, at least 400 frames"),
    ("deconvolve ir44.wav in.wav h.wav", 1, "ir44.wav: sample rate 44100 Hz differs from the 48000 Hz of in.wav; convert one of "
     "them to the rate of the other"),
    ("join o.wav in.wav", 1, "in.wav: its record in.wav.range is missing, which --range writes beside OUT"),
    ("layer forward x4.npy w4.npy y.npy", 2, "needs forward|backward-data|backward-weight, but 4 names are given; "
     "arrays are named by options such as --input"),
    ("layer forward --input in.wav --weight w4.npy --output y.npy", 1,
     "in.wav: not an .npy file; save the array with numpy.save"),
    ("layer forward --input x4.npy --weight w4.npy", 2, "forward needs --output"),
    ("layer forward --input x4.npy --weight x.npy --output y.npy", 1,
     "x.npy: array of 1 dimensions, but x4.npy has 4; both need the same axes"),
    ("layer forward --input x4.npy --weight w4.npy --output y.npy --pad some", 1,
     "--pad some: is not a list of up to 6 whole numbers, such as 2,1, and not the word same"),
    ("plan --taps 1s", 2, "--taps 1s: a time needs the sample rate, which is unknown; add --rate, for example --rate 48k, or "
     "give a number of frames"),
    ("plan ir.wav", 2, "takes no file names, but 1 is given; describe a filter with --taps"),
    ("live ir.wav", 2, "takes no file names, but 1 is given; name filters with --ir"),
    ("control socket gain -3", 1, "socket: cannot connect: No such file or directory; partita live --control socket creates "
     "this socket"),
]


class Mistakes(Case):
    def test_messages(self):
        for name, frames, rate in (("in.wav", (4800, 1), 48000), ("ir.wav", (100, 1), 48000), ("ir44.wav", (100, 1), 44100)):
            self.write(name, wav_bytes(self.random.integers(-3000, 3000, frames), rate=rate))
        for name, text in (("empty.wav", b""), ("one.txt", b"1\n"), ("comma.txt", b"1\n0,5\n"), ("x.csv", b"1,2,3\n4,5,6\n"),
                           ("room.conf", b"/impulse/re\n"),
                           ("song.mp4", b"\0\0\0\x20ftypisom" + bytes(100)), ("raw.bin", b"\1\2\3" * 100)):
            self.write(name, text)
        for name, array in (("x", np.ones(300, "f4")), ("c", np.ones(300, "c8")), ("transposed", np.ones((4800, 2), "f4")),
                            ("x4", np.ones((1, 4, 9, 9), "f4")), ("w4", np.ones((2, 4, 3, 3), "f4"))):
            np.save(name + ".npy", array)
        for line, rc, message in MISTAKES:
            with self.subTest(line=line):
                said = self.run_program(*shlex.split(line), rc=rc).stderr.decode().splitlines()
                command = line.split()[0]
                prefix = "partita: " if message.startswith(command + ":") else f"partita {command}: "
                self.assertEqual(said[0], prefix + message)
                self.assertTrue(len(said) == 1 or said[1].startswith("usage: "), said)


if __name__ == "__main__":
    rig.main()
