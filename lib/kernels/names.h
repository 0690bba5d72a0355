// SPDX-License-Identifier: MIT
// Names of the kernels of one instruction set and precision. The build passes ISA (c, avx2, ...),
// TYPE (f32, f64) and REAL (float, double), and compiles each source once per pair, so that a
// kernel is an ordinary function.
#ifndef PARTITA_KERNEL_NAMES_H
#define PARTITA_KERNEL_NAMES_H

#include "fft_kernels.h"
#include "kernels.h"

#define KERNEL_PASTE(op, type, isa) k_##op##_##type##_##isa
#define KERNEL_EXPAND(op, type, isa) KERNEL_PASTE(op, type, isa)
#define KERNEL(op) KERNEL_EXPAND(op, TYPE, ISA)

#define PROTOTYPE(type, op) type KERNEL(op);
EACH_KERNEL(PROTOTYPE)
convert_fn KERNEL(widen_f16), KERNEL(widen_bf16), KERNEL(narrow_f16), KERNEL(narrow_bf16); // of f32
pair_fn KERNEL(pair);
conv_fn KERNEL(conv_pairs); // of AVX-512

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
