// SPDX-License-Identifier: MIT
// cpu/depthwise plane by plane, with vectors along rows (kernels->plane_conv, plane_weight), with
// AVX-512 or AVX2 and channels first: columns of at most 5 or exactly 7 taps, rows of at most
// DEPTHWISE.max_row samples. Planes of 16 bits are converted as a whole. A task is some planes; in
// backward weight some channels in one split of the images. Also passes and filters that channels.c
// shares.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "base/thread.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"
#include "geometry/samples.h"

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

struct plane_axis depthwise_plane_axis(const struct conv_axis *axis)
{
    const ptrdiff_t last = axis->slope > 0 ? 0 : (ptrdiff_t)axis->taps - 1;
    return (struct plane_axis){.size = axis->size,
                               .count = axis->count,
                               .taps = axis->taps,
                               .step = axis->step,
                               .first = axis->base - last};
}

struct depthwise_plane *depthwise_plane_build(const struct request *request, bool by_columns,
                                              struct arena *arena)
{
    struct conv_pass pass;
    const bool served = depthwise_plane_pass(request, &pass);
    assert(served);
    (void)served;
    struct depthwise_plane *plane =
        arena_take(arena, sizeof *plane + pass.terms * sizeof *plane->tap);
    if (!arena->base) return NULL;
    *plane = (struct depthwise_plane){.taps = pass.terms};
    for (int a = 0; a < 2; a++) plane->axis[a] = depthwise_plane_axis(&pass.axis[a + 1]);
    const size_t width = plane->axis[1].taps;
    size_t at[2] = {0, 0};
    for (size_t t = 0; t < pass.terms; t++) {
        const size_t term = by_columns ? at[0] * width + at[1] : t;
        // Both axes of backward data are read backwards.
        plane->tap[t] = conv_pass_tap(&pass, pass.axis[1].slope > 0 ? term : pass.terms - 1 - term);
        plane_next_tap(plane->axis, at);
    }
    return plane;
}

struct filter_bytes depthwise_plane_filter_bytes(const struct partita_plan *plan)
{
    const struct depthwise_plane *plane = plan->state;
    const size_t channels = plane->pitch ? plane->pitch : plan->shape.in_channels;
    return (struct filter_bytes){
        .packed = size_mul(size_mul(channels, plane->taps), plan->shape.scalar_bytes)};
}

void depthwise_plane_filter_pack(struct partita_filter *filter, const void *taps, void *scratch)
{
    const struct depthwise_plane *plane = filter->plan->state;
    const size_t bytes = filter->plan->shape.scalar_bytes, n = plane->taps;
    const size_t pitch = plane->pitch ? plane->pitch : 1, channel = plane->pitch ? 1 : n;
    (void)scratch;
    memset(filter->state, 0, depthwise_plane_filter_bytes(filter->plan).packed);
    for (size_t t = 0; t < n; t++)
        samples_copy((char *)filter->state + t * pitch * bytes, channel,
                     (const char *)taps + plane->tap[t] * bytes, n, filter->plan->shape.in_channels,
                     bytes);
}

static bool rows_pass(const struct request *request, struct conv_pass *pass)
{
    const struct conv_axis *axis = pass->axis;
    if (request->shape->channels_last || !depthwise_plane_pass(request, pass)) return false;
    bool fits = axis[1].count >= PLANE_ROWS && axis[2].size <= DEPTHWISE.max_row &&
                axis[1].step == axis[2].step && plane_serves(axis[1].taps);
    for (int a = 1; a < 3; a++) fits = fits && axis[a].step <= 2 && axis[a].taps <= MAX_SPAN_TAPS;
    return fits;
}

// With a stride loads are the bound.
static void rows_estimate(const struct request *request, struct estimate *ret)
{
    struct conv_pass pass;
    if (!MODE_IS_ON("depthwise:rows") || !rows_pass(request, &pass)) return;
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass.axis;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const bool avx2 = request->model->isa == CPU_AVX2, strided = axis[2].step > 1;
    const size_t column = ceil_div(axis[1].taps, axis[1].step);
    if (weight && avx2 && column > DEPTHWISE.weight_taps_avx2) return;
    const double lanes = (double)depthwise_width(shape) / (avx2 ? 2 : 1);
    const double strips = ceil((double)axis[2].count / lanes), taps = (double)pass.terms;
    const double planes = (double)(shape->batch * shape->in_channels);
    const double rows = weight ? (double)(axis[1].count + axis[1].taps - 1)
                               : (double)(ceil_div(axis[1].count, PLANE_ROWS) * PLANE_ROWS);
    const double samples = planes * strips * lanes * rows, products = samples * taps;
    const size_t packed = size_mul(shape->in_channels, pass.terms);
    // Forward a column of taps begins with loads of PLANE_ROWS vectors. In backward weight a row of
    // gy is loaded beside its products, and sums of the taps begin and end with a plane.
    const double columns = samples / lanes / PLANE_ROWS * (double)(axis[2].taps * axis[1].step);
    const struct ledger ledger = {.work = {.fma = strided ? 0 : products,
                                           .two_loads = strided ? products : 0,
                                           .copy = weight ? samples : PLANE_ROWS * columns,
                                           .sum = weight ? planes * lanes * taps : 0,
                                           .call = weight ? planes : 0,
                                           .reduction = weight ? 0 : planes},
                                  .filter = {.pack = weight ? 0 : (double)packed}};
    conv_cost_estimate(request, taps, &ledger, ret);
    ret->hop = axis[1].count * axis[2].count;
    const size_t plane = axis[1].size * axis[2].size + axis[1].count * axis[2].count;
    ret->worker = shape->half ? mem_round(plane * shape->scalar_bytes) : 0;
    ret->bytes = size_add(ret->worker, size_mul(packed, shape->scalar_bytes));
    if (!weight) return;
    ret->spread = 1; // samples beyond the rows of gy are zeros
    ret->error = conv_cost_error(shape, (double)shape->batch * (double)shape_outputs(shape),
                                 (double)axis[1].count * strips);
    depthwise_split_memory(request, ret->worker, ceil_div(shape->in_channels, TASK_PLANES),
                           shape->batch, ret);
}

static void *rows_build(const struct partita_plan *plan, const struct request *request,
                        struct arena *arena)
{
    return depthwise_plane_build(request, plan->direction != PARTITA_BACKWARD_WEIGHT, arena);
}

// Samples of a plane of x (0) and y (1), or of their gradients.
static void rows_samples(const struct depthwise_call *call, size_t ret[2])
{
    const struct plane_axis *axis = ((const struct depthwise_plane *)call->plan->state)->axis;
    ret[0] = axis[0].size * axis[1].size;
    ret[1] = axis[0].count * axis[1].count;
}

// Plane i, of n samples, of an array that is read: there, or widened to memory.
static const char *rows_plane(const struct depthwise_call *call, const char *array, size_t i,
                              size_t n, char *memory)
{
    const char *plane = array + i * n * call->plan->shape.sample_bytes;
    if (!call->plan->shape.half) return plane;
    plan_widen(call->plan)(memory, plane, n);
    return memory;
}

static void rows_task(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct depthwise_plane *rows = call->plan->state;
    const size_t bytes = shape->scalar_bytes, planes = shape->batch * shape->in_channels;
    const size_t end = size_min(planes, (task + 1) * TASK_PLANES);
    char *memory = call->workers + (size_t)worker * call->plan->choice.worker;
    size_t n[2];
    rows_samples(call, n);
    for (size_t i = task * TASK_PLANES; i < end; i++) {
        const size_t c = i % shape->in_channels;
        const struct conv_finish finish = filter_finish(call->filter, c);
        char *y = call->to + i * n[1] * shape->sample_bytes;
        struct plane_conv plane = {.x = rows_plane(call, call->from, i, n[0], memory),
                                   .w = (const char *)call->filter->state + c * rows->taps * bytes,
                                   .y = shape->half ? memory + n[0] * bytes : y,
                                   .axis = {rows->axis[0], rows->axis[1]}};
        if (call->far && i + 1 < planes && !shape->half) {
            plane.next[0] = call->from + (i + 1) * n[0] * bytes;
            plane.next[1] = y + n[1] * bytes;
        }
        call->plan->kernels->plane_conv(&plane, finish.bias, finish.relu);
        if (shape->half) plan_narrow(call->plan)(y, plane.y, n[1]);
    }
}

// The gradient of a channel from images begin .. end-1.
static void sum_channel(const struct depthwise_call *call, size_t channel, size_t begin, size_t end,
                        char *sums)
{
    const struct depthwise_plane *rows = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    const size_t channels = shape->in_channels, bytes = shape->scalar_bytes;
    char *memory = sums + depthwise_tap_blocks(shape);
    size_t n[2];
    rows_samples(call, n);
    memset(sums, 0, depthwise_tap_blocks(shape));
    for (size_t i = begin; i < end; i++) {
        const size_t plane = i * channels + channel;
        const size_t next = i + 1 < end ? plane + channels : begin * channels + channel + 1;
        struct plane_weight weight = {
            .x = rows_plane(call, call->from, plane, n[0], memory),
            .gy = rows_plane(call, call->gy, plane, n[1], memory + n[0] * bytes),
            .w = sums,
            .axis = {rows->axis[0], rows->axis[1]}};
        if (call->far && !shape->half) {
            weight.next[0] = (const void *)((uintptr_t)call->from + next * n[0] * bytes);
            weight.next[1] = (const void *)((uintptr_t)call->gy + next * n[1] * bytes);
        }
        call->plan->kernels->plane_weight(&weight);
    }
}

static void weight_task(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct depthwise_plane *rows = call->plan->state;
    const size_t splits = call->split_k.splits, split = task % splits, bytes = shape->scalar_bytes;
    const size_t first = task / splits * TASK_PLANES;
    const size_t last = size_min(shape->in_channels, first + TASK_PLANES);
    char *sums = call->workers + (size_t)worker * call->plan->choice.worker;
    for (size_t c = first; c < last; c++) {
        char *to = split_k_sums(&call->split_k, split) + c * rows->taps * bytes;
        sum_channel(call, c, split * shape->batch / splits, (split + 1) * shape->batch / splits,
                    sums);
        for (size_t t = 0; t < rows->taps; t++)
            scalar_put(
                shape->f64, to, rows->tap[t],
                call->plan->kernels->sum(sums + t * CONV_BLOCK_BYTES, depthwise_width(shape)));
    }
}

static void rows_run(struct depthwise_call *call)
{
    const struct shape *shape = &call->plan->shape;
    const size_t planes = shape->batch * shape->in_channels;
    if (call->filter)
        thread_loop(call->plan->threads, ceil_div(planes, TASK_PLANES), rows_task, call);
    else depthwise_run_splits(call, ceil_div(shape->in_channels, TASK_PLANES), weight_task);
}

const struct depthwise_method depthwise_rows = {.estimate = rows_estimate,
                                                .build = rows_build,
                                                .filter_bytes = depthwise_plane_filter_bytes,
                                                .filter_pack = depthwise_plane_filter_pack,
                                                .run = rows_run};
