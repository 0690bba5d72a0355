#!/bin/sh
# SPDX-License-Identifier: MIT
# Status 0 if the sources of the CUDA module, or their tests, differ from what the last slow run tested. .ci/slow-run
# names that state: lines "HASH FOLDER" with git's hash of a folder's files.
#   tools/cuda_changed.sh
#   tools/cuda_changed.sh --record      writes .ci/slow-run: HEAD is tested
set -eu
cd "$(dirname "$0")/.."
# The module is lib/cuda, linked with the floors that know no device.
folders='lib/base lib/core lib/geometry lib/stream lib/cuda tests/hostdev tests/device'
record=.ci/slow-run

now=$(for folder in $folders; do echo "$(git rev-parse "HEAD:$folder") $folder"; done)
if [ "${1-}" = --record ]; then
    echo "$now" >"$record"
    exit 0
fi
# shellcheck disable=SC2086 # a list of folders
if [ "$now" = "$(cat "$record" 2>/dev/null)" ] && git diff --quiet HEAD -- $folders; then exit 1; fi
