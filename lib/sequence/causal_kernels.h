// SPDX-License-Identifier: MIT
// Inner loops of short causal convolution, built once for each instruction set, as those of
// lib/kernels are. Rows are frames, lanes are channels, or one row and one channel whose frames are
// lanes. f32 rows of slope and weight are whole blocks of CONV_BLOCK_BYTES.
#ifndef PARTITA_CAUSAL_KERNELS_H
#define PARTITA_CAUSAL_KERNELS_H

#include "kernels/kernels.h"

// y[i][c] = bias[c] + sum over k < taps of w[k][c] * x[i + k][c], for rows i < rows and c < lanes,
// a chain of multiply-adds from the bias on, in the order of k; with silu y / (1 + exp(-y)) of
// that. A pitch leads from one row to the next. x and y are f32, or bf16; y == x is allowed in f32
// with equal pitches. The exponential has an error of 2 u, silu one of 5 u, relative to the result,
// for sums above -88; below, silu is between -6e-37 and 0.
struct causal_sum {
    void *y;
    const void *x;
    const float *w, *bias;
    size_t taps, rows, lanes; // lanes: whole blocks
    size_t x_pitch, y_pitch, w_pitch;
    bool shared; // w and bias have one block, for all blocks of lanes
    bool bf16, silu;
    bool ahead; // the rows of the next step are prefetched; they need not be memory
};
typedef void causal_sum_fn(const struct causal_sum *sum);

// g[i] *= the derivative of silu at z[i], i < n, a multiple of a block.
typedef void causal_slope_fn(float *g, const float *z, size_t n);

// w[k] += sum over i < rows of g[i] * x[i + k], k < taps, and bias += sum of g[i], channel by
// channel, in the order of i; the sum over the rows begins with 0. Of all arrays rows of `pitch`.
struct causal_size {
    size_t rows, taps, pitch;
};
typedef void causal_weight_fn(float *w, float *bias, const float *g, const float *x,
                              struct causal_size size);

struct causal_kernels {
    causal_sum_fn *sum;
    causal_slope_fn *slope;
    causal_weight_fn *weight;
};

// Never NULL: as kernels_select.
const struct causal_kernels *causal_kernels_select(enum cpu_isa isa);

#endif
