#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks ptxas' output for the CUDA kernels in a build folder, for each architecture that the module is
# built for: kernels must not spill registers to memory, and the critical ones have a limit of
# registers, so that enough threads are resident. Without a module it prints a message and ends.
#   tools/ptxas.sh [-v] [BUILD]        [build]; -v prints every kernel
set -eu
cd "$(dirname "$0")/.."

verbose=
if [ "${1-}" = -v ]; then
    verbose=1
    shift
fi
texts=$(find "${1:-build}/lib/cuda" -name '*.ptxas' 2>/dev/null | sort)
if [ -z "$texts" ]; then
    echo "the CUDA module was not built: registers of its kernels not checked"
    exit 0
fi

# Kernel and its limit. A multiprocessor has 65536 registers and a block has 256 threads: with 64
# registers four blocks are resident, with 80 three, with 128 two.
limits='direct_plain_kernelIf 80
direct_tile_kernelIfLi8E 128
direct_tile_kernelIfLi1E 64
direct_span_kernelIf 80
weight_kernelIfEE 192
product_kernelIfLi4ELi2E 128
product_kernelIfLi2ELi2E 128
product_kernelIdLi4ELi2E 128
product_kernelI10complex_ofIfELi4ELi2E 128
product_kernelI10complex_ofIfELi2ELi2E 128
product_kernelIfLi2ELi1E 168
product_kernelIfLi1ELi1E 168
product_kernelI10complex_ofIfELi2ELi1E 168
product_kernelI10complex_ofIfELi1ELi1E 168
tensor_kernelIfLi2ELi2ELi4E 255
tensor_kernelI10complex_ofIfELi2ELi2ELi4E 255
tiles_kernelIfLi4ELi4E 48
tiles_kernelIfLi6ELi6E 96
tiles_kernelIfLi8ELi8E 128
output_kernelIfLi4ELi4E 64
output_kernelIfLi6ELi6E 80
output_kernelIfLi8ELi8E 128
gemm_load_kernelIf 64
gemm_store_kernelIf 64
separable_kernelIfLi5E 64
separable_kernelIfLi8E 80
load_tiles_kernelIf 80
store_tiles_kernelIf 80
load_taps_kernelIf 80
store_taps_kernelIf 80
fused_kernelIf 80
fused_weight_kernelIf 80
lags_kernelIf 128
gradient_kernelIf 128
filter_kernelIf 128
long_rows_kernelIf 128
pairs_kernelIf 132
16intervals_kernelIf 64
windows_kernelIf 96
results_kernelIf 128
products_kernelIf 64
products_kernelId 80
forward_kernelIf 128
inverse_kernelIf 128'

# shellcheck disable=SC2086
awk -v verbose="$verbose" -v limits="$limits" '
    BEGIN { n = split(limits, words); for (i = 1; i < n; i += 2) limit[words[i]] = words[i + 1] }
    /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2]; architecture = quoted[4] }
    /bytes spill stores/ { spills = $5 + $9 }
    /Used [0-9]+ registers/ {
        for (i = 1; i <= NF; i++) if ($i == "Used") registers = $(i + 1)
        kernels++
        if (verbose) print architecture, kernel, registers " registers", spills " bytes spilled"
        if (spills) { print architecture, kernel ": " spills " bytes spilled"; bad = 1 }
        for (name in limit)
            if (index(kernel, name)) {
                seen[name] = 1
                if (registers + 0 > limit[name] + 0) {
                    print architecture, kernel ": " registers " registers, " limit[name] " allowed"; bad = 1
                }
            }
    }
    END {
        for (name in limit) if (!(name in seen)) { print name ": has a limit, but there is no such kernel"; bad = 1 }
        print kernels " kernels checked"
        exit bad
    }' $texts
