#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the suite gpu on this machine's CUDA device. Runs it again, shortened and with bench_gpu's
# small cases, under compute-sanitizer if that is installed. Each build/gpu-suite/*.outcome is one
# line: a step and its result. Without a device this script prints what is missing and runs nothing:
# status 77.
#   tools/gpu.sh [--why-not | suite | memcheck | racecheck]...     [all three]
#   --why-not: only prints what is missing, status 1 if nothing is
# GPU_RESULTS: another folder for results; results that are there are not repeated. GPU_UNTIL: see
# tools/gpu_suite.py.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/gpu_env.sh
. tools/gpu_env.sh
results=${GPU_RESULTS:-build/gpu-suite}

line=$(device_line)
case $line in
cuda:*) [ "${1-}" != --why-not ] || exit 1 ;;
*)
    echo "skipped: ${line:-$programs/bench/bench_gpu does not run}"
    if [ "${1-}" = --why-not ]; then exit 0; else exit 77; fi
    ;;
esac

# Without GPU_RESULTS everything is run again.
[ -n "${GPU_RESULTS-}" ] || rm -rf build/gpu-suite
mkdir -p "$results"
echo "$line"
echo "device $line" >"$results/device.outcome"
status=0
[ $# -gt 0 ] || set -- suite memcheck racecheck
for step in "$@"; do
    tool=
    case $step in
    suite) echo "source $(python3 tools/gpu_report.py --source)" >"$results/source.outcome" ;;
    memcheck | racecheck)
        tool="--tool $step"
        command -v compute-sanitizer >/dev/null || {
            echo "$step not run: compute-sanitizer not installed" | tee "$results/$step.outcome"
            continue
        }
        ;;
    *)
        echo "tools/gpu.sh: no step '$step'; there are suite, memcheck and racecheck" >&2
        exit 2
        ;;
    esac
    ended=0
    # shellcheck disable=SC2086 # none or two words
    with_libraries python3 tools/gpu_suite.py $tool "$programs" "$results/$step" >"$results/$step.line" || ended=$?
    echo "$step $(tail -n 1 "$results/$step.line")" | tee "$results/$step.outcome"
    # A failure has precedence over steps that did not finish.
    if [ "$ended" -ne 0 ] && [ "$status" -ne 1 ]; then status=$ended; fi
done
[ ! -e "$results/suite.line" ] || tail -n 1 "$results/suite.line" # counted by .ci/run
exit "$status"
