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

# Limits of registers, each followed by the kernels that have it. A multiprocessor has 65536 registers and a block has 256
# threads: with 64 registers four blocks are resident, with 80 three, with 128 two.
limits='
48 tiles_kernelIffLi4ELi4E
64 direct_tile_kernelIfLi1E output_kernelIffLi4ELi4E gemm_load_kernelIf gemm_store_kernelIf
    separable_kernelIfLi5E 16intervals_kernelIf products_kernelIf
80 direct_plain_kernelIf direct_span_kernelIf output_kernelIffLi6ELi6E separable_kernelIfLi8E load_tiles_kernelIf
    store_tiles_kernelIf load_taps_kernelIf store_taps_kernelIf fused_kernelIf fused_weight_kernelIf
    products_kernelId
96 tiles_kernelIffLi6ELi6E windows_kernelIf
128 direct_tile_kernelIfLi8E product_kernelIfLi4ELi2E product_kernelIfLi2ELi2E product_kernelIdLi4ELi2E
    product_kernelI10complex_ofIfELi4ELi2E product_kernelI10complex_ofIfELi2ELi2E tiles_kernelIffLi8ELi8E
    output_kernelIffLi8ELi8E lags_kernelIf filter_kernelIf long_rows_kernelIf results_kernelIf
    forward_kernelIf inverse_kernelIf
132 pairs_kernelIf
168 product_kernelIfLi2ELi1E product_kernelIfLi1ELi1E product_kernelI10complex_ofIfELi2ELi1E
    product_kernelI10complex_ofIfELi1ELi1E
192 weight_kernelIfEE
255 tensor_kernelIfLi2ELi2ELi4E tensor_kernelI10complex_ofIfELi2ELi2ELi4E'

# shellcheck disable=SC2086
awk -v verbose="$verbose" -v limits="$limits" '
    BEGIN {
        n = split(limits, words)
        for (i = 1; i <= n; i++) if (words[i] ~ /^[0-9]+$/) registers = words[i]; else limit[words[i]] = registers
    }
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
