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
echo "device $line" | tee "$results/device.outcome"
echo "source $(python3 tools/gpu_report.py --source)" >"$results/source.outcome"
[ $# -gt 0 ] || set -- suite memcheck racecheck
with_libraries python3 tools/gpu_suite.py "$programs" "$results" "$@"
