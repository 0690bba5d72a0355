#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs Debian packages by group; says nothing when all are there. Without a name: build (what a whole build uses).
# Further groups: demo (what tools/demo.sh needs), python (to build and test the package for Python), and beside those of
# build: test (what the suite compares with), bench (the peers, pictures), ci (second compiler, sanitizers, checks, and a
# cache with which the package for Python compiles no kernel again), slow (Debian packages, fuzzers, digits to learn,
# aarch64 under qemu, the web site), wheels (what packaging/wheels.sh needs beside python).
#   tools/setup.sh [build] [demo] [python] [test] [bench] [ci] [slow] [wheels]
set -eu

compiler="gcc libc6-dev python3"
program="$compiler meson ninja-build pkg-config libsndfile1-dev libsoxr-dev libjansson-dev libmd-dev"
# dpkg-dev tells meson where Debian keeps libraries; without it they end up where neither linker nor pkg-config looks.
build="$program dpkg-dev libfftw3-dev libarchive-dev libcairo2-dev portaudio19-dev lv2-dev liblo-dev libmysofa-dev
    libmicrohttpd-dev libyaml-dev libopenmpi-dev openmpi-bin libcmocka-dev libliquid-dev libspeexdsp-dev alsa-utils
    guitarix-common"
[ $# -gt 0 ] || set -- build
packages=
for group in "$@"; do
    case $group in build | test | bench | ci | slow) packages="$packages $build" ;; esac
    case $group in
    build) ;;
    demo)
        packages="$packages $program alsa-utils guitarix-common"
        ;;
    test)
        packages="$packages python3-scipy python3-h5py sox ffmpeg groff-base mandoc bash zsh fish g++ cmake jackd2
            libjack-jackd2-dev jconvolver jconvolver-config-files liblilv-dev lilv-utils sordi"
        ;;
    python)
        packages="$packages $compiler python3-venv python3-dev"
        ;;
    bench)
        packages="$packages python3-scipy sox ffmpeg g++ libzita-convolver-dev libavfilter-dev libdnnl-dev libopenblas-dev
            gnuplot-nox fonts-dejavu-core python3-sklearn linux-perf"
        ;;
    ci)
        packages="$packages ccache clang llvm libomp-dev libclang-rt-dev clang-format shellcheck git universal-ctags
            abigail-tools"
        ;;
    slow)
        packages="$packages jalv pipewire-bin debhelper lintian mmdebstrap clang llvm libclang-rt-dev gcc-aarch64-linux-gnu
            libc6-dev-arm64-cross qemu-user libgomp1:arm64 libfftw3-dev:arm64 libsndfile1-dev:arm64 libsoxr-dev:arm64
            libjansson-dev:arm64 libmd-dev:arm64 libcmocka-dev:arm64 libliquid-dev:arm64 python3-sklearn make snakemake
            python3-venv python3-dev chromium chromium-driver"
        ;;
    wheels)
        packages="$packages $compiler dpkg-dev make ccache gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
        ;;
    *)
        echo "tools/setup.sh: no group '$group'; there are build, demo, python, test, bench, ci, slow and wheels" >&2
        exit 2
        ;;
    esac
done

native=$(dpkg --print-architecture)
missing=
for package in $packages; do
    # The same name may be there for another architecture only.
    case $package in *:*) architecture=${package#*:} ;; *) architecture=$native ;; esac
    dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$package" 2>/dev/null |
        grep -q -x -e "$architecture installed" -e 'all installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
    root=sudo
    command -v sudo >/dev/null || {
        echo "tools/setup.sh: as root, install:$missing" >&2
        exit 1
    }
fi
echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >>"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}
case $missing in
*:arm64*) $root dpkg --add-architecture arm64 ;;
esac
# shellcheck disable=SC2086 # a list of words
{
    apt update
    apt install --no-install-recommends $missing
}
