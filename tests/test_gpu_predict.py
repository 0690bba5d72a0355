#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests tools/gpu_predict.py: the figures of devices, and what gpu_report.py says of the times of a device. Every case of
bench_gpu has a prediction. TAP.
Usage: test_gpu_predict.py ROOT BENCH_GPU_PLANS gpu_predict|gpu_predict-current, on the stand-in; `current` checks instead
that the file has today's predictions.
"""
import contextlib
import csv
import io
import os
import pathlib
import sys
import unittest

ROOT, PROGRAM, NAME = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path[:0] = [str(ROOT / "tools")]
import gpu_predict  # noqa: E402
import gpu_report  # noqa: E402

TEXT = (ROOT / gpu_predict.PREDICTIONS).read_text()
RENEW = "tools/gpu_predict.py renews the file"

DEVICE = "cuda:0   NVIDIA H200, compute capability 9.0, 132 processors, 143771 MiB"
# On an H200 one takes 2 ms and its arrays 1 ms, two takes 5 ms.
PREDICTIONS = """device,case,engine,plan,arrays_ms,ms
H100,one,cuda/tiles:gauss,32x32x1,1.43,3
H100,two,cuda/gemm:panels,,0,6
H200,one,cuda/tiles:gauss,32x32x1,1,2
H200,two,cuda/gemm:panels,,0,5
"""


def times(**milliseconds):
    return {case: {name: {"ms": ms} for name, ms in contenders.items()} for case, contenders in milliseconds.items()}


def states(measured, line=DEVICE):
    return {of["case"]: of["state"] for of in gpu_predict.compare(PREDICTIONS, line, measured)}


class Predictions(unittest.TestCase):
    def test_figures_of_devices(self):
        for name, (processors, flops, rate, bus) in gpu_predict.DEVICES.items():
            figures = {name: int(value) for name, value in gpu_predict.environment(name).items()}
            clocks = 2e3 * gpu_predict.LANES * processors * figures["HOSTDEV_CLOCK"]
            self.assertAlmostEqual(clocks / flops, 1, delta=1e-6)
            self.assertAlmostEqual(2e3 * figures["HOSTDEV_MEMORY_CLOCK"] * bus / 8 / rate, 1, delta=1e-6)

    def test_judges(self):
        self.assertEqual(states(times(one={"auto": 2.9}, two={"auto": 3.4})), {"one": "as predicted", "two": "as predicted"})
        self.assertEqual(states(times(one={"auto": 3.1}, two={"auto": 3.2})), {"one": "slower", "two": "faster"})
        self.assertEqual(states(times(one={"auto": 0.9})), {"one": "shorter than moving the arrays once", "two": "not measured"})
        self.assertEqual(states({}, DEVICE.replace("H200", "H100 80GB HBM3"))["one"], "not measured")

    def test_judges_the_predicted_engine(self):
        of = {row["case"]: row for row in gpu_predict.compare(PREDICTIONS, DEVICE, times(
            one={"auto": 9, "cuda/tiles:gauss": 2, "cuda/tiles": 8}, two={"auto": 9, "cuda/gemm": 5}))}
        self.assertEqual((of["one"]["row"], of["one"]["ratio"]), ("cuda/tiles:gauss", 1))
        self.assertEqual((of["two"]["row"], of["two"]["ratio"]), ("cuda/gemm", 1))

    def test_no_predictions_of_other_devices(self):
        for line in (DEVICE.replace("H200", "A100"), DEVICE.replace("132", "114"), ""):
            self.assertEqual(gpu_predict.compare(PREDICTIONS, line, times(one={"auto": 1})), [])

    def test_report_names_those_that_fail(self):
        measured = times(one={"auto": 6.5}, two={"auto": 5})
        text = gpu_report.predictions_text({"predictions": gpu_predict.compare(PREDICTIONS, DEVICE, measured)})
        self.assertIn("Of 2 times", text)
        self.assertIn("2 were measured, of which 1 are within a factor of 1.5 and 1 are not", text)
        self.assertIn("| `one` | cuda/tiles:gauss | auto | 2 ms | 6.5 ms | 3.25x | **slower** |", text)
        self.assertIn("| `two` | cuda/gemm:panels | auto | 5 ms | 5 ms | 1x | as predicted |", text)
        self.assertLess(text.index("`one`"), text.index("`two`"))
        self.assertIn("none for this device", gpu_report.predictions_text({"predictions": []}))

    def test_every_case_has_a_prediction(self):
        rows = list(csv.DictReader(TEXT.splitlines()))
        self.assertTrue(all(float(row["ms"]) > 0 for row in rows))
        for name in gpu_predict.DEVICES:
            self.assertEqual([row["case"] for row in rows if row["device"] == name],
                             list(gpu_predict.read_plans(PROGRAM, name)), RENEW)


class Current(unittest.TestCase):
    @unittest.skipIf(os.uname().machine != "x86_64", "the host's part of streams is that of x86")
    def test_file_is_current(self):
        self.assertEqual(gpu_predict.predictions(PROGRAM), TEXT, RENEW)


def main():
    groups = (Current,) if NAME.endswith("current") else (Predictions,)
    n_done = n_failed = 0
    for group in groups:
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(group):
            result = unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            n_done += 1
            n_failed += not result.wasSuccessful()
            print("ok" if result.wasSuccessful() else "not ok", n_done, "-", test.id().split(".test_")[-1].replace("_", "-"))
            for _, text in result.failures + result.errors:
                print("\n".join("# " + line for line in text.splitlines()))
    print(f"1..{n_done}")
    sys.exit(n_failed > 0)


main()
