#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs missing packages, builds the program alone into build-demo/, and filters a recording (the voices of
# alsa-utils, one after another) with an impulse response (a guitar amplifier of guitarix-common, measured at another
# sample rate). Prints the latency, the speed relative to real time, the planner's choice and its reasons, and the path
# of the result. tools/test.sh builds everything else.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh demo
build="build-demo"
log=$build.log
# Native transforms need no library; whatever else the demo does not run is left out.
if [ ! -f $build/build.ninja ]; then
    echo "configuring       $build, log in $log"
    meson setup $build -Dprogram=enabled -Dfft=native -Dcuda=disabled -Dlive=disabled -Dplot=disabled -Dmpi=disabled \
        -Dlv2=disabled -Dexamples=false -Dtests=false -Dbench=false >$log 2>&1 || {
        cat $log >&2
        exit 1
    }
fi
echo "compiling         the library and the program, about a minute on two cores"
# One line that counts in a terminal, else a line for each tenth; the rest goes to the log.
[ -t 1 ] && every=1 end='\r' || every=10 end='\n'
{ NINJA_STATUS='%f %t ' ninja -C $build apps/partita 2>&1 || echo "failed"; } | tee $log | awk -v every="$every" -v end="$end" '
    $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && int(every == 1 ? $1 : 10 * $1 / $2) > shown {
        shown = int(every == 1 ? $1 : 10 * $1 / $2)
        printf "compiling         %d of %d" end, $1, $2
        fflush()
    }
    END { if (every == 1 && shown) print "" }'
if [ "$(tail -n 1 $log)" = failed ]; then
    tail -n 60 $log >&2
    exit 1
fi

ir='/usr/share/gx_head/sounds/amps/Engl Retro Tube.wav'
python3 - $build/voices.wav /usr/share/sounds/alsa/*_*.wav <<'END'
import sys
import wave
with wave.open(sys.argv[1], "wb") as joined:
    for number, path in enumerate(sys.argv[2:]):
        with wave.open(path, "rb") as part:
            if number == 0:
                joined.setparams(part.getparams())
            joined.writeframes(part.readframes(part.getnframes()))
END
echo "recording         $build/voices.wav, from /usr/share/sounds/alsa"
echo "impulse response  $ir"
# As for live audio: at most 1024 frames of delay.
$build/apps/partita convolve --resample-ir --block 1024 --gain -6 --stats --verbose "$ir" $build/voices.wav \
    $build/amplified.wav 2>&1
echo "result            $PWD/$build/amplified.wav"
