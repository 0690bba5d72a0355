// SPDX-License-Identifier: MIT
// Names of the kernels of one instruction set and precision. The build passes ISA (c, avx2, ...),
// TYPE (f32, f64) and REAL (float, double), and compiles each source once per pair, so that a
// kernel is an ordinary function.
#ifndef PARTITA_KERNEL_NAMES_H
#define PARTITA_KERNEL_NAMES_H

#include "fft_kernels.h"
#include "kernels.h"
#include "tile_kernels.h"

#define KERNEL_PASTE(op, type, isa) k_##op##_##type##_##isa
#define KERNEL_EXPAND(op, type, isa) KERNEL_PASTE(op, type, isa)
#define KERNEL(op) KERNEL_EXPAND(op, TYPE, ISA)

fir_fn KERNEL(fir);
fir_complex_fn KERNEL(fir_complex);
cmac_fn KERNEL(cmac);
cmac_partitions_fn KERNEL(cmac_partitions);
peak_fn KERNEL(peak);
blend_fn KERNEL(blend);
add_fn KERNEL(add);
scale_fn KERNEL(scale);
split_fn KERNEL(split);
join_fn KERNEL(join);
conv_fn KERNEL(conv);
conv_weight_fn KERNEL(conv_weight);
conv_rows_fn KERNEL(conv_rows);
conv_columns_fn KERNEL(conv_columns);
conv_store_fn KERNEL(conv_store);
lanes_read_fn KERNEL(lanes_read);
lanes_write_fn KERNEL(lanes_write);
lanes_conv_fn KERNEL(lanes_conv);
lanes_weight_fn KERNEL(lanes_weight);
lanes_dft_fn KERNEL(lanes_dft), KERNEL(lanes_dft_inverse);
lanes_product_fn KERNEL(lanes_product);
sum_fn KERNEL(sum);
convert_fn KERNEL(widen_f16), KERNEL(widen_bf16), KERNEL(narrow_f16),
    KERNEL(narrow_bf16); // REAL_BYTES == 4
winograd_fn KERNEL(winograd_input);
winograd_fn KERNEL(winograd_output);
winograd_fn KERNEL(winograd_taps);
deinterleave_fn KERNEL(deinterleave);
interleave_fn KERNEL(interleave);
tile_dft_fn KERNEL(tile_forward);
tile_dft_fn KERNEL(tile_inverse);
tile_gather_fn KERNEL(tile_gather);
tile_clip_fn KERNEL(tile_clip);
tile_scatter_fn KERNEL(tile_scatter);
tile_split_fn KERNEL(tile_split);
tile_join_fn KERNEL(tile_join);
tile_factors_fn KERNEL(tile_factors);
tile_scalars_fn KERNEL(tile_scalars);

extern const struct fft_kernels KERNEL(fft);
extern const struct kernels KERNEL(table);

typedef BITS_OF_REAL BITS; // an unsigned integer as wide as REAL

enum {
    SPECTRUM_LANES = SPECTRUM_LANES_BYTES / sizeof(REAL),
    CONV_LANES = CONV_BLOCK_BYTES / sizeof(REAL),
};

#endif
