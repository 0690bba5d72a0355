// SPDX-License-Identifier: MIT
// Fills in defaults and refuses problems that cannot be computed: after this file no size can
// overflow and no field contradicts another. Directions of problems of one axis as other problems.
#include "problem.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/sizes.h"

// Largest extent of one axis, padding included: leaves every index of the formula room in a
// ptrdiff_t.
static const size_t MAX_EXTENT = (size_t)1 << 46;

static const size_t MAX_UP = (size_t)1 << 20;

static size_t or_default(size_t value, size_t otherwise)
{
    return value ? value : otherwise;
}

static bool types_canonical(const struct partita_problem *problem, const struct partita_log *log,
                            struct shape *ret)
{
    const enum partita_type signal = problem->signal ? problem->signal : PARTITA_F32;
    const enum partita_type taps = problem->taps ? problem->taps : signal;
    if (partita_type_size(signal) == 0 || partita_type_size(taps) == 0)
        return log_line(log, "problem.signal = %d, problem.taps = %d: not sample types",
                        (int)signal, (int)taps);
    ret->signal = signal, ret->taps = taps;
    ret->f64 = signal == PARTITA_F64 || signal == PARTITA_CF64;
    ret->complex_signal = signal == PARTITA_CF32 || signal == PARTITA_CF64;
    ret->complex_taps = taps == PARTITA_CF32 || taps == PARTITA_CF64;
    ret->half = signal == PARTITA_F16 || signal == PARTITA_BF16;
    const bool taps_half = taps == PARTITA_F16 || taps == PARTITA_BF16;
    const bool taps_f64 = taps == PARTITA_F64 || taps == PARTITA_CF64;
    if (taps_f64 != ret->f64 || (ret->complex_taps && !ret->complex_signal) ||
        ((ret->half || taps_half) && taps != signal))
        return log_line(log, "problem.taps = %s: not problem.signal = %s or its real type",
                        partita_type_name(taps), partita_type_name(signal));
    ret->scalar_bytes = ret->f64 ? 8 : 4;
    ret->sample_bytes = partita_type_size(signal);
    ret->tap_bytes = partita_type_size(taps);
    return true;
}

static bool channels_canonical(const struct partita_problem *problem, const struct partita_log *log,
                               struct shape *ret)
{
    if (problem->in_channels > 1 && !problem->out_channels)
        return log_line(
            log,
            "problem.in_channels = %zu without out_channels: 1 sums the inputs; as many as "
            "inputs, and as many groups, filter each input by itself",
            problem->in_channels);
    ret->batch = or_default(problem->batch, 1);
    ret->in_channels = or_default(problem->in_channels, 1);
    ret->out_channels = or_default(problem->out_channels, 1);
    ret->groups = or_default(problem->groups, 1);
    if (ret->in_channels % ret->groups || ret->out_channels % ret->groups)
        return log_line(
            log, "problem.groups = %zu does not divide in_channels = %zu and out_channels = %zu",
            ret->groups, ret->in_channels, ret->out_channels);
    ret->group_in = ret->in_channels / ret->groups;
    ret->group_out = ret->out_channels / ret->groups;
    return true;
}

static bool in_range(const struct partita_log *log, const char *field, int index, size_t value)
{
    if (value <= MAX_EXTENT) return true;
    return log_line(log, "problem.%s[%d] = %zu: at most %zu", field, index, value, MAX_EXTENT);
}

static bool pad_in_range(const struct partita_log *log, const char *field, int index,
                         ptrdiff_t value)
{
    if (value <= (ptrdiff_t)MAX_EXTENT && value >= -(ptrdiff_t)MAX_EXTENT) return true;
    return log_line(log, "problem.%s[%d] = %td: at most +-%zu", field, index, value, MAX_EXTENT);
}

// The axes of a problem: those asked for, or all up to the last one with a size; 0 after a line
// in the log if fields contradict them.
static int rank_of(const struct partita_problem *problem, const struct partita_log *log)
{
    int sized = 1;
    for (int i = 1; i < PARTITA_MAX_RANK; i++)
        if (problem->size[i]) sized = i + 1;
    const int rank = problem->rank ? problem->rank : sized;
    if (rank < 1 || rank > PARTITA_MAX_RANK)
        return log_line(log, "problem.rank = %d: 1 to %d", problem->rank, PARTITA_MAX_RANK);
    for (int i = rank; i < PARTITA_MAX_RANK; i++) {
        const struct {
            const char *field;
            size_t value;
        } extents[] = {{"size", problem->size[i]},
                       {"kernel", problem->kernel[i]},
                       {"stride", problem->stride[i]},
                       {"dilation", problem->dilation[i]}};
        for (size_t f = 0; f < sizeof extents / sizeof *extents; f++)
            if (extents[f].value > 1)
                return log_line(log, "problem.%s[%d] = %zu: the problem has rank %d%s",
                                extents[f].field, i, extents[f].value, rank,
                                problem->rank ? "" : ", up to the last axis that has a size");
        if (problem->pad_begin[i] || problem->pad_end[i])
            return log_line(
                log, "problem.pad_begin[%d] = %td, pad_end[%d] = %td: the problem has rank %d", i,
                problem->pad_begin[i], i, problem->pad_end[i], rank);
    }
    return rank;
}

static bool axis_canonical(const struct partita_problem *problem, int i,
                           const struct partita_log *log, struct axis *ret)
{
    ret->kernel = or_default(problem->kernel[i], 1);
    ret->stride = or_default(problem->stride[i], 1);
    ret->dilation = or_default(problem->dilation[i], 1);
    if (!in_range(log, "kernel", i, ret->kernel) || !in_range(log, "stride", i, ret->stride) ||
        !in_range(log, "dilation", i, ret->dilation))
        return false;
    ret->span = size_add(size_mul(ret->kernel - 1, ret->dilation), 1);
    if (ret->span > MAX_EXTENT)
        return log_line(log,
                        "problem.kernel[%d] = %zu with dilation = %zu spans more than %zu samples",
                        i, ret->kernel, ret->dilation, MAX_EXTENT);
    return true;
}

static bool stream_axis(const struct partita_problem *problem, const struct partita_log *log,
                        struct shape *ret)
{
    struct axis *axis = &ret->axis[0];
    if (ret->half)
        return log_line(log, "problem.signal = %s: streams have samples of f32 or f64",
                        partita_type_name(ret->signal));
    if (ret->rank != 1 || ret->batch != 1)
        return log_line(
            log, "problem.rank = %d, batch = %zu: both are 1 in a stream (size[0] unbounded)",
            ret->rank, ret->batch);
    if (problem->pad_begin[0] || problem->pad_end[0])
        return log_line(
            log, "a stream is causal by itself: problem.pad_begin = %td, pad_end = %td must be 0",
            problem->pad_begin[0], problem->pad_end[0]);
    if (problem->separable)
        return log_line(log, "problem.separable: of bounded problems only, not of streams");
    axis->size = PARTITA_UNBOUNDED;
    axis->begin = -(ptrdiff_t)(axis->span - 1);
    axis->out = 0;
    ret->block = or_default(problem->block, 1024);
    ret->latency = problem->latency;
    ret->whole_blocks = problem->whole_blocks;
    if (ret->whole_blocks && ret->block % 16)
        return log_line(log, "whole blocks have a multiple of 16 frames, not problem.block = %zu",
                        ret->block);
    return in_range(log, "block", 0, ret->block) &&
           (problem->latency == PARTITA_UNBOUNDED || in_range(log, "latency", 0, problem->latency));
}

static bool bounded_axis(const struct partita_problem *problem, int i,
                         const struct partita_log *log, struct axis *ret)
{
    const ptrdiff_t begin = problem->pad_begin[i], end = problem->pad_end[i];
    ret->size = problem->size[i];
    if (ret->size == 0 || ret->size == PARTITA_UNBOUNDED)
        return log_line(log, "problem.size[%d] = %zu: a bounded axis holds at least 1 sample", i,
                        ret->size);
    if (!in_range(log, "size", i, ret->size) || !pad_in_range(log, "pad_begin", i, begin) ||
        !pad_in_range(log, "pad_end", i, end))
        return false;
    const size_t up = or_default(problem->up, 1), size = size_mul(ret->size, up);
    if (size > MAX_EXTENT)
        return log_line(log, "problem.up = %zu: more than %zu samples from a size of %zu", up,
                        MAX_EXTENT, ret->size);
    const ptrdiff_t last = (ptrdiff_t)size + begin + end - (ptrdiff_t)ret->span;
    if (last < 0)
        return log_line(
            log, "axis %d leaves no output: size %zu, padding %td and %td, taps spanning %zu", i,
            size, begin, end, ret->span);
    ret->begin = -begin;
    ret->out = (size_t)last / ret->stride + 1;
    return true;
}

// The whole arrays, and the doubled ones that engines work with, must be addressable.
static bool bytes_in_range(const struct partita_log *log, const struct shape *shape)
{
    size_t x = size_mul(shape->batch, shape->in_channels),
           y = size_mul(shape->batch, shape->out_channels);
    size_t w = size_mul(shape->out_channels, shape->group_in);
    for (int i = 0; i < PARTITA_MAX_RANK; i++) {
        if (!shape->stream) {
            x = size_mul(x, shape->axis[i].size);
            y = size_mul(y, shape->axis[i].out);
        }
        // Along one axis engines spread dilated taps out.
        w = size_mul(w, shape->rank == 1 ? shape->axis[i].span : shape->axis[i].kernel);
    }
    size_t max = x > y ? x : y;
    max = size_mul(max > w ? max : w, 8 * shape->sample_bytes);
    if (max < PTRDIFF_MAX) return true;
    return log_line(
        log, "problem too large: %zu x %zu -> %zu channels of this size exceed the address space",
        shape->batch, shape->in_channels, shape->out_channels);
}

// Fields of streams, and of other ranks, in a bounded problem.
static bool has_no_stream_fields(const struct partita_problem *problem,
                                 const struct partita_log *log, int rank)
{
    if (problem->block || problem->latency || problem->whole_blocks)
        log_line(
            log,
            "problem.block = %zu, latency = %zu, whole_blocks = %d: of streams only (size[0] = "
            "PARTITA_UNBOUNDED)",
            problem->block, problem->latency, (int)problem->whole_blocks);
    else if (problem->separable && rank != 2)
        log_line(log, "problem.separable: of problems of rank 2 only, not of rank %d", rank);
    else return true;
    return false;
}

static bool check_up(const struct partita_problem *problem, const struct partita_log *log,
                     const struct shape *shape)
{
    if (problem->up <= 1) return true;
    if (problem->up > MAX_UP) log_line(log, "problem.up = %zu: at most %zu", problem->up, MAX_UP);
    else if (shape->rank > 1)
        log_line(log, "problem.up = %zu: of problems of one axis only, not of %d", problem->up,
                 shape->rank);
    else if (shape->half || shape->relu)
        log_line(log, "problem.up = %zu: not of layers, with %s", problem->up,
                 shape->half ? partita_type_name(shape->signal) : "an activation");
    else return true;
    return false;
}

static bool check_channels_last(const struct partita_log *log, const struct shape *shape, size_t up)
{
    if (shape->stream)
        log_line(log, "problem.channels_last: of bounded problems only, not of streams");
    else if (shape->complex_signal)
        log_line(log, "problem.channels_last: of real types only, not of %s",
                 partita_type_name(shape->signal));
    else if (up > 1) log_line(log, "problem.channels_last: not with problem.up = %zu", up);
    else return true;
    return false;
}

// Replaces the axis by that of the branches: struct upsampling. The newest sample that an output
// reads has the causal tap 0.
static void split_branches(struct shape *shape, size_t up)
{
    struct axis *axis = &shape->axis[0];
    const size_t shared = size_gcd(up, axis->stride), branches = up / shared;
    const ptrdiff_t newest = axis->begin + (ptrdiff_t)axis->span - 1;
    const ptrdiff_t reduced = floor_div(newest, shared), sample = floor_div(reduced, branches);
    const struct upsampling ret = {
        .branches = branches,
        .stride = axis->stride / shared,
        .first = (size_t)(reduced - sample * (ptrdiff_t)branches),
        .tap_first = (size_t)(newest - reduced * (ptrdiff_t)shared),
        .tap_step = shared,
        .axis = *axis,
        .out_channels = shape->out_channels,
        .flip = shape->flip,
    };
    const size_t taps =
        axis->span > ret.tap_first ? ceil_div(axis->span - ret.tap_first, shared) : 0;
    const size_t kernel = size_max(ceil_div(taps, branches), 1);
    *axis = (struct axis){.kernel = kernel,
                          .size = axis->size,
                          .stride = 1,
                          .dilation = 1,
                          .span = kernel,
                          .begin = sample - (ptrdiff_t)(kernel - 1)};
    if (!shape->stream) axis->out = (ret.first + (ret.axis.out - 1) * ret.stride) / branches + 1;
    shape->up = ret;
    shape->out_channels = size_mul(shape->out_channels, branches);
    shape->group_out = size_mul(shape->group_out, branches);
    shape->flip = true;
}

static bool check_boundary(const struct partita_problem *problem, const struct partita_log *log,
                           const struct shape *shape)
{
    const int boundary = (int)problem->boundary;
    const bool constant = boundary == PARTITA_BOUNDARY_CONSTANT;
    if (boundary < 0 || boundary > PARTITA_BOUNDARY_WRAP ||
        (boundary && (shape->stream || problem->up > 1)))
        return log_line(log, "problem.boundary = %d: 0 to %d; 0 for streams and with problem.up",
                        boundary, (int)PARTITA_BOUNDARY_WRAP);
    if (constant ? shape->complex_signal : problem->boundary_value != 0)
        return log_line(log,
                        "problem.boundary_value = %g: needs PARTITA_BOUNDARY_CONSTANT, real types",
                        problem->boundary_value);
    for (int i = 0; boundary > PARTITA_BOUNDARY_EDGE && i < shape->rank; i++) {
        const ptrdiff_t begin = problem->pad_begin[i], end = problem->pad_end[i];
        const size_t max = shape->axis[i].size - (boundary == PARTITA_BOUNDARY_REFLECT);
        if (begin > (ptrdiff_t)max || end > (ptrdiff_t)max)
            return log_line(log,
                            "problem.pad_begin[%d] = %td, pad_end[%d] = %td: at most %zu with this "
                            "problem.boundary",
                            i, begin, i, end, max);
    }
    return true;
}

// Extends each axis by the ghost cells that outputs read; nothing changes without padding or if it
// is zeros.
static void extend_axes(const struct partita_problem *problem, struct shape *shape)
{
    bool any = false;
    for (int i = 0; i < shape->rank; i++)
        any = any || problem->pad_begin[i] > 0 || problem->pad_end[i] > 0;
    if (!any || (problem->boundary == PARTITA_BOUNDARY_CONSTANT && problem->boundary_value == 0))
        return;
    shape->ghosts = (struct ghosts){problem->boundary, problem->boundary_value, {{0}}};
    for (int i = 0; i < PARTITA_MAX_RANK; i++) {
        struct axis *axis = &shape->axis[i];
        shape->ghosts.axis[i] = *axis;
        axis->size = (axis->out - 1) * axis->stride + axis->span;
        axis->begin = 0;
    }
}

enum partita_status problem_canonical(const struct partita_problem *problem,
                                      const struct partita_log *log, struct shape *ret)
{
    *ret = (struct shape){.rank = rank_of(problem, log)};
    if (ret->rank == 0) return PARTITA_ERR_ARG;
    if (problem->op != PARTITA_CONVOLVE && problem->op != PARTITA_CORRELATE)
        return log_error(log, PARTITA_ERR_ARG,
                         "problem.op = %d: neither PARTITA_CONVOLVE nor PARTITA_CORRELATE",
                         (int)problem->op);
    if (problem->activation != PARTITA_LINEAR && problem->activation != PARTITA_RELU)
        return log_error(log, PARTITA_ERR_ARG,
                         "problem.activation = %d: neither PARTITA_LINEAR nor PARTITA_RELU",
                         (int)problem->activation);
    if (problem->reserved)
        return log_error(log, PARTITA_ERR_ARG, "problem.reserved: must be false");
    ret->flip = problem->op == PARTITA_CONVOLVE;
    ret->relu = problem->activation == PARTITA_RELU;
    ret->separable = problem->separable;
    ret->stream = problem->size[0] == PARTITA_UNBOUNDED;
    if (!types_canonical(problem, log, ret) || !channels_canonical(problem, log, ret))
        return PARTITA_ERR_ARG;
    if (!ret->stream && !has_no_stream_fields(problem, log, ret->rank)) return PARTITA_ERR_ARG;
    if (!check_up(problem, log, ret)) return PARTITA_ERR_ARG;
    for (int i = 0; i < PARTITA_MAX_RANK; i++) {
        struct axis *axis = &ret->axis[i];
        *axis =
            (struct axis){.kernel = 1, .size = 1, .stride = 1, .dilation = 1, .span = 1, .out = 1};
        if (i >= ret->rank) continue;
        if (!axis_canonical(problem, i, log, axis)) return PARTITA_ERR_ARG;
        if (!(ret->stream ? stream_axis(problem, log, ret) : bounded_axis(problem, i, log, axis)))
            return PARTITA_ERR_ARG;
    }
    if (ret->relu && (ret->stream || ret->complex_signal))
        return log_error(log, PARTITA_ERR_ARG,
                         "problem.activation = PARTITA_RELU: of bounded real problems only, not %s",
                         ret->stream ? "streams" : partita_type_name(ret->signal));
    if (problem->channels_last && !check_channels_last(log, ret, problem->up))
        return PARTITA_ERR_ARG;
    // One channel has the same layout either way.
    ret->channels_last = problem->channels_last && (ret->in_channels > 1 || ret->out_channels > 1);
    if (problem->up > 1) split_branches(ret, problem->up);
    if (!check_boundary(problem, log, ret) || !bytes_in_range(log, ret)) return PARTITA_ERR_ARG;
    if (problem->boundary) extend_axes(problem, ret);
    return bytes_in_range(log, ret) ? PARTITA_OK : PARTITA_ERR_ARG;
}

bool shape_adjoint(const struct shape *shape, struct shape *ret)
{
    const struct axis *axis = &shape->axis[0];
    if (axis->stride > 1) return false;
    *ret = *shape;
    ret->adjoint = true;
    ret->flip = !shape->flip;
    ret->in_channels = shape->out_channels, ret->out_channels = shape->in_channels;
    ret->group_in = shape->group_out, ret->group_out = shape->group_in;
    ret->axis[0].size = axis->out, ret->axis[0].out = axis->size;
    // Sample m of x meets under tap r, counted as correlation does, output m - begin - r.
    ret->axis[0].begin = -(axis->begin + (ptrdiff_t)axis->span - 1);
    return true;
}

// Backward weight of a problem of one axis as the correlation of x with each row of gy. Its outputs
// are the gradient of the taps, in the order of lags. Channels are those of the problem; there is
// one output row per path.
static void shape_gradient(const struct shape *shape, struct shape *ret)
{
    const struct axis *axis = &shape->axis[0];
    *ret = *shape;
    ret->flip = false;
    assert(axis->out > 0);
    // gw[r] = sum over q of gy[q] x[begin + stride*q + dilation*r]
    ret->axis[0].kernel = axis->out, ret->axis[0].out = axis->kernel;
    ret->axis[0].dilation = axis->stride, ret->axis[0].stride = axis->dilation;
    ret->axis[0].span = (axis->out - 1) * axis->stride + 1;
}

bool shape_forward(const struct shape *shape, enum partita_direction direction, struct shape *ret,
                   char *reason, size_t size)
{
    *ret = *shape;
    if (direction == PARTITA_BACKWARD_WEIGHT) shape_gradient(shape, ret);
    if (shape->stream) snprintf(reason, size, "works on bounded signals, not on streams");
    else if (direction == PARTITA_BACKWARD_DATA && !shape_adjoint(shape, ret))
        snprintf(reason, size, "backward data needs a stride of 1, not %zu", shape->axis[0].stride);
    else return true;
    return false;
}
