#!/bin/sh
# SPDX-License-Identifier: MIT
# Plots the time of each call of a stream, one panel per contender, from the files of `bench_stream --calls FOLDER`.
#   tools/load_plot.sh FOLDER CASE PNG
set -eu
folder=$1 case=$2 png=$3
rate=48000 panels=''
for name in cpu-partitioned zita-convolver ffmpeg-afir textbook-two-stage textbook-uniform; do
    [ ! -f "$folder/$case.$name.csv" ] || panels="$panels $name"
done
[ -n "$panels" ] || {
    echo "$folder has no calls of $case" >&2
    exit 1
}
n=$(echo "$panels" | wc -w)
block=$(sed -n 3p "$folder/$case.${panels##* }.csv" | cut -d, -f1)
mkdir -p "$(dirname "$png")"

# The figures of a panel are those of the whole run, its points the first three seconds.
{
    cat <<END
set terminal pngcairo size 1200, $((340 * ((n + 2) / 3) + 30)) font 'DejaVu Sans,10' background '#ffffff'
set output '$png'
set datafile separator ','
deadline = 1e6 * $block / $rate
set multiplot layout $(((n + 2) / 3)), 3 \\
    title "Load per call, $case: calls of $block frames, each the minimum of several identical runs" font ',13'
set logscale y
set yrange [0.5:5000]
set xrange [0:3]
set samples 2
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border lc rgb '#606060'
set xlabel "time in the stream at $rate frames a second, s"
set ylabel "time of a call, µs"
set label 1 sprintf("deadline %.0f µs", deadline) at graph 0.02, first deadline * 1.35 tc rgb '#c00000' font ',9'
END
    for name in $panels; do
        file=$folder/$case.$name.csv
        figures=$(tail -n +2 "$file" | cut -d, -f2 | sort -g | awk '
            { sorted[NR] = 1e6 * $1; sum += 1e6 * $1 }
            END { printf "mean %.4g µs, p99.9 %.4g µs, max %.4g µs", sum / NR, sorted[int((999 * NR + 999) / 1000)], sorted[NR] }')
        cat <<END
set title "{/:Bold $name}\n{/=9 $figures}"
plot '$file' using (\$1 / $rate.):(1e6 * \$2) with points pt 7 ps 0.3 lc rgb '#0060a8' notitle, \\
     deadline with lines dt 2 lw 1.5 lc rgb '#c00000' notitle
END
    done
} | gnuplot
