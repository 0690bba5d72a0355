#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A long search for defects with a build folder: random problems, every fuzz target and damaged files, in rounds, each
with another seed. Fuzz targets are those of libFuzzer where they are built (-Dfuzz=true with clang), else generated
bytes. The corpora of libFuzzer and all inputs that failed are kept in BUILD/campaign.

Usage: tests/fuzz/campaign.py BUILD SECONDS [SEED]

Prints the seed first, a line for each part of a round, the counts and the findings last. Status 1: there were findings.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

ROUND = 600  # seconds
GENERATED = 5000  # inputs of a target without libFuzzer, at a time
LATE = 300  # seconds that a part may take beyond its share: its own limits are shorter
ONE_INPUT = 280  # seconds; libFuzzer does not stop its clock where this program does
HERE = os.path.dirname(os.path.abspath(__file__))
LEAKS = os.path.join(HERE, "leaks.supp")


class Clock:
    """The time in which this program ran: pauses of its process group (SIGSTOP) do not count."""
    STEP = 0.2

    def __init__(self):
        self.time, self.last = 0.0, time.monotonic()

    def tick(self):
        time.sleep(self.STEP)
        now = time.monotonic()
        self.time += min(now - self.last, 10 * self.STEP)
        self.last = now


class Campaign:
    def __init__(self, build, seconds, seed):
        self.build, self.seconds, self.seed = os.path.abspath(build), seconds, seed
        self.folder = os.path.join(self.build, "campaign")
        self.tests = os.path.join(self.build, "tests/fuzz")
        self.clock = Clock()
        # Shares of a round's time, of the targets that this build has.
        self.shares = {"problems": 4, "files": 2}
        for replay in sorted(filter(os.path.isfile, glob.glob(self.tests + "/replay_*"))):
            self.shares["fuzz-" + os.path.basename(replay)[7:]] = 1
        self.counts = {part: 0 for part in self.shares}
        self.findings = []

    def run(self, part, command, seconds, seed):
        """Runs a program that tests inputs; returns its output, or None if it failed."""
        env = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
               "LSAN_OPTIONS": "print_suppressions=0:suppressions=" + LEAKS, **os.environ, "PARTITA_SEED": str(seed)}
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT)
            end = self.clock.time + seconds + LATE
            while process.poll() is None and self.clock.time < end:
                self.clock.tick()
            status = "no end" if process.poll() is None else process.returncode
            process.kill()
            process.wait()
            output.seek(0)
            said = output.read().decode(errors="replace")
        if status == 0:
            return said
        again = "PARTITA_SEED=%d %s" % (seed, " ".join(command))
        self.findings.append((part, again))
        print("FINDING in %s, status %s\n%s\n%s" % (part, status, again, said[-20000:]), flush=True)
        return None

    def problems(self, seconds, seed):
        said = self.run("problems", [self.tests + "/random_problems", str(seconds)], seconds, seed)
        return number("ok 1 - (\\d+) problems", said)

    def files(self, seconds, seed):
        script = os.path.join(HERE, "../apps/damaged_files.py")
        command = [sys.executable, script, self.build + "/apps/partita", str(seconds), self.folder]
        return number("ok 1 - (\\d+) damaged", self.run("files", command, seconds, seed))

    def target(self, name, seconds, seed):
        fuzzer = "%s/fuzz_%s" % (self.tests, name)
        if os.path.exists(fuzzer):
            corpus = os.path.join(self.folder, "corpus-" + name)
            os.makedirs(corpus, exist_ok=True)
            kept = [os.path.join(HERE, "corpus", name)] if os.path.isdir(os.path.join(HERE, "corpus", name)) else []
            command = [fuzzer, corpus, *kept, "-max_total_time=%d" % seconds, "-seed=%d" % (seed % (1 << 31) + 1), "-timeout=%d" % ONE_INPUT,
                       "-rss_limit_mb=2048", "-print_final_stats=1", "-artifact_prefix=%s/%s-" % (self.folder, name)]
            return number("number_of_executed_units: *(\\d+)", self.run("fuzz-" + name, command, seconds, seed))
        end, done = self.clock.time + seconds, 0
        while self.clock.time < end:
            said = self.run("fuzz-" + name, ["%s/replay_%s" % (self.tests, name), str(GENERATED)], seconds,
                            seed << 20 | done // GENERATED)
            done += GENERATED
            if said is None:
                break
        return done

    def part(self, part, seconds, seed):
        begin = self.clock.time
        if part.startswith("fuzz-"):
            count = self.target(part[5:], seconds, seed)
        else:
            count = getattr(self, part)(seconds, seed)
        self.counts[part] += count
        print("%-13s seed %d: %d in %.0f s" % (part, seed, count, self.clock.time - begin), flush=True)

    def rounds(self):
        """Of at most ROUND seconds each; the last one has what is left."""
        seed = self.seed
        os.makedirs(self.folder, exist_ok=True)
        print("seed %d, %d s, %s" % (self.seed, self.seconds, self.build), flush=True)
        n = max(1, round(self.seconds / ROUND))
        for k in range(n):
            left = self.seconds - self.clock.time
            one = max(1, int(left / (n - k) / sum(self.shares.values())))
            for part, share in self.shares.items():
                self.part(part, share * one, seed)
            seed += 1

    def conclude(self):
        counts = ", ".join("%s %d" % item for item in self.counts.items())
        print("seed %d, %d s: %s; %d findings" % (self.seed, self.seconds, counts, len(self.findings)))
        for part, again in self.findings:
            print("  %s: %s" % (part, again))
        return len(self.findings) > 0


def number(pattern, said):
    found = re.search(pattern, said or "")
    return int(found.group(1)) if found else 0


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    campaign = Campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time()))
    try:
        campaign.rounds()
    except KeyboardInterrupt:
        print("interrupted")
    sys.exit(campaign.conclude())


if __name__ == "__main__":
    main()
