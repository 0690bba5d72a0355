#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Code that the library loads: a program that runs with more rights than its caller loads nothing that the caller
chooses, and no program loads from its current folder. A file that is no library stands for code that must not be
loaded: the reason that the loader gives names it. Prints TAP.

usage: test_secure.py PROGRAM    (secure_program.c, which the library is linked into)
"""
import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
MODULE = "libpartita-cuda.so"
NOBODY = 65534
count = failed = 0


def tap(good, name, said=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", count, name), flush=True)
    if not good:
        print("# " + said)


def skip(name, why):
    global count
    count += 1
    print("ok %d - %s # SKIP %s" % (count, name, why), flush=True)


def run(program, name, folder, **variables):
    """What the program says that is started as `name`: AT_SECURE and the device."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PARTITA_")}
    done = subprocess.run([name, folder], executable=program, env={**env, **variables}, stdout=subprocess.PIPE,
                          check=True, text=True, timeout=60)
    secure, text = done.stdout.rstrip("\n").split(" ", 1)
    return secure == "1", text


def secure_copy(folder):
    """A copy that runs as another user than its caller, or None where that cannot be had."""
    copy = os.path.join(folder, "secure")
    shutil.copy(PROGRAM, copy)
    try:
        os.chown(copy, NOBODY, NOBODY)
        os.chmod(copy, 0o4755)
        return copy if run(copy, copy, "/")[0] else None
    except (PermissionError, subprocess.CalledProcessError):
        return None


folder = tempfile.mkdtemp(prefix="partita-test-")
try:
    os.chmod(folder, 0o755)
    planted = os.path.join(folder, MODULE)
    with open(planted, "w") as file:
        file.write("not a library")
    os.chmod(planted, 0o644)
    print("1..6")

    _, text = run(PROGRAM, PROGRAM, "/", PARTITA_CUDA_MODULE=planted)
    tap(planted in text, "a name in the environment is used", text)
    _, text = run(PROGRAM, os.path.join(folder, "program"), "/")
    tap(planted in text, "the folder of an absolute name is used", text)
    for name in ("./program", "program"):
        _, text = run(PROGRAM, name, folder)
        tap("file too short" not in text and "invalid ELF" not in text, "nothing is loaded from the folder of " + name, text)

    copy = secure_copy(folder)
    if copy:
        _, text = run(copy, copy, "/", PARTITA_CUDA_MODULE=planted)
        tap(planted not in text, "with more rights the environment is not used", text)
        _, text = run(copy, os.path.join(folder, "program"), "/")
        tap(planted not in text, "with more rights the folder of argv[0] is not used", text)
    else:
        skip("with more rights the environment is not used", "no program can have another user here")
        skip("with more rights the folder of argv[0] is not used", "no program can have another user here")
finally:
    shutil.rmtree(folder)
sys.exit(failed > 0)
