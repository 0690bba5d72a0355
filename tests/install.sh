#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the build into a temporary folder, compiles a small program with the flags of pkg-config, runs it, and checks
# that the shared library exports only partita_*.
# Usage: install.sh BUILD_FOLDER EXAMPLE.c     (CC and SANITIZE in the environment)
build=$1
example=$2
: "${CC:=cc}" "${SANITIZE:=none}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

report() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

DESTDIR=$folder meson install -C "$build" --no-rebuild >"$folder/log" 2>&1 || { sed 's/^/# /' "$folder/log"; false; }
report $? meson-install

pc=$(find "$folder" -name partita.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$folder
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
pkg-config --exists --print-errors partita
report $? pkg-config

sanitize=
[ "$SANITIZE" = none ] || sanitize=-fsanitize=$SANITIZE
# shellcheck disable=SC2046,SC2086 # several words on purpose
$CC -std=c11 -Wall -Wextra -Wpedantic -Werror $sanitize "$example" -o "$folder/example" $(pkg-config --cflags --libs partita)
report $? compile

library=$(find "$folder" -name 'libpartita.so')
output=$(LD_LIBRARY_PATH=$(dirname "$library") "$folder/example")
[ "$output" = "1 0 0.5 0.25 0 0 0 0 cpu/direct $(pkg-config --modversion partita)" ]
report $? "run: $output"

others=$(nm -D --defined-only "$library" | awk '{print $NF}' | grep -v '^partita_')
[ -z "$others" ] || echo "# exported: $others"
[ -z "$others" ]
report $? exports-partita-only

# The library exports exactly the functions that the installed headers declare.
declared=$(cat "$folder"/*/*/include/partita/*.h | tr '\n' ' ' | grep -o 'PARTITA_API [^(;]*(' | grep -o 'partita_[a-z_]*($' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$library" | awk '{print $NF}' | sort -u)
[ "$declared" = "$exported" ] || printf '%s\n--\n%s\n' "$declared" "$exported" | sed 's/^/# /'
[ "$declared" = "$exported" ]
report $? exports-what-is-declared

echo "1..$n"
exit $failed
