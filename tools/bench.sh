#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds, runs every benchmark with its peers, and writes docs/bench.md, its picture and the table
# in README.md from their output. Takes an hour; the machine must be idle, or ratios mean nothing.
#   tools/bench.sh [--quick]        --quick: a short trial run; writes nothing into the tree
#   tools/bench.sh --again SUBJECT  repeats one benchmark and keeps the other rows of the last whole run; the table
#                                   names its commit
#   tools/bench.sh --avx2           streams, signals, layers and networks with AVX2 alone, in some ten minutes, and
#                                   docs/bench-avx2.md; needs no other run
# Subjects are the names of bench/programs, for example signal, python_signal or long_file.
set -eu
cd "$(dirname "$0")/.."
results=build/bench-results
subjects="plan small fft nonfinite fir stream control signal cli layer network bank long_file python_signal python_networks"
python=build-ci/python/bin/python
status=0

# run SUBJECT [--quick]
run() {
    subject=$1
    shift
    echo "$subject" >&2
    case $subject in
    python_*) "$python" bench/programs/"$subject".py "$@" ;;
    control | long_file) bench/programs/"$subject".py build "$@" ;;
    bank) build/bench/bench_bank "$@" ;;
    *) build/bench/bench_"$subject" "$@" --calls $results/calls ;;
    esac >$results/"$subject".csv || status=1
}

# The environment of the package, with the peers that PyPI has today.
prepare_python() {
    tools/python_env.sh 3600
    mkdir -p $results
    "$python" -m pip list --disable-pip-version-check --format=freeze | grep -E '^(numpy|scipy|torch)==' \
        >$results/python-peers
}

tools/setup.sh bench
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build >/dev/null
commit=$(git describe --always --dirty)
awk '$1 > 0.5 { print "the machine is not idle: load average " $1 }' /proc/loadavg >&2

if [ "${1-}" = --again ]; then
    case $2 in python_* | network) prepare_python ;; esac
    run "$2"
    echo "$commit" >$results/"$2".commit
    python3 tools/bench-table.py build $results
    exit $status
fi
only=
case "$*" in
*--avx2*)
    only=avx2
    results=build/bench-results-avx2
    subjects="stream signal layer network"
    set -- --quick
    # oneDNN's, also in PyTorch, PyTorch's own, OpenBLAS's and MKL's switch. Others have none.
    export PARTITA_CPU=$only ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=$only OPENBLAS_CORETYPE=Haswell \
        MKL_ENABLE_INSTRUCTIONS=AVX2
    ;;
esac
rm -rf $results
mkdir -p $results
cat /proc/loadavg >$results/load
echo "$commit" >$results/commit
prepare_python
for subject in $subjects; do
    run "$subject" "$@"
done
build/bench/bench_layer --weights >$results/layer-weights
if [ -n "$only" ]; then
    python3 tools/bench-table.py --$only build $results
    exit $status
fi
build/bench/bench_accuracy >$results/layer-accuracy || status=1
plotted=mono-b64-t480000
case "$*" in
*--quick*)
    python3 tools/bench-table.py --print build $results
    images=$results
    ;;
*)
    python3 tools/bench-table.py build $results
    images=docs/images
    ;;
esac
tools/load-plot.sh $results/calls $plotted $images/load-$plotted.png || status=1
exit $status
