#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How runs of `partita live` end, and what must not be lost then: files, the terminal, the sound itself. On devices made
of files, through PortAudio's ALSA code."""
import os
import resource

import numpy as np

from rig_live import FILES, Live, dyadic, rig

from rig import parse_wav


class Files(Live):
    def setUp(self):
        super().setUp()
        self.x = dyadic(self.random, (48000, 2))
        self.alsa(self.x)
        self.ir(np.ones((1, 2)))

    def test_nothing_is_written_over_a_filter(self):
        before = self.read("ir.wav")
        self.ir(np.ones((3, 2)), "b.wav")
        os.symlink("ir.wav", "link.wav")
        os.link("ir.wav", "hard.csv")
        for arguments, says in ((["--record", "ir.wav"], ["ir.wav", "name another"]), (["--record", "./ir.wav"], "ir.wav"),
                                (["--record", "link.wav"], "link.wav"), (["--calls", "ir.wav"], "ir.wav"),
                                (["--calls", "hard.csv"], "hard.csv"), (["--ir", "b.wav", "--record", "b.wav"], "b.wav"),
                                (["--record", "new.wav", "--calls", "./new.wav"], ["--record", "--calls"]),
                                (["--record", self.folder + "/new.wav", "--calls", "new.wav"], ["--record", "--calls"])):
            with self.subTest(arguments=arguments):
                self.fails_live("--ir", "ir.wav", *arguments, *FILES, "--duration", 0.01, says=says)
        self.assertEqual(self.read("ir.wav"), before)
        # Other files, and one that is written twice without harm.
        self.write("old.csv", b"")
        for record, calls in (("a/new.wav", "new.wav"), ("new.wav", "old.csv"), ("/dev/null", "/dev/null")):
            os.makedirs("a", exist_ok=True)
            self.live("--ir", "ir.wav", *FILES, "--duration", 0.01, "--record", record, "--calls", calls, "-q")


if __name__ == "__main__":
    rig.main()
