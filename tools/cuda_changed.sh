#!/bin/sh
# SPDX-License-Identifier: MIT
# Status 0 if the sources of the CUDA module, or their tests, differ from those that last passed on the stand-in for a
# GPU. .ci/stand-in names them: lines "HASH FOLDER" with git's hash of a folder's files.
#   tools/cuda_changed.sh
#   tools/cuda_changed.sh --record      writes .ci/stand-in: HEAD has passed
set -eu
cd "$(dirname "$0")/.."
# The module is lib/cuda, linked with the floors that know no device.
folders='lib/base lib/core lib/geometry lib/stream lib/cuda tests/hostdev tests/device'
record=.ci/stand-in

# shellcheck disable=SC2086 # a list of folders
committed() { git diff --quiet HEAD -- $folders; }
now=$(for folder in $folders; do echo "$(git rev-parse "HEAD:$folder") $folder"; done)
if [ "${1-}" = --record ]; then
    ! committed || echo "$now" >"$record"
elif [ "$now" = "$(cat "$record" 2>/dev/null)" ] && committed; then
    exit 1
fi
