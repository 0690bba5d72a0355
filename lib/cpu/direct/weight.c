// SPDX-License-Identifier: MIT
// Backward weight of cpu/direct on layers: forward's one pass (conv_pass.h), its packed inputs
// against gy packed to the same positions, so that every tap's gradient is one long dot product
// (kernels->conv_weight). A task is a part of the channels and a run of boxes, both cut by shape
// alone; runs have sums of their own, added in a tree at the end.
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/cost.h"
#include "cpu/conv/run_sums.h"
#include "layer.h"

enum {
    MOST_POSITIONS = 1024,   // four channels of gy stay in the L1 cache
    MOST_PACKED = 256 << 10, // bytes of either operand, a quarter of an L2 cache
    MOST_CHANNELS = 64,      // of gy packed at once
    ENOUGH_TASKS = 32,
    ADDED_LANES = 8, // vectors that adding the lanes of a sum takes as long as
};

struct weight {
    struct conv_pass pass;
    size_t channels;  // of gy at once
    size_t runs;      // of boxes
    size_t run_bytes; // of one run's sums
    size_t *offset;   // of one chunk, in the order of the caller's taps
};

static size_t inputs_bytes(const struct weight *weight)
{
    return mem_round(size_mul(weight->pass.chunk, conv_channel_bytes(&weight->pass)));
}

static size_t worker_bytes(const struct weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    return size_add(
        inputs_bytes(weight),
        mem_round(size_mul(size_mul(weight->channels, pass->box.positions), pass->scalar_bytes)));
}

// Tasks without a second run of boxes.
static size_t channel_tasks(const struct weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    return pass->groups * ceil_div(pass->in, pass->chunk) * ceil_div(pass->out, weight->channels);
}

static void decide(const struct request *request, struct weight *ret)
{
    const struct shape *shape = request->shape;
    const size_t limit = request->workspace_limit;
    conv_pass_forward(shape, &ret->pass);
    ret->pass.box_vectors = ADDED_LANES;
    conv_pass_cut(&ret->pass, MOST_POSITIONS, limit < 4 * MOST_PACKED ? limit / 2 : MOST_PACKED,
                  ENOUGH_TASKS);
    ret->channels = size_min(ret->pass.out, MOST_CHANNELS);
    while (ret->channels > 1 && worker_bytes(ret) > limit) ret->channels = (ret->channels + 1) / 2;
    ret->run_bytes =
        mem_round(shape->out_channels * shape->group_in * shape_taps(shape) * shape->scalar_bytes);
    ret->runs = size_min(ceil_div(ENOUGH_TASKS, channel_tasks(ret)), conv_pass_boxes(&ret->pass));
    // The first run sums in the caller's gw.
    const size_t left = limit > worker_bytes(ret) ? limit - worker_bytes(ret) : 0;
    ret->runs = size_min(ret->runs, 1 + left / ret->run_bytes);
}

void layer_weight_estimate(const struct request *request, struct estimate *ret)
{
    struct weight weight;
    decide(request, &weight);
    const struct conv_pass *pass = &weight.pass;
    const double lanes = (double)CONV_BLOCK_BYTES / (double)pass->scalar_bytes;
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups,
                 positions = (double)pass->box.positions,
                 terms = (double)pass->in * (double)pass->terms;
    const double chunks = (double)ceil_div(pass->in, pass->chunk),
                 blocks = (double)ceil_div(pass->out, weight.channels);
    struct conv_work work = {0};
    // Rectangles of taps by at most four channels; taps lie anywhere, so that most vectors take two
    // loads.
    work.sums = boxes * (positions + ADDED_LANES * lanes) * terms *
                conv_cost_channels(size_min(pass->out, 4), 6, 2) * fmax(1, (double)pass->out / 4);
    conv_cost_pack(&work, pass, (double)pass->in, boxes * blocks);
    work.moved += boxes * chunks * 2 * (double)pass->out * positions;
    work.rows += boxes * chunks * (double)pass->out * (double)pass->box.images *
                 (double)pass->box.count[0] * (double)pass->box.count[1];
    conv_cost_estimate(
        request, (double)request->shape->batch * (double)shape_outputs(request->shape), &work, ret);
    ret->hop = pass->box.positions;
    ret->worker = worker_bytes(&weight);
    ret->shared = (weight.runs - 1) * weight.run_bytes;
    ret->bytes = size_add(ret->worker, ret->shared);
}

static struct weight *cut_weight(const struct request *request, struct arena *arena)
{
    struct weight decided, *weight = arena_take(arena, sizeof *weight);
    decide(request, &decided);
    const struct conv_pass *pass = &decided.pass;
    const size_t n = pass->chunk * pass->terms;
    decided.offset = arena_take(arena, size_mul(n, sizeof *decided.offset));
    if (!arena->base) return NULL;
    conv_pass_taps_offsets(pass, decided.offset, pass->chunk);
    *weight = decided;
    return weight;
}

enum partita_status layer_weight_plan_create(struct partita_plan *plan,
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
    char *workers;
    struct run_sums sums;
    const char *x, *gy;
};

// gy of n channels at the positions where the box's outputs are, zeros between.
static void pack_outputs(const struct conv_pass *pass, const struct conv_place *place, char *packed,
                         const char *gy, size_t channel, size_t n)
{
    const struct conv_box *box = &pass->box;
    const struct conv_axis *axis = pass->axis;
    const size_t bytes = pass->scalar_bytes, items = conv_place_items(pass, place);
    const size_t n_d = conv_place_count(pass, place, 0), n_h = conv_place_count(pass, place, 1),
                 n_w = conv_place_count(pass, place, 2);
    memset(packed, 0, n * box->positions * bytes);
    for (size_t k = 0; k < n; k++, packed += box->positions * bytes)
        for (size_t item = 0; item < items; item++)
            for (size_t d = 0; d < n_d; d++)
                for (size_t h = 0; h < n_h; h++) {
                    const size_t plane =
                        (place->item + item) * pass->groups * pass->out + channel + k;
                    const size_t line =
                        (plane * axis[0].out_size + place->at[0] + d) * axis[1].out_size +
                        place->at[1] + h;
                    const size_t to =
                        ((item * box->extent[0] + d) * box->extent[1] + h) * box->extent[2];
                    memcpy(packed + to * bytes,
                           gy + (line * axis[2].out_size + place->at[2]) * bytes, n_w * bytes);
                }
}

// One task: channels of one group against one run of boxes.
static void sum_run(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const size_t bytes = pass->scalar_bytes, cell = pass->in * pass->terms;
    const size_t chunks = ceil_div(pass->in, pass->chunk),
                 blocks = ceil_div(pass->out, weight->channels);
    const size_t in = task % chunks * pass->chunk,
                 first = task / chunks % blocks * weight->channels;
    const size_t group = task / chunks / blocks % pass->groups,
                 run = task / chunks / blocks / pass->groups;
    const size_t n = size_min(pass->chunk, pass->in - in),
                 n_out = size_min(weight->channels, pass->out - first);
    const size_t boxes = conv_pass_boxes(pass), begin = run * boxes / weight->runs,
                 end = (run + 1) * boxes / weight->runs;
    char *inputs = call->workers + (size_t)worker * call->plan->choice.worker;
    char *outputs = inputs + inputs_bytes(weight);
    char *sums = run_sums_of(&call->sums, run) +
                 ((group * pass->out + first) * cell + in * pass->terms) * bytes;
    for (size_t k = 0; k < n_out; k++) memset(sums + k * cell * bytes, 0, n * pass->terms * bytes);
    for (size_t box = begin; box < end; box++) {
        const struct conv_place place = conv_pass_place(pass, box);
        conv_pass_pack(pass, &place, inputs, call->x, group * pass->in + in, n);
        pack_outputs(pass, &place, outputs, call->gy, group * pass->out + first, n_out);
        call->plan->kernels->conv_weight(sums, cell, outputs, pass->box.positions, n_out, inputs,
                                         weight->offset, n * pass->terms, pass->box.positions);
    }
}

void layer_direct_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                                  const void *gy, void *workspace)
{
    const struct weight *weight = plan->state;
    struct call call = {plan,
                        (char *)workspace + plan->choice.shared,
                        {plan, gw, workspace, weight->runs, weight->run_bytes},
                        x,
                        gy};
    thread_loop(plan->threads, weight->runs * channel_tasks(weight), sum_run, &call);
    run_sums_add(&call.sums);
}
