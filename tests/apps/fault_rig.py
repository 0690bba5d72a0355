# SPDX-License-Identifier: MIT
"""Shared by the tests that let the n-th call of a function of the C library fail in the program (nth_fault.c). With
EVERY_FAULT in the environment every n is tried, else some."""
import os
import re
import shutil
import signal
import subprocess

import rig
from rig import Case

EVERY = "EVERY_FAULT" in os.environ
NAMES = ("alloc open fopen read write pwrite lseek fsync fdatasync rename mmap thread ftruncate fchmod "
         "fstat realpath unlink close").split()


class FaultCase(Case):
    """shim: the fault-injecting library."""
    shim = ""
    some = 4  # calls of each function, unless every one is tried
    settings = {}  # of the environment

    def attempt(self, arguments, **settings):
        """Runs in a copy of the folder; returns status, standard error and the files by name."""
        work = self.folder + "/work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.folder, work, symlinks=True, ignore=shutil.ignore_patterns("work", "counts", "stack"))
        asan = os.environ.get("ASAN_OPTIONS", "")
        env = {**os.environ, "XDG_CACHE_HOME": self.folder + "/work", "LD_PRELOAD": self.shim,
               "ASAN_OPTIONS": asan + ":verify_asan_link_order=0", "OMP_NUM_THREADS": "2",
               "FAULT_STACK": self.folder + "/stack", **self.settings, **settings}
        done = subprocess.run([rig.PROGRAM] + [str(a) for a in arguments], cwd=work, env=env, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        files = {}
        for folder, _, names in os.walk(work):
            for name in names:
                files[os.path.relpath(os.path.join(folder, name), work)] = self.read(os.path.join(folder, name))
        return done.returncode, done.stderr.decode(errors="replace"), done.stdout, files

    def counted(self, arguments, rc):
        """The result without faults, and how often each function is called."""
        status, said, out, files = self.attempt(arguments, FAULT_COUNTS=self.folder + "/counts")
        self.assertEqual(status, rc, said)
        counts = dict(line.split() for line in self.read("counts").decode().splitlines())
        os.remove("counts")
        return out, files, {name: int(n) for name, n in counts.items()}

    def calls(self, n):
        """The numbers of the calls to fail: all, or some that are spread evenly."""
        some = self.some
        return range(1, n + 1) if EVERY or n <= some else sorted({1 + i * (n - 1) // (some - 1) for i in range(some)})

    def crashed_in(self, status):
        """The module in which the program crashed: the innermost one that is neither the C library nor the shim."""
        if status not in (-signal.SIGSEGV, -signal.SIGABRT):
            return ""
        modules = [os.path.basename(line.split("(")[0]) for line in self.read("stack").decode().splitlines()]
        inner = [name for name in modules if not re.match(r"libc\.so|linux-vdso|ld-linux|libnth_fault|libapps|nth_fault", name)]
        return inner[0] if inner else ""
