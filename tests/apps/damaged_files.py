#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Damaged files for a number of seconds: valid files of every kind that the program reads are damaged at random and
given to a random command. The program must end in time with a status of its own (0, 1 or 3), in bounded memory, say
one line where it fails, and then leave no new file.

Usage: damaged_files.py PROGRAM SECONDS [FOLDER]      FOLDER: keeps the cases that failed; PARTITA_SEED: other damage
"""
import collections
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import numpy as np

from rig import chunk, wav_bytes

MAX_SECONDS = 60  # of processor time
MAX_WAIT = 600  # seconds; a pause of all processes counts too
MAX_BYTES = 1 << 27  # of an output
# The inputs have less than 100 kB, libraries take some 100 MB of address space but not of memory.
MAX_MEMORY = 1 << 30
SANITIZER_STATUS = 99
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaks.supp")
NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFF000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0,
           0xFFFFFFFF, 1 << 40, (1 << 62) - 1, (1 << 63) - 1, (1 << 64) - 1)
OPTIONS = ([], ["--threads", "2"], ["--mode", "same"], ["--mode", "valid"], ["--first", "-100", "--last", "5000"],
           ["--stride", "3"], ["--resample-ir"], ["--output-format", "i16"], ["--nan", "propagate"], ["--block", "64"],
           ["--range", "2/3"], ["--resume"], ["--stats"], ["--json"], ["--precision", "f64"], ["--matrix"])
CONTAINERS = ("flac", "ogg", "aiff", "au", "w64", "caf")


def environment(cache):
    """Findings of a sanitizer have a status of their own."""
    env = {**os.environ, "XDG_CACHE_HOME": cache, "OMP_NUM_THREADS": "2"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        env[name] = "%s:exitcode=%d" % (os.environ.get(name, ""), SANITIZER_STATUS)
    env["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=%s" % SUPPRESSIONS
    return env


def limit_process():
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_BYTES, MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 5))


class Originals:
    """The valid files, in a folder, and the commands that read them: (arguments, the file to damage)."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        noise = np.random.default_rng(2026)
        stereo = noise.integers(-9000, 9000, (2000, 2))
        ds64 = chunk(b"ds64", struct.pack("<QQQI", 8100, 8000, 2000, 0))
        rf64 = wav_bytes(stereo, form=b"RF64", riff=0xFFFFFFFF, data=0xFFFFFFFF)
        texts = chunk(b"LIST", b"INFOISFT" + struct.pack("<I", 5) + b"words\0")
        self.write("ir.txt", b"# two taps\n0.5\n0.25\n")
        self.write("in.wav", wav_bytes(stereo))
        self.write("lists.wav", wav_bytes(stereo, before=texts, after=texts))
        self.write("float.wav", wav_bytes(stereo / 32768.0, bits=32))
        self.write("long.wav", rf64[:12] + ds64 + rf64[12:])
        self.write("table.txt", b"# Hz and dB\n100 0\n1000 -6\n2000, -60\n")
        self.write("list.txt", b"Preamp: -6.5 dB\nFilter 1: ON LSC Fc 105 Hz Gain 2,4 dB Q 0.70\nFilter 2: ON NO Fc 1 kHz\n")
        self.write("graphic.txt", b"GraphicEQ: 20 -1.5; 100 0.2; 1000 -3\n")
        self.write("sweep.wav", wav_bytes(stereo[:, :1]))
        np.save(folder + "/x.npy", noise.standard_normal((2, 1500)).astype("f4"))
        np.save(folder + "/z.npy", np.ones(900, "c8"))
        np.save(folder + "/w.npy", np.ones((2, 3, 3, 3), "f4"))
        np.save(folder + "/image.npy", np.ones((1, 3, 9, 9), "f4"))
        self.run("convolve", "--rate", "48000", "ir.txt", "x.npy", "record.sigmf-data")
        with tarfile.open(folder + "/archive.sigmf", "w") as archive:
            for suffix in ("-meta", "-data"):
                archive.add(folder + "/record.sigmf" + suffix, "record.sigmf" + suffix)
        for name in CONTAINERS:
            self.run("convolve", "ir.txt", "in.wav", "c." + name)
        for k in ("1", "2"):
            self.run("convolve", "--range", k + "/2", "ir.txt", "in.wav", "s%s.wav" % k)
        self.run("plan", "--measure", "--taps", "300")
        self.files = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
        self.commands = self.list_commands()

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(data)

    def run(self, *arguments):
        subprocess.run([self.program, *arguments], cwd=self.folder, env=environment(self.folder + "/cache"), check=True,
                       stdout=subprocess.DEVNULL, timeout=MAX_WAIT)

    def list_commands(self):
        signals = ["in.wav", "lists.wav", "float.wav", "long.wav", "x.npy", "z.npy", "record.sigmf-meta"]
        signals += ["c." + name for name in CONTAINERS]
        commands = []
        for name in signals:
            array = name.endswith(".npy")
            rate, out = (["--rate", "48000"], "out.npy") if array else ([], "out.wav")
            damaged = [name, "record.sigmf-data"] if name == "record.sigmf-meta" else [name]
            for one in damaged:
                commands += [(["convolve", *rate, "ir.txt", name, out], one), (["correlate", name, "x.npy", "out.npy"], one),
                             (["convolve", name, "in.wav", "out.npy"], one)]
            if one == name and name not in ("x.npy", "record.sigmf-meta") and not name.startswith("c."):  # no pipe of these
                commands.append((["convolve", *rate, "ir.txt", "-", out], name))
            if not array:
                commands.append((["convolve", "ir.txt", name, "out.flac"], name))
        commands += [(["convolve", "ir.txt", "in.wav", "out.wav"], "ir.txt")] * 2
        commands += [(["convolve", "ir.txt", "archive.sigmf", out], "archive.sigmf") for out in ("out.npy", "out.sigmf-data")] * 2
        commands += [(["convolve", "ir.txt", "record.sigmf-meta", "out.sigmf-data"], "record.sigmf-meta")] * 2
        commands += [(["design", "table", "table.txt", "--rate", "8k", "--width", "200", "out.npy"], "table.txt")]
        commands += [(["design", "eq", name, "--rate", "8k", "--taps", "99", "out.npy"], name)
                     for name in ("list.txt", "graphic.txt")]
        commands += [(["deconvolve", "sweep.wav", "in.wav", "out.wav"], name) for name in ("sweep.wav", "in.wav")]
        commands += [(["identify", "--ir-length", "64", "sweep.wav", "in.wav", "out.wav"], name) for name in ("sweep.wav", "in.wav")]
        commands += [(["invert", "--rate", "8k", "--low", "100", "--taps", "512", "--target", "table.txt", "table.txt", "out.wav"],
                      "table.txt"), (["invert", "--low", "100", "--taps", "1024", "--positions", "in.wav", "out.wav"], "in.wav")]
        commands += [(["response", "--rate", "8k", "table.txt", "out.frd"], "table.txt"),
                     (["response", "--combine", "cascade", "--align", "9", "float.wav", "in.wav", "out.wav"], "float.wav")]
        commands += [(["join", "out.wav", "s1.wav", "s2.wav"], name) for name in ("s1.wav", "s2.wav", "s1.wav.range",
                                                                                 "s2.wav.range")]
        commands += [(["layer", "forward", "-i", "image.npy", "-w", "w.npy", "--output", "out.npy"], name)
                     for name in ("image.npy", "w.npy")]
        commands += [(["plan", "--taps", "300"], "cache/partita/wisdom"),
                     (["convolve", "ir.txt", "in.wav", "out.wav"], "cache/partita/wisdom")]
        return commands


def damage(data, draw, others):
    """The bytes after one to six changes, most of them near the beginning."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        n = max(len(data), 1)
        at = draw.randrange(min(n, draw.choice((16, 64, 256, n))))
        kind = draw.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << draw.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = draw.randrange(256)
        elif kind in (2, 3):
            size = draw.choice((1, 2, 4, 8))
            value = (draw.choice(NUMBERS + (n, n - 1, n + 1)) & ((1 << 8 * size) - 1)).to_bytes(
                size, draw.choice(("little", "big")))
            data[at:at + size] = value
        elif kind == 4:
            del data[draw.choice((at, draw.randrange(n))):]
        elif kind == 5:
            del data[at:at + draw.randrange(1, 40)]
        elif kind == 6:
            data[at:at] = draw.choice((draw.randbytes(draw.randrange(1, 40)), data[at:at + draw.randrange(1, 200)]))
        else:
            other = draw.choice(others)
            begin = draw.randrange(len(other))
            data[at:at + draw.randrange(200)] = other[begin:begin + draw.randrange(200)]
    return bytes(data)


class Case:
    def __init__(self, originals, draw):
        self.draw = draw
        self.folder = tempfile.mkdtemp(prefix="partita-damaged-")
        arguments, self.damaged = draw.choice(originals.commands)
        if arguments[0] in ("convolve", "correlate"):
            arguments = arguments[:1] + draw.choice(OPTIONS) + arguments[1:]
        self.command = [originals.program] + arguments
        shutil.copytree(originals.folder, self.folder, dirs_exist_ok=True)
        everything = [read(os.path.join(originals.folder, name)) for name in originals.files]
        target = os.path.join(self.folder, self.damaged)
        self.data = damage(read(target), draw, [data for data in everything if data])
        with open(target, "wb") as f:
            f.write(self.data)

    def files(self):
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names}

    def run(self):
        """The status and what is wrong; None: nothing."""
        before = self.files()
        try:
            done = subprocess.run(self.command, cwd=self.folder, env=environment(self.folder + "/cache"),
                                  preexec_fn=limit_process, input=self.data if "-" in self.command else b"",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=MAX_WAIT)
        except subprocess.TimeoutExpired:
            return None, "no end after %d s" % MAX_WAIT
        if done.returncode == -signal.SIGXCPU:
            return None, "no end after %d s of processor time" % MAX_SECONDS
        # libsndfile takes some damaged files for MP3, and libmpg123 prints notes of its own.
        said = "".join(line for line in done.stderr.decode(errors="replace").splitlines(True) if not line.startswith("Note: "))
        new = self.files() - before
        if "--resume" in self.command:  # an unfinished output stays
            new = {name for name in new if not name.endswith((".partial", ".partial.range"))}
        if done.returncode not in (0, 1, 3):
            return done.returncode, "status %d: %s" % (done.returncode, said[-4000:])
        if done.returncode == 1 and (said.count("\n") != 1 or not said.startswith("partita")):
            return 1, "not one line: " + said[:1000]
        if done.returncode == 1 and new:
            return 1, "left behind: " + " ".join(sorted(new))
        return done.returncode, None


def read(path):
    with open(path, "rb") as f:
        return f.read()


def keep(case, number, seed, wrong, folder):
    """Stores a case that failed, with the command that repeats it."""
    words = " ".join(["partita"] + case.command[1:] + (["<", case.damaged] if "-" in case.command else []))
    print("# case %d of PARTITA_SEED=%d: %s\n# %s" % (number, seed, words, wrong.replace("\n", "\n# ")))
    if not folder:
        return
    kept = os.path.join(folder, "damaged-%d-%d" % (seed, number))
    shutil.copytree(case.folder, kept, dirs_exist_ok=True)
    with open(os.path.join(kept, "command.json"), "w") as f:
        json.dump({"command": words, "wrong": wrong}, f)
    print("# kept in " + kept)


def main():
    program, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    seed = int(os.environ.get("PARTITA_SEED", "2026"))
    end = time.monotonic() + seconds
    statuses, failed, number = collections.Counter(), 0, 0
    bounded = b"__asan_init" not in read(program)  # the shadow memory of a sanitizer counts too
    with tempfile.TemporaryDirectory(prefix="partita-originals-") as place:
        originals = Originals(program, place)
        while time.monotonic() < end or number == 0:
            case = Case(originals, random.Random("%d %d" % (seed, number)))
            status, wrong = case.run()
            memory = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            if not wrong and bounded and memory > MAX_MEMORY:
                wrong, bounded = "%d MiB of memory" % (memory >> 20), False  # the highest value stays
            statuses[status] += 1
            if wrong:
                failed += 1
                keep(case, number, seed, wrong, folder)
            shutil.rmtree(case.folder, ignore_errors=True)
            number += 1
    print("1..1\n%s 1 - %d damaged files (%s)" % ("not ok" if failed else "ok", number, ", ".join(
        "status %s: %d" % item for item in sorted(statuses.items(), key=str))))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
