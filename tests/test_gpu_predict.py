#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests tools/gpu_predict.py: how a prediction is divided into what bounds it, the page, what gpu_report.py says of the
times of a device, and counts of machine code. Every case of bench_gpu has a prediction. TAP.
Usage: test_gpu_predict.py ROOT BENCH_GPU_PLANS gpu_predict|gpu_predict-current, on the stand-in; `current` checks instead
that the page has today's predictions.
"""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT, PROGRAM, NAME = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path[:0] = [str(ROOT / "tools")]
import gpu_predict  # noqa: E402
import gpu_report  # noqa: E402

# A planner whose prediction is known: 4 ms that issue bounds, 2 that memory bounds, 1 that neither does. Where the clock is
# higher, the second case has another plan.
PLANNER = """#!/bin/sh
awk -v clock=$HOSTDEV_CLOCK -v memory=$HOSTDEV_MEMORY_CLOCK 'BEGIN {
    print "case,engine,summary,transform,hop,workspace,arrays,seconds"
    printf "one,cuda/tiles:gauss,32x32x1,32,8,0,3350000,%.17g\\n", 4e-3 * @CLOCK@ / clock + 2e-3 * @MEMORY@ / memory + 1e-3
    printf "two,cuda/overlap-save,,%d,8,0,0,%.17g\\n", (clock > @CLOCK@ ? 64 : 32), 1e-3 * @CLOCK@ / clock
}'
"""
DEVICE = "cuda:0   NVIDIA H200, compute capability 9.0, 132 processors, 143771 MiB"


def prediction(seconds, arrays=0.0, engine="cuda/tiles:gauss"):
    return gpu_predict.Prediction(engine, "", arrays, seconds, seconds / 2, seconds / 4)


# On an H200 one takes 2 ms and its arrays 1 ms, two takes 5 ms.
PAGE = gpu_predict.CASES + "\n\n" + gpu_predict.cases_table({
    "H100": {"one": prediction(3e-3, arrays=4.8e9), "two": prediction(6e-3, engine="cuda/gemm:panels")},
    "H200": {"one": prediction(2e-3, arrays=4.8e9), "two": prediction(5e-3, engine="cuda/gemm:panels")}})


def times(**milliseconds):
    return {case: {name: {"ms": ms} for name, ms in contenders.items()} for case, contenders in milliseconds.items()}


def states(measured, line=DEVICE):
    return {of["case"]: of["state"] for of in gpu_predict.compare(PAGE, line, measured)}


class Predictions(unittest.TestCase):
    def test_divides_a_time(self):
        device = gpu_predict.DEVICES["H100"]
        usual = device.environment()
        script = PLANNER.replace("@CLOCK@", usual["HOSTDEV_CLOCK"]).replace("@MEMORY@", usual["HOSTDEV_MEMORY_CLOCK"])
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "plans")
            program.write_text(script)
            program.chmod(0o755)
            found = gpu_predict.predict(program, device)
        # Times are printed with 17 digits; a ten-thousandth of them keeps 12.
        for value, expected in ((found["one"].issue, 4e-3), (found["one"].memory, 2e-3), (found["one"].rest, 1e-3)):
            self.assertAlmostEqual(value, expected, delta=1e-9)
        self.assertEqual((found["one"].choice, found["two"].choice), ("32x32x1", "fft 32"))
        self.assertEqual(found["two"].issue, 0)  # of another plan: not known

    def test_figures_of_devices(self):
        for device in gpu_predict.DEVICES.values():
            figures = {name: int(value) for name, value in device.environment().items()}
            flops = 2e3 * gpu_predict.LANES * figures["HOSTDEV_PROCESSORS"] * figures["HOSTDEV_CLOCK"]
            self.assertAlmostEqual(flops / device.flops, 1, delta=1e-6)
            self.assertAlmostEqual(2e3 * figures["HOSTDEV_MEMORY_CLOCK"] * figures["HOSTDEV_BUS"] / 8 / device.bytes, 1, delta=1e-6)

    def test_reads_its_page(self):
        rows = gpu_predict.read_page(PAGE, "H200")
        self.assertEqual(rows["one"], {"engine": "cuda/tiles:gauss", "predicted": 2, "arrays": rows["one"]["arrays"]})
        self.assertAlmostEqual(rows["one"]["arrays"], 1, delta=0.01)  # three digits
        self.assertEqual(rows["two"], {"engine": "cuda/gemm:panels", "predicted": 5, "arrays": 0})
        self.assertEqual(gpu_predict.read_page(PAGE, "H100")["one"]["predicted"], 3)

    def test_judges(self):
        self.assertEqual(states(times(one={"auto": 2.9}, two={"auto": 3.4})), {"one": "as predicted", "two": "as predicted"})
        self.assertEqual(states(times(one={"auto": 3.1}, two={"auto": 3.2})), {"one": "slower", "two": "faster"})
        self.assertEqual(states(times(one={"auto": 0.9})), {"one": "shorter than moving the arrays once", "two": "not measured"})
        self.assertEqual(states({}, DEVICE.replace("H200", "H100 80GB HBM3"))["one"], "not measured")

    def test_judges_the_predicted_engine(self):
        of = {row["case"]: row for row in gpu_predict.compare(PAGE, DEVICE, times(
            one={"auto": 9, "cuda/tiles:gauss": 2, "cuda/tiles": 8}, two={"auto": 9, "cuda/gemm": 5}))}
        self.assertEqual((of["one"]["row"], of["one"]["ratio"]), ("cuda/tiles:gauss", 1))
        self.assertEqual((of["two"]["row"], of["two"]["ratio"]), ("cuda/gemm", 1))

    def test_no_predictions_of_other_devices(self):
        for line in (DEVICE.replace("H200", "A100"), DEVICE.replace("132", "114"), ""):
            self.assertEqual(gpu_predict.compare(PAGE, line, times(one={"auto": 1})), [])

    def test_report_names_those_that_fail(self):
        measured = times(one={"auto": 6.5}, two={"auto": 5})
        text = gpu_report.predictions_text({"predictions": gpu_predict.compare(PAGE, DEVICE, measured)})
        self.assertIn("Of 2 times", text)
        self.assertIn("2 were measured, of which 1 are within a factor of 1.5 and 1 are not", text)
        self.assertIn("| `one` | cuda/tiles:gauss | auto | 2 ms | 6.5 ms | 3.25x | **slower** |", text)
        self.assertIn("| `two` | cuda/gemm:panels | auto | 5 ms | 5 ms | 1x | as predicted |", text)
        self.assertLess(text.index("`one`"), text.index("`two`"))
        self.assertIn("none for this device", gpu_report.predictions_text({"predictions": []}))

    def test_every_case_has_a_prediction(self):
        text = (ROOT / gpu_predict.PAGE).read_text()
        plans = gpu_predict.read_plans(PROGRAM, gpu_predict.DEVICES["H100"].environment())
        self.assertTrue(all(float(row["seconds"]) > 0 for row in plans.values()))
        for name in gpu_predict.DEVICES:
            self.assertEqual(list(gpu_predict.read_page(text, name)), list(plans), "tools/gpu_predict.py renews the page")


# As nvdisasm prints it: a loop of four instructions, two of them arithmetic, within another one.
SASS = """
	.section	.nv.info,"",@"SHT_CUDA_INFO"
	//----- nvinfo : EIATTR_REGCOUNT
	.align		4
        /*0000*/ 	.byte	0x04, 0x2f
        /*0002*/ 	.short	(.L_1 - .L_0)
.L_0:
        /*0004*/ 	.word	index@(_Z14some_kernelIfEvv)
        /*0008*/ 	.word	0x00000079

	//----- nvinfo : EIATTR_FRAME_SIZE
        /*0014*/ 	.word	index@(_Z14some_kernelIfEvv)
        /*0018*/ 	.word	0x00000010

	.section	.nv.info._Z14some_kernelIfEvv,"",@"SHT_CUDA_INFO"
	.sectionflags	@""
	//----- nvinfo : EIATTR_MAX_THREADS
	.align		4
        /*0070*/ 	.byte	0x04, 0x05
        /*0072*/ 	.short	(.L_31 - .L_30)
.L_30:
        /*0074*/ 	.word	0x00000100
        /*0078*/ 	.word	0x00000001

	.section	.text._Z14some_kernelIfEvv,"ax",@progbits
	.align	128
.L_x_0:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E R2, [R4] ;
        /*0020*/                   FFMA R3, R2, R2, R3 ;
        /*0030*/                   FADD R5, R2, R2 ;
        /*0040*/              @!P0 BRA `(.L_x_1) ;
        /*0050*/              @!P1 BRA `(.L_x_0) ;
        /*0060*/                   EXIT ;
"""


class Kernels(unittest.TestCase):
    def test_counts(self):
        (name, kernel), = gpu_predict.read_kernels(SASS).items()
        self.assertIn(gpu_predict.mangled("some_kernel<float>"), name)
        self.assertEqual(kernel, gpu_predict.Kernel(121, 256, 4, 2, 0))

    def test_resident_warps(self):
        """Registers are allocated by eight a thread; 2048 threads and 32 blocks are the most."""
        for registers, threads, warps in ((128, 256, 16), (121, 256, 16), (129, 256, 8), (64, 256, 32), (32, 256, 64), (16, 32, 32),
                                          (255, 256, 8), (124, 512, 16), (80, 256, 24), (81, 32, 23)):
            self.assertEqual(gpu_predict.Kernel(registers, threads, 1, 0, 0).resident, warps)

    def test_names(self):
        self.assertEqual(gpu_predict.mangled("product_kernel<complex_of<float>, 4, false>"), "product_kernelI10complex_ofIfELi4ELb0E")
        self.assertEqual(gpu_predict.mangled("tiles_kernel<float, 6, 6>"), "tiles_kernelIfLi6ELi6E")


class Current(unittest.TestCase):
    @unittest.skipIf(os.uname().machine != "x86_64", "the host's part of streams is that of x86")
    def test_page_is_current(self):
        predictions = {name: gpu_predict.predict(PROGRAM, device) for name, device in gpu_predict.DEVICES.items()}
        self.assertIn(gpu_predict.cases_table(predictions), (ROOT / gpu_predict.PAGE).read_text(),
                      "tools/gpu_predict.py renews the page")


def main():
    groups = (Current,) if NAME.endswith("current") else (Predictions, Kernels)
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
