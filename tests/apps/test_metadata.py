#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a recording says about itself: loudspeakers, texts, cue points, the broadcast extension. SoX
and ffmpeg read the results."""
import json
import shutil
import struct
import subprocess

import numpy as np

import rig
from rig import Case, chunk, wav_bytes

PCM_GUID = bytes.fromhex("000000001000800000aa00389b71")


def chunks(data):
    """The chunks of a WAV after its form, by name; of LIST by its type."""
    at, found = 12, {}
    while at + 8 <= len(data):
        name, size = data[at:at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8:at + 8 + size]
        found[name + body[:4] if name == b"LIST" else name] = body
        at += 8 + size + (size & 1)
    assert at == len(data), "the chunks do not end with the file"
    return found


def extensible(frames, mask, rate=48000):
    n = frames.shape[1]
    fmt = struct.pack("<HHIIHHHHIH", 0xFFFE, n, rate, rate * 2 * n, 2 * n, 16, 22, 16, mask, 1) + PCM_GUID
    body = chunk(b"fmt ", fmt) + chunk(b"data", frames.astype("<i2").tobytes())
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


def cue(*points):
    rows = b"".join(struct.pack("<II4sIII", i + 1, at, b"data", 0, 0, at) for i, at in enumerate(points))
    return chunk(b"cue ", struct.pack("<I", len(points)) + rows)


def info(**texts):
    rows = b"".join(chunk(name.encode(), text.encode() + b"\0") for name, text in texts.items())
    return chunk(b"LIST", b"INFO" + rows)


def bext(time):
    return chunk(b"bext", b"A description".ljust(338, b"\0") + struct.pack("<Q", time) + bytes(256))


class Metadata(Case):
    def setUp(self):
        super().setUp()
        self.write("one.txt", b"1\n")
        self.frames = self.random.integers(-900, 900, (1000, 2))

    def convolved(self, data, *arguments, out="y.wav"):
        self.write("x.wav", data)
        self.run_program("convolve", *arguments, "one.txt", "x.wav", out)
        return self.read(out)

    def probe(self, name):
        done = subprocess.run(["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", name],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def test_loudspeakers(self):
        for n, mask in ((8, 0x63f), (6, 0x3f), (6, 0x60f), (4, 0x33), (2, 0x600), (1, 0x8)):
            with self.subTest(mask=hex(mask)):
                y = chunks(self.convolved(extensible(self.random.integers(-9, 9, (50, n)), mask)))
                self.assertEqual(struct.unpack_from("<HH", y[b"fmt "]), (0xFFFE, n))
                self.assertEqual(struct.unpack_from("<I", y[b"fmt "], 20)[0], mask)
        self.convolved(extensible(self.random.integers(-9, 9, (50, 8)), 0x63f))
        self.assertEqual(self.probe("y.wav")["streams"][0]["channel_layout"], "7.1")
        self.convolved(extensible(self.random.integers(-9, 9, (50, 6)), 0x3f), out="y.flac")
        self.run_program("convolve", "one.txt", "y.flac", "z.wav")
        self.assertEqual(struct.unpack_from("<I", chunks(self.read("z.wav"))[b"fmt "], 20)[0], 0x3f)

    def test_loudspeakers_of_other_channels_are_not_known(self):
        np.save("h.npy", np.ones((6, 3)))
        self.write("x.wav", extensible(self.frames, 3))
        self.run_program("convolve", "--matrix", "h.npy", "x.wav", "y.wav")
        self.assertEqual(struct.unpack_from("<I", chunks(self.read("y.wav"))[b"fmt "], 20)[0], 0)

    def test_texts_in_front_of_the_samples_and_behind(self):
        for where in ("before", "after"):
            data = wav_bytes(self.frames, **{where: info(INAM="Song", IART="Singer", IXYZ="odd")})
            with self.subTest(where=where):
                y = chunks(self.convolved(data))
                self.assertEqual(y[b"LISTINFO"], chunks(data)[b"LISTINFO"])
                tags = self.probe("y.wav")["format"]["tags"]
                self.assertEqual((tags["title"], tags["artist"]), ("Song", "Singer"))

    def test_texts_of_other_formats(self):
        data = wav_bytes(self.frames, before=info(INAM="Song", IART="Singer", ICMT="Remark", ICRD="2026"))
        self.convolved(data, out="y.flac")
        tags = {k.lower(): v for k, v in self.probe("y.flac")["format"]["tags"].items()}
        self.assertEqual([tags[k] for k in ("title", "artist", "date")], ["Song", "Singer", "2026"])
        self.run_program("convolve", "one.txt", "y.flac", "z.wav")
        tags = self.probe("z.wav")["format"]["tags"]
        self.assertEqual((tags["title"], tags["artist"]), ("Song", "Singer"))

    def test_positions_move_with_the_result(self):
        data = wav_bytes(self.frames, after=cue(5, 100, 700) + bext(48000 * 3600))
        kept = chunks(self.convolved(data))
        self.assertEqual((kept[b"cue "], kept[b"bext"]), (chunks(data)[b"cue "], chunks(data)[b"bext"]))
        moved = chunks(self.convolved(data, "--first", 40))
        rows = [struct.unpack_from("<II4sIII", moved[b"cue "], 4 + 24 * i) for i in range(2)]
        self.assertEqual((len(moved[b"cue "]), rows), (52, [(2, 60, b"data", 0, 0, 60), (3, 660, b"data", 0, 0, 660)]))
        self.assertEqual(struct.unpack_from("<Q", moved[b"bext"], 338)[0], 48000 * 3600 + 40)
        moved = chunks(self.convolved(data, "--stride", 4))
        self.assertEqual([struct.unpack_from("<I", moved[b"cue "], 4 + 24 * i + 20)[0] for i in range(3)], [1, 25, 175])

    def test_shards_and_resumed_runs(self):
        self.write("x.wav", wav_bytes(self.frames, after=info(INAM="Song") + cue(100, 900) + bext(7)))
        self.run_program("convolve", "--range", "1/1", "one.txt", "x.wav", "whole.wav")
        for k in (1, 2):
            self.run_program("convolve", "--range", "%d/2" % k, "one.txt", "x.wav", "%d.wav" % k)
        self.run_program("join", "joined.wav", "1.wav", "2.wav")
        self.assertEqual(self.read("joined.wav"), self.read("whole.wav"))
        whole, first, second = (chunks(self.read(name + ".wav")) for name in ("whole", "1", "2"))
        self.assertEqual((first[b"cue "], first[b"bext"]), (whole[b"cue "], whole[b"bext"]))
        self.assertEqual((set(first) - set(second), second[b"LISTINFO"]), ({b"cue ", b"bext"}, whole[b"LISTINFO"]))
        self.run_program("convolve", "--resume", "one.txt", "x.wav", "resumed.wav")
        self.assertEqual(self.read("resumed.wav"), self.read("whole.wav"))

    def test_pipes_end_with_the_samples(self):
        data = wav_bytes(self.frames, before=info(INAM="Song"))
        piped = self.run_program("convolve", "one.txt", "-", "-", stdin=data).stdout
        self.assertTrue(np.array_equal(rig.parse_wav(piped)[1] * 32768, self.frames))

    def test_damaged_chunks_behind_the_samples_are_ignored(self):
        for rest in (b"LIST", b"LIST\xff\xff\xff\x7f", b"LIST\4\0\0\0", b"\0" * 100001, cue(5)[:20],
                     chunk(b"cue ", b"\xff\xff\xff\xff"), chunk(b"LIST", b"INFOINAM\xff\xff\xff\xff"),
                     chunk(b"bext", b"short"), chunk(b"data", b"1234")):
            with self.subTest(rest=rest[:20]):
                y = self.convolved(wav_bytes(self.frames) + rest, "--first", 1)
                self.assertTrue(np.array_equal(rig.parse_wav(y)[1] * 32768, self.frames[1:]))
                chunks(y)

    def test_sox_reads_float_files_without_a_warning(self):
        if not shutil.which("soxi"):
            self.skipTest("SoX is not installed")
        self.convolved(wav_bytes(self.frames), "-o", "f32")
        done = subprocess.run(["soxi", "y.wav"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        self.assertEqual(done.stderr, b"")


if __name__ == "__main__":
    rig.main()
