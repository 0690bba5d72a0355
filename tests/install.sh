#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the build into a temporary folder, compiles a small program in C and in C++ with the flags of pkg-config and
# with CMake, with the shared and the static library, whichever were built, and runs it. The libraries export only what
# the installed headers declare; the reference lies where man and readers look for it.
# Usage: install.sh BUILD_FOLDER USER_FOLDER     (CC, SANITIZE and LTO in the environment)
build=$1
user=$2
: "${CC:=cc}" "${SANITIZE:=none}" "${LTO:=false}"
# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/support/tap.sh"

DESTDIR=$folder/root quietly meson install -C "$build" --no-rebuild
report $? meson-install

pc=$(find "$folder/root" -name partita.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$folder/root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
pkg-config --exists --print-errors partita
report $? pkg-config

libdir=$(dirname "$(find "$folder/root" -name 'libpartita.so' -o -name 'libpartita.a' | head -n 1)")
library=$libdir/libpartita.so
archive=$libdir/libpartita.a
prefix=$(dirname "$(find "$folder/root" -type d -name include)")
prints() { # PROGRAM NAME
    output=$(LD_LIBRARY_PATH=$libdir "$1")
    [ "$output" = "1 0 0.5 0.25 0 0 0 0 cpu/direct $(pkg-config --modversion partita)" ]
    report $? "$2: $output"
}

sanitize=
[ "$SANITIZE" = none ] || sanitize=-fsanitize=$SANITIZE
if [ -f "$library" ]; then
    # shellcheck disable=SC2046,SC2086 # several words on purpose
    quietly $CC -std=c11 -Wall -Wextra -Wpedantic -Werror $sanitize "$user/example.c" -o "$folder/shared" $(pkg-config --cflags --libs partita)
    report $? compile
    prints "$folder/shared" run
fi
if [ -f "$archive" ]; then
    # Libpartita from its archive, everything else as the system has it.
    # shellcheck disable=SC2046,SC2086
    quietly $CC -std=c11 $sanitize "$user/example.c" -o "$folder/static" $(pkg-config --static --cflags --libs partita |
        sed 's/-lpartita/-l:libpartita.a/')
    report $? compile-static
    ! readelf -d "$folder/static" | grep -q 'NEEDED.*libpartita'
    report $? static-needs-no-libpartita.so
    prints "$folder/static" run-static
fi

CXX=${CXX:-$(echo "$CC" | sed 's/clang/clang++/; s/gcc/g++/; s/^cc$/c++/')}
export CXX
quietly cmake -S "$user" -B "$folder/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$sanitize" \
    -DCMAKE_CXX_FLAGS="$sanitize" -DCMAKE_EXE_LINKER_FLAGS="$sanitize" && quietly cmake --build "$folder/cmake"
report $? cmake
for program in "$folder"/cmake/c*_partita*; do
    prints "$program" "cmake-$(basename "$program")"
done

[ -f "$prefix/share/man/man3/partita_forward.3" ] && [ -f "$prefix/share/doc/partita/html/plan.html" ]
report $? reference

# The libraries export exactly the functions that the installed headers declare.
declared=$(cat "$folder"/root/*/*/include/partita/*.h | tr '\n' ' ' | grep -o 'PARTITA_API [^(;]*(' | grep -o 'partita_[a-z_]*($' | tr -d '(' | sort -u)
exports() { # NAMES LIBRARY
    [ "$declared" = "$1" ] || printf '%s\n--\n%s\n' "$declared" "$1" | sed 's/^/# /'
    [ "$declared" = "$1" ]
    report $? "exports-what-is-declared: $2"
}

if [ -f "$library" ]; then
    names=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $NF}' | sort -u)
    exports "$(echo "$names" | sed 's/@.*//')" libpartita.so
    ! echo "$names" | grep -v '@@PARTITA_[0-9]*\.[0-9]*$' | sed 's/^/# without a version: /' | grep .
    report $? versions-of-symbols
fi
if [ -f "$archive" ] && [ "$LTO" = false ]; then
    # Names of the compiler's own begin with a dot.
    exports "$(nm -g --defined-only "$archive" | awk 'NF == 3 && $NF !~ /^\./ {print $NF}' | sort -u)" libpartita.a

    # A program may use every private name of the library.
    internal=$(find "$build" -name libpartita-internal.a | head -n 1)
    nm -g --defined-only "$internal" | awk 'NF == 3 && $NF !~ /^partita_/ {print "int " $NF ";"}' | sort -u >"$folder/own.c"
    # shellcheck disable=SC2046,SC2086
    grep -q '^int arena_allocate;' "$folder/own.c" && quietly $CC -std=c11 $sanitize "$user/example.c" "$folder/own.c" \
        -o "$folder/own" $(pkg-config --static --cflags --libs partita | sed 's/-lpartita/-l:libpartita.a/')
    report $? "compile-static-with-its-names: $(wc -l <"$folder/own.c")"
    prints "$folder/own" run-static-with-its-names
fi

end
