// SPDX-License-Identifier: MIT
// Inner loops of short causal convolution, built once for each instruction set, as those of
// lib/kernels are. Rows are frames of f32 channels: a multiple of CONV_BLOCK_BYTES, aligned to it.
#ifndef PARTITA_CAUSAL_KERNELS_H
#define PARTITA_CAUSAL_KERNELS_H

#include "kernels/kernels.h"

// Taps of a block of channels.
struct causal_taps {
    const float *w, *bias; // [taps][pitch], [pitch]
    size_t taps, pitch;
};

// y[i] = bias + sum over k < taps of w[k] * x[i + k], channel by channel, for rows i < rows, each a
// chain of multiply-adds from the bias on, in the order of k; with silu y / (1 + exp(-y)) of that.
// y == x is allowed. The exponential has an error of 2 u, silu one of 4 u, relative to the result,
// for sums above -88; below, silu is between -6e-37 and 0.
typedef void causal_sum_fn(float *y, const float *x, const struct causal_taps *taps, size_t rows,
                           bool silu);

// g[i] *= the derivative of silu at z[i], i < n, a multiple of a block.
typedef void causal_slope_fn(float *g, const float *z, size_t n);

// w[k] += sum over i < rows of g[i] * x[i + k], k < taps, and bias += sum of g[i], channel by
// channel, in the order of i; the sum over the rows begins with 0.
typedef void causal_weight_fn(float *w, float *bias, const float *g, const float *x, size_t rows,
                              const struct causal_taps *taps);

struct causal_kernels {
    causal_sum_fn *sum;
    causal_slope_fn *slope;
    causal_weight_fn *weight;
};

// Never NULL: as kernels_select.
const struct causal_kernels *causal_kernels_select(enum cpu_isa isa);

#endif
