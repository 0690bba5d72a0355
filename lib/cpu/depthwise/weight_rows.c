// SPDX-License-Identifier: MIT
// Backward weight of cpu/depthwise plane by plane, with vectors along rows (kernels->plane_weight):
// as rows.c does for forward and backward data. Each channel of a split of the images has sums of
// its own, [tap][lane], which are added in a tree at the end. A task is some channels of a lane
// group in one split; splits do not depend on threads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/cost.h"
#include "product/split_k.h"
#include "depthwise.h"

struct weight_rows {
    size_t splits, bytes; // of the images; of the sums of a group and split
    size_t parts;         // tasks of a group and split
    const struct depthwise_plane *plane;
};

static void weight_rows_layout(const struct request *request, struct weight_rows *ret)
{
    const struct shape *shape = request->shape;
    const size_t vectors = size_mul(depthwise_width(shape), shape_taps(shape));
    ret->bytes = size_mul(vectors, CONV_BLOCK_BYTES);
    ret->splits = depthwise_k_splits(request, 0, shape->batch, ret->bytes);
    const size_t tasks = depthwise_groups(shape) * ret->splits;
    ret->parts = size_min(ceil_div(DEPTHWISE.min_tasks, tasks), depthwise_width(shape));
}

bool depthwise_weight_rows_estimate(const struct request *request, const struct estimate *direct,
                                    struct estimate *ret)
{
    struct conv_pass pass;
    if (!MODE_IS_ON("depthwise:weight-rows") || !direct->applicable ||
        !depthwise_rows_pass(request, &pass))
        return false;
    const struct shape *shape = request->shape;
    const struct conv_axis *axis = pass.axis;
    struct weight_rows weight;
    weight_rows_layout(request, &weight);
    const bool avx2 = request->model->isa == CPU_AVX2;
    if (avx2 && ceil_div(axis[1].taps, axis[1].step) > DEPTHWISE.weight_taps_avx2) return false;
    const size_t lanes = depthwise_width(shape) / (avx2 ? 2 : 1);
    const double taps = (double)pass.terms;
    const double strips = (double)ceil_div(axis[2].count, lanes);
    const double rows = strips * (double)(axis[1].count + axis[1].taps - 1);
    const double row =
        (taps + DEPTHWISE.weight_vector) * (axis[2].step > 1 ? DEPTHWISE.weight_strided : 1);
    const double vectors = rows * row + taps * DEPTHWISE.weight_tap + DEPTHWISE.weight_plane;
    const double seconds = vectors * (double)(lanes * shape->batch * shape->in_channels) *
                           request->model->costs[shape->f64].work.fma;
    *ret = *direct;
    ret->variant = DEPTHWISE_ROWS;
    ret->seconds = fmax(seconds, memory_seconds(request->model, shape));
    ret->error = conv_cost_error(shape, (double)shape->batch * (double)shape_outputs(shape),
                                 (double)axis[1].count * strips);
    ret->hop = axis[1].count * axis[2].count;
    ret->worker = 0;
    ret->shared = size_mul(size_mul(weight.splits, depthwise_groups(shape)), weight.bytes);
    ret->bytes = ret->shared;
    const double slower = axis[2].step > 1 ? DEPTHWISE.strided_direct : DEPTHWISE.weight_direct;
    return ret->seconds <= slower * direct->seconds;
}

static void *weight_rows_build(const struct partita_plan *plan, const struct request *request,
                               struct arena *arena)
{
    struct weight_rows *weight = arena_take(arena, sizeof *weight);
    const struct depthwise_plane *plane =
        depthwise_plane_build(request, depthwise_rows_pass, depthwise_next_tap, arena);
    (void)plan;
    if (!plane) return NULL;
    weight_rows_layout(request, weight);
    weight->plane = plane;
    return weight;
}

// The planes of x and gy of a channel of an image.
static void locate_planes(const struct depthwise_call *call, size_t image, size_t channel,
                          const void *ret[2])
{
    const struct weight_rows *weight = call->plan->state;
    const struct plane_axis *axis = weight->plane->axis;
    const size_t bytes = call->plan->shape.scalar_bytes;
    const size_t plane = image * call->plan->shape.in_channels + channel;
    ret[0] = call->from + plane * axis[0].size * axis[1].size * bytes;
    ret[1] = call->gy + plane * axis[0].count * axis[1].count * bytes;
}

// One task: some channels of a group in one split of the images.
static void sum_planes(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct weight_rows *weight = call->plan->state;
    const size_t sums_of = task / weight->parts, part = task % weight->parts;
    const struct depthwise_group group = depthwise_group(shape, sums_of / weight->splits);
    const size_t split = sums_of % weight->splits;
    const size_t first = part * group.channels / weight->parts;
    const size_t channels = (part + 1) * group.channels / weight->parts - first;
    const size_t end = (split + 1) * shape->batch / weight->splits * channels;
    const size_t begin = split * shape->batch / weight->splits * channels;
    const size_t block = weight->plane->taps * CONV_BLOCK_BYTES;
    const bool far = depthwise_array_bytes(shape) > DEPTHWISE.far_bytes;
    char *sums = call->shared + sums_of * weight->bytes + first * block;
    (void)worker;
    memset(sums, 0, channels * block);
    for (size_t i = begin; i < end; i++) {
        const size_t c = i % channels, next = i + 1;
        const void *operands[2];
        struct plane_weight plane = {.w = sums + c * block,
                                     .axis = {weight->plane->axis[0], weight->plane->axis[1]}};
        locate_planes(call, i / channels, group.first + first + c, operands);
        plane.x = operands[0];
        plane.gy = operands[1];
        if (far && next < end)
            locate_planes(call, next / channels, group.first + first + next % channels, plane.next);
        call->plan->kernels->plane_weight(&plane);
    }
}

// Adds splits, and the lanes of each tap.
static void reduce_planes(void *context, size_t g, int worker)
{
    const struct depthwise_call *call = context;
    const struct weight_rows *weight = call->plan->state;
    const struct kernels *kernels = call->plan->kernels;
    const size_t taps = weight->plane->taps, bytes = call->plan->shape.scalar_bytes;
    const struct depthwise_group group = depthwise_group(&call->plan->shape, g);
    char *sums = call->shared + g * weight->splits * weight->bytes;
    (void)worker;
    split_k_reduce_tree(kernels, sums, sums + weight->bytes, weight->bytes, weight->splits,
                        group.channels * taps * CONV_BLOCK_BYTES / bytes);
    for (size_t c = 0; c < group.channels; c++)
        for (size_t t = 0; t < taps; t++, sums += CONV_BLOCK_BYTES) {
            char *to = call->to + ((group.first + c) * taps + weight->plane->tap[t]) * bytes;
            const double sum = kernels->sum(sums, CONV_BLOCK_BYTES / bytes);
            if (bytes == sizeof(double)) memcpy(to, &sum, bytes);
            else memcpy(to, &(float){(float)sum}, bytes);
        }
}

static void weight_rows_run(struct depthwise_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct weight_rows *weight = plan->state;
    const size_t groups = depthwise_groups(&plan->shape);
    assert(groups * weight->splits * weight->bytes <= plan->choice.shared);
    thread_loop(plan->threads, groups * weight->splits * weight->parts, sum_planes, call);
    thread_loop(plan->threads, groups, reduce_planes, call);
}

const struct depthwise_method depthwise_weight_rows = {.build = weight_rows_build,
                                                       .run = weight_rows_run};
