#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs missing packages, builds, and filters a recording (the voices of alsa-utils, one after
# another) with an impulse response (a guitar amplifier of guitarix-common, measured at another
# sample rate). Prints the latency, the speed relative to real time, the planner's choice and its
# reasons, and the path of the result.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh
mkdir -p build/demo
log=build/demo/build.log
echo "building          takes some minutes; log in $log"
{ [ -f build/build.ninja ] || meson setup build; meson compile -C build; } >$log 2>&1 || {
    cat $log >&2
    exit 1
}

ir='/usr/share/gx_head/sounds/amps/Engl Retro Tube.wav'
python3 tools/join-wav.py build/demo/voices.wav /usr/share/sounds/alsa/*_*.wav
echo "recording         build/demo/voices.wav, from /usr/share/sounds/alsa"
echo "impulse response  $ir"
# As for live audio: at most 1024 frames of delay.
build/apps/partita convolve --resample-ir --block 1024 --gain -6 --stats --verbose "$ir" build/demo/voices.wav \
    build/demo/amplified.wav 2>&1
echo "result            $PWD/build/demo/amplified.wav"
