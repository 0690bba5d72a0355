// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise plane by plane, with vectors along rows
// (kernels->plane_conv), with AVX-512 or AVX2 and channels first: columns of at most 5 or exactly 7
// taps, rows of at most DEPTHWISE.max_row samples. A task is some planes.
#include <math.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"

enum { TASK_PLANES = 8 };

bool depthwise_rows_pass(const struct request *request, struct conv_pass *pass)
{
    const struct conv_axis *axis = pass->axis;
    if (request->shape->channels_last || !depthwise_plane_pass(request, pass)) return false;
    bool fits = axis[1].count >= PLANE_ROWS && axis[2].size <= DEPTHWISE.max_row &&
                axis[1].step == axis[2].step && plane_serves(axis[1].taps);
    for (int a = 1; a < 3; a++) fits = fits && axis[a].step <= 2 && axis[a].taps <= MAX_SPAN_TAPS;
    return fits;
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
                           request->model->costs[shape->f64].work.fma;
    *ret = *direct;
    ret->variant = DEPTHWISE_ROWS;
    ret->seconds = fmax(seconds, memory_seconds(request->model, shape));
    ret->worker = 0;
    ret->hop = axis[1].count * axis[2].count;
    ret->bytes = size_mul(size_mul(shape->in_channels, pass.terms), shape->scalar_bytes);
    return ret->seconds <= (axis[2].step > 1 ? DEPTHWISE.strided_direct : 1) * direct->seconds;
}

static void *rows_build(const struct partita_plan *plan, const struct request *request,
                        struct arena *arena)
{
    (void)plan;
    return depthwise_plane_build(request, depthwise_rows_pass, plane_next_tap, arena);
}

static void rows_task(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct depthwise_plane *rows = call->plan->state;
    const struct plane_axis *axis = rows->axis;
    const size_t bytes = shape->scalar_bytes, planes = shape->batch * shape->in_channels;
    const size_t end = size_min(planes, (task + 1) * TASK_PLANES);
    const size_t in = axis[0].size * axis[1].size * bytes;
    const size_t out = axis[0].count * axis[1].count * bytes;
    const bool far = depthwise_array_bytes(shape) > DEPTHWISE.far_bytes;
    const bool far_out = depthwise_array_bytes(shape) > DEPTHWISE.rows_far_bytes;
    (void)worker;
    for (size_t i = task * TASK_PLANES; i < end; i++) {
        const size_t c = i % shape->in_channels;
        const bool more = i + 1 < planes;
        const struct conv_finish finish = filter_finish(call->filter, c);
        struct plane_conv plane = {.x = call->from + i * in,
                                   .w = (const char *)call->filter->state + c * rows->taps * bytes,
                                   .y = call->to + i * out,
                                   .axis = {axis[0], axis[1]}};
        if (more && far) plane.next[0] = call->from + (i + 1) * in;
        if (more && far_out) plane.next[1] = call->to + (i + 1) * out;
        call->plan->kernels->plane_conv(&plane, finish.bias, finish.relu);
    }
}

static void rows_run(struct depthwise_call *call)
{
    const size_t planes = call->plan->shape.batch * call->plan->shape.in_channels;
    thread_loop(call->plan->threads, ceil_div(planes, TASK_PLANES), rows_task, call);
}

const struct depthwise_method depthwise_rows = {.build = rows_build,
                                                .filter_bytes = depthwise_plane_filter_bytes,
                                                .filter_pack = depthwise_plane_filter_pack,
                                                .run = rows_run};
