#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the project as a user does, with pip, into the virtual environment build-ci/python, with what the tests and
# benchmarks of the package for Python need. Then runs python/tests and ends with a line that counts the tests. PyTorch has
# a folder of its own, build-ci/python-torch; if it takes longer than 150 s or 15 GB are not free, its tests are skipped.
#   tools/python.sh [arguments of pytest...]        PYTHON=python3.12 chooses another interpreter
#   tools/python.sh --install SECONDS               runs no tests; PyTorch may take SECONDS
set -eu
cd "$(dirname "$0")/.."
seconds=150
[ "${1-}" != --install ] || seconds=$2
tools/setup.sh python >&2
folder=build-ci/python torch=build-ci/python-torch
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

# The folder is there as a whole or not at all.
install_torch() {
    rm -rf "$torch.new" "$torch.tmp"
    [ "$(df -Pk build-ci | awk 'NR == 2 { print $4 }')" -gt 15000000 ] || return 1
    mkdir "$torch.tmp"
    TMPDIR=$PWD/$torch.tmp timeout "$seconds" "$folder/bin/pip" install -q --disable-pip-version-check --no-compile \
        --target "$torch.new" torch torchvision timm >>"$log" 2>&1 || return 1
    mv "$torch.new" "$torch"
}
[ -d "$torch" ] || install_torch || echo "PyTorch could not be installed" >&2
rm -rf "$torch.new" "$torch.tmp"
"$folder/bin/python" -c "import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path('purelib'), 'torch.pth').write_text(sys.argv[1] + '\n')" "$PWD/$torch"
[ "${1-}" != --install ] || exit 0

report=$folder/report.xml status=0
rm -f "$report"
"$folder/bin/python" -m pytest -q -n 2 --dist loadfile --junit-xml "$report" "$@" python/tests || status=$?
python3 tools/count_tests.py "$report" || status=1
exit "$status"
