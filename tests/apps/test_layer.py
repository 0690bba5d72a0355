#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`partita layer` against sums in NumPy: shapes, groups, strides, paddings, both types, gradients
as transposes of forward, and errors."""
import itertools
import os

import numpy as np

from rig import Case, gate
import rig
import schemas


def forward(x, w, stride, pad, dilation, groups):
    """The layer in double precision, summed tap by tap over whole arrays. pad: (begins, ends)."""
    rank = x.ndim - 2
    x, w = x.astype("f8"), w.astype("f8")
    x = np.pad(x, [(0, 0), (0, 0)] + [(max(b, 0), max(e, 0)) for b, e in zip(*pad)])
    x = x[(slice(None), slice(None)) + tuple(slice(max(-b, 0), n - max(-e, 0)) for b, e, n in zip(*pad, x.shape[2:]))]
    out = [(n - d * (r - 1) - 1) // s + 1 for n, r, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    y = np.zeros([x.shape[0], w.shape[0]] + out)
    k, c = w.shape[0] // groups, w.shape[1]
    for tap in itertools.product(*map(range, w.shape[2:])):
        part = x[(Ellipsis,) + tuple(slice(t * d, t * d + s * (o - 1) + 1, s) for t, d, s, o in zip(tap, dilation, stride, out))]
        for g in range(groups):
            y[:, g * k:(g + 1) * k] += np.einsum("nc...,kc->nk...", part[:, g * c:(g + 1) * c], w[(slice(g * k, (g + 1) * k), slice(None)) + tap])
    assert rank >= 1
    return y


def numbers(*values):
    return ",".join(map(str, values))


CASES = [  # x, w, stride, pad, dilation, groups
    ((2, 3, 9, 8), (4, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    ((1, 4, 12, 13), (6, 2, 3, 2), (2, 3), ((1, 0), (2, 1)), (2, 1), 2),
    ((2, 5, 7, 7), (5, 1, 5, 5), (1, 1), ((2, 2), (2, 2)), (1, 1), 5),
    ((1, 3, 20, 20), (2, 3, 4, 4), (4, 4), ((-1, -2), (0, 3)), (1, 1), 1),
    ((3, 2, 40), (4, 2, 7), (2,), ((3,), (2,)), (3,), 1),
    ((1, 2, 6, 7, 5), (3, 2, 2, 3, 2), (1, 2, 1), ((1, 0, 1), (0, 1, 1)), (1, 1, 2), 1),
]


class Layer(Case):
    def noise(self, *shape, dtype="f4"):
        return self.random.standard_normal(shape).astype(dtype)

    def save(self, **arrays):
        for name, array in arrays.items():
            np.save(name + ".npy", array)

    def geometry(self, stride, pad, dilation, groups):
        return ("--stride", numbers(*stride), "--pad=" + numbers(*pad[0], *pad[1]), "--dilation", numbers(*dilation), "--groups", groups)

    def test_forward(self):
        for (x, w, *more), dtype in itertools.product(CASES, ("f4", "f8")):
            with self.subTest(x=x, w=w, dtype=dtype):
                x_, w_, b = self.noise(*x, dtype=dtype), self.noise(*w, dtype=dtype), self.noise(w[0], dtype=dtype)
                self.save(x=x_, w=w_, b=b)
                files = ("--input", "x.npy", "--weight", "w.npy", "--output", "y.npy")
                self.run_program("layer", "forward", *files, *self.geometry(*more))
                expected = forward(x_, w_, *more)
                y = np.load("y.npy")
                self.assertEqual(y.dtype, np.dtype(dtype))
                self.close(y, expected, gate(dtype))
                self.run_program("layer", "forward", *files, "--bias", "b.npy", "--relu", *self.geometry(*more))
                biased = expected + b.astype("f8").reshape((1, -1) + (1,) * (len(x) - 2))
                self.close(np.load("y.npy"), np.maximum(biased, 0), gate(dtype))

    def test_gradients_are_transposes(self):
        """<gy, A x> = <gx, x> = <gw, w> for an A x computed here, and gx, gw for unit vectors: single entries of A."""
        for (x, w, *more), dtype in itertools.product(CASES, ("f4", "f8")):
            with self.subTest(x=x, w=w, dtype=dtype):
                x_, w_ = self.noise(*x, dtype=dtype), self.noise(*w, dtype=dtype)
                y = forward(x_, w_, *more)
                gy = self.noise(*y.shape, dtype=dtype)
                self.save(x=x_, w=w_, gy=gy)
                self.run_program("layer", "backward-data", "--grad-output", "gy.npy", "--weight", "w.npy", "--input-shape",
                                 numbers(*x), "--output", "gx.npy", *self.geometry(*more))
                self.run_program("layer", "backward-weight", "--grad-output", "gy.npy", "--input", "x.npy", "--kernel-shape",
                                 numbers(*w[2:]), "--output", "gw.npy", "--grad-bias", "gb.npy", *self.geometry(*more))
                gx, gw, gb = np.load("gx.npy"), np.load("gw.npy"), np.load("gb.npy")
                self.assertEqual((gx.shape, gw.shape, gb.shape), (x, w, (w[0],)))
                self.assertEqual({gx.dtype, gw.dtype, gb.dtype}, {np.dtype(dtype)})
                limit = gate(dtype) * np.linalg.norm(gy) * np.linalg.norm(y)
                self.assertLessEqual(abs(np.vdot(gy, y) - np.vdot(gx.astype("f8"), x_)), limit)
                self.assertLessEqual(abs(np.vdot(gy, y) - np.vdot(gw.astype("f8"), w_)), limit)
                self.close(gb, gy.astype("f8").sum(axis=(0,) + tuple(range(2, gy.ndim))), gate(dtype), np.sqrt(gy.size / w[0]))
                for _ in range(3):
                    at = tuple(self.random.integers(0, n) for n in x)
                    unit = np.zeros(x)
                    unit[at] = 1
                    expected = np.vdot(gy, forward(unit, w_, *more))
                    self.assertLessEqual(abs(gx[at] - expected), gate(dtype) * 10 * np.sqrt(w_.size))
                    at = tuple(self.random.integers(0, n) for n in w)
                    unit = np.zeros(w)
                    unit[at] = 1
                    expected = np.vdot(gy, forward(x_, unit, *more))
                    self.assertLessEqual(abs(gw[at] - expected), gate(dtype) * 10 * np.sqrt(gy.size))

    def test_single_numbers_for_all_axes_and_threads(self):
        self.save(x=self.noise(2, 3, 11, 11), w=self.noise(8, 3, 3, 3))
        names = ("layer", "forward", "--input", "x.npy", "--weight", "w.npy")
        self.run_program(*names, "--output", "a.npy", "--stride", "2,2", "--pad", "1,1", "--dilation", "2,2", "-t", 1)
        self.run_program(*names, "--output", "b.npy", "--stride", 2, "--pad", "1,1,1,1", "--dilation", 2, "--threads", 4)
        self.run_program(*names, "--output", "c.npy", "--stride", 2, "--pad", 1, "--dilation", 2, "--engine", "direct")
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        self.assertEqual(self.read("a.npy"), self.read("c.npy"))
        done = self.run_program(*names, "--output", "d.npy", "--verbose", "--workspace-limit", 1 << 20)
        self.assertIn(b"cpu/direct", done.stderr)

    def test_same_padding(self):
        """As many outputs as inputs; of an odd number of zeros the extra one is at the end."""
        self.save(x=self.noise(2, 3, 11, 12), w=self.noise(8, 3, 4, 3))
        names = ("layer", "forward", "--input", "x.npy", "--weight", "w.npy")
        self.run_program(*names, "--output", "a.npy", "--pad", "same", "--dilation", "3,1")
        self.run_program(*names, "--output", "b.npy", "--pad", "4,1,5,1", "--dilation", "3,1")
        self.assertEqual(np.load("a.npy").shape, (2, 8, 11, 12))
        self.assertEqual(self.read("a.npy"), self.read("b.npy"))
        self.fails(*names, "--output", "c.npy", "--pad", "same", "--stride", 2, says=("--pad same", "stride of 1"), rc=1)

    def test_boundaries(self):
        """The layer of an input that NumPy has padded, and its transpose."""
        x, w, pad = self.noise(2, 3, 9, 8, dtype="f8"), self.noise(4, 3, 3, 4, dtype="f8"), ((2, 3), (1, 0))
        self.save(x=x, w=w)
        for name in ("edge", "reflect", "symmetric", "wrap", "-0.75", "0"):
            with self.subTest(boundary=name):
                constant = {"constant_values": float(name)} if name[-1].isdigit() else {}
                wide = np.pad(x, [(0, 0), (0, 0), *zip(*pad)], "constant" if constant else name, **constant)
                expected = forward(wide, w, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
                options = ("--pad", numbers(*pad[0], *pad[1]), "--boundary=" + name)
                self.run_program("layer", "forward", "-i", "x.npy", "-w", "w.npy", "--output", "y.npy", *options)
                self.close(np.load("y.npy"), expected, gate("f8"))
                gy = self.noise(*expected.shape, dtype="f8")
                self.save(gy=gy)
                self.run_program("layer", "backward-weight", "--grad-output", "gy.npy", "-i", "x.npy", "--kernel-shape", "3,4",
                                 "--output", "gw.npy", *options)
                limit = gate("f8") * np.linalg.norm(gy) * np.linalg.norm(expected)
                self.assertLessEqual(abs(np.vdot(gy, expected) - np.vdot(np.load("gw.npy"), w)), limit)
                if not constant:
                    self.run_program("layer", "backward-data", "--grad-output", "gy.npy", "-w", "w.npy", "--input-shape",
                                     "2,3,9,8", "--output", "gx.npy", *options)
                    self.assertLessEqual(abs(np.vdot(gy, expected) - np.vdot(np.load("gx.npy"), x)), limit)

    def test_byte_orders_and_fortran(self):
        x, w = self.noise(1, 1, 6, 6), self.noise(1, 1, 3, 3)
        self.save(x=x.astype(">f4"), w=np.asfortranarray(w), ones=np.asfortranarray(np.ones((4, 1, 1, 1), "f4")))
        self.fails("layer", "forward", "--input", "x.npy", "--weight", "w.npy", "--output", "y.npy", says=("w.npy", "Fortran"))
        self.run_program("layer", "forward", "--input", "x.npy", "--weight", "ones.npy", "--output", "y.npy")
        self.close(np.load("y.npy"), np.repeat(x, 4, 1))

    def test_types_that_are_converted(self):
        """Halves and integers of up to 2 bytes are f4, wider integers f8."""
        x, w = self.random.integers(0, 100, (2, 3, 9, 8)), self.random.integers(-8, 8, (4, 3, 3, 3))
        expected = forward(x, w, (1, 1), ((0, 0), (0, 0)), (1, 1), 1)
        for types, result in ((("f2", "i1"), "f4"), (("u1", ">i2"), "f4"), (("u2", ">f4"), "f4"), (("i4", "f8"), "f8"),
                              ((">u4", "i8"), "f8"), (("u8", ">i4"), "f8")):
            self.save(x=x.astype(types[0]), w=w.astype(types[1]))
            with self.subTest(types=types):
                done = self.run_program("layer", "forward", "-i", "x.npy", "-w", "w.npy", "--engine", "direct", "--json",
                                        "--output", "y.npy")
                y = np.load("y.npy")
                self.assertEqual(y.dtype, result)
                said = schemas.load(done.stdout)
                self.assertEqual((said["engine"], said["shape"]), ("cpu/direct", list(y.shape)))
                self.assertEqual(said["type"], {"f4": "f32", "f8": "f64"}[result])
                self.assertTrue(np.array_equal(y, expected))  # sums of integers below 2^24

    def test_bad_arrays(self):
        self.save(x=self.noise(1, 4, 9, 9), w=self.noise(2, 4, 3, 3), b=self.noise(2), wide=self.noise(2, 4, 3, 3, dtype="f8"),
                  flat=self.noise(9), three=self.noise(2, 3, 3, 3), big=self.noise(2, 4, 12, 3), line=self.noise(2, 4, 3),
                  c=self.noise(1, 4, 9, 9).astype("c8"), empty=self.noise(0, 4, 9, 9), hollow=self.noise(2, 4, 3, 0),
                  gy=self.noise(1, 2, 7, 6), b3=self.noise(3), six=self.noise(1, 1, 1, 1, 1, 1))
        self.write("cut.npy", self.read("x.npy")[:-1])
        self.write("text.npy", b"hello")

        def bad(x, w, *says, more=(), rc=1):
            self.fails("layer", "forward", "--input", x, "--weight", w, "--output", "y.npy", *more, says=says, rc=rc)

        bad("x.npy", "wide.npy", "x.npy is f4", "wide.npy is f8")
        bad("flat.npy", "w.npy", "flat.npy", "1 dimensions")
        bad("x.npy", "line.npy", "line.npy", "array of 3 dimensions, but x.npy has 4")
        bad("x.npy", "three.npy", "three.npy has 3", "x.npy has 4")
        bad("x.npy", "w.npy", "4 input channels in each of 2 groups", "x.npy has 4", more=("--groups", 2))
        bad("x.npy", "big.npy", "axis 0 leaves no output")
        bad("c.npy", "w.npy", "c.npy", "complex numbers; layers compute real ones")
        np.save("i.npy", np.zeros((1, 4, 9, 9), "i4"))
        bad("i.npy", "w.npy", "i.npy is f8, but w.npy is f4; save one of them as x.astype('f8')")
        bad("empty.npy", "w.npy", "empty.npy", "dimension 0 is 0")
        bad("x.npy", "hollow.npy", "hollow.npy", "dimension 3 is 0")
        bad("six.npy", "w.npy", "six.npy", "5 dimensions")
        bad("cut.npy", "w.npy", "cut.npy", "1295", "1296")
        bad("text.npy", "w.npy", "text.npy")
        bad("none.npy", "w.npy", "none.npy")
        bad("x.npy", "w.npy", "b3.npy", "2 numbers", more=("--bias", "b3.npy"))
        bad("x.npy", "w.npy", "--stride 1,2,3", "3 numbers for 2 axes", more=("--stride", "1,2,3"))
        bad("x.npy", "w.npy", "--stride 0", more=("--stride", "0"))
        bad("x.npy", "w.npy", "--dilation 1,x", more=("--dilation", "1,x"))
        bad("x.npy", "w.npy", "--pad 1,2,3", "for 2 axes", more=("--pad", "1,2,3"))
        bad("x.npy", "w.npy", "--boundary mirror: must be edge", more=("--boundary", "mirror"))
        bad("x.npy", "w.npy", "--pad 9", "at most 8 with this --boundary", more=("--pad", "9", "--boundary", "reflect"), rc=2)
        bad("x.npy", "w.npy", "workspace", more=("--workspace-limit", 100))
        bad("x.npy", "w.npy", '--device "gpu": no such device', more=("--device", "gpu"))
        self.fails("layer", "forward", "--input", "x.npy", "--weight", "w.npy", "--output", "x.npy", says="x.npy")
        self.fails("layer", "backward-weight", "--input", "x.npy", "--grad-output", "gy.npy", "--kernel-shape", 3, "--output",
                   "gw.npy", says=("gy.npy: shape 1,2,7,6", "1,2,7,7"))
        self.fails("layer", "backward-data", "--weight", "w.npy", "--grad-output", "gy.npy", "--input-shape", "1,4,9",
                   "--output", "gx.npy", says=("--input-shape", "3 numbers"))
        self.fails("layer", "forward", "--input", "x.npy", "--weight", "w.npy", "--output", "no/such/y.npy", says="no/such")

    def test_usage(self):
        for arguments, says in [
            (("sideways",), "sideways"),
            ((), "needs forward"),
            (("forward", "--weight", "w.npy", "--output", "y.npy"), "needs --input"),
            (("forward", "--input", "x.npy", "--weight", "w.npy"), "needs --output"),
            (("backward-data", "--input", "x.npy"), "does not take --input"),
            (("backward-weight", "--weight", "x.npy", "--input", "x.npy"), "does not take --weight"),
            (("backward-data", "--grad-output", "g.npy", "--weight", "w.npy", "--output", "y.npy"), "--input-shape"),
            (("backward-weight", "--grad-output", "g.npy", "--input", "x.npy", "--output", "y.npy"), "--kernel-shape"),
            (("backward-data", "--relu", "--grad-output", "g", "--weight", "w", "--output", "y", "--input-shape", "1"), "--relu"),
            (("forward", "--input", "x", "--weight", "w", "--output", "y", "--engine", "magic"), "magic"),
            (("forward", "--groups", "0"), "--groups"),
            (("forward", "--input", "x", "--weight", "w", "--output", "y.wav"), "--output y.wav: layers write .npy"),
            (("forward", "--input", "x", "--weight", "w", "--output", "y"), "--output y: layers write .npy"),
            (("backward-weight", "--input", "x", "--grad-output", "g", "--kernel-shape", "3", "--output", "w.npy",
              "--grad-bias", "b.txt"), "--grad-bias b.txt: layers write .npy"),
        ]:
            with self.subTest(arguments=arguments):
                self.fails("layer", *arguments, rc=2, says=says)
        self.assertEqual(os.listdir("."), [])


if __name__ == "__main__":
    rig.main()
