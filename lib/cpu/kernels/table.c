// SPDX-License-Identifier: MIT
// The table of one instruction set and precision; every slot has a kernel at every level.
#include "names.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const struct kernels KERNEL(table) = {
    .isa = TEXT(ISA),
    .f64 = sizeof(REAL) == sizeof(double),
    .fir = KERNEL(fir),
    .fir_complex = KERNEL(fir_complex),
    .cmac = KERNEL(cmac),
    .cmac_lines = KERNEL(cmac_lines),
    .peak = KERNEL(peak),
    .blend = KERNEL(blend),
    .add = KERNEL(add),
    .scale = KERNEL(scale),
    .split = KERNEL(split),
    .join = KERNEL(join),
    .conv = KERNEL(conv),
    .conv_weight = KERNEL(conv_weight),
    .conv_store = KERNEL(conv_store),
    .sum = KERNEL(sum),
    .fft = &KERNEL(fft),
    .tile = {.forward = KERNEL(tile_forward),
             .inverse = KERNEL(tile_inverse),
             .gather = KERNEL(tile_gather),
             .clip = KERNEL(tile_clip),
             .scatter = KERNEL(tile_scatter),
             .split = KERNEL(tile_split),
             .join = KERNEL(tile_join),
             .factors = KERNEL(tile_factors)},
};
