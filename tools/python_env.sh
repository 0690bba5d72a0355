#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the virtual environment build-ci/python, or brings it up to date: installs the project there as a user does, with
# pip, and what its tests and benchmarks need. PyTorch is installed if that takes no longer than SECONDS and 15 GB are
# free; it is in a folder of its own, build-ci/python-torch.
#   tools/python_env.sh SECONDS        PYTHON=python3.12 chooses another interpreter
set -eu
cd "$(dirname "$0")/.."
seconds=$1
tools/setup.sh python >&2
folder=build-ci/python torch=build-ci/python-torch
log=$folder.log
mkdir -p build-ci
failed() {
    tail -n 60 "$log" >&2
    echo "$1 failed" >&2
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
        --target "$torch.new" torch >>"$log" 2>&1 || return 1
    mv "$torch.new" "$torch"
}
[ -d "$torch" ] || install_torch || echo "PyTorch could not be installed" >&2
rm -rf "$torch.new" "$torch.tmp"
"$folder/bin/python" -c "import pathlib, sys, sysconfig
pathlib.Path(sysconfig.get_path('purelib'), 'torch.pth').write_text(sys.argv[1] + '\n')" "$PWD/$torch"
