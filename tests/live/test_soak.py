#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ten minutes of `partita live` on a JACK server, ten seconds of stereo filter, 64 frames a call: memory stays what it
was, no callback is late, nothing is lost. PARTITA_SOAK_SECONDS shortens it."""
import json
import os
import signal
import time

import numpy as np

from rig_live import Jack, rig

SECONDS = int(os.environ.get("PARTITA_SOAK_SECONDS", "600"))


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int([line for line in status if line.startswith("VmRSS:")][0].split()[1])


class Soak(Jack):
    def test_goes_on_and_on(self):
        taps = self.random.standard_normal((480000, 2)) * np.exp(-np.arange(480000) / 80000)[:, None] / 500
        self.ir(taps)
        self.start_server(period=64)
        child = self.start("--ir", "ir.wav", "--device", "system", "--block", 64, "--json")
        lines, memory = [], []
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS:
            lines.append(self.line(child))
            memory.append(resident_kib(child.pid))
            if len(lines) % 10 == 0:
                child.send_signal(signal.SIGHUP) # and every ten seconds a filter read again
        child.send_signal(signal.SIGINT)
        told = json.loads(self.ends(child)[0].splitlines()[-1])
        print("# %d s: load mean %.2f %%, p99.9 %.2f %%, worst %.2f %%, %d late, %d xruns, %d to %d KiB" %
              (told["seconds"], 100 * told["load"]["mean"], 100 * told["load"]["p999"], 100 * told["load"]["worst"],
               told["load"]["late"], told["xruns"], memory[0], memory[-1]))
        self.assertGreater(told["seconds"], 0.95 * SECONDS)
        # From the first filter read again on, the slope is nothing; a leak of a filter would be 8 MiB every 10 s.
        settled = memory[len(memory) // 3:]
        slope = np.polyfit(np.arange(len(settled)), settled, 1)[0]
        self.assertLess(slope * len(settled), 2048, "KiB grown")
        self.assertEqual(told["xruns"] - lines[0]["xruns"], 0) # connecting may cost some in the first second
        self.assertEqual(told["load"]["late"] - lines[0]["load"]["late"], 0)


if __name__ == "__main__":
    rig.main()
