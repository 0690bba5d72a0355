#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the suite gpu of a build, program by program. It reads the files that meson wrote when the build was configured,
so that the machine with the GPU needs no meson or ninja.

    gpu_suite.py BUILD RESULTS STEP...
    gpu_suite.py --programs BUILD               prints the names of the suite's programs

Steps: suite counts the TAP lines of all programs: "N passed, N failed[, N skipped]". memcheck and racecheck run them
shortened under that tool of compute-sanitizer, with bench_gpu's small cases, which use every engine: "passed: N programs"
or "failed: NAMES", followed by the programs that were not finished in time.

RESULTS/STEP.outcome has the step and its line; RESULTS/STEP stores the output and the status of each program, and those that
are there are not repeated. GPU_UNTIL (seconds since the epoch) is when everything must have ended; programs that have not
are left for the next run. Status: 0, 1 if anything failed, 75 if something is left.
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

JOBS = 4  # a program is as busy on the host as on the device
TOOL_SECONDS = 200  # limit of one program; compute-sanitizer makes some a hundred times slower
TINY = ("dieleman-*", "thesis-4.6-r31-n200-*", "depthwise-31-c384-*", "causal-1*", "[los]*")
UNTIL = float(os.environ.get("GPU_UNTIL", "inf"))
TO_BE_CONTINUED = 75


@dataclasses.dataclass
class Program:
    name: str
    command: list
    environment: dict
    seconds: int  # limit
    speaks_tap: bool = True
    status: object = None  # of its end; "timeout" if it took too long; None if it is left for the next run
    text: str = ""  # its output

    def counts(self):
        """[passed, failed, skipped]; a program that failed or ended early without a failed line counts as one failure."""
        lines = re.findall(r"^(not ok|ok|1\.\.0)\b(.*)$", self.text, re.M)
        skipped = sum(word == "1..0" or (word == "ok" and "# SKIP" in rest) for word, rest in lines)
        failed = sum(word == "not ok" for word, _ in lines)
        plan = re.search(r"^1\.\.(\d+)", self.text, re.M)
        complete = plan and int(plan.group(1)) == sum(word != "1..0" for word, _ in lines)
        return [len(lines) - skipped - failed, failed + (failed == 0 and (self.status != 0 or not complete)), skipped]

    def is_good(self):
        return self.status == 0 and (not self.speaks_tap or self.counts()[1] == 0)


def suite(build):
    """The programs of the build in this folder, wherever it was configured."""
    folder = build / "meson-info"
    before = json.loads((folder / "meson-info.json").read_text())["directories"]["build"]
    for test in json.loads((folder / "intro-tests.json").read_text()):
        if any(name.endswith(":gpu") or name == "gpu" for name in test["suite"]):
            command = [re.sub(f"^{re.escape(before)}(?=/|$)", str(build), word) for word in test["cmd"]]
            # Programs know where their libraries are; meson's paths hold only where the build was configured.
            test["env"].pop("LD_LIBRARY_PATH", None)
            yield Program(test["name"].split(" / ")[-1], command, test["env"], test["timeout"])


def under(tool, build, results):
    """The shortened suite and the small cases, under compute-sanitizer."""
    small = [Program(f"bench_gpu {cases}", [str(build / "bench/bench_gpu"), "--tiny", "--quick", "--case", cases], {}, 0, False)
             for cases in TINY]
    for program in small + list(suite(build)):
        log = results / (re.sub(r"\W+", "-", program.name) + ".%p.log")
        # Errors that the runtime returns are no findings: tests provoke some.
        program.command[:0] = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                               "--report-api-errors", "no", "--log-file", str(log)]
        program.environment["PARTITA_TEST_BRIEF"] = "1"
        program.seconds = TOOL_SECONDS
        yield program


def run(program, results):
    path = results / (re.sub(r"\W+", "-", program.name) + ".json")
    if path.exists():
        program.status, program.text = json.loads(path.read_text())
        return
    left = UNTIL - time.time()
    if left < 5:
        return
    # A session of its own, so that the end of a tool also ends the program under it.
    process = subprocess.Popen(program.command, env={**os.environ, "OMP_WAIT_POLICY": "passive", **program.environment},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        text, _ = process.communicate(timeout=min(left, program.seconds))
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        status = "timeout" if left >= program.seconds else None
    if status is not None:
        program.status, program.text = status, text
        path.write_text(json.dumps([status, text]))


def suite_line(programs):
    """The line of the step suite, and whether it failed."""
    if not programs:
        return "not run: built without tests", True
    ended = [program.counts() for program in programs if program.status is not None]
    passed, failed, skipped = (sum(column) for column in zip(*ended, [0, 0, 0]))
    complete = len(ended) == len(programs)
    return (f"{passed} passed, {failed} failed" + f", {skipped} skipped" * bool(skipped) + ", not complete" * (not complete),
            failed > 0 or (complete and not passed))


def tool_line(programs):
    """The line of a step under compute-sanitizer, and whether it failed."""
    late = [program.name for program in programs if program.status in (None, "timeout")]
    bad = [program.name for program in programs if program.name not in late and not program.is_good()]
    good = len(programs) - len(late) - len(bad)
    return ((f"failed: {', '.join(bad)}" if bad else f"passed: {good} programs") + f"; not finished: {', '.join(late)}" * bool(late),
            bool(bad) or (good == 0 and all(program.status is not None for program in programs)))


def run_step(step, build, results):
    """The line of a step and its status."""
    if step != "suite" and not shutil.which("compute-sanitizer"):
        return "not run: compute-sanitizer not installed", 0
    programs = list(suite(build) if step == "suite" else under(step, build, results))
    results.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(lambda program: run(program, results), programs))
    for program in programs:
        if program.status is not None and not program.is_good():
            print(f"{program.name}: status {program.status}\n{program.text}", file=sys.stderr)
    line, failed = (suite_line if step == "suite" else tool_line)(programs)
    left = [program.name for program in programs if program.status is None]
    if left:
        print(f"{step} is left for the next run: {', '.join(left)}", file=sys.stderr)
    return line, 1 if failed else TO_BE_CONTINUED if left else 0


def main():
    build = pathlib.Path(sys.argv[2 if sys.argv[1] == "--programs" else 1]).resolve()
    if sys.argv[1] == "--programs":
        print("\n".join(sorted({str(pathlib.Path(program.command[0]).relative_to(build)) for program in suite(build)})))
        return 0
    results, statuses = pathlib.Path(sys.argv[2]).resolve(), []
    for step in sys.argv[3:]:
        line, status = run_step(step, build, results / step)
        (results / f"{step}.outcome").write_text(f"{step} {line}\n")
        print(line if step == "suite" else f"{step} {line}")  # .ci/run reads the line of the suite
        statuses += [status] * (status > 0)
    return min(statuses, default=0)  # a failure comes before what is left


if __name__ == "__main__":
    sys.exit(main())
