#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the suite gpu of build/ on this machine's CUDA device, and once more, briefly, under compute-sanitizer if that is
# there. What came out is in build/gpu-outcome, a word and what it is on each line. Without a device it says what is
# missing and runs nothing: status 77.
#   tools/gpu.sh [--why-not]     --why-not: only says what is missing, status 1 if nothing is
set -eu
cd "$(dirname "$0")/.."
unset PARTITA_CUDA_MODULE # a stand-in is no device

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
echo "device $line" >build/gpu-outcome
echo "source $(python3 tools/gpu_report.py --source)" >>build/gpu-outcome
status=0
tools/suite.sh build gpu >build/gpu-suite.log 2>&1 || status=1
[ "$status" -eq 0 ] || cat build/gpu-suite.log
echo "suite $(tail -n 1 build/gpu-suite.log)" >>build/gpu-outcome
if command -v compute-sanitizer >/dev/null; then
    export PARTITA_TEST_BRIEF=1
    for tool in memcheck racecheck; do
        found=passed
        meson test -C build --no-rebuild --suite gpu --logbase "gpu-$tool" --timeout-multiplier 20 --wrapper \
            "compute-sanitizer --tool $tool --error-exitcode 9 --log-file $PWD/build/gpu-$tool-%p.log" \
            >"build/gpu-$tool.log" 2>&1 || found=failed
        [ "$found" = passed ] || { cat "build/gpu-$tool.log" && status=1; }
        echo "$tool $found" >>build/gpu-outcome
    done
else
    echo "compute-sanitizer not installed" >>build/gpu-outcome
fi
sed 1,2d build/gpu-outcome
tail -n 1 build/gpu-suite.log # counted by .ci/run
exit $status
