#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a static library of one object, in which only exported symbols are global.
# Usage: archive.sh OBJCOPY AR INTERNAL_ARCHIVE LIBRARY COMPILER...
set -eu
objcopy=$1 ar=$2 internal=$3 library=$4
shift 4
object=${library%.a}.o
"$@" -r -nostdlib -Wl,--whole-archive "$internal" -Wl,--no-whole-archive -o "$object"
"$objcopy" --localize-hidden "$object"
rm -f "$library"
"$ar" rcs "$library" "$object"
rm "$object"
