// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise with channels last, with vectors of adjacent channels
// (kernels->channels_conv), with AVX-512 or AVX2: samples are used where they are. A task is some
// rows of outputs of an image, or a part of them.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "depthwise.h"
#include "geometry/samples.h"

enum {
    MAX_ROWS = 32, // of taps
    TASK_ROWS = 4, // of outputs
    TASK_COLUMNS = 256,
};

static bool channels_pass(const struct request *request, struct conv_pass *pass)
{
    return request->shape->channels_last && depthwise_plane_pass(request, pass) &&
           pass->axis[1].taps <= MAX_ROWS;
}

// Scalars of a packed tap of all channels.
static size_t channels_pitch(const struct shape *shape)
{
    return size_round_up(shape->in_channels, depthwise_width(shape));
}

bool depthwise_channels_estimate(const struct request *request, const struct estimate *direct,
                                 struct estimate *ret)
{
    struct conv_pass pass;
    if (!MODE_IS_ON("depthwise:channels") || !direct->applicable || !channels_pass(request, &pass))
        return false;
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass.axis;
    const size_t lanes = depthwise_width(shape) / (request->model->isa == CPU_AVX2 ? 2 : 1);
    const size_t channels = size_round_up(shape->in_channels, lanes);
    const double outputs = (double)axis[1].count * (double)axis[2].count;
    const struct plane_axis row = depthwise_plane_axis(&axis[2]);
    const double product = channels_share_loads(&row, shape->in_channels, lanes)
                               ? DEPTHWISE.load_shared
                               : DEPTHWISE.load_each;
    const double products = outputs * ((double)pass.terms * product + DEPTHWISE.output);
    const double seconds =
        products * (double)(shape->batch * channels) * request->model->costs[shape->f64].fma;
    *ret = *direct;
    ret->variant = DEPTHWISE_CHANNELS;
    ret->seconds = fmax(seconds, memory_seconds(request->model, shape));
    ret->worker = 0;
    ret->hop = size_min(axis[1].count, TASK_ROWS) * size_min(axis[2].count, TASK_COLUMNS);
    ret->bytes = size_mul(size_mul(channels_pitch(shape), pass.terms), shape->scalar_bytes);
    return ret->seconds <= direct->seconds;
}

void depthwise_next_tap(const struct plane_axis axis[2], size_t tap[2])
{
    if (++tap[1] < axis[1].taps) return;
    tap[1] = 0;
    tap[0]++;
}

void *depthwise_channels_build(const struct request *request, struct arena *arena)
{
    struct conv_pass pass;
    const bool served = channels_pass(request, &pass);
    assert(served);
    (void)served;
    return depthwise_plane_build(&pass, arena, depthwise_next_tap);
}

struct filter_bytes depthwise_channels_filter_bytes(const struct partita_plan *plan)
{
    const struct depthwise_plane *plane = plan->state;
    return (struct filter_bytes){.packed =
                                     size_mul(size_mul(plane->taps, channels_pitch(&plan->shape)),
                                              plan->shape.scalar_bytes)};
}

void depthwise_channels_filter_pack(struct partita_filter *filter, const void *taps)
{
    const struct depthwise_plane *plane = filter->plan->state;
    const struct shape *shape = &filter->plan->shape;
    const size_t bytes = shape->scalar_bytes, channels = shape->in_channels;
    const size_t pitch = channels_pitch(shape);
    char *to = filter->state;
    for (size_t t = 0; t < plane->taps; t++, to += pitch * bytes) {
        samples_copy(to, 1, (const char *)taps + plane->tap[t] * bytes, plane->taps, channels,
                     bytes);
        memset(to + channels * bytes, 0, (pitch - channels) * bytes);
    }
}

struct channels_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *from;
    char *to;
    size_t row_tasks, column_tasks; // of an image
};

// Columns first .. end-1 of a row of outputs of an image, whose samples are at x.
static void channels_row(const struct channels_call *call, const char *x, char *y, size_t row,
                         size_t first, size_t end)
{
    const struct depthwise_plane *plane = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    const struct plane_axis *axis = plane->axis;
    const size_t channels = shape->in_channels, position = channels * shape->scalar_bytes;
    const size_t pitch = channels_pitch(shape);
    const bool forward = call->plan->direction == PARTITA_FORWARD;
    const ptrdiff_t begin = (ptrdiff_t)(row * axis[0].step) + axis[0].first;
    const struct inside in = samples_inside(axis[0].size, begin, 1, axis[0].taps);
    const void *rows[MAX_ROWS];
    for (size_t r = 0; r < in.count; r++)
        rows[r] = x + (size_t)(begin + (ptrdiff_t)(in.begin + r)) * axis[1].size * position;
    struct channels_conv conv = {.x = rows,
                                 .w = (const char *)call->filter->state +
                                      in.begin * axis[1].taps * pitch * shape->scalar_bytes,
                                 .y = y + (row * axis[1].count + first) * position,
                                 .bias = forward ? call->filter->bias : NULL,
                                 .rows = in.count,
                                 .channels = channels,
                                 .w_pitch = pitch,
                                 .axis = axis[1],
                                 .relu = forward && shape->relu};
    // Behind the last row of an image comes the next image.
    if (depthwise_array_bytes(shape) > DEPTHWISE.far_bytes) {
        const uintptr_t next = (uintptr_t)(begin + (ptrdiff_t)axis[0].taps) * axis[1].size;
        conv.next_x = (const void *)((uintptr_t)x + (next + first * axis[1].step) * position);
        conv.next_rows = axis[0].step;
    }
    conv.axis.count = end - first;
    conv.axis.first += (ptrdiff_t)(first * axis[1].step);
    call->plan->kernels->channels_conv(&conv);
}

static void channels_task(void *context, size_t task, int worker)
{
    const struct channels_call *call = context;
    const struct depthwise_plane *plane = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    const struct plane_axis *axis = plane->axis;
    const size_t columns = task % call->column_tasks,
                 rows = task / call->column_tasks % call->row_tasks;
    const size_t item = task / call->column_tasks / call->row_tasks;
    const size_t position = shape->in_channels * shape->scalar_bytes;
    const char *x = call->from + item * axis[0].size * axis[1].size * position;
    char *y = call->to + item * axis[0].count * axis[1].count * position;
    const size_t end = size_min(axis[0].count, (rows + 1) * TASK_ROWS);
    const size_t last = size_min(axis[1].count, (columns + 1) * TASK_COLUMNS);
    (void)worker;
    for (size_t row = rows * TASK_ROWS; row < end; row++)
        channels_row(call, x, y, row, columns * TASK_COLUMNS, last);
}

void depthwise_channels_run(const struct partita_plan *plan, const struct partita_filter *filter,
                            const struct operands *operands)
{
    const struct depthwise_plane *plane = plan->state;
    struct channels_call call = {.plan = plan,
                                 .filter = filter,
                                 .from = operands->from[0],
                                 .to = operands->to,
                                 .row_tasks = ceil_div(plane->axis[0].count, TASK_ROWS),
                                 .column_tasks = ceil_div(plane->axis[1].count, TASK_COLUMNS)};
    thread_loop(plan->threads, plan->shape.batch * call.row_tasks * call.column_tasks,
                channels_task, &call);
}
