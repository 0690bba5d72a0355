#!/bin/sh
# SPDX-License-Identifier: MIT
# Configures a build folder, builds it, runs one test suite in it and ends with the line that counts its tests.
#   tools/suite.sh BUILD SUITE [meson setup options...]
# TEST_ARGS="..." is passed to meson test. TEST_NAMES="..." runs only these tests and builds only what they need.
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
[ -n "${TEST_NAMES-}" ] || meson compile -C "$build" >>"$log" 2>&1 || failed "building $build"

# Tests run side by side: threads that wait must not keep the others' processors busy.
export OMP_WAIT_POLICY=passive
# Counted from what this run wrote, never from an older run's report.
rm -f "$build"/meson-logs/testlog*
status=0
# run OPTION...: runs meson test with TEST_ARGS and these options
run() {
    # shellcheck disable=SC2086 # a list of words
    meson test -C "$build" --print-errorlogs ${TEST_ARGS-} "$@"
}
if [ "$suite" = fast ] && [ -z "${TEST_NAMES-}" ]; then
    # Tests of suite alone mostly wait: they run one at a time, beside the others, which have a lower priority.
    run --no-rebuild --suite alone --logbase testlog-alone >"$build.alone.log" 2>&1 &
    alone=$!
    renice -n 5 $$ >/dev/null
    run --no-rebuild --suite fast --no-suite alone || status=$?
    wait "$alone" || status=$?
    cat "$build.alone.log"
else
    # shellcheck disable=SC2086
    run --suite "$suite" ${TEST_NAMES-} || status=$?
fi
python3 tools/count_tests.py "$build"/meson-logs/testlog*.junit.xml "$build"/meson-logs/testlog*.json || status=1
exit "$status"
