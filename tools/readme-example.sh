#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the first C program of README.md against a build folder's library, runs it, and compares what it prints with
# the program's own "// prints: " comment.
#   tools/readme-example.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
folder=$build/readme
mkdir -p "$folder"
lib=$(cd "$build/lib" && pwd)
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' README.md >"$folder/example.c"
"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -o "$folder/example" "$folder/example.c" \
    -L"$lib" -lpartita -Wl,-rpath,"$lib"
expected=$(sed -n 's,.*// prints: ,,p' "$folder/example.c")
printed=$("$folder/example")
if [ -z "$expected" ] || [ "$printed" != "$expected" ]; then
    echo "README.md: the program prints '$printed', its comment says '$expected'" >&2
    exit 1
fi
