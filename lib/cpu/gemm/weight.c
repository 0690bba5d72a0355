// SPDX-License-Identifier: MIT
// The gradient of the taps as products of matrices: gy of a box of outputs times its panel
// (conv_panel.h), both transposed, so that an output is a term of the sums, eight output channels
// are its weights and the taps lie along the vectors: the kernel of forward without a sum across
// lanes. A task is a part of the output channels, a stretch of the taps and a run of boxes, all cut
// by shape alone; runs have sums of their own, added in a tree at the end.
#include "weight.h"

#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "cpu/conv/cost.h"
#include "cpu/conv/panel.h"
#include "cpu/conv/run_sums.h"
#include "cpu/direct/layer.h"

enum {
    MOST_POSITIONS = 256, // panel, gy and sums of a task fill an L2 cache
    LEAST_POSITIONS = 16,
    MOST_TERMS = 256,
    MOST_CHANNELS = 256,
    STRIP = 3 * CONV_BLOCK_BYTES, // bytes of taps at once
    ENOUGH_TASKS = 16,
};

struct weight {
    struct conv_pass pass;
    size_t stretches, stretch; // of the terms of a chunk
    size_t parts, part_out;    // of the output channels of a group
    size_t runs;               // of boxes
    size_t run_bytes;          // of one run's sums
    size_t *offset;            // of one chunk, in the order of the caller's taps
};

// One worker's memory.
struct scratch {
    char *packed;           // inputs of a chunk
    char *panel, *outputs;  // [term][position], [channel of a block][position]
    char *columns, *blocks; // transposed: [position][term], [block][position][channel]
    char *sums;             // [channel][term]
};

// Taps of a stretch in whole vectors: from one row of transposed terms or sums to the next, an odd
// number of lines.
static size_t row_terms(const struct weight *weight)
{
    const size_t lanes = CONV_BLOCK_BYTES / weight->pass.scalar_bytes;
    return (ceil_div(weight->stretch, lanes) | 1) * lanes;
}

static struct scratch cut_scratch(const struct weight *weight, struct arena *arena)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t row = size_mul(conv_panel_stride(pass), pass->scalar_bytes);
    const size_t terms = size_mul(row_terms(weight), pass->scalar_bytes);
    return (struct scratch){
        .packed = arena_take(arena, size_mul(pass->chunk, conv_channel_bytes(pass))),
        .panel = arena_take(arena, conv_panel_bytes(pass, row_terms(weight))),
        .outputs = arena_take(arena, size_mul(CONV_CHANNELS, row)),
        .columns = arena_take(arena, size_mul(conv_panel_stride(pass), terms)),
        .blocks = arena_take(arena, size_mul(weight->part_out, row)),
        .sums = arena_take(arena, size_mul(weight->part_out, terms)),
    };
}

static size_t worker_bytes(const struct weight *weight)
{
    struct arena arena = {0};
    cut_scratch(weight, &arena);
    return arena.used;
}

// Tasks without a second run of boxes.
static size_t task_count(const struct weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    return pass->groups * ceil_div(pass->in, pass->chunk) * weight->stretches * weight->parts;
}

static void cut_parts(struct weight *weight, size_t most)
{
    const size_t blocks = ceil_div(weight->pass.out, CONV_CHANNELS);
    weight->parts = ceil_div(weight->pass.out, most);
    weight->part_out = ceil_div(blocks, weight->parts) * CONV_CHANNELS;
    weight->parts = ceil_div(weight->pass.out, weight->part_out);
}

// The largest box, stretch and part within a limit: halved together.
static void cut(struct weight *weight, size_t limit)
{
    struct conv_pass *pass = &weight->pass;
    for (size_t halves = 0;; halves++) {
        const size_t most = MOST_TERMS, terms = most >> halves ? most >> halves : 1;
        const size_t positions = MOST_POSITIONS >> halves, channels = MOST_CHANNELS >> halves;
        const size_t chunk = terms / pass->terms;
        pass->chunk =
            ceil_div(pass->in, ceil_div(pass->in, chunk < 1 ? 1 : size_min(chunk, pass->in)));
        weight->stretches = ceil_div(pass->chunk * pass->terms, terms);
        weight->stretch = ceil_div(pass->chunk * pass->terms, weight->stretches);
        cut_parts(weight, channels > CONV_CHANNELS ? channels : CONV_CHANNELS);
        conv_panel_cut(pass, positions > LEAST_POSITIONS ? positions : LEAST_POSITIONS);
        if (worker_bytes(weight) <= limit || terms == 1) return;
    }
}

static void decide(const struct request *request, struct weight *ret)
{
    const struct shape *shape = request->shape;
    const size_t limit = request->workspace_limit;
    *ret = (struct weight){0};
    conv_pass_forward(shape, &ret->pass);
    cut(ret, limit);
    ret->run_bytes =
        mem_round(shape->out_channels * shape->group_in * shape_taps(shape) * shape->scalar_bytes);
    ret->runs = size_min(ceil_div(ENOUGH_TASKS, task_count(ret)), conv_pass_boxes(&ret->pass));
    // The first run sums in the caller's gw.
    const size_t worker = worker_bytes(ret), left = limit > worker ? limit - worker : 0;
    ret->runs = size_min(ret->runs, 1 + left / ret->run_bytes);
}

void gemm_weight_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct weight weight;
    decide(request, &weight);
    const struct conv_pass *pass = &weight.pass;
    const size_t outputs = pass->box.images * pass->box.count[0] * pass->box.count[1] *
                           pass->box.count[2],
                 lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    // Boxes at the end of an axis are smaller; a position counts where it is one, a tap in whole
    // vectors.
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups,
                 positions =
                     (double)shape->batch * (double)shape_outputs(shape) * (double)pass->groups;
    const double chunks = (double)(ceil_div(pass->in, pass->chunk) * weight.stretches),
                 terms = chunks * (double)(ceil_div(weight.stretch, lanes) * lanes);
    const double parts = (double)weight.parts, out = (double)pass->out;
    struct conv_work work = {0};
    work.sums = positions * terms * conv_cost_channels(pass->out, STRIP / CONV_BLOCK_BYTES, 1);
    conv_cost_pack(&work, pass, (double)pass->in, boxes * parts);
    // Panels are gathered, transposed and read again for each part; gy is for each chunk; sums are
    // added to in memory.
    work.moved += 2 * parts * positions * terms + 2 * chunks * positions * out;
    work.moved += 2 * boxes * terms * out;
    work.rows +=
        chunks * out * positions / (double)outputs * (double)(outputs / pass->box.count[2]);
    conv_cost_estimate(request, (double)shape->batch * (double)shape_outputs(shape), &work, ret);
    ret->hop = conv_panel_stride(pass);
    ret->worker = worker_bytes(&weight);
    ret->shared = (weight.runs - 1) * weight.run_bytes;
    ret->bytes = size_add(ret->worker, ret->shared);
}

static struct weight *cut_weight(const struct request *request, struct arena *arena)
{
    struct weight decided, *weight = arena_take(arena, sizeof *weight);
    decide(request, &decided);
    decided.offset = arena_take(
        arena, size_mul(decided.pass.chunk * decided.pass.terms, sizeof *decided.offset));
    if (!arena->base) return NULL;
    conv_pass_taps_offsets(&decided.pass, decided.offset, decided.pass.chunk);
    *weight = decided;
    return weight;
}

enum partita_status gemm_weight_plan_create(struct partita_plan *plan,
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
    char *gw, *workers, *sums; // sums: of runs 1 and up
    const char *x, *gy;
};

// What a task sums: terms t .. t+n-1 of the packed channels from `in` on, output channels first ..
// first+n_out-1.
struct task {
    size_t group, in, n_in, t, n, first, n_out, run;
};

static struct task task_of(const struct weight *weight, size_t index)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t chunks = ceil_div(pass->in, pass->chunk);
    struct task task = {.t = index % weight->stretches * weight->stretch};
    index /= weight->stretches;
    task.in = index % chunks * pass->chunk;
    task.first = index / chunks % weight->parts * weight->part_out;
    index /= chunks * weight->parts;
    task.group = index % pass->groups;
    task.run = index / pass->groups;
    task.n_in = size_min(pass->chunk, pass->in - task.in);
    const size_t terms = task.n_in * pass->terms;
    task.n = task.t < terms ? size_min(weight->stretch, terms - task.t) : 0;
    task.n_out = size_min(weight->part_out, pass->out - task.first);
    return task;
}

// The box's inputs, transposed.
static void pack_columns(const struct call *call, const struct task *task,
                         const struct conv_place *place, const struct scratch *scratch)
{
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes,
                 stride = conv_panel_stride(pass);
    size_t extent[3];
    const size_t positions = conv_panel_vectors(pass, conv_panel_extent(pass, place, extent));
    conv_pass_pack(pass, place, scratch->packed, call->x, task->group * pass->in + task->in,
                   task->n_in);
    const char *panel = scratch->panel;
    // Whole vectors are quick to transpose; what is beyond the last row is summed and not stored.
    size_t row = stride, rows = ceil_div(task->n, lanes) * lanes;
    if (conv_panel_is_packed(pass)) {
        panel = scratch->packed + weight->offset[task->t] * bytes;
        row = pass->box.channel;
        rows = task->n;
    } else
        conv_panel_gather(call->plan->kernels, pass, place, scratch->panel, scratch->packed,
                          weight->offset + task->t, task->n);
    call->plan->kernels->conv_columns(scratch->columns, row_terms(weight), panel, row, rows,
                                      positions);
}

// gy of some output channels at the box's outputs, transposed block by block.
static void pack_blocks(const struct call *call, const struct task *task,
                        const struct conv_place *place, const struct scratch *scratch)
{
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const struct conv_axis *axis = pass->axis;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass),
                 items = conv_place_items(pass, place);
    size_t extent[3];
    const size_t positions = conv_panel_vectors(pass, conv_panel_extent(pass, place, extent));
    for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
        const size_t channels = size_min(CONV_CHANNELS, task->n_out - k);
        for (size_t c = 0; c < channels; c++) {
            char *to = scratch->outputs + c * stride * bytes;
            memset(to + positions * bytes - CONV_BLOCK_BYTES, 0, CONV_BLOCK_BYTES);
            for (size_t item = 0; item < items; item++)
                for (size_t d = 0; d < extent[0]; d++)
                    for (size_t h = 0; h < extent[1]; h++, to += extent[2] * bytes) {
                        const size_t plane = (place->item + item) * pass->groups * pass->out +
                                             task->group * pass->out + task->first + k + c;
                        const size_t line =
                            (plane * axis[0].out_size + place->at[0] + d) * axis[1].out_size +
                            place->at[1] + h;
                        memcpy(to, call->gy + (line * axis[2].out_size + place->at[2]) * bytes,
                               extent[2] * bytes);
                    }
        }
        call->plan->kernels->conv_columns(scratch->blocks + k * stride * bytes, channels,
                                          scratch->outputs, stride, channels, positions);
    }
}

// Adds a box's share to all sums of a task.
static void sum_box(const struct call *call, const struct task *task, size_t positions,
                    const struct scratch *scratch)
{
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes,
                 strip = STRIP / bytes, row = row_terms(weight),
                 terms = ceil_div(task->n, lanes) * lanes;
    size_t offset[MOST_POSITIONS];
    for (size_t i = 0; i < positions; i++) offset[i] = i * row;
    for (size_t t = 0, n; t < terms; t += n) {
        n = terms - t == 4 * lanes ? 2 * lanes : size_min(strip, terms - t);
        for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS)
            call->plan->kernels->conv(scratch->sums + (k * row + t) * bytes, row,
                                      scratch->columns + t * bytes, offset, positions,
                                      scratch->blocks + k * conv_panel_stride(pass) * bytes,
                                      size_min(CONV_CHANNELS, task->n_out - k), n, 0);
    }
}

static void sum_run(void *context, size_t index, int worker)
{
    const struct call *call = context;
    const struct weight *weight = call->plan->state;
    const struct conv_pass *pass = &weight->pass;
    const struct task task = task_of(weight, index);
    const size_t bytes = pass->scalar_bytes, cell = pass->in * pass->terms,
                 row = row_terms(weight) * bytes;
    const size_t boxes = conv_pass_boxes(pass), end = (task.run + 1) * boxes / weight->runs;
    struct arena arena = {.base = call->workers + (size_t)worker * call->plan->choice.worker};
    const struct scratch scratch = cut_scratch(weight, &arena);
    if (!task.n) return;
    memset(scratch.sums, 0, task.n_out * row);
    for (size_t box = task.run * boxes / weight->runs; box < end; box++) {
        const struct conv_place place = conv_pass_place(pass, box);
        size_t extent[3];
        pack_columns(call, &task, &place, &scratch);
        pack_blocks(call, &task, &place, &scratch);
        sum_box(call, &task, conv_panel_extent(pass, &place, extent), &scratch);
    }
    char *to =
        (task.run ? call->sums + (task.run - 1) * weight->run_bytes : call->gw) +
        ((task.group * pass->out + task.first) * cell + task.in * pass->terms + task.t) * bytes;
    for (size_t k = 0; k < task.n_out; k++)
        memcpy(to + k * cell * bytes, scratch.sums + k * row, task.n * bytes);
}

void gemm_backward_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace)
{
    const struct weight *weight = plan->state;
    struct call call = {plan, gw, (char *)workspace + plan->choice.shared, workspace, x, gy};
    thread_loop(plan->threads, weight->runs * task_count(weight), sum_run, &call);
    const struct run_sums sums = {plan, gw, workspace, weight->runs, weight->run_bytes};
    run_sums_add(&sums);
}
