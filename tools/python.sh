#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests the package for Python in the environment that tools/python_env.sh makes: runs python/tests. Ends with a line that
# counts the tests. Tests of PyTorch are skipped by name if it cannot be installed in 150 s.
#   tools/python.sh [arguments of pytest...]
set -eu
cd "$(dirname "$0")/.."
folder=build-ci/python
tools/python_env.sh 150 || {
    echo "0 passed, 1 failed"
    exit 1
}
status=0
report=$folder/report.xml
rm -f "$report"
"$folder/bin/python" -m pytest -q --junit-xml "$report" "$@" python/tests || status=$?
python3 tools/count_tests.py "$report" || status=1
exit "$status"
