// SPDX-License-Identifier: MIT
// Backward weight of cpu/depthwise tap by tap: inputs of forward's pass are packed as in direct.c,
// and each row of gy adds to a sum for each tap (kernels->lanes_weight), lane by lane. A task is a
// lane group and a split of its boxes and images, both chosen by shape alone; splits have sums of
// their own, which are added in a tree at the end, and then those of the lanes of one channel.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/cost.h"
#include "product/split_k.h"
#include "depthwise.h"

struct depthwise_weight {
    struct conv_pass pass;
    struct depthwise_taps taps;
    size_t splits, bytes; // of the sums of one lane group and split
};

static size_t depthwise_weight_worker_bytes(const struct depthwise_weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    return size_add(depthwise_packed_bytes(pass), size_mul(pass->box.count[2], CONV_BLOCK_BYTES));
}

size_t depthwise_k_splits(const struct request *request, size_t worker, size_t max_splits,
                          size_t bytes)
{
    const size_t groups = depthwise_groups(request->shape), limit = request->workspace_limit;
    const size_t capacity = (limit - size_min(limit, worker)) / size_mul(groups, bytes);
    const size_t splits = size_min(ceil_div(DEPTHWISE.min_tasks, groups), max_splits);
    return size_max(size_min(splits, capacity), 1);
}

static void depthwise_weight_layout(const struct request *request, struct depthwise_weight *ret)
{
    const struct shape *shape = request->shape;
    struct conv_pass *pass = &ret->pass;
    const size_t packed = size_min(request->model->cache_bytes, request->workspace_limit) / 2;
    const struct conv_box_limits limits = {
        .max_positions = SIZE_MAX, .max_bytes = packed / depthwise_width(shape), .tasks = 1};
    conv_pass_make(shape, PARTITA_BACKWARD_WEIGHT, 0, pass);
    pass->in = pass->out = pass->batch = 1;
    conv_pass_choose_box(pass, &limits);
    ret->bytes = size_mul(pass->terms * depthwise_multiplier(shape), CONV_BLOCK_BYTES);
    ret->splits = depthwise_k_splits(request, depthwise_weight_worker_bytes(ret),
                                     size_mul(shape->batch, conv_pass_boxes(pass)), ret->bytes);
}

void depthwise_weight_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t n_taps = shape_taps(shape);
    if (n_taps > DEPTHWISE.weight_taps) {
        estimate_refuse(ret, "%zu taps; at most %zu", n_taps, DEPTHWISE.weight_taps);
        return;
    }
    struct depthwise_weight weight;
    const struct conv_pass *pass = &weight.pass;
    depthwise_weight_layout(request, &weight);
    const double planes = (double)shape->batch * (double)shape->in_channels;
    const double multiplier = (double)depthwise_multiplier(shape);
    const double outputs = (double)shape_outputs(shape);
    const double taps = (double)n_taps;
    const double boxes = (double)conv_pass_boxes(pass);
    const double reads = boxes * (double)conv_pass_rows(pass) * (double)pass->box.extent[2];
    const double row = (double)pass->box.count[2];
    const double rows = taps / (double)pass->axis[2].kernel * outputs / row;
    const double products = taps * outputs * DEPTHWISE.weight_product + rows * DEPTHWISE.weight_row;
    ret->flops = 2 * taps * outputs * multiplier * planes;
    ret->seconds = depthwise_seconds(request, products * multiplier * planes,
                                     (reads + outputs * multiplier) * planes);
    ret->error = conv_cost_error(shape, (double)shape->batch * outputs, row);
    ret->hop = conv_pass_box_outputs(pass);
    ret->worker = depthwise_weight_worker_bytes(&weight);
    ret->shared = size_mul(size_mul(weight.splits, depthwise_groups(shape)), weight.bytes);
    ret->bytes = size_add(ret->worker, ret->shared);
    ret->variant = DEPTHWISE_DIRECT;
    ret->applicable = true;
    ret->spread = 1;
}

static void *weight_build(const struct partita_plan *plan, const struct request *request,
                          struct arena *arena)
{
    struct depthwise_weight made, *weight = arena_take(arena, sizeof *weight);
    (void)plan;
    depthwise_weight_layout(request, &made);
    depthwise_make_taps(&made.pass, &made.taps, arena);
    if (arena->base) *weight = made;
    return weight;
}

// A packed box of x and the lanes of gy. far: rows of gy are prefetched.
struct weight_box {
    struct conv_index index;
    struct depthwise_lanes gy;
    bool far;
    char *packed;
};

// Rows of gy's plane j of each channel against a packed box.
static void sum_gradient_plane(const struct depthwise_call *call, const struct weight_box *box,
                               size_t j, char *sums)
{
    const struct depthwise_weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const struct conv_index *index = &box->index;
    const size_t n_h = index->count[1];
    const struct depthwise_box outputs = {pass, *index, j};
    char *gy = box->packed + depthwise_packed_bytes(pass); // a row
    for (size_t d = 0; d < index->count[0]; d++)
        for (size_t h = 0; h < n_h; h++) {
            const struct depthwise_row row = {.plane = j,
                                              .row = conv_pass_output_sample(pass, index, d, h),
                                              .size = index->count[2],
                                              .step = 1,
                                              .n = index->count[2]};
            if (box->far)
                depthwise_prefetch_row(&outputs, &box->gy, call->gy, d * n_h + h + DEPTHWISE.ahead,
                                       false);
            depthwise_read(call->plan, &box->gy, gy, call->gy, &row);
            call->plan->kernels->lanes_weight(
                sums, gy, depthwise_packed_row(pass, box->packed, d, h), weight->taps.span,
                weight->taps.spans, index->count[2]);
        }
}

// One task: one lane group in one split of its boxes and sets.
static void sum_split(void *context, size_t task, int worker)
{
    const struct depthwise_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct depthwise_weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const size_t split = task % weight->splits;
    const struct depthwise_group group = depthwise_group(shape, task / weight->splits);
    const size_t boxes = conv_pass_boxes(pass), all = depthwise_sets(shape, &group) * boxes;
    const size_t end = (split + 1) * all / weight->splits;
    char *packed = call->workers + (size_t)worker * call->plan->choice.worker;
    char *sums = call->shared + task * weight->bytes;
    const bool far = depthwise_array_bytes(shape) > DEPTHWISE.far_bytes &&
                     (shape->channels_last || pass->terms >= DEPTHWISE.prefetched_taps);
    memset(sums, 0, weight->bytes);
    for (size_t i = split * all / weight->splits; i < end; i++) {
        const struct depthwise_box box = {pass, conv_pass_index(pass, i % boxes), 0};
        const struct depthwise_lanes lanes = depthwise_lanes(shape, &group, i / boxes, false);
        const struct weight_box with = {.index = box.index,
                                        .gy = depthwise_lanes(shape, &group, i / boxes, true),
                                        .packed = packed,
                                        .far = far};
        depthwise_pack(call->plan, &box, &lanes, packed, call->from);
        for (size_t j = 0; j < depthwise_multiplier(shape); j++)
            sum_gradient_plane(call, &with, j, sums + j * pass->terms * CONV_BLOCK_BYTES);
    }
}

static size_t direct_tap_of(const void *state, size_t i)
{
    const struct depthwise_weight *weight = state;
    return conv_pass_tap(&weight->pass, weight->taps.order[i]);
}

// Writes the sums of output j of each channel to the planes of their taps: as many taps at a time
// as follow each other in both orders.
static void write_gradient(const struct depthwise_call *call, const struct depthwise_group *group,
                           size_t j, const char *sums)
{
    const struct partita_plan *plan = call->plan;
    const struct depthwise_sums *all = call->sums;
    const size_t taps = shape_taps(&plan->shape), bytes = plan->shape.scalar_bytes;
    for (size_t t = 0, n; t < taps; t += n) {
        const size_t tap = all->tap_of ? all->tap_of(plan->state, t) : t;
        void *to[DEPTHWISE_LANES] = {NULL};
        n = all->tap_of ? 1 : taps;
        while (t + n < taps && all->tap_of(plan->state, t + n) == tap + n) n++;
        for (size_t c = 0; c < group->channels; c++) {
            const size_t path = (group->first + c) * depthwise_multiplier(&plan->shape) + j;
            to[c] = call->to + (path * taps + tap) * bytes;
        }
        plan->kernels->lanes_write(to, 1, sums + t * CONV_BLOCK_BYTES, n, NULL, false);
    }
}

static void reduce_group(void *context, size_t g, int worker)
{
    const struct depthwise_call *call = context;
    const struct depthwise_sums *all = call->sums;
    const struct shape *shape = &call->plan->shape;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = shape->scalar_bytes;
    const struct depthwise_group group = depthwise_group(shape, g);
    char *sums = call->shared + g * all->splits * all->bytes;
    (void)worker;
    split_k_reduce_tree(kernels, sums, sums + all->bytes, all->bytes, all->splits,
                        all->bytes / bytes);
    for (size_t at = 0; at < all->bytes && group.images > 1; at += CONV_BLOCK_BYTES)
        for (size_t image = 1; image < group.images; image++)
            kernels->add(sums + at, sums + at + image * group.channels * bytes, group.channels);
    for (size_t j = 0; j < depthwise_multiplier(shape); j++)
        write_gradient(call, &group, j, sums + j * shape_taps(shape) * CONV_BLOCK_BYTES);
}

void depthwise_reduce(struct depthwise_call *call)
{
    const size_t groups = depthwise_groups(&call->plan->shape);
    assert(groups * call->sums->splits * call->sums->bytes <= call->plan->choice.shared);
    thread_loop(call->plan->threads, groups, reduce_group, call);
}

static void weight_run(struct depthwise_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct depthwise_weight *weight = plan->state;
    const struct depthwise_sums sums = {weight->splits, weight->bytes, direct_tap_of};
    thread_loop(plan->threads, depthwise_groups(&plan->shape) * weight->splits, sum_split, call);
    call->sums = &sums;
    depthwise_reduce(call);
}

const struct depthwise_method depthwise_weight = {.build = weight_build, .run = weight_run};
