#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the C programs of README.md and docs/c.md against a build folder's library, runs them, and compares what each prints with its
# own "// prints: " comment.
#   tools/readme_example.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lib=$(cd "$build/lib" && pwd)
awk -v into="$folder" '/^```c$/ { n++; inside = 1; next } /^```$/ { inside = 0 }
    inside { print >(into "/example" n ".c") }' README.md docs/c.md
for source in "$folder"/example*.c; do
    program=${source%.c}
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -o "$program" "$source" \
        -L"$lib" -lpartita -Wl,-rpath,"$lib"
    expected=$(sed -n 's,.*// prints: ,,p' "$source")
    printed=$("$program")
    if [ -z "$expected" ] || [ "$printed" != "$expected" ]; then
        echo "README.md, docs/c.md: ${program##*/} prints '$printed', its comment says '$expected'" >&2
        exit 1
    fi
done
