// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/direct on layers. Both are passes (conv_pass.h) run box by box: pack the inputs of
// some channels, sum eight output channels at once over all taps (kernels->conv), store the sums in their rows. Boxes
// are cut by shape alone and an output's sum has one order, so bits do not depend on the number of threads.
#include "layer_direct.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../thread.h"
#include "conv_pass.h"

enum {
    MOST_POSITIONS = 1024,              // sums of eight channels stay in the L1 cache
    MOST_PACKED = 256 << 10,            // bytes of packed inputs, a quarter of an L2 cache
    MOST_TERMS = 512,                   // summed in registers before a sum is rounded
    MOST_PASSES = 1 << 16,              // of backward data
    MOST_TAPS = 1 << 24,                // of one pair of channels
    ENOUGH_TASKS = 16,                  // so many are worth packing the same inputs again ..
    LEAST_CHANNELS = 4 * CONV_CHANNELS, // .. for so many output channels
};

// A pass with what was decided about it.
struct run {
    struct conv_pass pass;
    size_t parts, part_out; // output channels of a group, in parts that are tasks of their own
    size_t weights;         // where its packed taps begin
    size_t *offset;         // of one chunk
};

struct runs {
    size_t n;
    bool covers; // every output belongs to a pass
    struct run *run;
};

static void cut(struct run *run, size_t limit)
{
    struct conv_pass *pass = &run->pass;
    const size_t most = pass->out < LEAST_CHANNELS ? 1 : pass->out / LEAST_CHANNELS;
    // The other half of a tight limit is for the sums.
    conv_pass_cut(pass, MOST_POSITIONS, limit < 4 * MOST_PACKED ? limit / 2 : MOST_PACKED, pass->groups * most);
    const size_t tasks = conv_pass_boxes(pass) * pass->groups;
    run->parts = tasks < ENOUGH_TASKS ? ENOUGH_TASKS / tasks : 1;
    if (run->parts > most) run->parts = most;
    const size_t blocks = (pass->out + CONV_CHANNELS - 1) / CONV_CHANNELS;
    run->part_out = (blocks + run->parts - 1) / run->parts * CONV_CHANNELS;
    run->parts = (pass->out + run->part_out - 1) / run->part_out;
}

// Pass i of the direction; false if no output belongs to it.
static bool make_run(const struct request *request, size_t i, struct run *ret)
{
    if (request->direction == PARTITA_FORWARD) conv_pass_forward(request->shape, &ret->pass);
    else conv_pass_backward(request->shape, i, &ret->pass);
    for (int a = 0; a < 3; a++)
        if (ret->pass.axis[a].count == 0) return false;
    cut(ret, request->workspace_limit);
    return true;
}

static size_t pass_count(const struct request *request)
{
    return request->direction == PARTITA_FORWARD ? 1 : conv_pass_count(request->shape);
}

static size_t packed_bytes(const struct conv_pass *pass)
{
    return mem_round(size_mul(pass->chunk, conv_channel_bytes(pass)));
}

static size_t worker_bytes(const struct conv_pass *pass)
{
    return size_add(packed_bytes(pass), size_mul(CONV_CHANNELS * pass->scalar_bytes, pass->box.positions));
}

void layer_direct_costs(const struct request *request, double terms, double wasted, size_t rows, struct estimate *ret)
{
    // Multiply-adds at the rate of the direct filter; with few rows loads and packing count.
    static const double slower[] = {0, 3, 1.8, 1.8, 1.25, 1.25, 1.25, 1.25};
    const struct shape *shape = request->shape;
    const struct host_costs *costs = &request->host->costs[shape->f64];
    const double products = (double)shape->batch * (double)shape->out_channels * (double)shape_outputs(shape) *
                            (double)shape->group_in * (double)shape_taps(shape);
    const double moved = (double)shape->batch * ((double)shape->in_channels * (double)shape_inputs(shape) +
                                                 (double)shape->out_channels * (double)shape_outputs(shape));
    ret->applicable = true;
    ret->flops = 2 * products;
    ret->seconds = products * costs->fma * wasted * (rows < CONV_CHANNELS ? slower[rows] : 1.1) + moved * costs->copy;
    ret->seconds = fmax(ret->seconds, memory_seconds(request->host, shape));
    // The rounding walk of one call's terms, then of the calls.
    const double segment = fmin(terms, MOST_TERMS);
    ret->error = (shape->f64 ? 1.1e-16 : 6e-8) * 0.3 * sqrt(segment + terms / segment);
}

static size_t weights_bytes(const struct shape *shape)
{
    return size_mul(size_mul(shape->out_channels, shape->group_in), size_mul(shape_taps(shape), shape->scalar_bytes));
}

void layer_direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t passes = pass_count(request);
    if (shape_taps(shape) > MOST_TAPS) {
        snprintf(ret->reason, sizeof ret->reason, "keeps a place for every tap: %d at most, not %zu", MOST_TAPS,
                 shape_taps(shape));
        return;
    }
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        layer_weight_estimate(request, ret);
        return;
    }
    if (passes > MOST_PASSES) {
        snprintf(ret->reason, sizeof ret->reason, "stride and kernel make %zu sub-problems; at most %d", passes,
                 MOST_PASSES);
        return;
    }
    double wasted = 1;
    for (size_t i = 0; i < passes; i++) {
        struct run run;
        if (!make_run(request, i, &run)) continue;
        const struct conv_box *box = &run.pass.box;
        wasted = (double)box->positions / (double)box->images /
                 ((double)box->count[0] * (double)box->count[1] * (double)box->count[2]);
        if (worker_bytes(&run.pass) > ret->worker) ret->worker = worker_bytes(&run.pass);
        ret->hop = box->positions;
    }
    const bool forward = request->direction == PARTITA_FORWARD;
    layer_direct_costs(request, (double)(forward ? shape->group_in : shape->group_out) * (double)shape_taps(shape),
                       wasted, forward ? shape->group_out : shape->group_in, ret);
    ret->bytes = size_add(ret->worker, weights_bytes(shape));
}

// Whether the passes between them reach every residue of every axis that there is.
static bool passes_cover(const struct request *request, size_t n_made)
{
    size_t all = 1;
    if (request->direction == PARTITA_FORWARD) return true;
    for (int i = 0; i < request->shape->rank; i++) {
        const struct axis *axis = &request->shape->axis[i];
        all = size_mul(all, axis->stride < axis->size ? axis->stride : axis->size);
    }
    return n_made == all;
}

// One arena: the list of passes, then each one's offsets. Called twice, to size it and to cut it.
static struct runs *cut_runs(const struct request *request, struct arena *arena)
{
    const size_t n = pass_count(request);
    struct runs *runs = arena_take(arena, sizeof *runs);
    struct run *list = arena_take(arena, size_mul(n, sizeof *list));
    size_t made = 0, weights = 0;
    for (size_t i = 0; i < n; i++) {
        struct run run;
        if (!make_run(request, i, &run)) continue;
        const struct conv_pass *pass = &run.pass;
        run.weights = weights;
        run.offset = arena_take(arena, size_mul(size_mul(pass->chunk, pass->terms), sizeof *run.offset));
        weights += pass->groups * pass->out * pass->in * pass->terms;
        if (arena->base) {
            conv_pass_offsets(pass, run.offset, pass->chunk);
            list[made] = run;
        }
        made++;
    }
    if (arena->base) *runs = (struct runs){made, passes_cover(request, made), list};
    return runs;
}

enum partita_status layer_direct_plan_create(struct partita_plan *plan, const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return layer_weight_plan_create(plan, request);
    struct arena arena = {0};
    cut_runs(request, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_runs(request, &arena);
    return PARTITA_OK;
}

void layer_direct_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

// Taps of one block of output channels of one group: [in][term][channel of the block].
static void pack_block(const struct conv_pass *pass, char *packed, const char *taps, size_t taps_of_cell, bool forward,
                       size_t group, size_t first, size_t n)
{
    const size_t bytes = pass->scalar_bytes;
    for (size_t term = 0; term < pass->terms; term++) {
        const size_t tap = conv_pass_tap(pass, term);
        for (size_t c = 0; c < pass->in; c++)
            for (size_t k = 0; k < n; k++) {
                const size_t cell = forward ? (group * pass->out + first + k) * pass->in + c
                                            : (group * pass->in + c) * pass->out + first + k;
                memcpy(packed + ((c * pass->terms + term) * n + k) * bytes, taps + (cell * taps_of_cell + tap) * bytes,
                       bytes);
            }
    }
}

// Where the packed taps of a pass, group and block of output channels begin, in taps.
static size_t block_at(const struct run *run, size_t group, size_t first)
{
    const struct conv_pass *pass = &run->pass;
    return run->weights + (group * pass->out + first) * pass->in * pass->terms;
}

static size_t block_size(const struct conv_pass *pass, size_t first)
{
    return pass->out - first < CONV_CHANNELS ? pass->out - first : CONV_CHANNELS;
}

enum partita_status layer_direct_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct runs *runs = plan->state;
    const size_t bytes = plan->shape.scalar_bytes;
    filter->state = mem_allocate(&plan->allocator, weights_bytes(&plan->shape));
    if (!filter->state) return PARTITA_ERR_NOMEM;
    for (const struct run *run = runs->run; run < runs->run + runs->n; run++)
        for (size_t group = 0; group < run->pass.groups; group++)
            for (size_t first = 0; first < run->pass.out; first += CONV_CHANNELS)
                pack_block(&run->pass, (char *)filter->state + block_at(run, group, first) * bytes, taps,
                           shape_taps(&plan->shape), plan->direction == PARTITA_FORWARD, group, first,
                           block_size(&run->pass, first));
    return PARTITA_OK;
}

struct call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const struct run *run;
    char *to;
    const char *from;
    char *workspace;
};

// The rows of one output channel, from its sums of a box. `channel` counts over all groups.
static void store_channel(const struct call *call, const struct conv_place *place, size_t channel, const char *sums,
                          const struct conv_finish *finish)
{
    const struct conv_pass *pass = &call->run->pass;
    const struct conv_axis *axis = pass->axis;
    const struct conv_box *box = &pass->box;
    const size_t items = conv_place_items(pass, place), n_d = conv_place_count(pass, place, 0),
                 n_h = conv_place_count(pass, place, 1), n_w = conv_place_count(pass, place, 2);
    for (size_t n = 0; n < items; n++)
        for (size_t d = 0; d < n_d; d++)
            for (size_t h = 0; h < n_h; h++) {
                const size_t plane = (place->item + n) * pass->groups * pass->out + channel;
                const size_t at_d = axis[0].first + axis[0].spread * (place->at[0] + d),
                             at_h = axis[1].first + axis[1].spread * (place->at[1] + h),
                             at_w = axis[2].first + axis[2].spread * place->at[2];
                const size_t out =
                    ((plane * axis[0].out_size + at_d) * axis[1].out_size + at_h) * axis[2].out_size + at_w;
                const size_t in = ((n * box->extent[0] + d) * box->extent[1] + h) * box->extent[2];
                call->plan->kernels->conv_store(call->to + out * pass->scalar_bytes, axis[2].spread,
                                                sums + in * pass->scalar_bytes, n_w, finish);
            }
}

// The share of n packed input channels from `in` on in one block of output channels.
static void sum_block(const struct call *call, const struct conv_place *place, size_t group, size_t first, size_t in,
                      size_t n, const char *packed, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const struct shape *shape = &call->plan->shape;
    const size_t bytes = pass->scalar_bytes, channels = block_size(pass, first), positions = pass->box.positions;
    const char *w =
        (const char *)call->filter->state + (block_at(call->run, group, first) + in * pass->terms * channels) * bytes;
    const bool last = in + n == pass->in, forward = call->plan->direction == PARTITA_FORWARD;
    memset(sums, 0, channels * positions * bytes);
    for (size_t t = 0; t < n * pass->terms; t += MOST_TERMS) {
        const size_t terms = n * pass->terms - t < MOST_TERMS ? n * pass->terms - t : MOST_TERMS;
        call->plan->kernels->conv(sums, positions, packed, call->run->offset + t, terms, w + t * channels * bytes,
                                  channels, positions);
    }
    for (size_t k = 0; k < channels; k++) {
        const size_t channel = group * pass->out + first + k;
        const char *bias = forward && last ? call->filter->bias : NULL;
        const struct conv_finish finish = {
            .add = in > 0, .bias = bias ? bias + channel * bytes : NULL, .relu = forward && last && shape->relu};
        store_channel(call, place, channel, sums + k * positions * bytes, &finish);
    }
}

// One task: one box of one group, or of a part of its output channels.
static void run_box(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct run *run = call->run;
    const struct conv_pass *pass = &run->pass;
    const size_t part = task % run->parts, group = task / run->parts % pass->groups;
    const struct conv_place place = conv_pass_place(pass, task / run->parts / pass->groups);
    const size_t begin = part * run->part_out;
    const size_t end = pass->out - begin < run->part_out ? pass->out : begin + run->part_out;
    char *packed = call->workspace + (size_t)worker * call->plan->choice.worker, *sums = packed + packed_bytes(pass);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = pass->in - in < pass->chunk ? pass->in - in : pass->chunk;
        conv_pass_pack(pass, &place, packed, call->from, group * pass->in + in, n);
        for (size_t first = begin; first < end; first += CONV_CHANNELS)
            sum_block(call, &place, group, first, in, n, packed, sums);
    }
}

static void run_all(struct call *call)
{
    const struct runs *runs = call->plan->state;
    for (call->run = runs->run; call->run < runs->run + runs->n; call->run++) {
        const struct run *run = call->run;
        thread_loop(call->plan->threads, conv_pass_boxes(&run->pass) * run->pass.groups * run->parts, run_box, call);
    }
}

void layer_direct_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y, const void *x,
                          void *workspace)
{
    struct call call = {plan, filter, NULL, y, x, workspace};
    run_all(&call);
}

void layer_direct_backward_data(const struct partita_plan *plan, const struct partita_filter *filter, void *gx,
                                const void *gy, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct runs *runs = plan->state;
    struct call call = {plan, filter, NULL, gx, gy, workspace};
    // Samples that no tap reads.
    if (!runs->covers) memset(gx, 0, shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    run_all(&call);
}
