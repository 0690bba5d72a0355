// SPDX-License-Identifier: MIT
// Backward weight of cpu/depthwise tap by tap: forward's pass packed as there, and for each row of
// gy one sum a tap (kernels->lanes_weight), lane by lane. A task is a block of lanes and a run of
// its boxes and images, both cut by shape alone; runs have sums of their own, added in a tree at
// the end, and then those of the lanes of one channel.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/split_k.h"
#include "depthwise.h"

enum {
    MOST_TAPS = 1 << 14,
    ENOUGH_TASKS = 32,
};

struct weight {
    struct conv_pass pass;
    struct depthwise_taps taps;
    size_t runs;
    size_t sum_bytes; // of one block in one run
};

static size_t packed_bytes(const struct weight *weight)
{
    return size_mul(weight->pass.box.channel, CONV_BLOCK_BYTES);
}

static size_t worker_bytes(const struct weight *weight)
{
    return size_add(packed_bytes(weight), size_mul(weight->pass.box.count[2], CONV_BLOCK_BYTES));
}

static size_t shared_bytes(const struct shape *shape, const struct weight *weight)
{
    return size_mul(size_mul(weight->runs, depthwise_blocks(shape)), weight->sum_bytes);
}

static void decide(const struct request *request, struct weight *ret)
{
    const struct shape *shape = request->shape;
    const size_t blocks = depthwise_blocks(shape), limit = request->workspace_limit;
    size_t most = request->model->cache_bytes / 2;
    if (limit / 2 < most) most = limit / 2;
    conv_pass_make(shape, PARTITA_BACKWARD_WEIGHT, 0, &ret->pass);
    ret->pass.in = ret->pass.out = ret->pass.batch = 1;
    conv_pass_choose_box(&ret->pass,
                         &(struct conv_box_limits){.max_positions = SIZE_MAX,
                                                   .max_bytes = most / depthwise_width(shape),
                                                   .tasks = 1});
    ret->sum_bytes = size_mul(ret->pass.terms * depthwise_multiple(shape), CONV_BLOCK_BYTES);
    ret->runs = size_min((ENOUGH_TASKS + blocks - 1) / blocks,
                         size_mul(shape->batch, conv_pass_boxes(&ret->pass)));
    const size_t left = limit > worker_bytes(ret) ? limit - worker_bytes(ret) : 0;
    ret->runs = size_min(ret->runs, left / size_mul(blocks, ret->sum_bytes));
    if (ret->runs == 0) ret->runs = 1;
}

void depthwise_weight_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t taps = shape_taps(shape);
    if (taps > MOST_TAPS) {
        snprintf(ret->reason, sizeof ret->reason, "%zu taps; at most %d", taps, MOST_TAPS);
        return;
    }
    struct weight weight;
    decide(request, &weight);
    const struct conv_pass *pass = &weight.pass;
    const double planes = (double)shape->batch * (double)shape->in_channels;
    const double multiple = (double)depthwise_multiple(shape),
                 outputs = (double)shape_outputs(shape);
    const double reads =
        (double)conv_pass_boxes(pass) * (double)conv_pass_rows(pass) * (double)pass->box.extent[2];
    // A row of taps of a row of outputs is begun and ended in the time of some products.
    enum { BEGIN = 12 };
    const double calls =
        (double)taps / (double)pass->axis[2].kernel * outputs / (double)pass->box.count[2];
    ret->flops = 2 * (double)taps * outputs * multiple * planes;
    ret->seconds = depthwise_seconds(
        request, ((double)taps * outputs * 1.1 + calls * BEGIN) * multiple * planes,
        (reads + outputs * multiple) * planes);
    // The rounding walk of a row's sums, then of rows.
    const double row = (double)pass->box.count[2], rows = (double)shape->batch * outputs / row;
    ret->error = shape_roundoff(shape) * 0.3 * sqrt(row + rows);
    ret->hop = pass->box.count[0] * pass->box.count[1] * pass->box.count[2];
    ret->worker = worker_bytes(&weight);
    ret->shared = shared_bytes(shape, &weight);
    ret->bytes = size_add(ret->worker, ret->shared);
    ret->variant = DEPTHWISE_DIRECT;
    ret->applicable = true;
}

static struct weight *cut_weight(const struct request *request, struct arena *arena)
{
    struct weight decided, *weight = arena_take(arena, sizeof *weight);
    decide(request, &decided);
    depthwise_taps_cut(&decided.pass, &decided.taps, arena);
    if (arena->base) *weight = decided;
    return weight;
}

enum partita_status depthwise_weight_plan_create(struct partita_plan *plan,
                                                 const struct request *request)
{
    struct arena arena = {0};
    cut_weight(request, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_weight(request, &arena);
    return PARTITA_OK;
}

struct call {
    const struct partita_plan *plan;
    char *sums, *workers;
    const char *x, *gy;
};

// Rows of gy's plane j of each channel against a packed box.
static void sum_plane(const struct call *call, const struct conv_index *place,
                      const struct depthwise_lanes *lanes, size_t j, const char *packed,
                      char *row_of_gy, char *sums)
{
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const struct conv_axis *axis = pass->axis;
    const size_t plane = axis[0].out_size * axis[1].out_size * axis[2].out_size,
                 n_w = place->count[2];
    for (size_t d = 0; d < place->count[0]; d++)
        for (size_t h = 0; h < place->count[1]; h++) {
            const struct depthwise_row row = {
                .plane_size = plane,
                .row = j * plane + ((place->at[0] + d) * axis[1].out_size + place->at[1] + h) *
                                       axis[2].out_size,
                .size = axis[2].out_size,
                .step = 1,
                .n = n_w,
                .first = (ptrdiff_t)place->at[2]};
            depthwise_read(call->plan, lanes, row_of_gy, call->gy, &row);
            call->plan->kernels->lanes_weight(sums, row_of_gy,
                                              packed + (d * pass->box.extent[1] + h) *
                                                           pass->box.extent[2] * CONV_BLOCK_BYTES,
                                              weight->taps.run, weight->taps.n_runs, n_w);
        }
}

// One task: one block of lanes in one run of its boxes and turns.
static void sum_run(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const size_t b = task / weight->runs, run = task % weight->runs,
                 multiple = depthwise_multiple(shape);
    const struct depthwise_block block = depthwise_block(shape, b);
    const size_t boxes = conv_pass_boxes(pass), all = depthwise_turns(shape, &block) * boxes;
    char *packed = call->workers + (size_t)worker * call->plan->choice.worker;
    char *row_of_gy = packed + packed_bytes(weight), *sums = call->sums + task * weight->sum_bytes;
    memset(sums, 0, weight->sum_bytes);
    for (size_t i = run * all / weight->runs; i < (run + 1) * all / weight->runs; i++) {
        const struct conv_index place = conv_pass_index(pass, i % boxes);
        struct depthwise_lanes lanes = depthwise_lanes(shape, &block, i / boxes, 1);
        depthwise_pack(call->plan, pass, &place, &lanes, packed, call->x);
        lanes = depthwise_lanes(shape, &block, i / boxes, multiple);
        for (size_t j = 0; j < multiple; j++)
            sum_plane(call, &place, &lanes, j, packed, row_of_gy,
                      sums + j * pass->terms * CONV_BLOCK_BYTES);
    }
}

static size_t tap_of(const void *state, size_t i)
{
    const struct weight *weight = state;
    return conv_pass_tap(&weight->pass, weight->taps.order[i]);
}

struct adding {
    const struct partita_plan *plan;
    const struct depthwise_sums *of;
    char *gw;
};

// One block of channels.
static void add_block(void *context, size_t b, int worker)
{
    const struct adding *call = context;
    const struct depthwise_sums *of = call->of;
    const struct shape *shape = &call->plan->shape;
    const size_t multiple = depthwise_multiple(shape), taps = shape_taps(shape),
                 bytes = shape->scalar_bytes;
    const struct depthwise_block block = depthwise_block(shape, b);
    char *sums = of->sums + b * of->runs * of->run_bytes;
    (void)worker;
    split_k_reduce_tree(call->plan->kernels, sums, sums + of->run_bytes, of->run_bytes, of->runs,
                        of->run_bytes / bytes);
    for (size_t c = 0; c < block.channels; c++)
        for (size_t j = 0; j < multiple; j++)
            for (size_t t = 0; t < taps; t++) {
                const size_t tap = of->tap_of(call->plan->state, t);
                const char *from = sums + (j * taps + t) * CONV_BLOCK_BYTES + c * bytes;
                char *to = call->gw + (((block.first + c) * multiple + j) * taps + tap) * bytes;
                memcpy(to, from, bytes);
                for (size_t image = 1; image < block.images; image++)
                    call->plan->kernels->add(to, from + image * block.channels * bytes, 1);
            }
}

void depthwise_add_sums(const struct partita_plan *plan, const struct depthwise_sums *sums,
                        void *gw)
{
    struct adding call = {plan, sums, gw};
    thread_loop(plan->threads, depthwise_blocks(&plan->shape), add_block, &call);
}

void depthwise_weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct weight *weight = plan->state;
    struct call call = {plan, workspace, (char *)workspace + plan->choice.shared, x, gy};
    const struct depthwise_sums sums = {workspace, weight->runs, weight->sum_bytes, tap_of};
    thread_loop(plan->threads, depthwise_blocks(shape) * weight->runs, sum_run, &call);
    depthwise_add_sums(plan, &sums, gw);
}
