#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds into build-bench/, runs every benchmark with its peers, and writes docs/bench.md, the rows in docs/bench, the
# picture and the tables of README.md from their output. Takes an hour; the machine must be idle, or ratios mean nothing.
#   tools/bench.sh [--quick]        --quick: a short trial run; writes nothing into the tree
#   tools/bench.sh --again SUBJECT  repeats one benchmark and keeps all other rows; on another processor, in its folder
#   tools/bench.sh --avx2           streams, signals, layers and networks with AVX2 alone, in some ten minutes
set -eu
cd "$(dirname "$0")/.."
build="build-bench"
results=build/bench-results
subjects="plan memory small fft nonfinite fir stream control signal cli layer accuracy winograd network bank adaptive channelizer long_file python_signal python_networks python_causal python_decode python_sequence"
python="build-ci/python/bin/python"
status=0

usage() {
    echo "usage: tools/bench.sh [--quick | --avx2 | --again SUBJECT]; subjects are $subjects" >&2
    exit 2
}
case "$*" in
'' | --quick | --avx2) ;;
'--again '*) case " $subjects " in *" $2 "*) [ $# -eq 2 ] || usage ;; *) usage ;; esac ;;
*) usage ;;
esac
commit=$(git describe --always --dirty)
case "$commit $*" in
*-dirty\ --quick) ;;
*-dirty\ *)
    echo "tools/bench.sh: commit the changes first: the page names the commit that was measured" >&2
    exit 1
    ;;
esac

# run SUBJECT [--quick]
run() {
    subject=$1
    shift
    echo "$subject" >&2
    case $subject in
    python_*) "$python" bench/programs/"$subject".py "$@" ;;
    control | long_file) bench/programs/"$subject".py $build "$@" ;;
    adaptive | bank | channelizer) $build/bench/bench_"$subject" "$@" ;;
    accuracy | memory | winograd) $build/bench/bench_"$subject" ;;
    *) $build/bench/bench_"$subject" "$@" --calls $results/calls ;;
    esac >$results/"$subject".csv || status=1
}

# Meson remembers which libraries and headers it did not find: where peers are absent it begins anew.
build() {
    if grep -q . $build/bench/absent-peers; then
        meson setup --wipe $build
    elif [ ! -f $build/build.ninja ]; then
        meson setup $build -Dprogram=enabled -Dtests=false -Dexamples=false -Dcuda=disabled -Dlive=disabled \
            -Dplot=disabled -Dlv2=disabled -Dmpi=disabled
    fi && ninja -C $build
}

# Peers that this machine does not have, each with what it needs.
absent() {
    sed '/^$/d' $build/bench/absent-peers
    for program in ffmpeg sox; do command -v $program >/dev/null || echo "$program ($program)"; done
    /usr/bin/python3 -c 'import scipy.signal' 2>/dev/null || echo "scipy-* (python3-scipy)"
    "$python" -c 'import torch' 2>/dev/null || echo "torch (PyTorch in build-ci/python: tools/python.sh --install 3600, with 15 GB free)"
}

tools/setup.sh bench
build >$build.log 2>&1 || {
    tail -n 60 $build.log >&2
    exit 1
}
awk '$1 > 0.5 { print "the machine is not idle: load average " $1 }' /proc/loadavg >&2
case $* in
'--again python_'* | '--again network' | '' | --quick | --avx2) tools/python.sh --install 3600 ;;
esac
absent=$(absent)
[ -z "$absent" ] || {
    echo "absent peers, whose rows will be missing:"
    echo "$absent" | sed 's/^/  /'
    echo "To have them, install what stands in brackets (\`tools/setup.sh bench\` does on Debian 12) and start again."
} >&2

case ${1-} in
--again) subjects=$2 ;;
--avx2)
    subjects="stream signal layer network"
    export PARTITA_CPU=avx2 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 OPENBLAS_CORETYPE=Haswell \
        MKL_ENABLE_INSTRUCTIONS=AVX2
    ;;
esac
option=$(echo "${1-}" | sed s/quick/print/)
images=docs/images
[ "$option" != --print ] || images=$results
short=
case $option in --print | --avx2) short=--quick ;; esac
rm -rf $results
mkdir -p $results
cat /proc/loadavg >$results/load
echo "$commit" >$results/commit
"$python" -m pip list --disable-pip-version-check --format=freeze 2>/dev/null | grep -E '^(numpy|scipy|torch)==' \
    >$results/python-peers || :
for subject in $subjects; do
    run "$subject" $short
done
$build/bench/bench_layer --weights >$results/layer-weights
# shellcheck disable=SC2086 # no option is no word
python3 tools/bench_table.py $option $build $results
[ "$option" = --print ] || python3 bench/seeds.py
plotted=mono-b64-t480000
case "$option $subjects" in
--avx2*) ;;
*stream*) tools/load_plot.sh $results/calls $plotted $images/load-$plotted.png || status=1 ;;
esac
exit $status
