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
are left for the next run. Status: 0, 1 if anything failed, 75 if something is left. The last line is that of the suite.
"""
import concurrent.futures
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
STEPS = ("suite", "memcheck", "racecheck")


class Program:
    def __init__(self, name, command, environment, seconds, speaks_tap=True):
        self.name, self.command, self.seconds, self.speaks_tap = name, command, seconds, speaks_tap
        # Programs know where their libraries are; meson's paths hold only where the build was
        # configured.
        own_environment = {key: value for key, value in environment.items() if key != "LD_LIBRARY_PATH"}
        self.environment = {**os.environ, "OMP_WAIT_POLICY": "passive", **own_environment}


def suite(build):
    """The programs of the build in this folder, wherever it was configured."""
    folder = build / "meson-info"
    before = json.loads((folder / "meson-info.json").read_text())["directories"]["build"]
    for test in json.loads((folder / "intro-tests.json").read_text()):
        if any(name.endswith(":gpu") or name == "gpu" for name in test["suite"]):
            command = [re.sub(f"^{re.escape(before)}(?=/|$)", str(build), word) for word in test["cmd"]]
            yield Program(test["name"].split(" / ")[-1], command, test["env"], test["timeout"])


def under(tool, build, results):
    """The shortened suite and the small cases, under compute-sanitizer."""
    small = [Program(f"bench_gpu {cases}", [str(build / "bench/bench_gpu"), "--tiny", "--quick", "--case", cases], {}, 0,
                     speaks_tap=False) for cases in TINY]
    for program in small + list(suite(build)):
        log = results / (re.sub(r"\W+", "-", program.name) + ".%p.log")
        # Errors that the runtime returns are no findings: tests provoke some.
        program.command[:0] = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                                "--report-api-errors", "no", "--log-file", str(log)]
        program.environment["PARTITA_TEST_BRIEF"] = "1"
        program.seconds = TOOL_SECONDS
        yield program


def run(program, results):
    """{"status": or "timeout" if it took too long, "text": output}; None if it is left for the next run."""
    path = results / (re.sub(r"\W+", "-", program.name) + ".json")
    if path.exists():
        return json.loads(path.read_text())
    left = UNTIL - time.time()
    if left < 5:
        return None
    # A session of its own, so that the end of a tool also ends the program under it.
    process = subprocess.Popen(program.command, env=program.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    late = False
    try:
        text, _ = process.communicate(timeout=min(left, program.seconds))
    except subprocess.TimeoutExpired:
        late = True
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
    if late and left < program.seconds:
        return None
    outcome = {"status": "timeout" if late else process.returncode, "text": text}
    path.write_text(json.dumps(outcome))
    return outcome


def count(outcome):
    """[passed, failed, skipped]; a program that failed or ended early without a failed line counts as one failure."""
    lines = re.findall(r"^(not ok|ok|1\.\.0)\b(.*)$", outcome["text"], re.M)
    skipped = sum(word == "1..0" or (word == "ok" and "# SKIP" in rest) for word, rest in lines)
    failed = sum(word == "not ok" for word, _ in lines)
    passed = len(lines) - skipped - failed
    plan = re.search(r"^1\.\.(\d+)", outcome["text"], re.M)
    complete = plan and int(plan.group(1)) == sum(word != "1..0" for word, _ in lines)
    return [passed, failed + (failed == 0 and (outcome["status"] != 0 or not complete)), skipped]


def is_good(program, outcome):
    return outcome["status"] == 0 and (not program.speaks_tap or count(outcome)[1] == 0)


def run_all(programs, results):
    """[(program, outcome)], the output of those that failed on stderr."""
    results.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        outcomes = list(zip(programs, pool.map(lambda program: run(program, results), programs)))
    for program, outcome in outcomes:
        if outcome and not is_good(program, outcome):
            print(f"{program.name}: status {outcome['status']}\n{outcome['text']}", file=sys.stderr)
    return outcomes


def suite_line(outcomes):
    """The line of the step suite, and whether it failed."""
    if not outcomes:
        return "not run: built without tests", True
    passed, failed, skipped = (sum(column) for column in zip(*(count(outcome) for _, outcome in outcomes if outcome), [0, 0, 0]))
    complete = all(outcome for _, outcome in outcomes)
    return (f"{passed} passed, {failed} failed" + f", {skipped} skipped" * bool(skipped) + ", not complete" * (not complete),
            failed > 0 or (complete and not passed))


def tool_line(outcomes):
    """The line of a step under compute-sanitizer, and whether it failed."""
    late = [program.name for program, outcome in outcomes if outcome is None or outcome["status"] == "timeout"]
    bad = [program.name for program, outcome in outcomes if program.name not in late and not is_good(program, outcome)]
    good = len(outcomes) - len(late) - len(bad)
    return ((f"failed: {', '.join(bad)}" if bad else f"passed: {good} programs")
            + (f"; not finished: {', '.join(late)}" if late else ""),
            bool(bad) or (good == 0 and all(outcome for _, outcome in outcomes)))


def run_step(step, build, results):
    """The line of a step and its status."""
    if step != "suite" and not shutil.which("compute-sanitizer"):
        return "not run: compute-sanitizer not installed", 0
    outcomes = run_all(list(suite(build) if step == "suite" else under(step, build, results / step)), results / step)
    line, failed = (suite_line if step == "suite" else tool_line)(outcomes)
    left = [program.name for program, outcome in outcomes if outcome is None]
    if left:
        print(f"{step} is left for the next run: {', '.join(left)}", file=sys.stderr)
    return line, 1 if failed else TO_BE_CONTINUED if left else 0


def main():
    build = pathlib.Path(sys.argv[2 if sys.argv[1] == "--programs" else 1]).resolve()
    if sys.argv[1] == "--programs":
        print("\n".join(sorted({str(pathlib.Path(program.command[0]).relative_to(build)) for program in suite(build)})))
        return 0
    results, lines = pathlib.Path(sys.argv[2]).resolve(), {}
    for step in sys.argv[3:]:
        if step not in STEPS:
            print(f"no step '{step}'; there are {', '.join(STEPS)}", file=sys.stderr)
            return 2
        lines[step] = run_step(step, build, results)
        (results / f"{step}.outcome").write_text(f"{step} {lines[step][0]}\n")
        print(step, lines[step][0])
    if "suite" in lines:
        print(lines["suite"][0])  # counted by .ci/run
    return min((status for _, status in lines.values() if status), default=0)  # failures come first


if __name__ == "__main__":
    sys.exit(main())
