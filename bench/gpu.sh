#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything that is to be done on a machine with an NVIDIA GPU: builds, runs the suite gpu and compute-sanitizer, times
# bench_gpu and PyTorch beside it, and writes docs/gpu-verified.json and docs/gpu-bench.md from what they found. Without
# a device it says what is missing and writes nothing: status 77. What failed is said, and keeps gpu-verified.json from
# being written; a sanitizer that is not there, or did not finish, is noted in it.
#   bench/gpu.sh [--quick] [--limit SECONDS] [STEP...]   steps: build suite sanitizer bench peers report [all, in this order]
#   --quick: an eighth of each batch, to try the machinery; the report is printed, nothing is written
#   --limit: stops in time, status 75 if something is left: run it again and it goes on where it was
# Results are in build/gpu-results (--quick: build/gpu-results-quick), as long as the sources stay what they were; they may be
# brought to another machine: the step report needs no device. For a GPU's machine that lacks what building needs there
# is one more step, pack: build/gpu-pack has all programs, with the libraries that they need besides CUDA's. Bring this
# tree there with build/gpu-pack in it, but without build/build.ninja: then the step build has nothing to do. python3
# and a driver are enough, cuFFT for long transforms and compute-sanitizer for the step sanitizer aside.
# Building needs CUDA 12 or later; tools/setup.sh test installs the rest.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/gpu_env.sh
. tools/gpu_env.sh
results=build/gpu-results
quick=
CASE_SECONDS=240
PEER_SECONDS=900
while :; do
    case ${1-} in
    --quick) quick=--quick results=build/gpu-results-quick ;;
    --limit)
        GPU_UNTIL=$(($(date +%s) + $2))
        export GPU_UNTIL
        shift
        ;;
    *) break ;;
    esac
    shift
done

# seconds MOST: how many of them are left.
seconds() {
    left=$((${GPU_UNTIL:-9999999999} - $(date +%s)))
    echo $((left < $1 ? left : $1))
}

# The program and its tests need libraries that a machine for computing seldom has; nothing here needs live audio.
build() {
    if [ ! -f build/build.ninja ] && [ -d build/gpu-pack ]; then return 0; fi
    for tool in cc c++ meson ninja nvcc pkg-config; do
        command -v "$tool" >/dev/null || echo "missing: $tool" >&2
    done
    [ -f build/build.ninja ] || meson setup build -Dcuda=enabled -Dlive=disabled
    ninja -C build
}

# Libraries of the C compiler's own are everywhere; those of CUDA are the other machine's.
pack() {
    rm -rf build/gpu-pack
    build || return 1
    mkdir -p build/gpu-pack/carried build/gpu-pack/meson-info build/gpu-pack/lib
    cp build/meson-info/meson-info.json build/meson-info/intro-tests.json build/gpu-pack/meson-info
    for file in lib/libpartita.so.0 lib/libpartita-cuda.so apps/partita bench/bench_gpu $(python3 tools/gpu_suite.py --programs build); do
        mkdir -p "build/gpu-pack/$(dirname "$file")"
        cp -L "build/$file" "build/gpu-pack/$file"
        ldd "build/$file"
    done | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
        case $library in
        */ld-linux* | */libc.so* | */libm.so* | */libpthread.so* | */libdl.so* | */librt.so* | */libstdc++.so* | */libgcc_s.so*) ;;
        */libcuda* | */libcufft* | "$PWD"/* | */libpartita*) ;;
        *) cp -L "$library" build/gpu-pack/carried ;;
        esac
    done
    du -sh build/gpu-pack
}

suite() {
    GPU_RESULTS=$results tools/gpu.sh suite
}

sanitizer() {
    GPU_RESULTS=$results tools/gpu.sh memcheck racecheck
}

# Each case for itself: one that crashes or hangs costs its own rows alone.
bench() {
    mkdir -p "$results/rows" "$results/logs"
    with_libraries "$programs/bench/bench_gpu" --describe >"$results/cases.csv" || return 1
    with_libraries "$programs/bench/bench_gpu" --engines >"$results/engines.csv" || return 1
    ended=0
    for case in $(with_libraries "$programs/bench/bench_gpu" --list); do
        [ ! -e "$results/rows/$case.csv" ] || continue
        limit=$(seconds "$CASE_SECONDS")
        [ "$limit" -gt 10 ] || return 75
        status=0
        with_libraries timeout -k 5 "$limit" "$programs/bench/bench_gpu" $quick --case "$case" --calls "$results/calls" \
            >"$results/rows/$case.part" 2>"$results/logs/$case.log" || status=$?
        case $status in
        0 | 1) ;; # its log says which contenders were wrong
        124 | 137)
            [ "$limit" -eq "$CASE_SECONDS" ] || return 75
            echo "$case: bench_gpu took more than $limit s: failed" >>"$results/logs/$case.log"
            ;;
        *) echo "$case: bench_gpu ended with status $status: failed" >>"$results/logs/$case.log" ;;
        esac
        [ "$status" -eq 0 ] || ended=1
        cat "$results/logs/$case.log" >&2
        mv "$results/rows/$case.part" "$results/rows/$case.csv"
    done
    return "$ended"
}

# Where PyTorch is not installed its rows are missing from the table, which says so.
peers() {
    status=0
    limit=$(seconds "$PEER_SECONDS")
    [ "$limit" -gt 10 ] || return 75
    timeout -k 5 "$limit" python3 bench/peers/torch_gpu.py $quick "$results/cases.csv" "$results/torch.csv" \
        >"$results/torch.log" 2>&1 || status=$?
    cat "$results/torch.log" >&2
    case $status in
    0) rm -f "$results/peers.failed" ;;
    75 | 124 | 137) return 75 ;;
    *) echo "torch_gpu.py: status $status" >"$results/peers.failed" && return 1 ;;
    esac
}

report() {
    if [ -n "$quick" ]; then python3 tools/gpu_report.py --print "$results"; else python3 tools/gpu_report.py "$results"; fi
}

# Results are of the sources that are here, else they are put aside.
begin() {
    if why_not=$(tools/gpu.sh --why-not); then
        echo "$why_not"
        exit 77
    fi
    source=$(python3 tools/gpu_report.py --source)
    before=$(cat "$results/source" 2>/dev/null || echo "$source")
    if [ "$before" != "$source" ]; then
        rm -rf "$results-of-$before"
        mv "$results" "$results-of-$before"
        echo "results of other sources are now in $results-of-$before" >&2
    fi
    mkdir -p "$results"
    echo "$source" >"$results/source"
    echo "device $(device_line)" >"$results/device.outcome"
    [ -s "$results/driver" ] || nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory \
        --format=csv,noheader >"$results/driver" 2>/dev/null || echo "nvidia-smi not installed" >"$results/driver"
}

[ $# -gt 0 ] || set -- build suite sanitizer bench peers report
worst=0
for step in "$@"; do
    case $step in
    build | pack | report) ;;
    suite | sanitizer | bench | peers) begin ;;
    *)
        echo "bench/gpu.sh: no step '$step'; there are build, pack, suite, sanitizer, bench, peers and report" >&2
        exit 2
        ;;
    esac
    echo "== $step" >&2
    status=0
    # A step that fails keeps none of the others from being done, but for the one that they are built by.
    $step || status=$?
    [ "$status" -eq 0 ] || echo "== $step: status $status" >&2
    case $step:$status in build:0 | pack:0) ;; build:* | pack:*) exit "$status" ;; esac
    if [ "$status" -ne 0 ] && [ "$worst" -ne 1 ]; then worst=$status; fi
done
(exit "$worst")
