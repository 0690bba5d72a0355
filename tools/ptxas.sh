#!/bin/sh
# SPDX-License-Identifier: MIT
# What ptxas makes of the CUDA kernels, for each architecture that the module is built for: kernels must not spill
# registers to memory, and the hot ones keep to a budget of them, so that enough threads are resident. Without nvcc it
# says so and leaves.
#   tools/ptxas.sh [-v]        -v prints every kernel
set -eu
cd "$(dirname "$0")/.."

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
    echo "nvcc is not installed: registers of CUDA kernels not checked"
    exit 0
fi

# Kernel, registers: 65536 of a processor by 256 threads of a block, so that with 64 four blocks are resident, with 80
# three, with 128 two.
budgets='direct_kernelIf 80
tile_kernelIfLi8ELb1E 128
tile_kernelIfLi1ELb1E 64
tile_kernelIfLi8ELb0E 128
weight_kernelIfEE 192
product_kernelIfLi4ELi2E 128
product_kernelIfLi2ELi2E 128
product_kernelIdLi4ELi2E 128
product_kernelI10complex_ofIfELi4ELi2E 128
product_kernelI10complex_ofIfELi2ELi2E 128
tiles_kernelIfLi4ELi4E 48
tiles_kernelIfLi6ELi6E 96
output_kernelIfLi4ELi4E 64
output_kernelIfLi6ELi6E 80
separable_kernelIfLi5E 64
load_tiles_kernelIf 80
store_tiles_kernelIf 80
fused_kernelIf 80
fused_weight_kernelIf 80
lags_kernelIf 128
pairs_kernelIf 168
parts_kernelIf 96
results_kernelIf 128
products_kernelIf 64
products_kernelId 80
forward_kernelIf 128
inverse_kernelIf 128'

status=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for architecture in sm_80 sm_90; do
    for source in lib/cuda/*.cu; do
        "$nvcc" -std=c++17 -O3 -Iinclude -arch="$architecture" -Xptxas -v --cubin -o "$folder/cubin" "$source" 2>"$folder/text" || {
            cat "$folder/text"
            exit 1
        }
        awk -v architecture="$architecture" -v verbose="${1-}" -v budgets="$budgets" '
            BEGIN { n = split(budgets, words); for (i = 1; i < n; i += 2) budget[words[i]] = words[i + 1] }
            /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2] }
            /bytes spill stores/ { spills = $5 + $9 }
            /Used [0-9]+ registers/ {
                for (i = 1; i <= NF; i++) if ($i == "Used") registers = $(i + 1)
                if (verbose) print architecture, kernel, registers " registers", spills " bytes spilled"
                if (spills) { print architecture, kernel ": " spills " bytes spilled"; bad = 1 }
                for (name in budget)
                    if (index(kernel, name) && registers + 0 > budget[name] + 0) {
                        print architecture, kernel ": " registers " registers, " budget[name] " allowed"; bad = 1
                    }
            }
            END { exit bad }' "$folder/text" || status=1
    done
done
exit "$status"
