// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise plane by plane, with vectors along rows
// (kernels->plane_conv), with AVX-512 or AVX2 and channels first: columns of at most 5 or exactly 7
// taps, rows of at most DEPTHWISE.max_row samples. A task is some planes.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "depthwise.h"

enum { TASK_PLANES = 8 };

bool depthwise_plane_pass(const struct request *request, struct conv_pass *pass)
{
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass->axis;
    if (request->model->isa < CPU_AVX2 || depthwise_multiplier(shape) > 1 ||
        conv_pass_count(shape, request->direction) > 1 ||
        !conv_pass_make(shape, request->direction, 0, pass))
        return false;
    bool fits =
        axis[0].size == 1 && axis[0].out_size == 1 && axis[0].kernel == 1 && axis[0].base == 0;
    for (int a = 1; a < 3; a++)
        fits = fits && axis[a].spread == 1 && axis[a].first == 0 &&
               axis[a].taps == axis[a].kernel && (axis[a].slope == 1 || axis[a].slope == -1);
    return fits;
}

bool depthwise_rows_pass(const struct request *request, struct conv_pass *pass)
{
    const struct conv_axis *axis = pass->axis;
    if (request->shape->channels_last || !depthwise_plane_pass(request, pass)) return false;
    bool fits = axis[1].count >= PLANE_ROWS && axis[2].size <= DEPTHWISE.max_row &&
                axis[1].step == axis[2].step && plane_serves(axis[1].taps);
    for (int a = 1; a < 3; a++) fits = fits && axis[a].step <= 2 && axis[a].taps <= MAX_SPAN_TAPS;
    return fits;
}

struct plane_axis depthwise_plane_axis(const struct conv_axis *axis)
{
    const ptrdiff_t last = axis->slope > 0 ? 0 : (ptrdiff_t)axis->taps - 1;
    return (struct plane_axis){.size = axis->size,
                               .count = axis->count,
                               .taps = axis->taps,
                               .step = axis->step,
                               .first = axis->base - last};
}

bool depthwise_rows_estimate(const struct request *request, const struct estimate *direct,
                             struct estimate *ret)
{
    struct conv_pass pass;
    if (!MODE_IS_ON("depthwise:rows") || !direct->applicable ||
        !depthwise_rows_pass(request, &pass))
        return false;
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass.axis;
    const size_t lanes = depthwise_width(shape) / (request->model->isa == CPU_AVX2 ? 2 : 1);
    const double rows = (double)ceil_div(axis[1].count, PLANE_ROWS);
    const double vectors = (double)ceil_div(axis[2].count, lanes);
    const double columns = (double)(axis[2].taps * axis[1].step);
    const double slower = axis[2].step > 1 ? DEPTHWISE.strided : DEPTHWISE.straddling;
    const double products = rows * vectors * (double)(PLANE_ROWS * lanes * pass.terms) * slower;
    const double begins = rows * vectors * columns * DEPTHWISE.column + DEPTHWISE.plane;
    const double seconds = (products + begins) * (double)(shape->batch * shape->in_channels) *
                           request->model->costs[shape->f64].fma;
    *ret = *direct;
    ret->variant = DEPTHWISE_ROWS;
    ret->seconds = fmax(seconds, memory_seconds(request->model, shape));
    ret->worker = 0;
    ret->hop = axis[1].count * axis[2].count;
    ret->bytes = size_mul(size_mul(shape->in_channels, pass.terms), shape->scalar_bytes);
    return ret->seconds <= (axis[2].step > 1 ? DEPTHWISE.strided_direct : 1) * direct->seconds;
}

struct depthwise_plane *depthwise_plane_build(const struct conv_pass *pass, struct arena *arena,
                                              next_tap_fn *next)
{
    struct depthwise_plane *plane =
        arena_take(arena, sizeof *plane + pass->terms * sizeof *plane->tap);
    if (!arena->base) return NULL;
    plane->taps = pass->terms;
    for (int a = 0; a < 2; a++) plane->axis[a] = depthwise_plane_axis(&pass->axis[a + 1]);
    size_t at[2] = {0, 0};
    for (size_t t = 0; t < pass->terms; t++, next(plane->axis, at)) {
        size_t tap[2];
        for (int a = 0; a < 2; a++)
            tap[a] = pass->axis[a + 1].slope > 0 ? at[a] : plane->axis[a].taps - 1 - at[a];
        plane->tap[t] = conv_pass_tap(pass, tap[0] * plane->axis[1].taps + tap[1]);
    }
    return plane;
}

void *depthwise_rows_build(const struct request *request, struct arena *arena)
{
    struct conv_pass pass;
    const bool served = depthwise_rows_pass(request, &pass);
    assert(served);
    (void)served;
    return depthwise_plane_build(&pass, arena, plane_next_tap);
}

struct filter_bytes depthwise_rows_filter_bytes(const struct partita_plan *plan)
{
    const struct depthwise_plane *rows = plan->state;
    return (struct filter_bytes){.packed = size_mul(size_mul(plan->shape.in_channels, rows->taps),
                                                    plan->shape.scalar_bytes)};
}

void depthwise_rows_filter_pack(struct partita_filter *filter, const void *taps)
{
    const struct depthwise_plane *rows = filter->plan->state;
    const struct shape *shape = &filter->plan->shape;
    const size_t bytes = shape->scalar_bytes;
    char *to = filter->state;
    for (size_t c = 0; c < shape->in_channels; c++)
        for (size_t t = 0; t < rows->taps; t++, to += bytes)
            memcpy(to, (const char *)taps + (c * rows->taps + rows->tap[t]) * bytes, bytes);
}

struct rows_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *from;
    char *to;
};

static void rows_task(void *context, size_t task, int worker)
{
    const struct rows_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct depthwise_plane *rows = call->plan->state;
    const struct plane_axis *axis = rows->axis;
    const bool forward = call->plan->direction == PARTITA_FORWARD;
    const size_t bytes = shape->scalar_bytes, planes = shape->batch * shape->in_channels;
    const size_t end = size_min(planes, (task + 1) * TASK_PLANES);
    const size_t in = axis[0].size * axis[1].size * bytes;
    const size_t out = axis[0].count * axis[1].count * bytes;
    const bool far = depthwise_array_bytes(shape) > DEPTHWISE.far_bytes;
    const bool far_out = depthwise_array_bytes(shape) > DEPTHWISE.rows_far_bytes;
    const char *biases = forward ? call->filter->bias : NULL;
    (void)worker;
    for (size_t i = task * TASK_PLANES; i < end; i++) {
        const size_t c = i % shape->in_channels;
        const bool more = i + 1 < planes;
        struct plane_conv plane = {.x = call->from + i * in,
                                   .w = (const char *)call->filter->state + c * rows->taps * bytes,
                                   .y = call->to + i * out,
                                   .axis = {axis[0], axis[1]}};
        if (more && far) plane.next[0] = call->from + (i + 1) * in;
        if (more && far_out) plane.next[1] = call->to + (i + 1) * out;
        call->plan->kernels->plane_conv(&plane, biases ? biases + c * bytes : NULL,
                                        forward && shape->relu);
    }
}

void depthwise_rows_run(const struct partita_plan *plan, const struct partita_filter *filter,
                        const struct operands *operands)
{
    struct rows_call call = {plan, filter, operands->from[0], operands->to};
    const size_t planes = plan->shape.batch * plan->shape.in_channels;
    thread_loop(plan->threads, ceil_div(planes, TASK_PLANES), rows_task, &call);
}
