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

// The slots of struct kernels but those of two bytes and fft, and those of struct tile_kernels,
// whose kernels are called tile_<slot>: prototypes and table are made of these lists.
// clang-format off
#define EACH_KERNEL(DO) \
    DO(fir) DO(fir_complex) DO(cmac) DO(cmac_partitions) DO(peak) DO(blend) DO(add) DO(scale) \
    DO(split) DO(join) DO(conv) DO(conv_weight) DO(conv_rows) DO(conv_columns) DO(conv_store) \
    DO(lanes_read) DO(lanes_write) DO(lanes_conv) DO(lanes_weight) DO(lanes_dft) \
    DO(lanes_dft_inverse) DO(lanes_product) DO(sum) DO(winograd_input) DO(winograd_output) \
    DO(winograd_taps) DO(deinterleave) DO(interleave)
#define EACH_TILE_KERNEL(DO) \
    DO(forward) DO(inverse) DO(gather) DO(clip) DO(scatter) DO(split) DO(join) DO(factors) \
    DO(scalars)
// clang-format on

#define PROTOTYPE(op) __typeof__(*((const struct kernels *)0)->op) KERNEL(op);
#define TILE_PROTOTYPE(op) __typeof__(*((const struct tile_kernels *)0)->op) KERNEL(tile_##op);
EACH_KERNEL(PROTOTYPE)
EACH_TILE_KERNEL(TILE_PROTOTYPE)
convert_fn KERNEL(widen_f16), KERNEL(widen_bf16), KERNEL(narrow_f16), KERNEL(narrow_bf16); // of f32

extern const struct fft_kernels KERNEL(fft);
extern const struct kernels KERNEL(table);

typedef BITS_OF_REAL BITS; // an unsigned integer as wide as REAL

enum {
    SPECTRUM_LANES = SPECTRUM_LANES_BYTES / sizeof(REAL),
    CONV_LANES = CONV_BLOCK_BYTES / sizeof(REAL),
    TILE_LANES = TILE_LINE_BYTES / sizeof(REAL),
    ELEMENT = 2 * TILE_LANES, // a complex element of the tile kernels, in reals
};

#endif
