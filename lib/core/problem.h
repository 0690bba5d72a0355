// SPDX-License-Identifier: MIT
// The canonical form of a problem: every default filled in, every size checked against overflow.
// Engines and planner see only this.
#ifndef PARTITA_INTERNAL_PROBLEM_H
#define PARTITA_INTERNAL_PROBLEM_H

#include <partita/plan.h>
#include <partita/problem.h>

#include "base/log.h"

struct axis {
    size_t kernel, size, stride, dilation;
    size_t span;     // dilation*(kernel-1) + 1: samples that one output sees
    ptrdiff_t begin; // sample of x under the first tap of output 0: -pad_begin
    size_t out;      // outputs; 0 for streams
};

struct shape {
    enum partita_type signal, taps;
    bool f64; // precision of every scalar
    bool complex_signal, complex_taps;
    bool flip; // convolution: taps are read backwards
    bool stream;
    int rank;
    size_t batch, in_channels, out_channels, groups, group_in, group_out;
    struct axis axis[PARTITA_MAX_RANK]; // unused axes are of size 1
    size_t block, latency;
    bool whole_blocks, relu;
    bool separable;      // along two axes
    bool half;           // samples, taps and bias are stored in two bytes and summed in f32
    size_t scalar_bytes; // of one real as it is summed: 4 or 8
    bool adjoint; // see shape_adjoint: the taps lie as in the problem that this one is made of
    size_t sample_bytes; // of one sample of x and y
    size_t tap_bytes;    // of one sample of w
};

// What arrays of samples are aligned to.
static inline size_t shape_alignment(const struct shape *shape)
{
    return shape->half ? shape->sample_bytes : shape->scalar_bytes;
}

// Axis i of three, of which the last ones are the shape's and the others one sample of one tap.
static inline struct axis shape_axis(const struct shape *shape, int i)
{
    const int unused = PARTITA_MAX_RANK - shape->rank;
    if (i >= unused) return shape->axis[i - unused];
    return (struct axis){.kernel = 1, .size = 1, .stride = 1, .dilation = 1, .span = 1, .out = 1};
}

// Half the distance from 1 to the next scalar: the largest relative error of one rounding.
static inline double shape_roundoff(const struct shape *shape)
{
    return shape->f64 ? 0x1p-53 : 0x1p-24;
}

// A signal, as opposed to a layer or a batch.
static inline bool shape_lone(const struct shape *shape)
{
    return shape->rank == 1 && shape->batch == 1 && shape->in_channels == 1 &&
           shape->out_channels == 1;
}

// Samples of one channel of x and of y, and taps of one cell; of bounded problems.
static inline size_t shape_inputs(const struct shape *shape)
{
    return shape->axis[0].size * shape->axis[1].size * shape->axis[2].size;
}

static inline size_t shape_outputs(const struct shape *shape)
{
    return shape->axis[0].out * shape->axis[1].out * shape->axis[2].out;
}

static inline size_t shape_taps(const struct shape *shape)
{
    return shape->axis[0].kernel * shape->axis[1].kernel * shape->axis[2].kernel;
}

// Which of the caller's cells [out_channels][group_in] meets an input of its group in an output.
static inline size_t shape_path(const struct shape *shape, size_t out, size_t in)
{
    const size_t first = out / shape->group_out * shape->group_in, k = out % shape->group_out;
    return shape->adjoint ? (first + in) * shape->group_out + k : out * shape->group_in + in;
}

// Backward data of a real problem of one axis as a forward problem: inputs and outputs change
// places, the taps are read the other way round. False with a stride: its input would have gaps.
bool shape_adjoint(const struct shape *shape, struct shape *ret);

// Backward weight of a problem of one axis as the correlation of x with each line of gy, its
// outputs being the taps' gradient as correlation counts them. Channels are those of the problem:
// of outputs there is one a cell.
void shape_gradient(const struct shape *shape, struct shape *ret);

// What a direction of a bounded problem of one axis is as a forward problem: the problem itself,
// its adjoint or its gradient. False, with the reason in words, for a stream and where there is no
// adjoint.
bool shape_forward(const struct shape *shape, enum partita_direction direction, struct shape *ret,
                   char *reason, size_t size);

// Fills the canonical form; the log says which field is wrong and what it holds.
// Errors: PARTITA_ERR_ARG. On failure *ret is undefined.
enum partita_status problem_canonical(const struct partita_problem *problem,
                                      const struct partita_log *log, struct shape *ret);

#endif
