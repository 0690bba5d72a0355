#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds Partita as the subproject of a small project, with the shared and the static library, where nothing is
# installed that pkg-config would find; then tests what is installed from it.
# Usage: subproject.sh SOURCE_FOLDER     (CC in the environment)
source=$1
# shellcheck source=tests/support/tap.sh
. "$(dirname "$0")/support/tap.sh"

mkdir -p "$folder/install/parent/subprojects" "$folder/empty"
cp "$source"/tests/install/example.c "$source"/tests/install/CMakeLists.txt "$folder/install"
cp "$source/tests/install/parent/meson.build" "$folder/install/parent"
ln -s "$source" "$folder/install/parent/subprojects/partita"
build=$folder/build
PKG_CONFIG_LIBDIR=$folder/empty quietly meson setup "$build" "$folder/install/parent" -Dpartita:cuda=disabled &&
    quietly meson compile -C "$build"
report $? build
"$build/parent" >"$folder/output"
grep -q '^1 0 0.5 0.25 0 0 0 0 cpu/direct' "$folder/output"
report $? "run: $(cat "$folder/output")"
[ -z "$(find "$build" -name 'test_*' -o -name 'bench_*' -o -name find_burst -o -name partita -type f)" ]
report $? library-alone

"$source/tests/install.sh" "$build" "$folder/install" >"$folder/output"
status=$?
sed 's/^/# /' "$folder/output"
grep -q '^ok .* compile-static' "$folder/output" && grep -q '^ok .* cmake-cxx_partita_static' "$folder/output"
report $((status + $?)) installed

end
