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

    def record_in_little_space(self, name, space, frames=48000, rc=1):
        """Recorded with that much room for a file; what is said."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))

        done = self.live("--ir", "ir.wav", "--input", "fl_in", "--output", "fl_null", "--duration", frames / 48000,
                         "--record", name, preexec_fn=limit, rc=rc)
        self.assertEqual([n for n in os.listdir(".") if n.startswith(".rec")], [])
        return done.stderr.decode()

    def test_a_full_disk_keeps_what_was_recorded(self):
        """What found room is there, to the frame, under its name and with a header of its length."""
        for space in (100003, 100000, 99997):
            with self.subTest(space=space):
                said = self.record_in_little_space("rec.wav", space)
                self.assertIn("rec.wav: cannot write: File too large; playing goes on unrecorded", said)
                self.assertIn("rec.wav: cannot write: File too large; it holds the first 0.3 s", said)
                _, got, _, declared = parse_wav(self.read("rec.wav"))
                data = self.read("rec.wav")
                self.assertEqual(declared, len(data) - data.index(b"data") - 8)
                self.assertEqual(len(got), (space - len(data) + declared) // 8)
                np.testing.assert_array_equal(got, self.x[:len(got)])
        self.record_in_little_space("rec.npy", 100003)
        np.testing.assert_array_equal(np.load("rec.npy").T, self.x[:(100003 - 128) // 8])
        self.record_in_little_space("rec.raw", 100003)
        np.testing.assert_array_equal(np.fromfile("rec.raw", "<f4").reshape(-1, 2), self.x[:100003 // 8])
        self.record_in_little_space("rec.flac", 50000)
        self.run_program("convolve", "ir.wav", "rec.flac", "flac.wav", "-q")
        got = parse_wav(self.read("flac.wav"))[1]
        self.assertGreater(len(got), 4096)
        np.testing.assert_allclose(got, self.x[:len(got)], atol=2.0**-23)

    def test_no_room_at_all_leaves_the_file_before(self):
        self.write("rec.wav", b"before")
        self.record_in_little_space("rec.wav", 95) # a header and no frame
        self.assertEqual(self.read("rec.wav"), b"before")


if __name__ == "__main__":
    rig.main()
