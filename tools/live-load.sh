#!/bin/sh
# SPDX-License-Identifier: MIT
# Measures the time of every callback of `partita live` on a JACK server without hardware: 48 kHz,
# 64 frames, stereo, a filter of 10 s, a sine at both inputs (silence would be cheaper). Prints the
# figures and plots the calls, from the time on when the filter's history is full. Uses real-time
# scheduling if the system permits it.
#   tools/live-load.sh PARTITA PNG [SECONDS]
#   for example tools/live-load.sh build/apps/partita docs/images/live-load.png
set -eu
[ $# -ge 2 ] || {
    echo "usage: tools/live-load.sh PARTITA PNG [SECONDS]" >&2
    exit 2
}
partita=$1 png=$2 seconds=${3:-60}
rate=48000 block=64 taps=480000
work=$(mktemp -d)
export JACK_DEFAULT_SERVER=partita-load JACK_NO_AUDIO_RESERVATION=1 JACK_NO_START_SERVER=1
server='' source='' live=''
clean_up() {
    for process in $live $source $server; do kill "$process" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT

/usr/bin/python3 - "$work/hall.npy" $taps <<'END'
import sys
import numpy
n = int(sys.argv[2])
noise = numpy.random.default_rng(1).standard_normal((2, n))
numpy.save(sys.argv[1], (noise * numpy.exp(-numpy.arange(n) / 80000) / 500).astype("f4"))
END

scheduling='-R -P 10 -S' words='real-time scheduling'
chrt -f 10 true 2>/dev/null || scheduling=-r words='ordinary scheduling'
# shellcheck disable=SC2086 # two words
jackd $scheduling -m -d dummy -r $rate -p $block -C 2 -P 2 >"$work/jackd.log" 2>&1 &
server=$!

# Whether a port exists.
has_port() { jack_lsp 2>/dev/null | grep -q -x "$1"; }
wait_for_port() {
    tries=0
    until has_port "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 50 ] || {
            echo "$1: the port does not appear" >&2
            exit 1
        }
        sleep 0.2
    done
}

wait_for_port system:playback_1
jack_simple_client sine >/dev/null 2>&1 &
source=$!
wait_for_port sine:output2
"$partita" live --ir "$work/hall.npy" --device system --block $block --duration $((seconds + 12)) --json \
    --calls "$work/calls.csv" >"$work/lines" &
live=$!
wait_for_port partita:in_1
for channel in 0 1; do jack_connect "sine:output$((channel + 1))" "partita:in_$channel"; done
wait "$live"
live=''
if tail -n 2 "$work/lines" | head -n 1 | grep -q '"out":\[{"peak":null'; then
    echo "the output is silent" >&2
    exit 1
fi
tail -n +2 "$work/calls.csv" | awk -F, -v begin=$((rate * 12)) '$1 >= begin' >"$work/settled"
figures=$(cut -d, -f2 "$work/settled" | sort -g | awk -v deadline="$block/$rate" '
    BEGIN { split(deadline, part, "/"); deadline = part[1] / part[2] }
    function figure(seconds) { return sprintf("%.3g µs (%.2f %%)", 1e6 * seconds, 100 * seconds / deadline) }
    { sorted[NR] = $1; sum += $1; late += $1 > deadline }
    END {
        printf "%d calls: mean %s, p99 %s, p99.9 %s, max %s of the deadline of %.0f µs; %d late", NR, figure(sum / NR),
            figure(sorted[int((99 * NR + 99) / 100)]), figure(sorted[int((999 * NR + 999) / 1000)]), figure($1),
            1e6 * deadline, late
    }')
echo "$figures; $words"
tail -n 1 "$work/lines" | sed 's/.*\("xruns":[0-9]*\).*/\1/'

mkdir -p "$(dirname "$png")"
gnuplot <<END
set terminal pngcairo size 900, 400 font 'DejaVu Sans,10' background '#ffffff'
set output '$png'
set datafile separator ','
deadline = 1e6 * $block / $rate.
set title "{/:Bold partita live: stereo, $taps taps, $block frames, JACK, $words}\n{/=8 $figures}"
set logscale y
set yrange [0.5:5000]
set samples 2
set grid xtics ytics lt 1 lc rgb '#dddddd'
set border lc rgb '#606060'
set xlabel "time, s"
set ylabel "time of a callback, µs"
set label 1 sprintf("deadline %.0f µs", deadline) at graph 0.02, first deadline * 1.35 tc rgb '#c00000' font ',9'
set label 2 "10 %" at graph 0.02, first deadline * 0.135 tc rgb '#c08000' font ',9'
plot '$work/settled' using (\$1 / $rate.):(1e6 * \$2) with points pt 7 ps 0.2 lc rgb '#0060a8' notitle, \\
     deadline with lines dt 2 lw 1.5 lc rgb '#c00000' notitle, \\
     0.1 * deadline with lines dt 3 lw 1.2 lc rgb '#c08000' notitle
END
