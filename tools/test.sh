#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds with the default compiler into build/, runs the whole test suite, and ends with a
# line that counts its tests. With --slow: the long runs instead (other seeds, all subjects under the address sanitizer,
# fuzzers for 60 s each, a subproject, Debian packages, aarch64 under qemu, clusters of Dask).
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
'')
    tools/setup.sh test
    # shellcheck disable=SC2086 # a list of words
    exec tools/suite.sh build fast -Dlive=enabled ${SETUP_ARGS-}
    ;;
--slow) ;;
*)
    echo "usage: tools/test.sh [--slow]" >&2
    exit 2
    ;;
esac

tools/setup.sh test slow
# shellcheck source=tools/steps.sh
. tools/steps.sh
step "long runs" tools/suite.sh build slow -Dgpu_arch=80,90
step "registers of CUDA kernels" tools/ptxas.sh
step "addresses and undefined behaviour, all of it" tools/sanitize.sh address,undefined --all
fuzzers='fuzz-problem fuzz-wav fuzz-raw fuzz-npy fuzz-text'
step "fuzzers" env CC=clang TEST_ARGS="$fuzzers" tools/suite.sh build-ci/fuzz slow -Dfuzz=true -Dbench=false -Dcuda=disabled \
    -Dc_args=-fsanitize=fuzzer-no-link -Db_sanitize=address,undefined -Db_lundef=false
step "aarch64 under qemu" env TEST_ARGS='-t 10 kernels fft-neon problem convolve-neon' tools/suite.sh build-ci/aarch64 fast --cross-file tools/cross-aarch64.ini -Dbench=false -Dcuda=disabled
step "the package for Python, long runs" env PARTITA_SLOW=1 tools/python.sh
steps_end
