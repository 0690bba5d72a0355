#!/bin/sh
# SPDX-License-Identifier: MIT
# Verifies and measures on a machine with an NVIDIA GPU: builds, runs the suite gpu and
# compute-sanitizer, times bench_gpu and PyTorch, and writes docs/gpu-verified.json and
# docs/gpu-bench.md. Without a device it prints what is missing and writes nothing: status 77. What
# failed is recorded in gpu-verified.json, which has a verdict for each engine.
#   bench/gpu.sh [--quick] [--limit SECONDS] [STEP...]
#   bench/gpu.sh --why-not        only prints what is missing, status 1 if nothing is
#   STEP: build, suite, sanitizer, bench, peers, report [all, in this order]; pack, see below
#   --quick: a trial run with an eighth of each batch; the report is printed, nothing is written
#   --limit: stops in time, with status 75 if something is left; another run continues
# Results are in build/gpu-results (--quick: build/gpu-results-quick) as long as the sources do not
# change. If OUT is set, they are also in the archive $OUT/gpu-results.tgz, which is renewed after
# every step and case, so that a run that is cut off leaves what was done. The step report needs no
# device, so results may be copied to another machine. For a machine with a GPU but without a
# compiler, run the step pack elsewhere: build/gpu-pack then has all programs, and the libraries they need besides CUDA's.
# Copy this tree with build/gpu-pack, but without build/build.ninja; the step build then does nothing. python3 and a driver suffice, except
# that long transforms need cuFFT and the step sanitizer needs compute-sanitizer. Building needs
# CUDA 12 or later, and cmocka for the step suite (tools/setup.sh test installs it). Without cmocka
# the step sanitizer has only bench_gpu's cases.
# On a machine that is there for minutes only, three commands of ten minutes each bring back the most valuable results
# first: the suite's counts, the GPU's rates, and rows of our engines and of cuFFT; the cases that are left, then
# PyTorch's rows; what memcheck and racecheck find:
#   bench/gpu.sh --limit 280 suite; bench/gpu.sh --limit 290 bench
#   bench/gpu.sh --limit 570 bench peers
#   bench/gpu.sh --limit 570 sanitizer
set -eu
cd "$(dirname "$0")/.."
unset PARTITA_CUDA_MODULE # a stand-in is not a device
PATH=$PATH:/usr/local/cuda/bin
results=build/gpu-results
quick=
CASE_SECONDS=240
PEER_SECONDS=900
# Programs are built here, or packed on another machine (step pack).
programs=build
[ -e build/build.ninja ] || [ ! -d build/gpu-pack ] || programs=build/gpu-pack

# cuFFT is in the toolkit, or in the packages of PyTorch.
packages=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cufft=$(find /usr/local/cuda*/lib64/ /usr/local/cuda*/targets/*/lib/ "$packages/nvidia" -name 'libcufft.so.1[12]' 2>/dev/null | head -n 1)
libraries=$PWD/$programs/carried${cufft:+:$(dirname "$cufft")}

# with_libraries COMMAND...: for our programs only. PyTorch has libraries of its own, which these
# would replace.
with_libraries() {
    LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# Prints the line of the first CUDA device, or the line that says what is missing. bench_gpu does not
# start without cuFFT, `partita` is not built without libsndfile.
device_line() {
    {
        with_libraries "$programs/bench/bench_gpu" --device ||
            with_libraries "$programs/apps/partita" devices
    } 2>/dev/null | grep '^cuda' | head -n 1 || true
}

# Prints what is missing; status 1 if nothing is.
why_not() {
    line=$(device_line)
    case $line in cuda:*) return 1 ;; esac
    echo "skipped: ${line:-$programs/bench/bench_gpu does not run}"
}

while :; do
    case ${1-} in
    -h | --help)
        sed -n '3,/^set -eu/ { /^set -eu/d; s/^# \{0,1\}//; p }' bench/gpu.sh
        exit 0
        ;;
    --why-not)
        if why_not; then exit 0; else exit 1; fi
        ;;
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

# seconds MAX: the seconds that are left, at most MAX.
seconds() {
    left=$((${GPU_UNTIL:-9999999999} - $(date +%s)))
    echo $((left < $1 ? left : $1))
}

# keep: renews the archive, whole at any time.
keep() {
    [ -n "${OUT-}" ] || return 0
    tar czf "$OUT/.part.tgz" -C "$(dirname "$results")" "$(basename "$results")" && mv "$OUT/.part.tgz" "$OUT/$(basename "$results").tgz"
}

# configure FOLDER [OPTION...]
configure() {
    if printf '#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <cmocka.h>\n' |
        cc -E - >/dev/null 2>&1; then
        tests=true
    else
        tests=false
        echo "cmocka not installed: built without tests; the step suite is not run, sanitizer runs bench_gpu alone" >&2
    fi
    meson setup "$@" -Dcuda=enabled -Dlive=disabled -Dtests=$tests
}

# Without live audio, whose libraries a compute server seldom has.
build() {
    if [ ! -f build/build.ninja ] && [ -d build/gpu-pack ]; then return 0; fi
    for tool in cc c++ meson ninja nvcc; do
        command -v "$tool" >/dev/null || echo "missing: $tool" >&2
    done
    [ -f build/build.ninja ] || configure build
    ninja -C build
}

# Configured and built apart, for compute capability 9.0 alone; device code is compressed, programs
# have no symbols, so that the pack is small. The C library and the compiler's libraries are on every machine; CUDA's are the other machine's
# own.
pack() {
    rm -rf build/gpu-pack
    built=build/gpu-pack-build
    [ -f $built/build.ninja ] || configure $built -Dgpu_arch=90 || return 1
    packed="bench/bench_gpu $(python3 tools/gpu_suite.py --programs $built)"
    # shellcheck disable=SC2086 # a list of words
    NVCC_APPEND_FLAGS='-Xfatbin -compress-all' ninja -C $built lib/libpartita-cuda.so $packed || return 1
    mkdir -p build/gpu-pack/carried build/gpu-pack/meson-info build/gpu-pack/lib
    cp $built/meson-info/meson-info.json $built/meson-info/intro-tests.json build/gpu-pack/meson-info
    for file in lib/libpartita.so.0 lib/libpartita-cuda.so $packed; do
        mkdir -p "build/gpu-pack/$(dirname "$file")"
        strip -o "build/gpu-pack/$file" "$built/$file"
        ldd "$built/$file"
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
    with_libraries python3 tools/gpu_suite.py "$programs" "$results" suite
}

sanitizer() {
    with_libraries python3 tools/gpu_suite.py "$programs" "$results" memcheck racecheck
}

# One process for each case: if it crashes or hangs, only its own rows are lost.
bench() {
    mkdir -p "$results/rows" "$results/logs"
    with_libraries "$programs/bench/bench_gpu" --describe >"$results/cases.csv" || return 1
    with_libraries "$programs/bench/bench_gpu" --engines >"$results/engines.csv" || return 1
    if [ ! -e "$results/rates" ]; then
        with_libraries timeout -k 5 60 "$programs/bench/bench_gpu" --rates >"$results/rates.part" && mv "$results/rates.part" "$results/rates"
    fi
    ended=0
    for case in $(with_libraries "$programs/bench/bench_gpu" --list); do
        [ ! -e "$results/rows/$case.csv" ] || continue
        limit=$(seconds "$CASE_SECONDS")
        [ "$limit" -gt 10 ] || return 75
        status=0
        with_libraries timeout -k 5 "$limit" "$programs/bench/bench_gpu" $quick --case "$case" --calls "$results/calls" \
            >"$results/rows/$case.part" 2>"$results/logs/$case.log" || status=$?
        case $status in
        0 | 1) ;; # its log names the contenders with wrong answers
        124 | 137)
            [ "$limit" -eq "$CASE_SECONDS" ] || return 75
            echo "$case: bench_gpu took more than $limit s: failed" >>"$results/logs/$case.log"
            ;;
        *) echo "$case: bench_gpu ended with status $status: failed" >>"$results/logs/$case.log" ;;
        esac
        [ "$status" -eq 0 ] || ended=1
        cat "$results/logs/$case.log" >&2
        mv "$results/rows/$case.part" "$results/rows/$case.csv"
        keep
    done
    return "$ended"
}

# Without PyTorch its rows are missing from the table, which says so.
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

# Results of other sources are moved away.
begin() {
    if why_not; then exit 77; fi
    source=$(python3 tools/gpu_report.py --source)
    before=$(cat "$results/source" 2>/dev/null || echo "$source")
    if [ "$before" != "$source" ]; then
        kept=$results-of-$before n=1
        while [ -e "$kept" ]; do
            n=$((n + 1))
            kept=$results-of-$before-$n
        done
        mv "$results" "$kept"
        echo "results of other sources are now in $kept" >&2
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
    # The other steps are done after a failure, unless it is the build that failed.
    $step || status=$?
    [ "$status" -eq 0 ] || echo "== $step: status $status" >&2
    case $step in suite | sanitizer | peers) keep ;; esac
    case $step:$status in build:0 | pack:0) ;; build:* | pack:*) exit "$status" ;; esac
    if [ "$status" -ne 0 ] && [ "$worst" -ne 1 ]; then worst=$status; fi
done
(exit "$worst")
