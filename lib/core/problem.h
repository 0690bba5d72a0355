// SPDX-License-Identifier: MIT
// The canonical form of a problem: every default is filled in, every size is checked for overflow.
// Engines and planner use only this form.
#ifndef PARTITA_INTERNAL_PROBLEM_H
#define PARTITA_INTERNAL_PROBLEM_H

#include <partita/plan.h>
#include <partita/problem.h>

#include "base/log.h"

struct axis {
    size_t kernel, size, stride, dilation;
    size_t span;     // dilation*(kernel-1) + 1: samples from the first to the last that one output
                     // reads
    ptrdiff_t begin; // index of the sample of x that the first tap of output 0 reads: -pad_begin
    size_t out;      // outputs; 0 for streams
};

// problem.up as a problem without inserted zeros: the taps that meet samples of x in an output are
// every up-th, so there are `up` filters, the branches, each of which is an output channel of the
// shape with stride 1. Output p of channel k is that of branch t % branches at sample t / branches,
// with t = first + p*stride. Common factors of up and stride are removed from both: of the causal
// taps only tap_first, tap_first + tap_step .. meet samples, and branch b has those of them that
// have the numbers b, b + branches .. (decision 39).
struct upsampling {
    size_t branches; // 0: the problem has no `up`
    size_t stride, first, tap_first, tap_step;
    struct axis axis; // the problem's own, its channels and the order of its taps
    size_t out_channels;
    bool flip;
};

// problem.boundary as a problem without padding: the shape's x, the extended x, has all samples and
// ghost cells that outputs read.
struct ghosts {
    enum partita_boundary boundary; // zero: the shape's x is the caller's
    double value;
    struct axis axis[PARTITA_MAX_RANK]; // the problem's own
};

struct shape {
    enum partita_type signal, taps;
    bool f64; // every scalar is a double
    bool complex_signal, complex_taps;
    bool flip; // convolution: taps are read in reverse order
    bool stream;
    int rank;
    size_t batch, in_channels, out_channels, groups, group_in, group_out;
    struct axis axis[PARTITA_MAX_RANK]; // unused axes are of size 1
    size_t block, latency;
    size_t streams; // that run in turn and in different phases: the slots of a bank; 0: one stream
    bool whole_blocks, relu;
    bool separable;      // along two axes
    bool channels_last;  // x and y are [batch][position][channel]
    bool half;           // samples, taps and bias are stored in two bytes and summed in f32
    size_t scalar_bytes; // bytes of one real in sums: 4 or 8
    bool adjoint;        // made by shape_adjoint: the taps have the layout of the original problem
    size_t sample_bytes; // of one sample of x and y
    size_t tap_bytes;    // of one sample of w
    struct upsampling up;
    struct ghosts ghosts;
};

// The problem's own axis and output channels.
static inline const struct axis *shape_own_axis(const struct shape *shape)
{
    return shape->up.branches ? &shape->up.axis : &shape->axis[0];
}

static inline size_t shape_own_outputs(const struct shape *shape)
{
    return shape->up.branches ? shape->up.out_channels : shape->out_channels;
}

// Streams: positions of a frame and of the zeros inserted after it, and those from one output to
// the next.
static inline size_t shape_positions(const struct shape *shape)
{
    return shape->up.branches ? shape->up.branches : 1;
}

static inline size_t shape_output_step(const struct shape *shape)
{
    return shape->up.branches ? shape->up.stride : shape->axis[0].stride;
}

// Distances in an array of samples between its items, channels and positions, in samples.
struct sample_strides {
    size_t item, channel, position;
};

// Alignment of arrays of samples, in bytes.
static inline size_t shape_alignment(const struct shape *shape)
{
    return shape->half ? shape->sample_bytes : shape->scalar_bytes;
}

// Axis i of three. The last ones are the shape's axes; the others have one sample and one tap.
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

// Whether the problem is a single signal: one axis, one input and output channel, batch 1.
static inline bool shape_lone(const struct shape *shape)
{
    return shape->rank == 1 && shape->batch == 1 && shape->in_channels == 1 &&
           shape->out_channels == 1;
}

// Samples of one channel of x and of y, and taps of one path, of bounded problems.
static inline size_t shape_inputs(const struct shape *shape)
{
    return shape->axis[0].size * shape->axis[1].size * shape->axis[2].size;
}

// The same of the caller's x.
static inline size_t shape_own_inputs(const struct shape *shape)
{
    const struct axis *axis = shape->ghosts.boundary ? shape->ghosts.axis : shape->axis;
    return axis[0].size * axis[1].size * axis[2].size;
}

static inline size_t shape_outputs(const struct shape *shape)
{
    return shape->axis[0].out * shape->axis[1].out * shape->axis[2].out;
}

// The strides of x or of y.
static inline struct sample_strides shape_strides(const struct shape *shape, bool outputs)
{
    const size_t channels = outputs ? shape->out_channels : shape->in_channels;
    const size_t plane = outputs ? shape_outputs(shape) : shape_inputs(shape);
    return (struct sample_strides){.item = channels * plane,
                                   .channel = shape->channels_last ? 1 : plane,
                                   .position = shape->channels_last ? channels : 1};
}

// Samples of x or of y.
static inline size_t shape_samples(const struct shape *shape, bool outputs)
{
    return shape->batch * shape_strides(shape, outputs).item;
}

static inline size_t shape_taps(const struct shape *shape)
{
    return shape->axis[0].kernel * shape->axis[1].kernel * shape->axis[2].kernel;
}

// The bits of infinity, for comparison with those of magnitudes (peak_fn).
static inline uint64_t shape_infinity_bits(const struct shape *shape)
{
    return shape->f64 ? (uint64_t)0x7ff << 52 : (uint64_t)0xff << 23;
}

// Number of paths, and complex bins of the spectrum of n samples of the signal.
static inline size_t shape_path_count(const struct shape *shape)
{
    return shape->out_channels * shape->group_in;
}

static inline size_t shape_bins(const struct shape *shape, size_t n)
{
    return shape->complex_signal ? n : n / 2 + 1;
}

// Index of a path, from an input of a group to an output, in the caller's array
// [out_channels][group_in].
static inline size_t shape_path(const struct shape *shape, size_t out, size_t in)
{
    const size_t first = out / shape->group_out * shape->group_in, k = out % shape->group_out;
    return shape->adjoint ? (first + in) * shape->group_out + k : out * shape->group_in + in;
}

// Backward data of a real problem of one axis as a forward problem: inputs and outputs are
// exchanged, the taps are read in reverse order. False if there is a stride: its input would have
// gaps.
bool shape_adjoint(const struct shape *shape, struct shape *ret);

// A direction of a bounded problem of one axis as a forward problem: the problem itself, its
// adjoint or its gradient. False, with a reason, for a stream and if there is no adjoint.
bool shape_forward(const struct shape *shape, enum partita_direction direction, struct shape *ret,
                   char *reason, size_t size);

// Fills the canonical form; the log says which field is wrong and its value.
// Errors: PARTITA_ERR_ARG. On failure *ret is undefined.
enum partita_status problem_canonical(const struct partita_problem *problem,
                                      const struct partita_log *log, struct shape *ret);

#endif
