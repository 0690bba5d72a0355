// SPDX-License-Identifier: MIT
// Short causal convolution. A call is split into runs, which are sequences or parts of them that no
// tap reaches beyond, and into blocks of channels. A block of a run is computed tile by tile: its
// samples are brought into rows of f32, a row a frame and a lane a channel, whatever their type and
// order in memory are, so that one loop serves all of them with the same bits. The last taps - 1
// rows of a tile are the first of the next one.
#ifndef PARTITA_CAUSAL_H
#define PARTITA_CAUSAL_H

#include "base/sizes.h"
#include "kernels/kernels.h"

#include <partita/sequence.h>

// Inner loops, built once for each instruction set, as those of lib/kernels are. Rows are frames,
// lanes are channels, or one row and one channel whose frames are lanes. f32 rows of slope and
// weight are whole blocks of CONV_BLOCK_BYTES.

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
    size_t x_pitch, y_pitch;
    ptrdiff_t w_pitch; // negative: the taps in reverse order
    bool shared;       // w and bias are those of one channel, for all lanes
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

enum {
    CAUSAL_MAX_TAPS = 256,
    CAUSAL_LANES = CONV_BLOCK_BYTES / sizeof(float), // channels of a block are a multiple of them
    CAUSAL_MAX_BLOCK = 512,                          // channels
    CAUSAL_TILE = 8192,                              // f32 of a tile: 32 KiB
};

// Never NULL, for f32 alone: as kernels_select.
const struct causal_kernels *causal_kernels_of(enum cpu_isa isa, bool f64);

// A call whose arguments have been checked and whose defaults have been filled in.
struct causal {
    struct partita_causal call;
    const struct kernels *kernels;
    const struct causal_kernels *sums;
    size_t block; // channels of a task
    int threads;
};

// Whether a field, or the bits of a number with a sign, is in a range; the log names it if not.
bool causal_in_range(const struct partita_log *log, const char *name, size_t value, size_t least,
                     size_t largest);

// Checks a caller's struct and fills in its defaults; the log names the field that is refused.
enum partita_status causal_resolve(struct causal *ret, const struct partita_causal *given,
                                   size_t bytes, bool backward);

#endif
