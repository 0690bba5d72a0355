#!/bin/sh
# SPDX-License-Identifier: MIT
# Formatting of C, lint of shell scripts, length of files, the line that every source file starts with, and how the
# sources are ordered.
set -eu
cd "$(dirname "$0")/.."
status=0

git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 clang-format --dry-run --Werror || status=1
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -x || status=1
for file in $(git ls-files '*.c' '*.h' '*.cu' '*.cuh'); do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 500 ]; then
        echo "$file: $lines lines; 500 are allowed"
        status=1
    fi
    head -n 1 "$file" | grep -q '^// SPDX-License-Identifier: MIT$' || {
        echo "$file: does not start with its licence"
        status=1
    }
done
tools/house.py || status=1
exit "$status"
