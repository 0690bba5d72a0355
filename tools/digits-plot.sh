#!/bin/sh
# SPDX-License-Identifier: MIT
# Trains examples/digits by each algorithm that can run its layers, and draws the losses, each the mean of the last epoch's
# steps, which agree; and below, how far single steps are from those of the direct sums. That distance grows: once rounding
# puts a sample on the other side of a ReLU, the weights diverge, as they do after any change of the order of sums.
#   tools/digits-plot.sh [PNG]        (docs/images/digits-loss.png)
set -eu
cd "$(dirname "$0")/.."
png=${1-docs/images/digits-loss.png}
tools/setup.sh bench
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build examples/digits >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
examples/digits/export.py "$work/digits.bin"

# Name, file, colour and width of each curve: later ones are thinner, so that all are seen.
while read -r engine color width; do
    file=$work/${engine#*/}.csv
    if build/examples/digits --engine "$engine" --loss "$file" "$work/digits.bin" >"$work/said" 2>&1; then
        awk -F, -v n=44 'NR > 1 { sum += $2 - kept[NR % n]; kept[NR % n] = $2
                                  if (NR > n) print $1 "," sum / n }' "$file" >"$file.mean"
        echo "$engine $file $color $width $(sed -n 's/^accuracy \([0-9.]*\).*/\1/p' "$work/said")"
    else
        sed 's/^/left out: /' "$work/said" >&2
    fi
done >"$work/curves" <<'END'
cpu/direct #c0c0c0 7
cpu/gemm #e0a000 4.5
cpu/winograd #b04a00 3
cpu/tiles #0060a8 1.2
END
[ -s "$work/curves" ] || exit 1

{
    cat <<END
set terminal pngcairo size 1000, 700 font 'DejaVu Sans,10' background '#ffffff'
set output '$png'
set datafile separator ','
set multiplot layout 2, 1 title 'Learning digits by different algorithms' font ',13'
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border lc rgb '#606060'
set lmargin 12
set rmargin 2
set logscale y
set xrange [0:$(tail -n 1 "$(head -n 1 "$work/curves" | cut -d' ' -f2)" | cut -d, -f1)]
set format y '10^{%T}'
set key top right
set ylabel 'loss, mean of 44 steps'
END
    awk '{ printf "%s \"%s.mean\" using 1:2 with lines lw %s lc rgb \"%s\" title \"%s, accuracy %s %%\"",
           NR == 1 ? "plot" : ",", $2, $4, $3, $1, $5 } END { print "" }' "$work/curves"
    cat <<END
set xlabel 'step'
set ylabel "relative distance\nfrom the first curve's loss"
set key bottom right
END
    first=$(head -n 1 "$work/curves" | cut -d' ' -f2)
    tail -n +2 "$work/curves" | while read -r engine file color width _; do
        paste -d, "$first" "$file" | awk -F, -v OFS=, 'NR > 1 { d = $4 / $2 - 1; print $1, d < 0 ? -d : d }' >"$file.apart"
        echo "$engine $file.apart $color"
    done >"$work/apart"
    if [ -s "$work/apart" ]; then
        awk '{ printf "%s \"%s\" using 1:($2 > 0 ? $2 : 1/0) with lines lw 1 lc rgb \"%s\" title \"%s\"",
               NR == 1 ? "plot" : ",", $2, $3, $1 } END { print "" }' "$work/apart"
    fi
    echo 'unset multiplot'
} >"$work/script"
mkdir -p "$(dirname "$png")"
gnuplot "$work/script"
