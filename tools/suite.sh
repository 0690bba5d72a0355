#!/bin/sh
# SPDX-License-Identifier: MIT
# Configures a build folder, builds it, runs one test suite in it and ends with the line that counts its tests.
#   tools/suite.sh BUILD SUITE [meson setup options...]        TEST_ARGS="..." goes to meson test
set -eu
cd "$(dirname "$0")/.."
build=$1 suite=$2
shift 2

log=$build.log
mkdir -p "$(dirname "$build")"
failed() {
    echo "$1 failed:" >&2
    tail -n 60 "$log" >&2
    echo "0 passed, 1 failed"
    exit 1
}
again=
[ ! -f "$build/build.ninja" ] || again=--reconfigure
meson setup $again "$build" "$@" >"$log" 2>&1 || failed "meson setup $build"
meson compile -C "$build" >>"$log" 2>&1 || failed "building $build"

# Tests run side by side: threads that wait must not keep the others' processors busy.
export OMP_WAIT_POLICY=passive
# Counted from what this run wrote, never from an older run's report.
rm -f "$build"/meson-logs/testlog*
status=0
# shellcheck disable=SC2086 # a list of words
meson test -C "$build" --no-rebuild --print-errorlogs --suite "$suite" ${TEST_ARGS-} || status=$?
python3 tools/count-tests.py "$build/meson-logs" || status=1
exit "$status"
