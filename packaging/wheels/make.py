# SPDX-License-Identifier: MIT
"""make.py SDIST FOLDER: every wheel of a source distribution that this machine can make, tried where it can be.
packaging/wheels.sh calls it. It prints a line for each wheel and each trial, which says why where there is none."""
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import debian
import interpreters
import toolchain

HERE = pathlib.Path(__file__).resolve().parent
MACHINES = ("x86_64", "aarch64")
SYSTEMS = {"glibc": toolchain.glibc, "musl": toolchain.musl}


def built(sources, chain, interpreter, system, work):
    """A wheel as meson-python leaves it; its tag says only linux_x86_64 or linux_aarch64."""
    cross = chain.cross_file(work / "cross.ini", interpreter.python)
    # Within the sources, so that paths in commands are the same in all builds, for ccache.
    build = sources / f"build-{chain.machine}-{system}-{interpreter.free_threaded}"
    words = [f"-Csetup-args=--cross-file={cross}", f"-Cbuild-dir={build}"]
    if interpreter.free_threaded:
        words.append("-Csetup-args=-Dpython.allow_limited_api=false")
    environment = dict(os.environ, _PYTHON_HOST_PLATFORM=f"linux-{chain.machine}",
                       PATH=f"{pathlib.Path(interpreter.python).parent}:{os.environ['PATH']}")
    environment.update(interpreter.settings_of(chain.machine, system, work))
    debian.run(interpreter.python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", *words,
               "-w", work / "plain", sources, env=environment)
    return next((work / "plain").glob("*.whl"))


def repaired(wheel, chain, work):
    """The wheel with OpenMP's library in it, and the oldest C library that it runs with in its tag."""
    tools = pathlib.Path(sys.executable).parent
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}",
                       LD_LIBRARY_PATH=":".join(map(str, chain.libraries)))
    debian.run(sys.executable, "-m", "auditwheel", "repair", "-w", work / "repaired", wheel, env=environment)
    wheel = next((work / "repaired").glob("*.whl"))
    if "-abi3-" in wheel.name:
        debian.run(tools / "abi3audit", "--strict", wheel)
    return wheel


def tried(wheel, machine, system, interpreter, parts):
    """Tries a wheel in the interpreters that are there. Yields (what is counted, a line of text)."""
    for run in interpreters.that_run(machine, system, interpreter.free_threaded, parts):
        if isinstance(run, str):
            yield "skipped", run
            continue
        with tempfile.TemporaryDirectory() as target:
            debian.run(sys.executable, "-m", "pip", "install", "-q", "--target", target, *run.pip_words(), wheel)
            yield "passed", debian.run(*run.command, HERE / "trial.py", env=dict(os.environ, PYTHONPATH=target)).strip()


def make(sources, machine, system, interpreter, parts, folder):
    """Makes one wheel and tries it. Yields what tried() does."""
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        chain = SYSTEMS[system](machine, parts, HERE)
        wheel = repaired(built(sources, chain, interpreter, system, work), chain, work)
        shutil.copy(wheel, folder)
    yield "passed", wheel.name
    yield from tried(folder / wheel.name, machine, system, interpreter, parts)


def main(sdist, folder):
    parts = folder.parent / "wheel-parts"
    parts.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as unpacked:
        shutil.unpack_archive(sdist, unpacked)
        return make_all(next(pathlib.Path(unpacked).iterdir()), parts, folder)


def make_all(sources, parts, folder):
    """Returns how many wheels or trials failed."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for machine, system in itertools.product(MACHINES, SYSTEMS):
        for interpreter in interpreters.that_build(parts):
            if isinstance(interpreter, str):
                lines = [("skipped", interpreter)]
            else:
                lines = make(sources, machine, system, interpreter, parts, folder)
            try:
                for count, line in lines:
                    counts[count] += 1
                    print(f"{machine} {system}: {line}", flush=True)
            except debian.Missing as missing:
                counts["failed"] += 1
                print(f"{machine} {system}: {missing}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return counts["failed"]


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()) != 0)
