// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise with channels last, with vectors of adjacent channels
// (kernels->channels_conv), with AVX-512 or AVX2. A task is some rows of outputs of an image, or a
// part of them. Scalars are used where they are; samples of 16 bits are widened in a cache.
#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"
#include "geometry/samples.h"

enum {
    MAX_ROWS = 32, // of taps
    TASK_ROWS = 4, // of outputs
    TASK_COLUMNS = 256,
    // Rows of 16 bits: of a task, as scalars in about an L2 cache; a single row may take more.
    HALF_ROWS = 16,
    HALF_BYTES = 1 << 20,
    MAX_HALF_BYTES = 2 << 20,
};

// Scalars of a packed tap of all channels.
static size_t channels_pitch(const struct shape *shape)
{
    return size_round_up(shape->in_channels, depthwise_width(shape));
}

// Rows of samples that n rows of outputs read.
static size_t rows_read(const struct plane_axis *axis, size_t n)
{
    return (n - 1) * axis->step + axis->taps;
}

// Bytes of n rows of outputs and of the samples that they read, as scalars.
static size_t rows_bytes(const struct shape *shape, const struct plane_axis axis[2], size_t n)
{
    const size_t columns = rows_read(axis, n) * axis[1].size + n * axis[1].count;
    return size_mul(columns, shape->in_channels * shape->scalar_bytes);
}

// Rows of outputs of a task; of 16 bits whole ones.
static size_t task_rows(const struct shape *shape, const struct plane_axis axis[2])
{
    size_t n = size_min(axis[0].count, shape->half ? HALF_ROWS : TASK_ROWS);
    while (shape->half && n > 1 && rows_bytes(shape, axis, n) > HALF_BYTES) n--;
    return n;
}

static void channels_estimate(const struct request *request, struct estimate *ret)
{
    struct conv_pass pass;
    const size_t lanes =
        depthwise_width(request->shape) / (request->model->isa == CPU_AVX2 ? 2 : 1);
    if (!MODE_IS_ON("depthwise:channels") || request->direction == PARTITA_BACKWARD_WEIGHT ||
        !request->shape->channels_last || !depthwise_plane_pass(request, &pass) ||
        pass.axis[1].taps > MAX_ROWS)
        return;
    const struct plane_axis axis[] = {depthwise_plane_axis(&pass.axis[1]),
                                      depthwise_plane_axis(&pass.axis[2])};
    if (!channels_serve(&axis[1], request->shape->in_channels, lanes) ||
        (request->shape->half && rows_bytes(request->shape, axis, 1) > MAX_HALF_BYTES))
        return;
    const struct shape *shape = request->shape;
    const size_t packed = size_mul(channels_pitch(shape), pass.terms),
                 rows = task_rows(shape, axis);
    const double outputs = (double)shape->batch * (double)axis[0].count * (double)axis[1].count *
                           (double)size_round_up(shape->in_channels, lanes);
    struct ledger ledger = {.work = {.fma = outputs * (double)pass.terms, .sum = outputs},
                            .filter = {.pack = (double)packed}};
    ret->hop = rows * size_min(axis[1].count, TASK_COLUMNS);
    if (shape->half) {
        ret->worker = mem_round(rows_bytes(shape, axis, rows));
        ledger.work.copy = (double)(shape->batch * ceil_div(axis[0].count, rows)) *
                           (double)(ret->worker / shape->scalar_bytes);
    }
    conv_cost_estimate(request, (double)pass.terms, &ledger, ret);
    ret->bytes = size_add(ret->worker, size_mul(packed, shape->scalar_bytes));
}

static void *channels_build(const struct partita_plan *plan, const struct request *request,
                            struct arena *arena)
{
    struct depthwise_plane *plane = depthwise_plane_build(request, false, arena);
    (void)plan;
    if (plane) plane->pitch = channels_pitch(request->shape);
    return plane;
}

// Columns first .. end-1 of a row of outputs at y, from the samples of the taps' rows `in` at x.
static void channels_row(const struct depthwise_call *call, const char *x, char *y,
                         struct inside in, size_t first, size_t end)
{
    const struct depthwise_plane *plane = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    const struct plane_axis *axis = plane->axis;
    const size_t channels = shape->in_channels, position = channels * shape->scalar_bytes;
    const size_t pitch = plane->pitch;
    const struct conv_finish finish = filter_finish(call->filter, 0);
    const void *rows[MAX_ROWS];
    for (size_t r = 0; r < in.count; r++) rows[r] = x + r * axis[1].size * position;
    struct channels_conv conv = {.x = rows,
                                 .w = (const char *)call->filter->state +
                                      in.begin * axis[1].taps * pitch * shape->scalar_bytes,
                                 .y = y + first * position,
                                 .bias = finish.bias,
                                 .rows = in.count,
                                 .channels = channels,
                                 .w_pitch = pitch,
                                 .axis = axis[1],
                                 .relu = finish.relu};
    // Behind the last row of an image comes the next image.
    if (call->far && !shape->half) {
        const size_t next = (axis[0].taps - in.begin) * axis[1].size + first * axis[1].step;
        conv.next_x = (const void *)((uintptr_t)x + next * position);
        conv.next_rows = axis[0].step;
    }
    conv.axis.count = end - first;
    conv.axis.first += (ptrdiff_t)(first * axis[1].step);
    call->plan->kernels->channels_conv(&conv);
}

// Tasks along the images, the rows and the columns of the outputs.
static void count_tasks(const struct depthwise_call *call, size_t ret[3])
{
    const struct shape *shape = &call->plan->shape;
    const struct plane_axis *axis = ((const struct depthwise_plane *)call->plan->state)->axis;
    ret[0] = shape->batch;
    ret[1] = ceil_div(axis[0].count, task_rows(shape, axis));
    ret[2] = shape->half ? 1 : ceil_div(axis[1].count, TASK_COLUMNS);
}

static void channels_task(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct plane_axis *axis = ((const struct depthwise_plane *)call->plan->state)->axis;
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    const size_t channels = shape->in_channels, step = task_rows(shape, axis);
    const size_t line = axis[1].size * channels, out_line = axis[1].count * channels;
    size_t n[3], at[3];
    count_tasks(call, n);
    size_unravel(task, n, at);
    const size_t begin = at[1] * step, end = size_min(axis[0].count, begin + step);
    // Of equal lengths, since the kernel takes no short rows.
    const size_t first = at[2] * axis[1].count / n[2], last = (at[2] + 1) * axis[1].count / n[2];
    const ptrdiff_t top = (ptrdiff_t)(begin * axis[0].step) + axis[0].first;
    const struct inside all = samples_inside(axis[0].size, top, 1, rows_read(axis, end - begin));
    const size_t from = all.count ? (size_t)(top + (ptrdiff_t)all.begin) : 0;
    const char *x = call->from + (at[0] * axis[0].size + from) * line * shape->sample_bytes;
    char *y = call->to + (at[0] * axis[0].count + begin) * out_line * shape->sample_bytes,
         *sums = y;
    if (shape->half) {
        char *memory = call->workers + (size_t)worker * plan->choice.worker;
        plan_widen(plan)(memory, x, all.count * line);
        x = memory;
        sums = memory + all.count * line * shape->scalar_bytes;
    }
    for (size_t row = begin; row < end; row++) {
        const ptrdiff_t tap = (ptrdiff_t)(row * axis[0].step) + axis[0].first;
        const struct inside in = samples_inside(axis[0].size, tap, 1, axis[0].taps);
        const size_t at_row = in.count ? (size_t)(tap + (ptrdiff_t)in.begin) - from : 0;
        channels_row(call, x + at_row * line * shape->scalar_bytes,
                     sums + (row - begin) * out_line * shape->scalar_bytes, in, first, last);
    }
    if (shape->half) plan_narrow(plan)(y, sums, (end - begin) * out_line);
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
