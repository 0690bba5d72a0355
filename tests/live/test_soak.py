#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten minutes of `partita live` on a JACK server with ten seconds of stereo filter and 64 frames
per call: memory is constant, no callback is late, no sample is lost. PARTITA_SOAK_SECONDS changes
the duration."""
import os
import signal
import subprocess
import time

import numpy as np

from rig_live import Jack, may_run_in_real_time, rig

import schemas # rig_live makes it known

SECONDS = int(os.environ.get("PARTITA_SOAK_SECONDS", "600"))


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int([line for line in status if line.startswith("VmRSS:")][0].split()[1])


class Soak(Jack):
    def test_long_session(self):
        taps = self.random.standard_normal((480000, 2)) * np.exp(-np.arange(480000) / 80000)[:, None] / 500
        self.ir(taps)
        realtime = may_run_in_real_time()
        self.start_server(period=64, realtime=realtime)
        child = self.start("--ir", "ir.wav", "--device", "system", "--block", 64, "--json")
        # Both inputs are a sine, since silence would be cheaper.
        self.children.append(subprocess.Popen(["jack_simple_client", "sine"], env=self.environment(),
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.wait_for(lambda: {b"sine:output2", b"partita:in_1"} <= set(self.tool("jack_lsp").split()))
        for channel in (0, 1):
            self.tool("jack_connect", "sine:output%d" % (channel + 1), "partita:in_%d" % channel)
        lines, memory = [], []
        lines.append(self.line(child)) # connecting may cost time in the first second
        unfinished, server_late = self.unfinished(), self.server_late()
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS:
            lines.append(self.line(child))
            self.assertIsNotNone(lines[-1]["out"][1]["peak"], "silence")
            memory.append(resident_kib(child.pid))
            if len(lines) % 10 == 0:
                child.send_signal(signal.SIGHUP) # reloads the filter every ten seconds
        child.send_signal(signal.SIGINT)
        status = schemas.load(self.ends(child)[0].splitlines()[-1])
        unfinished, server_late = self.unfinished() - unfinished, self.server_late() - server_late
        late = status["load"]["late"] - lines[0]["load"]["late"]
        print("# %s scheduling, %d s: load mean %.2f %%, p99.9 %.2f %%, worst %.2f %%, %d late; %d xruns, the server was "
              "woken up late %d times and found the program not finished %d times; %d to %d KiB" %
              ("real-time" if realtime else "ordinary", status["seconds"], 100 * status["load"]["mean"],
               100 * status["load"]["p999"], 100 * status["load"]["worst"], late, status["xruns"] - lines[0]["xruns"],
               server_late, unfinished, memory[0], memory[-1]))
        self.assertGreater(status["seconds"], 0.95 * SECONDS)
        # When memory has settled its slope is zero; a leaked filter would be 8 MiB every 10 s.
        settled = memory[len(memory) // 2:]
        slope = np.polyfit(np.arange(len(settled)), settled, 1)[0]
        self.assertLess(slope * len(settled), 2048, "KiB grown")
        # Both are zero unless the machine itself pauses. A pause interrupts the sleeping server far
        # more often than the program, which works for a hundredth of the time.
        self.assertLessEqual(unfinished, server_late, "xruns because the program was not finished")
        self.assertLessEqual(late, server_late, "late callbacks")

    def unfinished(self):
        """How often the program did not finish in time, as reported by the server."""
        return self.read("jackd.log").count(b"client = partita was not finished")

    def server_late(self):
        """How often the server itself woke up late."""
        return self.read("jackd.log").count(b"JackTimedDriver::Process XRun")


if __name__ == "__main__":
    rig.main()
