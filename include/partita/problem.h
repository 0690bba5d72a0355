// SPDX-License-Identifier: MIT
// WHAT to compute. A stream, a long signal and a CNN layer are one formula with different axes:
//
//   y[n, k, p] = sum over c, r of  w[k, c, r] * x[n, c, stride*p + dilation*r - pad_begin]
//
// That is PARTITA_CORRELATE. PARTITA_CONVOLVE reads the taps backwards along every axis
// (w[k, c, kernel-1-r]), as filters do. Correlation conjugates complex taps, as
// scipy.signal.correlate does. x is zero outside its size.
#ifndef PARTITA_PROBLEM_H
#define PARTITA_PROBLEM_H

#include <partita/common.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PARTITA_MAX_RANK = 3 };

// As a size: the axis has no end, the problem is a stream. As a latency: any latency is allowed.
#define PARTITA_UNBOUNDED SIZE_MAX

enum partita_op {
    PARTITA_CONVOLVE = 0,
    PARTITA_CORRELATE,
};

// Applied by forward to each sum after the bias, before the sum is stored.
enum partita_activation {
    PARTITA_LINEAR = 0, // nothing
    PARTITA_RELU,       // negative sums become 0; NaN stays
};

// Plain data; zero-initialise it and set what differs. A zero means the default given in brackets.
//
// A bounded problem is computed by partita_forward on x[batch][in_channels][size] and
// y[batch][out_channels][output size],
//   output size = floor((size + pad_begin + pad_end - dilation*(kernel-1) - 1) / stride) + 1.
// Padding may be negative: then that many samples at the edge of the result are not computed. Every
// slice of a full convolution is thus a problem of its own and costs no more than the slice.
//
// A stream (size[0] = PARTITA_UNBOUNDED, rank 1, batch 1) is causal: pad_begin is
// dilation*(kernel-1) by definition, so y[p] needs x up to stride*p only, and the padding fields
// must be zero.
struct partita_problem {
    // Type of x and y [f32]. PARTITA_F16 and PARTITA_BF16 store bounded forward problems: x, w and
    // the bias become f32 when they are read, and y is rounded to nearest even from a sum in f32.
    enum partita_type signal;
    enum partita_type taps; // type of w [f32]: that of the signal, or its real counterpart
    enum partita_op op;     // [convolve]
    int rank;               // number of axes, 1 to 3 [1]
    size_t batch;           // independent inputs [1]
    size_t in_channels, out_channels; // [1]; every output sums over the inputs of its group
    // Divides both channel counts [1]; w is [out_channels][in_channels/groups][kernel].
    size_t groups;
    size_t kernel[PARTITA_MAX_RANK];   // taps along each axis [1]
    size_t size[PARTITA_MAX_RANK];     // samples of x along each axis; at least 1, no default
    size_t stride[PARTITA_MAX_RANK];   // distance between outputs: decimation [1]
    size_t dilation[PARTITA_MAX_RANK]; // distance between taps [1]
    // Zeros before and after x [0]; negative values crop.
    ptrdiff_t pad_begin[PARTITA_MAX_RANK], pad_end[PARTITA_MAX_RANK];
    // Streams: the largest usual call in frames, for planning [1024]. Calls of any size work.
    size_t block;
    size_t latency; // streams: the largest added delay allowed, in input frames [0]
    // Streams: a promise that every call holds a multiple of `block` frames; `block` must then be a
    // multiple of 16. The first taps of a filter may then wait for the rest of the block: long
    // filters cost less at the same latency [false: any call].
    bool whole_blocks;
    enum partita_activation activation; // real bounded problems, forward [linear]
    // Bounded problems of two axes: a promise that the taps of each path (input channel to output
    // channel) are products of a factor of their row and a factor of their column, to rounding.
    // Engines that filter one axis after the other apply only with this promise, and reject a
    // filter that breaks it (PARTITA_ERR_ARG); other engines ignore it [false].
    bool separable;
};

// Output samples of a bounded problem along each of its axes.
// Errors:  PARTITA_ERR_ARG if the problem is malformed, is a stream, or has no output.
// Threads: any.
PARTITA_API enum partita_status partita_problem_output_size(const struct partita_problem *problem,
                                                            size_t ret_size[PARTITA_MAX_RANK]);

#ifdef __cplusplus
}
#endif

#endif
