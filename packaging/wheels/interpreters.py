# SPDX-License-Identifier: MIT
"""Interpreters of Python: those that build wheels, and those that try them."""
import dataclasses
import os
import shutil
import subprocess
import sys

import debian

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
FREE_THREADED = "python3.14t"  # cffi supports no older build without a global lock
TOOLS = ("meson-python", "meson", "ninja", "cffi")


@dataclasses.dataclass
class Builder:
    """python: an interpreter with the tools that build wheels."""

    python: str
    free_threaded: bool = False

    def settings_of(self, machine, system, work):
        """Variables for a wheel of another machine or C library than the interpreter's: the end of the module's name.

        Modules for all versions of Python are named the same everywhere.
        """
        if not self.free_threaded:
            return {}
        end = f"{machine}-linux-{'gnu' if system == 'glibc' else 'musl'}"
        name = "_sysconfigdata_of_the_wheel"
        program = ("import pprint, sys, sysconfig\n"
                   "values = sysconfig.get_config_vars()\n"
                   "for name in ('SOABI', 'EXT_SUFFIX'):\n"
                   "    values[name] = values[name].replace(sys.implementation._multiarch, sys.argv[1])\n"
                   "print('build_time_vars =', pprint.pformat(values))")
        (work / f"{name}.py").write_text(debian.run(self.python, "-c", program, end))
        return {"_PYTHON_SYSCONFIGDATA_NAME": name, "PYTHONPATH": str(work)}


@dataclasses.dataclass
class Run:
    """command: starts an interpreter of this version, for wheels of a machine and of a C library."""

    command: list
    version: str
    machine: str
    system: str
    free_threaded: bool = False

    def pip_words(self):
        """For pip install --target: which packages this interpreter can load; another one runs pip."""
        names = [f"manylinux_2_{minor}" for minor in range(17, 37)] + ["manylinux2014"]
        if self.system == "musl":
            names = ["musllinux_1_1", "musllinux_1_2"]
        digits = self.version.replace(".", "")
        abis = [f"cp{digits}t"] if self.free_threaded else [f"cp{digits}", "abi3"]
        return ["--only-binary", ":all:", "--implementation", "cp", "--python-version", self.version,
                *(f"--abi={abi}" for abi in (*abis, "none")), *(f"--platform={name}_{self.machine}" for name in names)]


def here(name):
    """Whether an interpreter runs; a name on the PATH may be that of a program that chooses one."""
    return shutil.which(name) and not subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode


def that_build(parts):
    """Builders, one for each binary interface of Python; a text instead says why there is none."""
    builders = [Builder(sys.executable)]
    if not here(FREE_THREADED):
        return [*builders, f"no wheel for the free-threaded build: there is no {FREE_THREADED}"]
    folder = parts / FREE_THREADED
    if not (folder / "bin/meson").exists():
        debian.run(FREE_THREADED, "-m", "venv", folder)
        debian.run(folder / "bin/python", "-m", "pip", "install", "-q", *TOOLS)
    return [*builders, Builder(str(folder / "bin/python"), True)]


def that_run(machine, system, free_threaded, parts):
    """Interpreters that can load a wheel; a text instead says why there is none."""
    if system == "musl":
        return [f"not tried: no Python here is linked with musl for {machine}"]
    if machine == os.uname().machine:
        names = [FREE_THREADED] if free_threaded else [f"python{version}" for version in VERSIONS]
        return [Run([name], name[6:].rstrip("t"), machine, system, free_threaded) if here(name)
                else f"not tried with {name}, which is not here" for name in names]
    return [f"not tried: Debian has no {FREE_THREADED}"] if free_threaded else [emulated(machine, system, parts)]


def emulated(machine, system, parts):
    """Debian's interpreter for another machine under qemu."""
    emulator = f"qemu-{machine}"
    if not shutil.which(emulator):
        return f"not tried: there is no {emulator}; Debian's package is qemu-user"
    root = debian.unpacked(parts / f"python-{machine}", "bookworm", "arm64", (
        "python3.11", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libexpat1",
        "zlib1g", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libgcc-s1", "libstdc++6"))
    return Run([emulator, "-L", str(root), str(root / "usr/bin/python3.11")], "3.11", machine, system)
