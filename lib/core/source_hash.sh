#!/bin/sh
# SPDX-License-Identifier: MIT
# source_hash.sh ROOT OUTPUT DEPFILE: writes a C file with a hash of all sources in lib/ and include/, by which the
# library recognises a CUDA module that was built with it, and says in DEPFILE what it was made from. What only the
# module has, lib/cuda, is left out: the library is not linked again when a kernel changes.
set -eu
root=$1 output=$2 depfile=$3
cd "$root"
files=$(find lib include -path lib/cuda -prune -o -name '*.[ch]' -print | LC_ALL=C sort)
# shellcheck disable=SC2086 # names in this tree have no spaces
hash=$(sha256sum $files | sha256sum | cut -c 1-32)
cd "$OLDPWD"
cat >"$output" <<END
#include "core/device.h"

const char device_source_hash[] = "$hash";
END
{
    printf '%s:' "$output"
    for file in $files; do printf ' \\\n  %s/%s' "$root" "$file"; done
    echo
} >"$depfile"
