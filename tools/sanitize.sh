#!/bin/sh
# SPDX-License-Identifier: MIT
# The suite under sanitizers, any finding being a failure.
#   tools/sanitize.sh address,undefined|thread [--all]
# address,undefined: the fast suite in brief, without the suites long and texts, the stand-in for a GPU and checks inside
# the kernels of the CPU, which take most of the time to compile; --all has these too, at full length. The stand-in runs
# its threads in one random order. Suites levels and providers are always left out: they repeat subjects that run here.
# Threads: clang with its own OpenMP run-time and Archer, which tells the sanitizer how OpenMP synchronises; gcc's
# run-time says nothing and every parallel loop would look like a race.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
address,undefined)
    # The tests of kernels check kernels and transforms of every instruction set and provider; other subjects run with
    # the best instruction set and the default provider only. They take up to three times as long as without sanitizers.
    export TEST_ARGS='--no-suite levels --no-suite providers -t 3'
    checked=true
    [ "${2-}" = --all ] || {
        checked=false
        export PARTITA_TEST_BRIEF=1 TEST_ARGS="$TEST_ARGS --no-suite long --no-suite texts"
    }
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1
    exec tools/suite.sh build-ci/address fast -Db_sanitize=address,undefined -Dbuildtype=debugoptimized -Doptimization=1 \
        -Db_lundef=false -Dbench=false -Dwerror=true -Dcuda=disabled -Dc_args=-g1 -Dcpp_args=-g1 \
        -Dsanitize_kernels=$checked -Dhostdev=$checked
    ;;
thread)
    archer=$(find /usr/lib/llvm-*/lib -name libarcher.so | head -n 1)
    CC="$(command -v ccache || :) clang"
    export CC OMP_TOOL_LIBRARIES="$archer"
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1
    # What runs in parallel is the library: the program has one thread, and the sanitizer holds back the signals that
    # its tests send. The tests of time limits look for gcc's macro to leave themselves out.
    TEST_NAMES='threads threads-fftw threads_stream idle bank-avx512 engines-avx512 convolve-avx512 stream-avx512 swap-avx512'
    export TEST_NAMES="$TEST_NAMES alloc planner wisdom live-units live-chain lv2 lv2_changes"
    exec tools/suite.sh build-ci/thread fast -Db_sanitize=thread -Dbuildtype=debugoptimized -Db_lundef=false \
        -Dbench=false -Dwerror=true -Dcuda=disabled -Dc_args=-D__SANITIZE_THREAD__
    ;;
*)
    echo "usage: tools/sanitize.sh address,undefined|thread [--all]" >&2
    exit 2
    ;;
esac
