#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tests what bench/gpu.sh writes from invented results of a device: figures, floors, verdicts, and when nothing is
written. Tests the parts of torch_gpu.py that need no PyTorch. TAP.
Usage: test_gpu_report.py ROOT BENCH_GPU (built for the stand-in)
"""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np

ROOT, BENCH = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench/peers")]
import gpu_report  # noqa: E402
import torch_gpu  # noqa: E402

DEVICE = "device cuda:0   NVIDIA H200, compute capability 9.0, 132 processors, 143771 MiB"
HEAD = torch_gpu.HEAD + "\n"
CASES = """case,extra,kind,direction,type,batch,in,out,groups,kernel,size,pad,stride,dilation,lags,block,items
dieleman-4-forward,0,layer,forward,f32,128,128,128,1,8x8,16x16,0:0x0:0,1x1,1x1,0,0,1000000
thesis-4.6-r15-n200-forward,0,layer,forward,f32,200,96,256,1,15x15,55x55,0:0x0:0,1x1,1x1,0,0,2000000
overlap-save-2M-c32-t257,0,signal,forward,cf32,1,1,32,1,257,2097152,0:0,1,1,0,0,2097152
stream-c128-t96000-b64,0,stream,forward,f32,1,128,128,128,96000,1376000,0:0,1,1,0,64,163840000
"""
OURS_ROWS = """dieleman-4-forward,cuda/tiles,1,0.5,0.010,,4096,1e-07
dieleman-4-forward,auto,1,0.5,0.010,,4096,1e-07
thesis-4.6-r15-n200-forward,auto,1,1,0.010,,4096,1e-07
overlap-save-2M-c32-t257,auto,1,0.2,0.020,,0,2e-07
stream-c128-t96000-b64,auto,1,0.01,0.020,1.2,0,2e-07
"""
PEER_ROWS = """dieleman-4-forward,torch-cudnn-tf32-off,1,2,0.010,,0,3e-07
thesis-4.6-r15-n200-forward,torch-cudnn-tf32-off,1,2,0.010,,0,3e-07
"""
RATES = ("rates: launch 2.1e-06 s, host_graph 4e-06 s, graph 8e-06 s, pass 3e-07 s, bytes 3e+12 /s, fma 2.5e+13 /s, "
         "tf32 4; measured")
SOURCE = gpu_report.source_hash(ROOT)
FILES = {
    "source": SOURCE + "\n",
    "device.outcome": DEVICE + "\n",
    "suite.outcome": "suite 545 passed, 0 failed\n",
    "memcheck.outcome": "memcheck passed: 9 programs\n",
    "racecheck.outcome": "racecheck passed: 8 programs; not finished: layers-gpu\n",
    "driver": "NVIDIA H200, 580.0\n",
    "cases.csv": CASES,
    "engines.csv": "engine,state\ncuda/tiles,there\ncuda/blocks,not there\n",
    "rates": RATES + "\n",
    "rows/dieleman.csv": HEAD + OURS_ROWS.split("\n", 2)[0] + "\n",
    "rows/others.csv": HEAD + OURS_ROWS.split("\n", 1)[1],
    "logs/dieleman.log": 'dieleman-4-forward: cuda/blocks left out: options.engine = "cuda/blocks": no such engine\n',
    "torch.csv": HEAD + PEER_ROWS,
    "torch.log": "peer: PyTorch 2.0, cuDNN 9\n",
    # 1001 calls: one of 7 ms is the slowest, p99.9 is the one before it
    "calls/stream-c128-t96000-b64.auto.csv":
        "frame,seconds\n" + "".join(f"{64 * i},{7e-3 if i == 500 else 1e-3 if i == 7 else 2e-4}\n" for i in range(1001)),
}


class Results:
    """A folder of results, some files replaced (None: left out)."""

    def __init__(self, changes=None):
        self.changes = changes or {}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        results, docs = pathlib.Path(self.folder.name, "results"), pathlib.Path(self.folder.name, "docs")
        for folder in ("calls", "rows", "logs"):
            (results / folder).mkdir(parents=True)
        docs.mkdir()
        for name, text in {**FILES, **self.changes}.items():
            if text is not None:
                (results / name).write_text(text)
        return results, docs

    def __exit__(self, *_):
        self.folder.cleanup()


def report(changes=None, older=False):
    """The record and the page of a run with these results; or None and the reason if nothing is written. older: an older
    record exists."""
    with Results(changes) as (results, docs):
        if older:
            (docs / "gpu-verified.json").write_text("{}")
        record = gpu_report.collect(results, ROOT)
        table = results / "measured.h"
        table.write_text((ROOT / gpu_report.TABLE).read_text())
        why_not = gpu_report.write(record, docs, table)
        if "NVIDIA-H200" in table.read_text():
            record["table"] = table.read_text()
        written, page = docs / "gpu-verified.json", docs / "gpu-bench.md"
        assert why_not is None or older or not list(docs.iterdir())
        if why_not:
            return None, why_not
        return {**json.loads(written.read_text()), "table": record.get("table")}, page.read_text()


def floor_of(record, case):
    return next(floor for floor in record["floors"] if floor["case"] == case)


class Report(unittest.TestCase):
    def test_figures(self):
        record, _ = report()
        self.assertAlmostEqual(record["cases"]["dieleman-4-forward"]["cuda/tiles"]["ms"], 0.5)
        self.assertAlmostEqual(record["cases"]["overlap-save-2M-c32-t257"]["auto"]["ms"], 0.2 * 2097152e-6)
        stream = record["cases"]["stream-c128-t96000-b64"]["auto"]
        self.assertAlmostEqual(stream["ms"], 0.01 * 64 * 128 * 1e-6)
        for key, expected in (("p50_ms", 0.2), ("p99_ms", 0.2), ("p999_ms", 1.0), ("max_ms", 7.0)):
            self.assertAlmostEqual(stream[key], expected)

    def test_floors(self):
        record, text = report()
        floor = floor_of(record, "dieleman-4-forward")
        self.assertEqual((floor["measured"], floor["floor_met"], floor["goal_met"]), (4, "yes", "yes"))
        floor = floor_of(record, "thesis-4.6-r15-n200-forward")
        self.assertEqual((floor["measured"], floor["floor_met"], floor["goal_met"]), (2, "no", "no"))
        floor = floor_of(record, "stream-c128-t96000-b64")
        self.assertEqual((floor["floor_met"], floor["goal_met"]), ("yes", "no"))
        self.assertAlmostEqual(floor["measured"], 1.0)
        floor = floor_of(record, "lags-1000-of-2p30")
        self.assertEqual((floor["measured"], floor["floor_met"]), (None, "not measured"))
        self.assertIn("| 3x | 8x | 2 ms | 4 ms | 2x | **no** | **no** |", text)
        self.assertIn("| not measured | not measured |", text)

    def test_rates_replace_those_of_the_same_gpu(self):
        record, text = report()
        self.assertEqual(record["rates"]["bytes"], 3e12)
        self.assertIn("pass 3e-07", text)
        line = ('    {"NVIDIA-H200", {.launch = 2.1e-06, .host_graph = 4e-06, .graph = 8e-06, .pass = 3e-07, .bytes = 3e+12, '
                '.fma = 2.5e+13, .tf32 = 4}},\n')
        self.assertIn("measured_gpus[] = {\n" + line + "};\n", record["table"])
        other = gpu_report.with_rates(record["table"], "NVIDIA-A100", record["rates"])
        self.assertEqual(other.count(".launch"), 2)
        again = gpu_report.with_rates(other, "NVIDIA-H200", {**record["rates"], "launch": 1e-6})
        self.assertEqual(again, other.replace(line, line.replace("2.1e-06", "1e-06")))

    def test_rates_that_were_not_measured(self):
        for rates in (None, RATES.replace("measured", "assumed"), RATES.replace("graph 8e-06 s, ", ""),
                      RATES.replace("bytes 3e+12", "bytes 0"), RATES.replace("bytes 3e+12", "bytes nan")):
            record, text = report({"rates": rates})
            self.assertEqual((record["rates"], record["table"]), ({}, None))
            self.assertIn("rates: not measured", text)

    def test_names_what_is_missing(self):
        record, text = report({"torch.log": "peer: PyTorch: not installed\n", "torch.csv": HEAD})
        self.assertEqual(record["engines"]["cuda/blocks"], "not there")
        self.assertIn("Engines that are not there: cuda/blocks.", text)
        self.assertIn("PyTorch: not installed", text)
        self.assertIn("no such engine (1 cases)", text)
        self.assertEqual(floor_of(record, "dieleman-4-forward")["floor_met"], "not measured")

    def test_says_which_sources(self):
        record, text = report()
        self.assertEqual(record["sources"], gpu_report.source_hash(ROOT))
        self.assertIn("H200", text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "lib/cuda/a.cu")
            path.parent.mkdir(parents=True)
            hashes = set()
            for name, text in (("a.cu", "x"), ("a.cu", "y"), ("b.cu", "y")):
                path.unlink(missing_ok=True)
                path = path.with_name(name)
                path.write_text(text)
                hashes.add(gpu_report.source_hash(pathlib.Path(folder)))
            self.assertEqual(len(hashes), 3)

    def refused(self, because, changes):
        record, why_not = report(changes)
        self.assertIsNone(record)
        self.assertIn(because, why_not)

    def test_nothing_without_a_device(self):
        self.refused("no CUDA device", {"device.outcome": None})
        self.refused("hostdev", {"device.outcome": DEVICE.replace("NVIDIA H200", "hostdev") + "\n"})

    def test_nothing_without_figures(self):
        self.refused("nothing was timed", {name: None for name in FILES if name.endswith(".csv")})

    def test_nothing_of_other_sources(self):
        self.refused("changed", {"source": "0\n"})

    def doubted(self, because, changes):
        record, text = report(changes, older=True)
        self.assertTrue(any(because in line for line in record["doubts"]))
        self.assertIn(because, text[text.index("**Not verified:**"):text.index("- device:")])
        self.assertIn("| 2x | **no** | **no** |", text)

    def test_says_that_the_suite_failed(self):
        for suite in ("544 passed, 1 failed", "0 passed, 0 failed, 3 skipped", "9 passed, 0 failed, not complete"):
            self.doubted(suite, {"suite.outcome": f"suite {suite}\n"})
        self.doubted("not run", {"suite.outcome": None})
        self.doubted("racecheck failed: layers-gpu", {"racecheck.outcome": "racecheck failed: layers-gpu\n"})

    def test_says_what_was_wrong(self):
        wrong = "causal-1K-forward: auto is WRONG: error 1, allowed 1e-6; not timed"
        self.doubted(wrong, {"logs/causal-1K-forward.log": wrong + "\n"})
        self.doubted("took more", {"logs/x.log": "x: bench_gpu took more than 9 s: failed\n"})
        self.doubted("step peers failed", {"peers.failed": "\n"})
        self.assertNotIn("Not verified", report()[1])

    def test_each_engine_has_a_verdict(self):
        wrong = ["causal-1K-forward: cuda/blocks is WRONG: error 1, allowed 1e-6; not timed",
                 "dieleman-4-forward: cuda/blocks is WRONG: error 2, allowed 1e-6; not timed"]
        record, text = report({"logs/x.log": "\n".join(wrong) + "\n",
                               "engines.csv": FILES["engines.csv"] + "cuda/winograd,there\n"})
        self.assertEqual(record["verdicts"], {
            "cuda/tiles": {"verdict": "verified", "cases": 1, "rows": []},
            "cuda/blocks": {"verdict": "failed", "cases": 0, "rows": wrong},
            "cuda/winograd": {"verdict": "not run", "cases": 0, "rows": []},
            "auto": {"verdict": "verified", "cases": 4, "rows": []}})
        self.assertEqual(record["doubts"], wrong)
        self.assertIn("| cuda/blocks | failed | 0 | 2 |", text)

    def test_every_floor_is_of_a_case(self):
        text = subprocess.run([BENCH, "--describe"], capture_output=True, text=True, check=True).stdout
        cases = {line.split(",")[0] for line in text.splitlines() if line.split(",")[1] == "0"}
        for floor in gpu_report.FLOORS:
            self.assertIn(floor[1], cases)

    def test_the_script_says_what_is_missing(self):
        environment = {"PATH": "/usr/bin:/bin", "PARTITA_CUDA_MODULE": "/dev/null"}
        if subprocess.run([str(ROOT / "bench/gpu.sh"), "--why-not"], capture_output=True, env=environment).returncode:
            self.skipTest("there is a device")
        before = sorted(path.name for path in (ROOT / "docs").iterdir())
        run = subprocess.run([str(ROOT / "bench/gpu.sh"), "suite", "report"], capture_output=True, text=True,
                             env=environment)
        self.assertEqual(run.returncode, 77)
        self.assertIn("skipped", run.stdout)
        self.assertEqual(sorted(path.name for path in (ROOT / "docs").iterdir()), before)


class Script(unittest.TestCase):
    """bench/gpu.sh from end to end, in a tree where each program that needs a device is a script with its output."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for name in ("bench/gpu.sh", "bench/peers/torch_gpu.py", "tools/gpu_predict.py", "tools/gpu_report.py",
                     "tools/gpu_suite.py"):
            self.put(name, (ROOT / name).read_text())
        self.put("docs/README", "")
        self.put("build/build.ninja", "")
        self.put("lib/cuda/a.cu", "")
        self.put(gpu_report.TABLE, (ROOT / gpu_report.TABLE).read_text())
        self.put("build/meson-info/meson-info.json", json.dumps({"directories": {"build": "/elsewhere/build"}}))
        self.put("build/meson-info/intro-tests.json", json.dumps([
            {"name": "a-gpu", "cmd": ["/elsewhere/build/tests/a"], "suite": ["partita:gpu"], "timeout": 9,
             "env": {"OF": "gpu", "LD_LIBRARY_PATH": "/elsewhere/build/lib"}},
            {"name": "b", "cmd": ["/elsewhere/build/tests/b"], "env": {}, "suite": ["partita:fast"], "timeout": 9}]))
        self.put("build/tests/a", "#!/bin/sh\n[ $OF:${LD_LIBRARY_PATH#/elsewhere} = gpu:$LD_LIBRARY_PATH ] && echo ok 1; echo ok 2; echo ok 3 \\# SKIP no; echo 1..3")
        self.put("build/bench/bench_gpu", f"""#!/bin/sh
case "$*" in
--describe) cat <<'END'
{CASES}END
;;
--device) echo 'cuda:0   NVIDIA X' ;;
--engines) echo engine,state; echo cuda/tiles,there ;;
--rates) echo '{RATES}' ;;
--list) echo one; echo two ;;
*--tiny*) ;;
*one*) echo "$@" >>runs; cat <<'END'
{HEAD}{OURS_ROWS}END
;;
*) echo "$@" >>runs; cat <<'END'
{HEAD}END
esac
""")
        for name in ("ninja", "meson", "nvidia-smi"):
            self.put(f"bin/{name}", f"#!/bin/sh\necho {name} \"$@\"\n")
        self.put("bin/compute-sanitizer", "#!/bin/sh\n[ \"$5 $6\" = \"--report-api-errors no\" ] || exit 9; shift 8; exec \"$@\"\n")

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_script(self, *steps, **environment):
        return subprocess.run([str(self.root / "bench/gpu.sh"), *steps], capture_output=True, text=True,
                              env={"PATH": f"{self.root}/bin:/usr/bin:/bin", **environment})

    def written(self):
        return sorted(path.name for path in (self.root / "docs").iterdir())

    def doubts(self):
        return json.loads((self.root / "docs/gpu-verified.json").read_text())["doubts"]

    def runs(self):
        """How many times bench_gpu ran a case."""
        return len((self.root / "runs").read_text().splitlines())

    def test_writes(self):
        run = self.run_script()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.written(), ["README", "gpu-bench.md", "gpu-verified.json"])
        record = json.loads((self.root / "docs/gpu-verified.json").read_text())
        self.assertEqual(record["device"], "cuda:0   NVIDIA X")
        self.assertEqual(record["suite"], "2 passed, 0 failed, 1 skipped")
        self.assertEqual(record["compute-sanitizer"], {"memcheck": "passed: 6 programs", "racecheck": "passed: 6 programs"})
        self.assertIn("nvidia-smi", record["driver"])
        self.assertIn("PyTorch", record["peer"])
        self.assertIn('{"NVIDIA-X", {.launch = 2.1e-06, ', (self.root / gpu_report.TABLE).read_text())
        self.assertEqual(self.runs(), 2)

    def test_goes_on(self):
        run = self.run_script("--limit", "600", "bench")
        self.assertEqual(run.returncode, 0, run.stderr)
        (self.root / "build/gpu-results/rows/one.csv").unlink()
        self.assertEqual(self.run_script("--limit", "4", "suite", "sanitizer", "bench", "peers").returncode, 75)
        self.assertEqual(self.runs(), 2)
        self.assertIn("not complete", (self.root / "build/gpu-results/suite.outcome").read_text())
        self.assertEqual(self.run_script("suite", "sanitizer", "bench", "peers", "report").returncode, 0)
        self.assertEqual(self.runs(), 3)

    def test_trial(self):
        run = self.run_script("--quick")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("# Benchmarks on a GPU", run.stdout)
        self.assertEqual(self.written(), ["README"])

    def test_packed(self):
        """Without a build: only the packed programs and Python."""
        (self.root / "build").rename(self.root / "gpu-pack")
        (self.root / "gpu-pack/build.ninja").unlink()
        (self.root / "build").mkdir()
        (self.root / "gpu-pack").rename(self.root / "build/gpu-pack")
        run = self.run_script("suite", "sanitizer", "bench", "peers", "report")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.written(), ["README", "gpu-bench.md", "gpu-verified.json"])

    def test_report_elsewhere(self):
        self.assertEqual(self.run_script("suite", "sanitizer", "bench", "peers").returncode, 0)
        self.put("build/bench/bench_gpu", "#!/bin/sh\necho 'cuda     none'")
        self.assertEqual(self.run_script("bench").returncode, 77)
        self.assertEqual(self.run_script("report").returncode, 0)
        self.assertEqual(self.written(), ["README", "gpu-bench.md", "gpu-verified.json"])

    def test_brings_results_home(self):
        """As an archive, after every case: what was done before a run is cut off is in it."""
        out = self.root / "out"
        out.mkdir()
        text = (self.root / "build/bench/bench_gpu").read_text()
        self.put("build/bench/bench_gpu", text.replace("\n*) ", "\n*two*) kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) ;;\n*) "))
        run = self.run_script("bench", OUT=str(out))
        self.assertNotEqual(run.returncode, 0)
        names = subprocess.run(["tar", "tzf", str(out / "gpu-results.tgz")], capture_output=True, text=True, check=True).stdout
        self.assertIn("gpu-results/rows/one.csv", names)
        self.assertIn("gpu-results/source", names)

    def test_suite_failed(self):
        self.put("build/tests/a", "#!/bin/sh\necho ok 1; echo not ok 2; exit 1")
        run = self.run_script()
        self.assertEqual(run.returncode, 1)
        self.assertIn("not ok 2", run.stderr)
        self.assertIn("the suite gpu did not pass: 1 passed, 1 failed", self.doubts())

    def test_configures_without_cmocka(self):
        for status, tests in ((1, "false"), (0, "true")):
            (self.root / "build/build.ninja").unlink(missing_ok=True)
            self.put("bin/cc", f"#!/bin/sh\nexit {status}\n")
            run = self.run_script("build")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f"-Dtests={tests}", run.stdout)
            self.assertEqual("cmocka not installed" in run.stderr, tests == "false")

    def test_built_without_tests(self):
        self.put("build/meson-info/intro-tests.json", "[]")
        self.assertEqual(self.run_script().returncode, 1)
        self.assertIn("the suite gpu did not pass: not run: built without tests", self.doubts())
        record = json.loads((self.root / "docs/gpu-verified.json").read_text())
        self.assertEqual(record["compute-sanitizer"]["memcheck"], "passed: 5 programs")

    def test_program_crashed(self):
        self.put("build/tests/a", "#!/bin/sh\necho ok 1; kill -9 $$")
        self.assertEqual(self.run_script("suite").returncode, 1)
        self.assertIn("1 passed, 1 failed", (self.root / "build/gpu-results/suite.outcome").read_text())

    def test_sanitizer_failed(self):
        self.put("bin/compute-sanitizer", "#!/bin/sh\ncase \"$*\" in *racecheck*tests/a*) exit 9;; esac\n")
        self.assertEqual(self.run_script().returncode, 1)
        self.assertIn("compute-sanitizer's racecheck failed: a-gpu", self.doubts())
        self.assertEqual((self.root / "build/gpu-results/racecheck.outcome").read_text(), "racecheck failed: a-gpu\n")

    def test_sources_changed(self):
        self.assertEqual(self.run_script("suite", "bench", "peers").returncode, 0)
        self.put("lib/cuda/a.cu", "// changed")
        self.assertEqual(self.run_script("report").returncode, 1)
        self.assertEqual(self.written(), ["README"])
        self.assertEqual(self.run_script("bench").returncode, 0)  # anew
        self.assertEqual(self.runs(), 4)
        self.assertEqual(len(list((self.root / "build").glob("gpu-results-of-*/rows/one.csv"))), 1)

    def test_case_crashed(self):
        self.put("build/bench/bench_gpu", (self.root / "build/bench/bench_gpu").read_text().replace("*one*)", "*two*) exit 9;;\n*one*)"))
        self.assertEqual(self.run_script().returncode, 1)
        self.assertIn("two: bench_gpu ended with status 9: failed", self.doubts())
        self.assertIn("- two: bench_gpu ended with status 9: failed", (self.root / "docs/gpu-bench.md").read_text())


class Array(np.ndarray):
    """A NumPy array with the methods of a tensor that it lacks."""

    def flip(self, axis):
        return np.flip(self, axis)


def wrapped(function):
    return lambda *arguments, **options: function(*arguments, **options).view(Array)


TORCH = types.SimpleNamespace(fft=types.SimpleNamespace(
    **{name: wrapped(getattr(np.fft, name)) for name in ("fft", "ifft", "rfft", "irfft")}))


class Peer(unittest.TestCase):
    def cases(self):
        with Results() as (results, _):
            text = subprocess.run([BENCH, "--describe"], capture_output=True, text=True, check=True).stdout
            (results / "all.csv").write_text(text)
            return torch_gpu.read_cases(results / "all.csv", False), torch_gpu.read_cases(results / "all.csv", True)

    def test_reads_what_bench_gpu_prints(self):
        cases, quick = self.cases()
        by_name = {case.name: case for case in cases}
        self.assertTrue(by_name["dieleman-1-n64-forward"].is_layer)
        self.assertTrue(by_name["depthwise-31-c384-n64-backward-weight"].is_layer)
        self.assertTrue(by_name["causal-1K-forward"].is_causal_sequences)
        self.assertFalse(by_name["causal-1K-forward"].is_layer)
        self.assertFalse(by_name["overlap-save-2M-c32-t257"].is_layer)
        self.assertFalse(by_name["stream-c128-t96000-b64"].is_layer)
        for case, small in zip(cases, quick):
            self.assertEqual(case.items * small.batch, small.items * case.batch)

    def test_causal_lines(self):
        random = np.random.default_rng(1)
        cases, _ = self.cases()
        n, channels, batch = 9, 2, 3
        x, gy = (random.standard_normal((batch, channels, n)).view(Array) for _ in range(2))
        w = random.standard_normal((channels, 1, n)).view(Array)
        y, gx, gw = np.zeros_like(x), np.zeros_like(x), np.zeros_like(w)
        for p in range(n):  # y[p] = sum over r of w[r] x[p + r - (n - 1)]
            for r in range(n):
                at = p + r - (n - 1)
                if at >= 0:
                    y[:, :, p] += w[:, 0, r] * x[:, :, at]
                    gx[:, :, at] += w[:, 0, r] * gy[:, :, p]
                    gw[:, 0, r] += (gy[:, :, p] * x[:, :, at]).sum(0)
        expected = {"forward": y, "backward-data": gx, "backward-weight": gw}
        for case in cases:
            if case.name.startswith("causal-1K"):
                case.size, case.kernel, case.pads = [n], [n], [(n - 1, 0)]
                for name in torch_gpu.contenders(case):
                    got = torch_gpu.make_call(TORCH, case, name, (x, w, gy))()
                    np.testing.assert_allclose(np.asarray(got), expected[case.direction], atol=1e-12)

    def test_row(self):
        case = self.cases()[0][0]
        case.items = 1000
        row = torch_gpu.csv_row(case, "peer", [2e-6, 1e-6, 4e-6], 7, 1e-7)
        self.assertEqual(row, f"{case.name},peer,1,2,1.500,,7,1e-07")
        self.assertEqual(len(row.split(",")), len(torch_gpu.HEAD.split(",")))


def main():
    tests = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(tests_of) for tests_of in (Report, Script, Peer))
    n_done = n_failed = 0
    for group in tests:
        for test in group:
            result = unittest.TestResult()
            with contextlib.redirect_stdout(io.StringIO()):
                test.run(result)
            n_done += 1
            n_failed += not result.wasSuccessful()
            name = test.id().split(".test_")[-1].replace("_", "-")
            print("ok" if result.wasSuccessful() else "not ok", n_done, "-", name)
            for _, text in result.failures + result.errors:
                print("\n".join("# " + text_line for text_line in text.splitlines()))
    print(f"1..{n_done}")
    sys.exit(n_failed > 0)


main()
