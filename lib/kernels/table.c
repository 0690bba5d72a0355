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
    .cmac_partitions = KERNEL(cmac_partitions),
    .peak = KERNEL(peak),
    .blend = KERNEL(blend),
    .add = KERNEL(add),
    .scale = KERNEL(scale),
    .split = KERNEL(split),
    .join = KERNEL(join),
    .conv = KERNEL(conv),
    .conv_weight = KERNEL(conv_weight),
    .conv_rows = KERNEL(conv_rows),
    .conv_columns = KERNEL(conv_columns),
    .conv_store = KERNEL(conv_store),
    .lanes_read = KERNEL(lanes_read),
    .lanes_write = KERNEL(lanes_write),
    .lanes_conv = KERNEL(lanes_conv),
    .lanes_weight = KERNEL(lanes_weight),
    .lanes_dft = KERNEL(lanes_dft),
    .lanes_dft_inverse = KERNEL(lanes_dft_inverse),
    .lanes_product = KERNEL(lanes_product),
    .sum = KERNEL(sum),
#if REAL_BYTES == 4
    .widen = {[HALF_F16] = KERNEL(widen_f16), [HALF_BF16] = KERNEL(widen_bf16)},
    .narrow = {[HALF_F16] = KERNEL(narrow_f16), [HALF_BF16] = KERNEL(narrow_bf16)},
#endif
    .winograd_input = KERNEL(winograd_input),
    .winograd_output = KERNEL(winograd_output),
    .winograd_taps = KERNEL(winograd_taps),
    .deinterleave = KERNEL(deinterleave),
    .interleave = KERNEL(interleave),
    .fft = &KERNEL(fft),
    .tile = {.forward = KERNEL(tile_forward),
             .inverse = KERNEL(tile_inverse),
             .gather = KERNEL(tile_gather),
             .clip = KERNEL(tile_clip),
             .scatter = KERNEL(tile_scatter),
             .split = KERNEL(tile_split),
             .join = KERNEL(tile_join),
             .factors = KERNEL(tile_factors),
             .scalars = KERNEL(tile_scalars)},
};
