// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise with channels last, with vectors of adjacent channels
// (kernels->channels_conv), with AVX-512 or AVX2: scalars are used where they are, so not samples
// of 16 bits. A task is some rows of outputs of an image, or a part of them.
#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"
#include "geometry/samples.h"

enum {
    MAX_ROWS = 32, // of taps
    TASK_ROWS = 4, // of outputs
    TASK_COLUMNS = 256,
};

// Scalars of a packed tap of all channels.
static size_t channels_pitch(const struct shape *shape)
{
    return size_round_up(shape->in_channels, depthwise_width(shape));
}

static void channels_estimate(const struct request *request, struct estimate *ret)
{
    struct conv_pass pass;
    const size_t lanes =
        depthwise_width(request->shape) / (request->model->isa == CPU_AVX2 ? 2 : 1);
    if (!MODE_IS_ON("depthwise:channels") || request->direction == PARTITA_BACKWARD_WEIGHT ||
        !request->shape->channels_last || request->shape->half ||
        !depthwise_plane_pass(request, &pass) || pass.axis[1].taps > MAX_ROWS)
        return;
    const struct plane_axis row = depthwise_plane_axis(&pass.axis[2]);
    if (!channels_serve(&row, request->shape->in_channels, lanes)) return;
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass.axis;
    const size_t packed = size_mul(channels_pitch(shape), pass.terms);
    const double outputs = (double)shape->batch * (double)axis[1].count * (double)axis[2].count *
                           (double)size_round_up(shape->in_channels, lanes);
    const struct ledger ledger = {.work = {.fma = outputs * (double)pass.terms, .sum = outputs},
                                  .filter = {.pack = (double)packed}};
    conv_cost_estimate(request, (double)pass.terms, &ledger, ret);
    ret->hop = size_min(axis[1].count, TASK_ROWS) * size_min(axis[2].count, TASK_COLUMNS);
    ret->bytes = size_mul(packed, shape->scalar_bytes);
}

static void *channels_build(const struct partita_plan *plan, const struct request *request,
                            struct arena *arena)
{
    struct depthwise_plane *plane = depthwise_plane_build(request, false, arena);
    (void)plan;
    if (plane) plane->pitch = channels_pitch(request->shape);
    return plane;
}

// Columns first .. end-1 of a row of outputs of an image, whose samples are at x.
static void channels_row(const struct depthwise_call *call, const char *x, char *y, size_t row,
                         size_t first, size_t end)
{
    const struct depthwise_plane *plane = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    const struct plane_axis *axis = plane->axis;
    const size_t channels = shape->in_channels, position = channels * shape->scalar_bytes;
    const size_t pitch = plane->pitch;
    const struct conv_finish finish = filter_finish(call->filter, 0);
    const ptrdiff_t begin = (ptrdiff_t)(row * axis[0].step) + axis[0].first;
    const struct inside in = samples_inside(axis[0].size, begin, 1, axis[0].taps);
    const void *rows[MAX_ROWS];
    for (size_t r = 0; r < in.count; r++)
        rows[r] = x + (size_t)(begin + (ptrdiff_t)(in.begin + r)) * axis[1].size * position;
    struct channels_conv conv = {.x = rows,
                                 .w = (const char *)call->filter->state +
                                      in.begin * axis[1].taps * pitch * shape->scalar_bytes,
                                 .y = y + (row * axis[1].count + first) * position,
                                 .bias = finish.bias,
                                 .rows = in.count,
                                 .channels = channels,
                                 .w_pitch = pitch,
                                 .axis = axis[1],
                                 .relu = finish.relu};
    // Behind the last row of an image comes the next image.
    if (call->far) {
        const uintptr_t next = (uintptr_t)(begin + (ptrdiff_t)axis[0].taps) * axis[1].size;
        conv.next_x = (const void *)((uintptr_t)x + (next + first * axis[1].step) * position);
        conv.next_rows = axis[0].step;
    }
    conv.axis.count = end - first;
    conv.axis.first += (ptrdiff_t)(first * axis[1].step);
    call->plan->kernels->channels_conv(&conv);
}

// Tasks along the images, the rows and the columns of the outputs.
static void count_tasks(const struct depthwise_call *call, size_t ret[3])
{
    const struct plane_axis *axis = ((const struct depthwise_plane *)call->plan->state)->axis;
    ret[0] = call->plan->shape.batch;
    ret[1] = ceil_div(axis[0].count, TASK_ROWS);
    ret[2] = ceil_div(axis[1].count, TASK_COLUMNS);
}

static void channels_task(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct plane_axis *axis = ((const struct depthwise_plane *)call->plan->state)->axis;
    const struct shape *shape = &call->plan->shape;
    const size_t position = shape->in_channels * shape->scalar_bytes;
    size_t n[3], at[3];
    count_tasks(call, n);
    size_unravel(task, n, at);
    const char *x = call->from + at[0] * axis[0].size * axis[1].size * position;
    char *y = call->to + at[0] * axis[0].count * axis[1].count * position;
    const size_t end = size_min(axis[0].count, (at[1] + 1) * TASK_ROWS);
    // Of equal lengths, since the kernel takes no short rows.
    const size_t first = at[2] * axis[1].count / n[2], last = (at[2] + 1) * axis[1].count / n[2];
    (void)worker;
    for (size_t row = at[1] * TASK_ROWS; row < end; row++)
        channels_row(call, x, y, row, first, last);
}

static void channels_run(struct depthwise_call *call)
{
    size_t n[3];
    count_tasks(call, n);
    thread_loop(call->plan->threads, n[0] * n[1] * n[2], channels_task, call);
}

const struct depthwise_method depthwise_channels = {.estimate = channels_estimate,
                                                    .build = channels_build,
                                                    .filter_bytes = depthwise_plane_filter_bytes,
                                                    .filter_pack = depthwise_plane_filter_pack,
                                                    .run = channels_run};
