#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs bench_gpu on the stand-in for a device, with small sizes. Checks that every engine of the
# device has a right answer in at least one case, that the other engines are reported as missing,
# and that the peers of bench_gpu have right answers. The times mean nothing; the device is called
# hostdev in the output.
#   hostdev.sh PROGRAM
set -u
program=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
n=0

check() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

"$program" --device | grep -q "^cuda:0   hostdev"
check $? device
"$program" --tiny --engines >"$folder/engines"
check $? engines
"$program" --rates | grep -q "^rates: launch [0-9].*; measured$"
check $? rates
"$program" --tiny --describe >"$folder/cases"
check $? describe
"$program" --tiny --quick >"$folder/rows" 2>"$folder/messages"
check $? run
sed 's/^/# /' "$folder/messages"
sed 1d "$folder/engines" | tr , ' ' >"$folder/list"
while read -r engine state; do
    case $state in
    there) grep -q ",$engine," "$folder/rows" ;;
    *) grep -q "$engine left out: .*no such engine" "$folder/messages" ;;
    esac
    check $? "$engine is $state"
done <"$folder/list"
for peer in cufft-complex cufft-real cufft-blocks two-passes ladder-memory ladder-cache \
    ladder-input-tile ladder-output-tile cpu/partitioned cuda/partitioned-16-bit; do
    grep -q ",$peer," "$folder/rows"
    check $? "$peer answers right"
done
# Without cuFFT only its rows are missing.
PARTITA_CUFFT=none "$program" --tiny --quick --case causal-1K-forward >"$folder/without" 2>"$folder/messages"
check $? "run without cuFFT"
grep -q ",auto," "$folder/without" && ! grep -q ",cufft-" "$folder/without"
check $? "only the rows of cuFFT are missing"
echo "1..$n"
