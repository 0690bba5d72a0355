#!/bin/sh
# SPDX-License-Identifier: MIT
# Formatting of C, lint of shell scripts, length of files, the line that every source file starts with, and how the
# sources are ordered.
set -eu
cd "$(dirname "$0")/.."
status=0

git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 clang-format --dry-run --Werror || status=1
git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck -x || status=1
git ls-files -z '*.c' '*.h' '*.cu' '*.cuh' | xargs -0 awk '
    FNR == 1 && !/^\/\/ SPDX-License-Identifier: MIT$/ { print FILENAME ": does not start with its licence"; bad = 1 }
    FNR == 501 { print FILENAME ": more than 500 lines"; bad = 1 }
    END { exit bad }' || status=1
tools/house.py || status=1
exit "$status"
