#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the package for Python: makes a virtual environment in build-ci/python, installs the project there as a user
# does, with pip, and runs python/tests. PyTorch is installed if it can be; without it its tests are skipped by name.
# Ends with a line that counts the tests.
#   tools/python.sh [arguments of pytest...]        PYTHON=python3.12 chooses another interpreter
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh python >&2
folder=build-ci/python
log=$folder.log
mkdir -p build-ci
failed() {
    tail -n 60 "$log" >&2
    echo "$1 failed" >&2
    echo "0 passed, 1 failed"
    exit 1
}
# What is there already is used again; packages of the system are not seen.
[ -x "$folder/bin/python" ] || ${PYTHON:-python3} -m venv "$folder" >"$log" 2>&1 || failed "python3 -m venv"
"$folder/bin/pip" install -q --disable-pip-version-check '.[test]' soundfile >"$log" 2>&1 || failed "pip install ."
"$folder/bin/python" -c 'import torch' 2>/dev/null ||
    timeout 600 "$folder/bin/pip" install -q --disable-pip-version-check torch >>"$log" 2>&1 ||
    echo "PyTorch cannot be installed: its tests are skipped" >&2

status=0
report=$folder/report.xml
rm -f "$report"
# Elsewhere, so that the installed package is imported.
"$folder/bin/python" -m pytest -q --rootdir . --junit-xml "$report" "$@" python/tests || status=$?
python3 tools/count-tests.py --junit "$report" || status=1
exit "$status"
