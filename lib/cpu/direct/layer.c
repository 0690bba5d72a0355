// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/direct on layers. Both are passes (conv_pass.h) run box by box:
// pack the inputs of some channels, sum eight output channels at once over all taps
// (kernels->conv), store the sums in their rows. Boxes are cut by shape alone and an output's sum
// has one order, so bits do not depend on the number of threads.
#include "layer.h"

#include <math.h>
#include <string.h>

#include "cpu/conv/cost.h"
#include "cpu/conv/runs.h"

enum {
    MOST_POSITIONS = 1024,              // sums of eight channels stay in the L1 cache
    MOST_PACKED = 256 << 10,            // bytes of packed inputs, a quarter of an L2 cache
    MOST_TERMS = 512,                   // summed in registers before a sum is rounded
    ENOUGH_TASKS = 8,                   // so many are worth packing the same inputs again ..
    LEAST_CHANNELS = 8 * CONV_CHANNELS, // .. for so many output channels
};

// Shares of the inputs are added in y, unless its samples are too coarse for that: then all sums of
// a part are held.
static bool holds(const struct conv_run *run)
{
    return run->pass.sample_bytes < run->pass.scalar_bytes && run->pass.chunk < run->pass.in;
}

static size_t worker_bytes(const struct conv_run *run)
{
    const struct conv_pass *pass = &run->pass;
    return size_add(conv_run_packed_bytes(run),
                    size_mul((holds(run) ? run->part_out : CONV_CHANNELS) * pass->scalar_bytes,
                             pass->box.positions));
}

// With boxes of so many positions and packed bytes.
static void cut_boxes(struct conv_run *run, size_t positions, size_t packed)
{
    struct conv_pass *pass = &run->pass;
    const size_t most = pass->out < LEAST_CHANNELS ? 1 : pass->out / LEAST_CHANNELS;
    conv_pass_cut(pass, positions, packed, pass->groups * most);
    const size_t tasks = conv_pass_boxes(pass) * pass->groups,
                 parts = tasks < ENOUGH_TASKS ? ENOUGH_TASKS / tasks : 1;
    conv_run_split(run, parts < most ? parts : most);
}

static void cut(struct conv_run *run, size_t limit)
{
    // The other half of a tight limit is for the sums; if they need more of it, smaller boxes and
    // parts.
    size_t positions = MOST_POSITIONS, packed = limit < 4 * MOST_PACKED ? limit / 2 : MOST_PACKED;
    for (cut_boxes(run, positions, packed); worker_bytes(run) > limit && packed; packed /= 2) {
        positions = positions > 1 ? positions / 2 : 1;
        cut_boxes(run, positions, packed);
        while (holds(run) && worker_bytes(run) > limit && run->part_out > run->block)
            conv_run_split(run, 2 * run->parts);
    }
}

// A lone channel is summed in wider rectangles; inputs lie anywhere, so that most vectors of them
// take two loads.
enum { WIDTH = 3, WIDTH_OF_FEW = 6, UNALIGNED_LOADS = 2 };

static void count(const struct conv_run *run, struct conv_work *work)
{
    const struct conv_pass *pass = &run->pass;
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups,
                 positions = (double)pass->box.positions,
                 terms = (double)pass->in * (double)pass->terms, out = (double)pass->out;
    const double channels = conv_cost_channels(
        pass->out, pass->out < CONV_CHANNELS ? WIDTH_OF_FEW : WIDTH, UNALIGNED_LOADS);
    const double shares = ceil((double)pass->in / (double)pass->chunk);
    work->sums += boxes * positions * terms * channels;
    conv_cost_pack(work, pass, (double)pass->in, boxes * (double)run->parts);
    // Each share of the sums is cleared, added to and stored; the taps come from afar for each box.
    work->moved += boxes * (3 * shares * out * positions + out * terms);
}

void layer_direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (conv_runs_refuse(request, ret)) return;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        layer_weight_estimate(request, ret);
        return;
    }
    struct conv_work work = {0};
    size_t taps = 0;
    struct conv_kind kind[CONV_KINDS];
    const size_t kinds = conv_runs_kinds(request, kind);
    for (size_t k = 0; k < kinds; k++) {
        struct conv_run run;
        struct conv_work one = {0};
        if (!conv_runs_make(request, kind[k].first, cut, &run)) continue;
        count(&run, &one);
        conv_cost_add(&work, &one, (double)kind[k].n);
        if (worker_bytes(&run) > ret->worker) ret->worker = worker_bytes(&run);
        taps = size_add(taps, size_mul(kind[k].n, conv_run_taps(&run)));
        ret->hop = run.pass.box.positions;
    }
    const bool forward = request->direction == PARTITA_FORWARD;
    conv_cost_estimate(
        request, (double)(forward ? shape->group_in : shape->group_out) * (double)shape_taps(shape),
        &work, ret);
    ret->bytes = size_add(ret->worker, size_mul(taps, shape->scalar_bytes));
}

enum partita_status layer_direct_plan_create(struct partita_plan *plan,
                                             const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT)
        return layer_weight_plan_create(plan, request);
    return conv_runs_create(plan, request, cut);
}

void layer_direct_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

enum partita_status layer_direct_filter_create(struct partita_filter *filter, const void *taps)
{
    return conv_runs_filter(filter, taps);
}

// The share of n packed input channels from `in` on in one block of output channels.
static void sum_block(const struct conv_call *call, const struct conv_task *task, size_t first,
                      size_t in, size_t n, const char *packed, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t bytes = pass->scalar_bytes, channels = conv_run_width(call->run, first),
                 positions = pass->box.positions;
    const bool held = holds(call->run), last = in + n == pass->in;
    const char *w = conv_call_taps(call, task->group, first, in);
    if (held) sums += (first - task->begin) * positions * bytes;
    if (!held || in == 0) memset(sums, 0, channels * positions * bytes);
    for (size_t t = 0; t < n * pass->terms; t += MOST_TERMS) {
        const size_t terms = n * pass->terms - t < MOST_TERMS ? n * pass->terms - t : MOST_TERMS;
        call->plan->kernels->conv(sums, positions, packed, call->run->offset + t, terms,
                                  w + t * channels * bytes, channels, positions, 0);
    }
    for (size_t k = 0; k < channels && (last || !held); k++)
        conv_call_store(call, task, first + k, sums + k * positions * bytes, pass->box.extent,
                        held || in == 0, last);
}

// One task: one box of one group, or of a part of its output channels.
static void run_box(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_pass *pass = &call->run->pass;
    const struct conv_task task = conv_call_task(call, index);
    char *packed = call->workspace + (size_t)worker * call->plan->choice.worker,
         *sums = packed + conv_run_packed_bytes(call->run);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = pass->in - in < pass->chunk ? pass->in - in : pass->chunk;
        conv_pass_pack(pass, &task.place, packed, call->from, task.group * pass->in + in, n);
        for (size_t first = task.begin; first < task.end; first += CONV_CHANNELS)
            sum_block(call, &task, first, in, n, packed, sums);
    }
}

void layer_direct_run(const struct partita_plan *plan, const struct partita_filter *filter,
                      const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        layer_direct_backward_weight(plan, operands->to, operands->from[0], operands->from[1],
                                     workspace);
        return;
    }
    struct conv_call call = {plan, filter, NULL, operands->to, operands->from[0], workspace};
    conv_call_run(&call, run_box);
}
