#!/bin/sh
# SPDX-License-Identifier: MIT
# Plots the time of each call of a stream, one panel per contender, from the files of
# `bench_stream --calls FOLDER`.
#   tools/load-plot.sh FOLDER CASE PNG
set -eu
[ $# = 3 ] || {
    echo "usage: tools/load-plot.sh FOLDER CASE PNG" >&2
    exit 2
}
folder=$1 case=$2 png=$3
rate=48000 seconds=3 columns=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The figures cover the whole run, the points its first seconds.
figures() {
    tail -n +2 "$1" | cut -d, -f2 | sort -g | awk '
        function us(seconds) { return sprintf(seconds < 1e-4 ? "%.3g µs" : "%.0f µs", 1e6 * seconds) }
        { sorted[NR] = $1; sum += $1 }
        END { printf "mean %s, p99.9 %s, max %s", us(sum / NR), us(sorted[int((999 * NR + 999) / 1000)]), us($1) }'
}

# The lines of the gnuplot script that plot one panel each, Partita first.
panels=0
for name in cpu-partitioned zita-convolver ffmpeg-afir textbook-two-stage textbook-uniform; do
    file=$folder/$case.$name.csv
    [ -f "$file" ] || continue
    title=$name color='#b04a00'
    [ "$name" != cpu-partitioned ] || title='Partita, cpu/partitioned' color='#0060a8'
    cat <<END
set title "{/:Bold $title}\n{/=9 $(figures "$file")}"
set ylabel "$([ $((panels % columns)) != 0 ] || echo 'time of a call, µs')"
plot '$file' using (\$1 / $rate.):(1e6 * \$2) with points pt 7 ps 0.3 lc rgb '$color' notitle, \\
     deadline with lines dt 2 lw 1.5 lc rgb '#c00000' notitle
END
    panels=$((panels + 1))
    block=$(sed -n 3p "$file" | cut -d, -f1)
    echo "$panels $block" >"$work/count"
done >"$work/panels"
[ -f "$work/count" ] || {
    echo "$folder has no calls of $case" >&2
    exit 1
}
read -r panels block <"$work/count"
rows=$(((panels + columns - 1) / columns))

mkdir -p "$(dirname "$png")"
{
    cat <<END
set terminal pngcairo size 1200, $((340 * rows + 30)) font 'DejaVu Sans,10' background '#ffffff'
set output '$png'
set datafile separator ','
deadline = 1e6 * $block / $rate.
set multiplot layout $rows, $columns \\
    title "Load per call, $case: calls of $block frames, each the minimum of several identical runs" font ',13' offset 0, -0.3
set logscale y
set yrange [0.5:5000]
set xrange [0:$seconds]
set samples 2
set xtics 1
set mxtics 4
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border lc rgb '#606060'
set lmargin 10
set rmargin 1.5
set tmargin 4
set xlabel "time in the stream at $rate frames a second, s" offset 0, 0.3
set label 1 sprintf("deadline %.0f µs", deadline) at graph 0.02, first deadline * 1.35 tc rgb '#c00000' font ',9'
END
    cat "$work/panels"
    echo 'unset multiplot'
} >"$work/script"
gnuplot "$work/script"
