#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that is to be done on a machine with an NVIDIA GPU: builds, runs the suite gpu and compute-sanitizer, times
# bench_gpu and PyTorch beside it, and writes docs/gpu-verified.json and docs/gpu-bench.md from what they found. Without
# a device it says what is missing and writes nothing: status 77. What failed is said, and keeps both files from being written.
#   bench/gpu.sh [--quick] [STEP...]     steps: build suite bench peers report [all of them, in this order]
#   --quick: an eighth of each batch, to try the machinery; the report is printed, nothing is written
set -eu
cd "$(dirname "$0")/.."
unset PARTITA_CUDA_MODULE # a stand-in is no device
results=build/gpu-results
quick=
if [ "${1-}" = --quick ]; then
    quick=--quick
    shift
fi

build() {
    for tool in cc meson ninja nvcc pkg-config; do
        PATH=$PATH:/usr/local/cuda/bin command -v $tool >/dev/null || echo "missing: $tool" >&2
    done
    [ -f build/build.ninja ] || meson setup build -Dcuda=enabled
    ninja -C build
}

suite() {
    tools/gpu.sh
}

bench() {
    rm -rf $results/calls $results/failed
    python3 tools/gpu_report.py --source >$results/source
    build/bench/bench_gpu --describe >$results/cases.csv
    build/bench/bench_gpu --engines >$results/engines.csv
    build/bench/bench_gpu $quick --calls $results/calls >$results/gpu.csv 2>$results/gpu.log || echo bench >>$results/failed
    cat $results/gpu.log >&2
}

# Where PyTorch is not installed its rows are missing from the table, which says so.
peers() {
    python3 bench/peers/torch_gpu.py $quick $results/cases.csv >$results/torch.csv 2>$results/torch.log ||
        echo peers >>$results/failed
    cat $results/torch.log >&2
}

report() {
    cp build/gpu-outcome $results/outcome # of the step suite
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory --format=csv,noheader \
        >$results/driver 2>/dev/null || echo "nvidia-smi not installed" >$results/driver
    if [ -n "$quick" ]; then python3 tools/gpu_report.py --print $results; else python3 tools/gpu_report.py $results; fi
}

[ $# -gt 0 ] || set -- build suite bench peers report
for step in "$@"; do
    case $step in
    build) ;;
    suite | bench | peers | report)
        if why_not=$(tools/gpu.sh --why-not); then
            echo "$why_not"
            exit 77
        fi
        mkdir -p $results
        ;;
    *)
        echo "bench/gpu.sh: no step '$step'; there are build, suite, bench, peers and report" >&2
        exit 2
        ;;
    esac
    echo "== $step" >&2
    $step
done
