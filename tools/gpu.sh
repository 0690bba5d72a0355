#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the suite gpu of build/ on this machine's CUDA device, and once more under compute-sanitizer if that is there.
# Without a device it says what is missing and runs nothing: status 77.
#   tools/gpu.sh [--why-not]     --why-not: only says what is missing, status 1 if nothing is
set -eu
cd "$(dirname "$0")/.."

# The line of the first CUDA device, or of what there should be for there to be one. (The program also looks for audio
# devices and fails if there are none.)
line=$(build/apps/partita devices 2>/dev/null | grep '^cuda' | head -n 1 || true)
case $line in
cuda:*) [ "${1-}" != --why-not ] || exit 1 ;;
*)
    echo "skipped: ${line:-build/apps/partita says nothing of CUDA}"
    if [ "${1-}" = --why-not ]; then exit 0; else exit 77; fi
    ;;
esac

echo "$line"
tools/suite.sh build gpu
if command -v compute-sanitizer >/dev/null; then
    export PARTITA_TEST_DEVICE=cuda:0 PARTITA_TEST_BRIEF=1
    for tool in memcheck racecheck; do
        compute-sanitizer --tool "$tool" --error-exitcode 1 build/tests/test_layers >build/sanitizer.log 2>&1 || {
            cat build/sanitizer.log
            exit 1
        }
    done
fi
