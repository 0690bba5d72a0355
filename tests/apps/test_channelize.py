#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita channelize` against sums by SciPy, `partita convolve` and the library's channelizer: random plans of
channels, pipes, shards, resumed runs, outputs that fail, and tables with mistakes."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
from scipy.signal import upfirdn

import rig
import schemas
from rig import Case, parse_wav

LIBRARY = os.path.abspath(sys.argv.pop(2)) # tests run in folders of their own
RATE = 240000


class Options(ctypes.Structure):  # the first fields of struct partita_channelizer_options and partita_channel
    _fields_ = [("signal", ctypes.c_int), ("channels", ctypes.c_size_t), ("n_taps", ctypes.c_size_t),
                ("stride", ctypes.c_size_t), ("block", ctypes.c_size_t), ("sample_rate", ctypes.c_double)]


class Channel(ctypes.Structure):
    _fields_ = [("taps", ctypes.c_void_p), ("n_taps", ctypes.c_size_t), ("taps_type", ctypes.c_int),
                ("up", ctypes.c_size_t), ("stride", ctypes.c_size_t), ("bandwidth", ctypes.c_double)]


def sized(struct):
    """The arguments for a struct whose size calls pass."""
    return ctypes.byref(struct), ctypes.c_size_t(ctypes.sizeof(struct))


def direct(x, taps, centre, up, stride):
    """The formula, in double."""
    revolutions = np.arange(len(x)) * np.longdouble(centre) / RATE % 1
    shifted = x * np.exp(-2j * np.pi * revolutions.astype("f8"))
    return upfirdn(taps, shifted, up, stride)[:-(-len(x) * up // stride)]


class Channelize(Case):
    def setUp(self):
        super().setUp()
        self.x = self.noise(50001)
        self.write("x.cf32", self.x.tobytes())

    def noise(self, n):
        return (self.random.standard_normal(n) + 1j * self.random.standard_normal(n)).astype("c8")

    def table(self, *rows, name="t.csv"):
        """A row: a dict of columns."""
        if name.endswith(".json"):
            self.write(name, json.dumps(rows).encode())
            return name
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines = [columns] + [[row.get(c, "") for c in columns] for row in rows]
        self.write(name, "".join(",".join(map(str, line)) + "\n" for line in lines).encode())
        return name

    def run_table(self, rows, *arguments, out="{name}.cf32", file="x.cf32", **more):
        return self.run_program("channelize", "-r", RATE, *arguments, self.table(*rows), file, out, **more)

    def reader(self, *command):
        """A process that reads a pipe, which it makes."""
        os.mkfifo(command[-1])
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.addCleanup(child.stdout.close)
        return child

    def start(self, *arguments):
        command = [rig.PROGRAM, "channelize", "-r", str(RATE), *arguments, "{name}.cf32"]
        return subprocess.Popen(command, stdin=subprocess.PIPE)

    def plan(self, n):
        """Random channels with taps from files, of which some are the same."""
        rows = []
        for i in range(n):
            up, stride = self.random.choice([1, 1, 2, 3]), self.random.choice([1, 4, 5, 8, 10, 16])
            up, stride = int(up // np.gcd(up, stride)), int(stride // np.gcd(up, stride))
            k = i % max(1, n - 2)
            taps = self.random.standard_normal(self.random.integers(1, 400)).astype("f4")
            if self.random.integers(3) == 0:
                taps = taps * np.exp(1j * np.arange(len(taps))).astype("c8")
            if k == i:
                np.save("taps%d.npy" % k, taps)
            rows.append({"name": "ch-%d" % i, "centre": float(self.random.uniform(-RATE / 2, RATE / 2)),
                         "rate": "%d/%d" % (RATE * up, stride), "taps": "taps%d.npy" % k, "up": up, "stride": stride})
        return [{k: v for k, v in row.items() if k not in ("up", "stride")} for row in rows], rows

    def some_rows(self):
        return [{"name": "a", "centre": 30000, "rate": 24000}, {"name": "b", "centre": "-70k", "rate": "16k"},
                {"name": "c", "centre": 1234.5, "rate": 30000, "bandwidth": 20000, "transition": 3000,
                 "attenuation": 50}]


class Results(Channelize):
    def test_random_plans_are_right(self):
        """Errors of transforms (the rig's gate), 8 roundings of the response and of the rotation, and here, in double,
        of the sums of up to 400 products."""
        for dtype, suffix in (("c8", "cf32"), ("f4", "f32"), ("c16", "cf64")):
            with self.subTest(dtype):
                x = self.x.astype(dtype) if dtype[0] == "c" else self.x.real.astype(dtype)
                self.write("x." + suffix, x.tobytes())
                table, rows = self.plan(9)
                wide = "cf64" if dtype == "c16" else "cf32"
                self.run_table(table, file="x." + suffix, out="{name}." + wide)
                for row in rows:
                    taps = np.load(row["taps"])
                    expected = direct(x, taps, row["centre"], row["up"], row["stride"])
                    got = np.fromfile(row["name"] + "." + wide, "c16" if wide == "cf64" else "c8")
                    limit = rig.gate(got.dtype) + 8 * rig.U[got.dtype] + 20 * 2.0**-53
                    typical = np.linalg.norm(taps) / np.sqrt(row["up"]) * np.linalg.norm(x) / np.sqrt(len(x))
                    self.close(got, expected, limit, typical)

    def test_one_channel_is_convolve(self):
        """Both have the errors of transforms."""
        table, rows = self.plan(4)
        self.run_table(table)
        for row in rows:
            self.run_program("convolve", "-q", "-r", RATE, "--tail", "no", "--tune", row["centre"], "--up", row["up"],
                             "--stride", row["stride"], row["taps"], "x.cf32", "y.cf32")
            self.close(np.fromfile(row["name"] + ".cf32", "c8"), np.fromfile("y.cf32", "c8"), 2 * rig.gate("c8"))

    def test_designed_filters(self):
        """Those of `partita design`. What is removed beyond the band is below the attenuation; the noise is white."""
        self.run_table(self.some_rows())
        for name, centre, stride, band, width, attenuation in (("a", 30000, 10, 24000, 2400, 80),
                                                               ("c", 1234.5, 8, 20000, 3000, 50)):
            self.run_program("design", "-q", "lowpass", "-o", "f64", "--cutoff", (band - width) / 2, "--width", width,
                             "--attenuation", attenuation, "-r", RATE, "taps.npy")
            self.close(np.fromfile(name + ".cf32", "c8"), direct(self.x, np.load("taps.npy"), centre, 1, stride),
                       10 ** (-attenuation / 20) * np.sqrt(RATE / band))

    def test_levels_are_kept(self):
        """Of a tone in the middle of a channel, also at a rate above that of IN. 80 dB are a ripple of 1e-4."""
        self.write("x.cf32", np.exp(2j * np.pi * 50e3 / RATE * np.arange(50000)).astype("c8").tobytes())
        self.run_table([{"name": "low", "centre": "50k", "rate": "9k"},
                        {"name": "high", "centre": "50k", "rate": "320k"}])
        for name in ("low", "high"):
            y = np.fromfile(name + ".cf32", "c8")
            self.assertLess(np.abs(y[len(y) // 3:] - 1).max(), 2e-4)

    def library(self, rows):
        """The outputs of the library's channelizer."""
        if ".so" not in LIBRARY or "SANITIZED" in os.environ:
            self.skipTest("Python cannot load the library")
        lib = ctypes.CDLL(LIBRARY)
        band, outputs = ctypes.c_void_p(), []
        options = Options(3, len(rows), max(-(-len(np.load(r["taps"])) // r["up"]) for r in rows),
                          int(np.lcm.reduce([r["stride"] for r in rows])), 0, RATE)
        lib.partita_channelizer_output.restype = ctypes.c_void_p
        for name in ("process", "block"):
            getattr(lib, "partita_channelizer_" + name).restype = ctypes.c_size_t
        self.assertEqual(lib.partita_channelizer_create_sized(*sized(options), ctypes.byref(band)), 0)
        slots = []
        for r in rows:
            taps = np.load(r["taps"])
            one = Channel(taps.ctypes.data, len(taps), 3 if taps.dtype.kind == "c" else 1, r["up"], r["stride"], 0)
            made, slot, centre = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_double(r["centre"])
            self.assertEqual(lib.partita_channel_filter_create_sized(band, *sized(one), ctypes.byref(made)), 0)
            self.assertEqual(lib.partita_channelizer_open(band, made, centre, ctypes.byref(slot)), 0)
            lib.partita_channel_filter_destroy(made)
            slots.append(slot)
        block, n = lib.partita_channelizer_block(band), ctypes.c_size_t()
        x = np.concatenate([self.x, np.zeros(-len(self.x) % block, "c8")])
        found = [[] for _ in rows]
        for at in range(0, len(x), block):
            lib.partita_channelizer_process(band, ctypes.c_void_p(x.ctypes.data + 8 * at), ctypes.c_size_t(block))
            for k, slot in enumerate(slots):
                y = lib.partita_channelizer_output(band, slot, ctypes.byref(n))
                found[k].append(ctypes.string_at(y, 8 * n.value))
        lib.partita_channelizer_destroy(band)
        for r, parts in zip(rows, found):
            outputs.append(b"".join(parts)[:8 * -(-len(self.x) * r["up"] // r["stride"])])
        return outputs

    def test_bytes_are_those_of_the_library(self):
        table, rows = self.plan(6)
        self.run_table(table)
        for row, expected in zip(rows, self.library(rows)):
            self.assertEqual(self.read(row["name"] + ".cf32"), expected)


class Same(Channelize):
    def outputs(self, names="abc", suffix=".cf32"):
        data = [self.read(name + suffix) for name in names]
        for name in names:
            os.remove(name + suffix)
        return data

    def test_cuts_threads_and_order_do_not_matter(self):
        rows = self.some_rows()
        self.run_table(rows)
        whole = self.outputs()
        self.run_table(rows[::-1], "--threads", 3)
        self.assertEqual(self.outputs(), whole)
        self.run_program("channelize", "-r", RATE, self.table(*rows, name="t.json"), "x.cf32", "{name}.cf32")
        self.assertEqual(self.outputs(), whole)
        child = self.start("-f", "cf32", "t.csv", "-")
        data, at = self.x.tobytes(), 0
        while at < len(data):
            n = int(self.random.integers(1, 60000))
            child.stdin.write(data[at:at + n])
            child.stdin.flush()
            at += n
        child.stdin.close()
        self.assertEqual(child.wait(), 0)
        self.assertEqual(self.outputs(), whole)

    def test_outputs_are_pipes(self):
        rows = self.some_rows()
        self.run_table(rows)
        whole = self.outputs()
        readers = [self.reader("cat", row["name"] + ".cf32") for row in rows]
        self.run_table(rows)
        self.assertEqual([reader.communicate()[0] for reader in readers], whole)

    def test_joined_shards_are_the_whole(self):
        rows = self.some_rows()
        for out, suffix in (("{name}.cf32", ".cf32"), ("whole", ".sigmf-data")):
            self.run_table(rows, out=out)
            prefix = "whole/" if suffix != ".cf32" else ""
            for n in (1, 2, 7):
                for k in range(1, n + 1):
                    self.run_table(rows, "--range", "%d/%d" % (k, n), out="%d-{name}%s" % (k, suffix))
                for row in rows:
                    shards = ["%d-%s%s" % (k, row["name"], suffix) for k in range(1, n + 1)]
                    self.run_program("join", "y" + suffix, *shards)
                    self.assertEqual(self.read("y" + suffix), self.read(prefix + row["name"] + suffix))
                    if prefix:
                        self.assertEqual(json.loads(self.read("y.sigmf-meta")),
                                         json.loads(self.read(prefix + row["name"] + ".sigmf-meta")))

    def test_killed_runs_resume(self):
        """Each run saves its progress with its first block and once a second. Four that were killed have computed more
        than the overlap of blocks, so that the last one skips a part of IN."""
        self.write("x.cf32", self.noise(3 << 20).tobytes())
        rows = [{"name": str(k), "centre": 1000 * k, "rate": 12000 + 4000 * (k % 2)} for k in range(30)]
        self.run_table(rows, "--resume")
        names = [row["name"] for row in rows]
        whole = self.outputs(names)
        done, limit = 0, time.time() + 60
        for _ in range(4):
            child = self.start("--resume", "t.csv", "x.cf32")
            child.stdin.close()
            while child.poll() is None and time.time() < limit and self.noted("7.cf32.partial.range") <= done:
                time.sleep(0.005)
            child.send_signal(signal.SIGKILL)
            if child.wait() == 0:
                self.skipTest("done before it was killed")
            done = self.noted("7.cf32.partial.range")
        self.assertFalse(os.path.exists("7.cf32"))
        other = [dict(rows[0], centre=1), *rows[1:]]
        done = self.run_table(other, "--resume", rc=1)
        self.assertIn(b"row 1 (0): name: 0.cf32.partial: was started by another command", done.stderr.replace(
            self.folder.encode() + b"/", b""))
        self.run_table(rows, "--resume")
        self.assertEqual(self.outputs(names), whole)
        self.assertFalse([name for name in os.listdir(".") if ".partial" in name and not name.startswith(".")])

    def noted(self, path):
        try:
            return int(json.loads(self.read(path))["done"])
        except FileNotFoundError:
            return 0


    def test_outputs_of_a_pipe_come_while_it_runs(self):
        """Those of a block when it is complete; a signal that ends the run removes what is not."""
        readers = [self.reader("head", "-c800", row["name"] + ".cf32") for row in self.some_rows()]
        rows = self.some_rows() + [{"name": str(k), "centre": 0, "rate": 24000} for k in range(20)]
        before = set(os.listdir(".")) | {"t.csv"}
        child = self.start("--block", "4800", "-f", "cf32", self.table(*rows), "-")
        child.stdin.write(self.x[:4800].tobytes())
        child.stdin.flush()
        self.assertEqual([len(reader.communicate(timeout=60)[0]) for reader in readers], [800] * 3)
        child.terminate()
        self.assertEqual(child.wait(), -signal.SIGTERM)
        child.stdin.close()
        self.assertEqual(set(os.listdir(".")), before)


class Formats(Channelize):
    def meta(self, name):
        return json.loads(self.read(name + ".sigmf-meta"))

    def test_sigmf_in_and_out(self):
        self.write("in.sigmf-data", self.x.tobytes())
        self.write("in.sigmf-meta", json.dumps({
            "global": {"core:datatype": "cf32_le", "core:sample_rate": RATE, "core:author": "me"},
            "captures": [{"core:sample_start": 0, "core:frequency": 145e6, "core:datetime": "2026-01-01T00:00:00Z"}],
            "annotations": [{"core:sample_start": 10000, "core:sample_count": 100}]}).encode())
        table = self.table({"name": "relative", "centre": "-5k", "rate": "24k"},
                           {"name": "absolute", "frequency": "144.995M", "rate": "24k"})
        self.run_program("channelize", table, "in", "out")
        meta = self.meta("out/relative")
        self.assertEqual(self.read("out/relative.sigmf-data"), self.read("out/absolute.sigmf-data"))
        self.assertEqual(meta, self.meta("out/absolute"))
        self.assertEqual((meta["global"]["core:sample_rate"], meta["global"]["core:author"]), (24000, "me"))
        self.assertEqual(meta["captures"][0]["core:frequency"], 144.995e6)
        n = len(np.load(self.design(10800, 2400)))
        self.assertEqual(meta["annotations"][0]["core:sample_start"], (10000 + (n - 1) // 2) // 10)

    def design(self, cutoff, width):
        self.run_program("design", "-q", "lowpass", "--cutoff", cutoff, "--width", width, "-r", RATE, "taps.npy")
        return "taps.npy"

    def test_frequency_of_signals_without_metadata(self):
        rows = [{"name": "a", "centre": "-5k", "rate": "24k"}]
        self.run_table(rows, out="out")
        self.assertEqual(self.meta("out/a")["captures"], [{"core:sample_start": 0, "core:frequency": -5000}])
        self.assertEqual(self.meta("out/a")["global"]["core:version"], "1.0.0")
        self.run_table([{"name": "a", "frequency": "144.995M", "rate": "24k"}], "--frequency", "145M", out="out")
        self.assertEqual(self.meta("out/a")["captures"], [{"core:sample_start": 0, "core:frequency": 144995000}])

    def test_a_wav_has_i_and_q(self):
        rows = [{"name": "a", "centre": "-5k", "rate": "24k"}]
        self.run_table(rows)
        self.run_table(rows, out="{name}.wav")
        rate, frames, bits, _ = parse_wav(self.read("a.wav"))
        self.assertEqual((rate, bits), (24000, 32))
        self.assertEqual((frames @ [1, 1j]).tolist(), np.fromfile("a.cf32", "c8").tolist())
        self.run_table(rows, "-o", "ci16", out="{name}.raw")
        self.assertEqual(len(self.read("a.raw")), 4 * 5001)

    def test_quotes_comments_and_marks(self):
        self.write("t.csv", b'\xef\xbb\xbf# receivers\r\n"name" , rate,centre,bandwidth\r\n\r\n"a, b", 24k ,-5k,\r\n')
        self.run_program("channelize", "-r", RATE, "t.csv", "x.cf32", "out")
        self.assertEqual(sorted(os.listdir("out")), ["a, b.sigmf-data", "a, b.sigmf-meta"])

    def test_values_that_are_not_finite(self):
        x = self.x.copy()
        rows = self.some_rows()
        x[20000] = 0
        self.write("x.cf32", x.tobytes())
        self.run_table(rows)
        zero = self.read("a.cf32")
        x[20000] = np.nan
        self.write("x.cf32", x.tobytes())
        self.assertIn(b"x.cf32: 1 NaN or infinite samples were read as 0", self.run_table(rows).stderr)
        self.assertEqual(self.read("a.cf32"), zero)
        self.run_table(rows, "--nan", "propagate")
        self.assertTrue(np.isnan(np.fromfile("a.cf32", "c8")).any())
        for row in rows:
            os.remove(row["name"] + ".cf32")
        self.fails("channelize", "-r", RATE, "--nan", "error", "t.csv", "x.cf32", "{name}.cf32",
                   says="NaN or infinite sample in")


class Picture(Channelize):
    BANDS, CURVE = ((224, 240, 224), (204, 227, 242)), (26, 92, 173)

    def draw(self, rows, *arguments, **more):
        done = self.run_table(rows, *arguments, "--plot", "p.png", rc=None, **more)
        if b"without cairo" in done.stderr:
            self.skipTest("built without cairo")
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = rig.picture(self.read("p.png"))
        self.assertEqual(picture.shape, (640, 1400, 3))
        return picture

    def columns(self, picture, colour, row):
        """Where a row has the colour, up to a grid line or the rounding of an edge, as shares of the axis."""
        at = np.flatnonzero((abs(picture[row].astype(int) - colour) <= 2).all(axis=1))
        return (at.min() - 90) / 1270, (at.max() + 1 - 90) / 1270

    def highest(self, picture):
        rows, columns = np.nonzero((abs(picture.astype(int) - self.CURVE) <= 30).all(axis=2))
        return (columns[rows == rows.min()].mean() + 0.5 - 90) / 1270

    def test_bands_and_spectrum(self):
        carrier = 3 * np.exp(2j * np.pi * 30000 / RATE * np.arange(len(self.x)))
        self.write("x.cf32", (0.01 * self.x + carrier).astype("c8").tobytes())
        rows = [{"name": "a", "centre": -60000, "rate": 24000, "bandwidth": 20000}, {"name": "b", "centre": 30000, "rate": 48000}]
        picture, pixel = self.draw(rows, "--frequency", "434M"), 2 / 1270
        for row, colour, centre, width in ((rows[0], self.BANDS[0], -60000, 20000), (rows[1], self.BANDS[1], 30000, 48000)):
            low, high = self.columns(picture, colour, 125)
            self.assertAlmostEqual(low, 0.5 + (centre - width / 2) / RATE, delta=pixel)
            self.assertAlmostEqual(high, 0.5 + (centre + width / 2) / RATE, delta=pixel)
        self.assertAlmostEqual(self.highest(picture), 0.5 + 30000 / RATE, delta=pixel)
        # The carrier's power is 9, that of the noise 2e-4 in the whole band: in a bin of the spectrum, of some 1e-3 of it,
        # the noise is more than 70 dB lower, and without skirts from bin to bin.
        curve = [np.flatnonzero((abs(picture[121:560, 90 + int(1270 * share)].astype(int) - self.CURVE) <= 60).all(axis=1))
                 for share in (0.02, 0.2, 0.55, 0.7, 0.97)]
        self.assertTrue(all(len(rows) and rows.min() > 300 for rows in curve), curve)
        self.assertEqual(self.read("p.png"), (self.draw(rows, "--frequency", "434M", "-t", 2), self.read("p.png"))[1])

    def test_real_signals_and_many_channels(self):
        x = 0.01 * self.x.real + np.sin(2 * np.pi * 90000 / RATE * np.arange(len(self.x)))
        self.write("x.f32", x.astype("f4").tobytes())
        rows = [{"name": "n%d" % i, "centre": 4000 * i + 3000, "rate": 3000} for i in range(25)]
        picture = self.draw(rows, file="x.f32")
        self.assertAlmostEqual(self.highest(picture), 90000 / (RATE / 2), delta=2 / 1270)
        self.assertAlmostEqual(self.columns(picture, self.BANDS[0], 125)[0], 1500 / (RATE / 2), delta=2 / 1270)
        self.write("x.f32", b"")
        self.draw(rows[:1], file="x.f32")

    def test_pictures_that_cannot_be_written(self):
        self.draw(self.some_rows())
        self.fails("channelize", "-r", RATE, "--plot", "p.pdf", "t.csv", "x.cf32", "{name}.cf32", says="p.pdf: the picture is a PNG")
        os.symlink("x.cf32", "x.png")
        self.fails("channelize", "-r", RATE, "--plot", "x.png", "t.csv", "x.cf32", "{name}.cf32", says="x.png: is the input")
        os.remove("a.cf32")
        done = self.run_table(self.some_rows(), "--plot", "nowhere/p.png", rc=1)
        self.assertIn(b"nowhere/p.png: cannot create", done.stderr)
        self.assertEqual(len(self.read("a.cf32")), 8 * -(-50001 // 10))


class Json(Channelize):
    def load(self, done):
        said = schemas.load(done.stdout)
        return said, {row["name"]: row for row in said["channels"]}

    def test_it_tells_what_was_written(self):
        said, rows = self.load(self.run_table(self.some_rows(), "--json", "--frequency", "434M", "-q"))
        self.assertEqual((said["in"], said["frames_in"], said["not_finite_read"], said["truncated"], said["interrupted"]),
                         ("x.cf32", 50001, 0, False, False))
        self.assertEqual([*rows], ["a", "b", "c"])
        for name, centre, rate in (("a", 30000, 24000), ("b", -70000, 16000), ("c", 1234.5, 30000)):
            row = rows[name]
            self.assertEqual((row["centre"], row["frequency"], row["rate"], row["out"], row["complete"], row["clipped"]),
                             (centre, 434e6 + centre, rate, name + ".cf32", True, 0))
            self.assertEqual(row["frames"] * 8, os.path.getsize(row["out"]))
            self.assertEqual(row["frames"], -(-50001 * rate // RATE))
            self.assertGreater(row["taps"], RATE / rate)
        self.write("x.cf32", (20 * self.x).tobytes())
        said, rows = self.load(self.run_table(self.some_rows()[:1], "--json", "--output-format", "ci16", out="{name}.raw"))
        self.assertIsNone(rows["a"]["frequency"])
        self.assertGreater(rows["a"]["clipped"], 0)

    def test_it_tells_shards_gaps_and_failures(self):
        said, rows = self.load(self.run_table(self.some_rows(), "--json", "--range", "2/3"))
        for name, row in rows.items():
            self.assertEqual(row["frames"] * 8, os.path.getsize(row["out"]), name)
        self.x[[100, 2000]] = np.nan, np.inf
        self.write("x.cf32", self.x.tobytes()[:-3])
        self.reader("head", "-c", "8", "gone.cf32")
        said, rows = self.load(self.run_table([*self.some_rows(), {"name": "gone", "centre": 0, "rate": RATE // 2}], "--json", rc=1))
        self.assertEqual((said["not_finite_read"], said["truncated"]), (2, True))
        self.assertEqual([row["complete"] for row in rows.values()], [True, True, True, False])


class Mistakes(Channelize):
    def test_a_band_that_reaches_beyond_that_of_in(self):
        rows = [{"name": "a", "centre": "-110k", "rate": "24k"}, {"name": "b", "centre": "-108k", "rate": "24k"}]
        self.assertEqual(self.run_table(rows).stderr, b"partita channelize: t.csv: row 1 (a): bandwidth: reaches "
                         b"beyond the band of IN, whose other end follows there\n")
        self.assertEqual(self.run_table(rows, "-q").stderr, b"")

    def test_rows(self):
        self.write("two.wav", rig.wav_bytes(np.zeros((5, 2), "i2"), rate=RATE))
        np.save("h.npy", np.ones(5, "f4"))
        one = {"name": "a", "centre": 0, "rate": 24000}
        for row, says in (({"centre": 130e3}, ["centre 130000", "is outside the band of IN, -120000 to 120000 Hz"]),
                          ({"centre": "", "frequency": "1M"}, ["frequency 1000000", "is unknown; add --frequency"]),
                          ({"frequency": "1M"}, ["give either centre"]),
                          ({"centre": "x"}, ["centre", "'x' is not a frequency in Hz, such as -412.5k"]),
                          ({"rate": 24000.123}, ["rate 24000.123", "is no fraction", "24000"]),
                          ({"rate": ""}, ["rate: is missing"]),
                          ({"rate": "0"}, ["rate", "'0' is not a sample rate"]),
                          ({"bandwidth": "30k"}, ["bandwidth 30000", "is not held by the rate of 24000 Hz"]),
                          ({"transition": "30k"}, ["transition 30000", "leaves nothing of the bandwidth of 24000 Hz"]),
                          ({"transition": 0.01}, ["bandwidth", "taps"]),
                          ({"attenuation": 5}, ["attenuation", "'5' is not a number of decibels from 10 to 200"]),
                          ({"taps": "none.npy"}, ["taps none.npy", "cannot open"]),
                          ({"taps": "two.wav"}, ["taps two.wav", "has 2 channels; taps have one"]),
                          ({"taps": "h.npy", "transition": "1k"}, ["taps h.npy", "leave out transition"]),
                          ({"name": "a/b"}, ["name", "without a slash"]), ({"name": ""}, ["row 2 (): name"]),
                          ({"name": "first"}, ["an earlier row has this name"])):
            with self.subTest(row):
                table = self.table({"name": "first", "centre": 0, "rate": 24000}, {**one, **row})
                self.fails("channelize", "-r", RATE, table, "x.cf32", "{name}.cf32", says=["t.csv: row 2 ("] + says)

    def test_rates_without_a_common_block(self):
        rows = [{"name": str(k), "centre": 0, "rate": "240000/%d" % k, "taps": "h.npy"} for k in (4099, 4111)]
        np.save("h.npy", np.ones(5, "f4"))
        self.fails("channelize", "-r", RATE, self.table(*rows), "x.cf32", "{name}.cf32",
                   says=["row 2 (4111): rate 58.379956215: with the rates before", "larger common divisor"])

    def test_tables(self):
        for name, text, says in (("t.csv", "name,rat\na,1\n", "column 'rat': no such column (did you mean rate?)"),
                                 ("t.csv", "name,rate\na,24k,5\n", "row 1: has more cells than columns, at '5'"),
                                 ("t.csv", "", "has 0 channels"), ("t.json", "[]", "has 0 channels"),
                                 ("t.json", "[1]", "row 1: is no object"),
                                 ("t.json", "{", "line 1: is no array of objects"),
                                 ("t.json", "{}", "line 1: is no array of objects\n"),
                                 ("t.csv", "name,rate\na\0,24k\n", "is no text; TABLE is named before IN"),
                                 ("t.csv", "name;rate\na;24k\n", "attenuation and taps, separated by commas"),
                                 ("t.csv", "a,100k,125k\n", "has 0 channels; 1 to 16384 can be taken, in lines below"),
                                 ("t.json", '[{"name": 5}]', "name: is no text"),
                                 ("t.json", '[{"name": "a", "rate": []}]', "rate: 'the value' is not a sample rate")):
            with self.subTest(text):
                self.write(name, text.encode())
                self.fails("channelize", "-r", RATE, name, "x.cf32", "{name}.cf32", says=[name, says])
        self.fails("channelize", "-r", RATE, "none.csv", "x.cf32", "{name}.cf32", says="none.csv: cannot open")

    def test_usage(self):
        self.table({"name": "a", "centre": 0, "rate": 24000})
        self.write("two.wav", rig.wav_bytes(np.zeros((5, 2), "i2"), rate=RATE))
        for rc, says, *arguments in ((2, "sample rate is unknown; add --rate", "t.csv", "x.cf32", "{name}.cf32"),
                                     (2, "x.wav: names one file for 1 ch", "-r", RATE, "t.csv", "x.cf32", "x.wav"),
                                     (1, "has 2 channels; one is taken", "t.csv", "two.wav", "{name}.cf32"),
                                     (1, "the length of - is unknown", "-f", "cf32", "-r", RATE, "--range", "1/2",
                                      "t.csv", "-", "{name}.cf32"),
                                     (2, "--range 3/2", "--range", "3/2", "t.csv", "x.cf32", "{name}.cf32")):
            with self.subTest(says):
                self.fails("channelize", *arguments, rc=rc, says=says)

    def test_a_full_disk_in_one_of_200_outputs(self):
        """The others are complete."""
        rows = [{"name": str(k), "centre": 1000 * (k - 100), "rate": 4000} for k in range(200)]
        for folder in ("whole", "out"):
            os.mkdir(folder)
        self.run_table(rows, out="whole/{name}.raw")
        os.symlink("/dev/full", "out/77.raw")
        done = self.run_table(rows, out="out/{name}.raw", rc=1)
        self.assertEqual(done.stderr.decode().count("\n"), 1)
        self.assertIn("t.csv: row 78 (77): name: out/77.raw: ", done.stderr.decode())
        self.assertIn("No space left on device; 199 of 200 outputs are complete", done.stderr.decode())
        for k in range(200):
            if k != 77:
                self.assertEqual(self.read("out/%d.raw" % k), self.read("whole/%d.raw" % k))

    def test_a_reader_that_ends_stops_its_channel_only(self):
        rows = self.some_rows()
        self.write("x.cf32", self.noise(1 << 20).tobytes())
        self.reader("head", "-c1", "b.cf32")
        done = self.run_table(rows, rc=1)
        self.assertIn(b"b.cf32", done.stderr)
        self.assertEqual(len(self.read("a.cf32")), 8 * -(-(1 << 20) // 10))


if __name__ == "__main__":
    rig.main()
