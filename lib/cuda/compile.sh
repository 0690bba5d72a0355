#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs nvcc and keeps what ptxas says of registers in a file, for tools/ptxas.sh; everything else is shown.
#   compile.sh FILE NVCC ARGUMENT...
file=$1
shift
"$@" -Xptxas -v 2>"$file"
status=$?
grep -v -e '^ptxas info' -e '^ *[0-9]* bytes stack frame' -e '^$' "$file" >&2
exit "$status"
