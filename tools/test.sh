#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds with the default compiler into build/, runs the fast suite, and ends with a line that
# counts its tests. With --slow: the slow run instead, some hours on two cores: the fast suite with all instruction sets
# and on the stand-in for a GPU, other seeds, the second compiler with the native transforms, FFTW's alone, all subjects
# under the address sanitizer, fuzzers for 60 s each, a subproject, Debian packages, aarch64 under qemu, wheels, clusters
# of Dask. If all pass, .ci/stand-in names the sources of the CUDA module that were tested; commit it (see .ci/run).
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

tools/setup.sh test python ci slow
# shellcheck source=tools/steps.sh
. tools/steps.sh
options='-Dlive=enabled -Dgpu_arch=80,90 -Dcuda=auto -Dhostdev=true'
# shellcheck disable=SC2086 # lists of words
{
    step "gcc, the fast suite" tools/suite.sh build fast $options
    step "long runs" tools/suite.sh build slow $options
}
step "registers of CUDA kernels" tools/ptxas.sh
strict="-Dwerror=true -Db_ndebug=false -Dlive=disabled -Dcuda=disabled -Dhostdev=false"
# shellcheck disable=SC2086
step "clang, native transforms only" env CC="$(command -v ccache || :) clang" TEST_ARGS="--no-suite levels --no-suite texts" \
    tools/suite.sh build-ci/clang fast $strict -Dfft=native -Dplot=disabled
# Subjects that use transforms. tests/test_abi_changes.py needs debug information; -fno-var-tracking leaves out the
# places of variables, which take a fifth of the time of compilation.
transforms="planner wisdom explain error_reach threads threads_stream realtime state bank_options abi abi-changes"
for subject in fft batches blocks spectrum engines convolve nonfinite overflow stream stream_values partitioned \
    partitioned_values paths block_batches whole_blocks swap bank spectra_i16; do
    transforms="$transforms $subject-avx512"
done
# shellcheck disable=SC2086
step "gcc, FFTW only" env TEST_NAMES="$transforms" tools/suite.sh build-ci/fftw fast $strict -Ddebug=true \
    -Dc_args=-fno-var-tracking -Dfft=fftw -Dprogram=disabled -Dexamples=false -Dbench=false
step "addresses and undefined behaviour, all of it" tools/sanitize.sh address,undefined --all
fuzzers='fuzz-problem fuzz-wav fuzz-raw fuzz-npy fuzz-text fuzz-sigmf fuzz-config fuzz-control fuzz-design fuzz-equalizer fuzz-sofa'
step "fuzzers" env CC=clang TEST_NAMES="$fuzzers" tools/suite.sh build-ci/fuzz slow -Dfuzz=true -Dbench=false -Dcuda=disabled \
    -Dhostdev=false -Dc_args=-fsanitize=fuzzer-no-link -Db_sanitize=address,undefined -Db_lundef=false
step "aarch64 under qemu" env TEST_ARGS='-t 10' TEST_NAMES='kernels fft-neon problem convolve-neon' tools/suite.sh \
    build-ci/aarch64 fast --cross-file tools/cross_aarch64.ini -Dbench=false -Dcuda=disabled -Dhostdev=false
step "wheels" packaging/wheels.sh
step "the package for Python, long runs" env PARTITA_SLOW=1 tools/python.sh
steps_end && tools/cuda_changed.sh --record
