#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds, runs every benchmark with its peers, and writes docs/bench.md, its picture and the table
# in README.md from their output. Takes half an hour; the machine must be idle, or ratios mean
# nothing.
#   tools/bench.sh [--quick]        --quick: a short trial run; writes nothing into the tree
#   tools/bench.sh --again SUBJECT  repeats one benchmark and keeps the other rows of the last whole run; the table
#                                   names its commit
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh bench
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build >/dev/null
results=build/bench-results
commit=$(git describe --always --dirty)
awk '$1 > 0.5 { print "the machine is not idle: load average " $1 }' /proc/loadavg >&2

status=0
if [ "${1-}" = --again ]; then
    if [ "$2" = long_file ]; then bench/programs/long_file.py build
    elif [ "$2" = bank ]; then build/bench/bench_bank
    else build/bench/bench_"$2" --calls $results/calls; fi \
        >$results/"$2".csv || status=1
    echo "$commit" >$results/"$2".commit
    python3 tools/bench-table.py build $results
    exit $status
fi
rm -rf $results
mkdir -p $results
cat /proc/loadavg >$results/load
echo "$commit" >$results/commit
for subject in plan small fft fir stream signal cli layer; do
    echo "bench_$subject" >&2
    build/bench/bench_$subject "$@" --calls $results/calls >$results/$subject.csv || status=1
done
echo bench_bank >&2
build/bench/bench_bank "$@" >$results/bank.csv || status=1
build/bench/bench_layer --weights >$results/layer-weights
build/bench/bench_accuracy >$results/layer-accuracy || status=1
echo long_file >&2
bench/programs/long_file.py build "$@" >$results/long_file.csv || status=1
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
