// SPDX-License-Identifier: MIT
// Backward weight of cpu/gemm: gy of a box of outputs times the box's panel (conv/panel.h), both
// transposed, so that an output is a term of the sums, eight output channels are its weights and
// the taps lie along the vectors: the kernel of forward without a sum across lanes.
#include "cpu/conv/weight.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/panel.h"
#include "gemm.h"

// One worker's memory.
struct gemm_weight_scratch {
    char *packed;          // inputs of a chunk
    char *panel, *outputs; // [term][position], [channel of a block][position]
    char *columns, *gy;    // transposed: [position][term], [block][position][channel]
    char *sums;            // [channel][term]
};

// Terms of a split in whole vectors: from one row of transposed terms or sums to the next, an odd
// number of blocks.
static size_t gemm_weight_stride(const struct conv_weight *weight)
{
    const size_t lanes = CONV_BLOCK_BYTES / weight->pass.scalar_bytes;
    return (ceil_div(weight->term_split, lanes) | 1) * lanes;
}

static struct gemm_weight_scratch gemm_weight_layout_scratch(const struct conv_weight *weight,
                                                             struct arena *arena)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t positions = conv_panel_stride(pass);
    const size_t row = size_mul(positions, pass->scalar_bytes);
    const size_t terms = size_mul(gemm_weight_stride(weight), pass->scalar_bytes);
    return (struct gemm_weight_scratch){
        .packed = arena_take(arena, size_mul(pass->chunk, conv_pass_channel_bytes(pass))),
        .panel = arena_take(arena, conv_panel_bytes(pass, gemm_weight_stride(weight))),
        .outputs = arena_take(arena, size_mul(CONV_CHANNELS, row)),
        .columns = arena_take(arena, size_mul(positions, terms)),
        .gy = arena_take(arena, size_mul(weight->oc_split, row)),
        .sums = arena_take(arena, size_mul(weight->oc_split, terms)),
    };
}

static size_t gemm_weight_worker_bytes(const struct conv_weight *weight)
{
    struct arena arena = {0};
    gemm_weight_layout_scratch(weight, &arena);
    return arena.used;
}

// The largest box and splits within a limit: halved together.
static void gemm_weight_layout(struct conv_weight *weight, size_t limit)
{
    struct conv_pass *pass = &weight->pass;
    weight->min_tasks = GEMM.weight_tasks;
    for (size_t halves = 0;; halves++) {
        const size_t terms = size_max(GEMM_MAX_TERMS >> halves, 1);
        const size_t outputs = GEMM_MAX_WEIGHT_OUTPUTS >> halves;
        const size_t channels = size_max(GEMM.max_channels >> halves, CONV_CHANNELS);
        const size_t chunk = size_min(size_max(terms / pass->terms, 1), pass->in);
        pass->chunk = size_split_even(pass->in, chunk);
        weight->term_splits = ceil_div(pass->chunk * pass->terms, terms);
        weight->term_split = ceil_div(pass->chunk * pass->terms, weight->term_splits);
        const size_t blocks = ceil_div(pass->out, CONV_CHANNELS);
        weight->oc_split = ceil_div(blocks, ceil_div(pass->out, channels)) * CONV_CHANNELS;
        weight->oc_splits = ceil_div(pass->out, weight->oc_split);
        conv_panel_choose_box(pass, size_max(outputs, GEMM.min_outputs));
        if (gemm_weight_worker_bytes(weight) <= limit || terms == 1) return;
    }
}

static void gemm_weight_count_work(const struct conv_weight *weight, struct conv_work *work)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t outputs = conv_pass_box_outputs(pass);
    work->hop = conv_panel_stride(pass);
    // Boxes at the end of an axis are smaller; a position counts where it is one, a tap in whole
    // vectors.
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups;
    const double positions =
        (double)pass->batch *
        (double)(pass->axis[0].count * pass->axis[1].count * pass->axis[2].count) *
        (double)pass->groups;
    const double chunks = (double)(ceil_div(pass->in, pass->chunk) * weight->term_splits);
    const double terms = chunks * (double)conv_pass_vectors(pass, weight->term_split);
    const double splits = (double)weight->oc_splits;
    const double out = (double)pass->out;
    work->sums = positions * terms * conv_cost_channels(pass->out, GEMM_STRIP_VECTORS, 1);
    conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    // Panels are gathered, transposed and read again for each split; gy is for each chunk; sums are
    // added to in memory.
    work->moved += 2 * splits * positions * terms + 2 * chunks * positions * out;
    work->moved += 2 * boxes * terms * out;
    work->rows +=
        chunks * out * positions / (double)outputs * (double)(outputs / pass->box.count[2]);
}

// The inputs of a box, transposed.
static void gemm_weight_pack_columns(const struct conv_weight_call *call,
                                     const struct conv_weight_task *task,
                                     const struct conv_index *index,
                                     const struct gemm_weight_scratch *scratch)
{
    const struct conv_weight *weight = call->weight;
    const struct conv_pass *pass = &weight->pass;
    const struct kernels *kernels = call->plan->kernels;
    const size_t *offset = weight->offset + task->term;
    const size_t positions = conv_pass_vectors(pass, conv_index_outputs(index));
    conv_pass_pack(pass, index, scratch->packed, call->x, task->group * pass->in + task->in,
                   task->n_in);
    if (conv_panel_is_packed(pass)) {
        kernels->interleave(scratch->columns, gemm_weight_stride(weight),
                            scratch->packed + *offset * pass->scalar_bytes,
                            (ptrdiff_t)pass->box.channel, task->n_terms, positions);
        return;
    }
    const struct conv_packed packed = {kernels, pass, index, scratch->packed};
    conv_panel_gather(&packed, scratch->panel, offset, task->n_terms);
    // Whole vectors are quick to transpose; sums beyond the last row are not stored.
    kernels->interleave(scratch->columns, gemm_weight_stride(weight), scratch->panel,
                        (ptrdiff_t)conv_panel_stride(pass), conv_pass_vectors(pass, task->n_terms),
                        positions);
}

// gy of the task's output channels at the box's outputs, transposed block by block.
static void gemm_weight_pack_gy(const struct conv_weight_call *call,
                                const struct conv_weight_task *task, const struct conv_index *index,
                                const struct gemm_weight_scratch *scratch)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass);
    const size_t positions = conv_pass_vectors(pass, conv_index_outputs(index));
    for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
        const size_t channels = size_min(CONV_CHANNELS, task->n_out - k);
        const struct conv_planes to = {scratch->outputs, index->count, channels, stride};
        for (size_t c = 0; c < channels; c++)
            memset(scratch->outputs + (c * stride + positions) * bytes - CONV_BLOCK_BYTES, 0,
                   CONV_BLOCK_BYTES);
        conv_pass_read_outputs(pass, index, &to, call->gy,
                               task->group * pass->out + task->first + k);
        call->plan->kernels->interleave(scratch->gy + k * stride * bytes, channels,
                                        scratch->outputs, (ptrdiff_t)stride, channels, positions);
    }
}

// Adds a box's share to all sums of a task.
static void gemm_weight_sum_box(const struct conv_weight_call *call,
                                const struct conv_weight_task *task, size_t positions,
                                const struct gemm_weight_scratch *scratch, struct gemm_ahead *ahead)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t strip = GEMM_STRIP / bytes, row = gemm_weight_stride(call->weight);
    const size_t terms = conv_pass_vectors(pass, task->n_terms);
    size_t offset[GEMM_MAX_WEIGHT_OUTPUTS];
    assert(positions <= GEMM_MAX_WEIGHT_OUTPUTS);
    for (size_t i = 0; i < positions; i++) offset[i] = i * row;
    for (size_t t = 0, n; t < terms; t += n) {
        n = terms - t == 4 * lanes ? 2 * lanes : size_min(strip, terms - t);
        for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
            const size_t channels = size_min(CONV_CHANNELS, task->n_out - k);
            const struct conv_operands operands = {.y = scratch->sums + (k * row + t) * bytes,
                                                   .x = scratch->columns + t * bytes,
                                                   .w = scratch->gy +
                                                        k * conv_panel_stride(pass) * bytes,
                                                   .offset = offset,
                                                   .y_stride = row,
                                                   .w_term = channels,
                                                   .w_channel = 1,
                                                   .terms = positions,
                                                   .channels = channels,
                                                   .n = n};
            call->plan->kernels->conv_fetch(&operands, gemm_ahead_next(ahead, positions));
        }
    }
}

// What is fetched during the sums of a box: the operands of the next one.
static struct gemm_ahead gemm_weight_look_ahead(const struct conv_weight_call *call,
                                                const struct conv_weight_task *task, size_t box)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t strips = ceil_div(task->n_terms * pass->scalar_bytes, GEMM_STRIP);
    struct gemm_ahead ahead = {.calls = strips * ceil_div(task->n_out, CONV_CHANNELS)};
    if (box + 1 == task->box_end) return ahead;
    const struct conv_index next = conv_pass_index(pass, box + 1);
    const struct gemm_planes x = {call->x, &next, task->group * pass->in + task->in, task->n_in};
    const struct gemm_planes gy = {call->gy, &next, task->group * pass->out + task->first,
                                   task->n_out};
    gemm_ahead_inputs(&ahead, pass, &x);
    gemm_ahead_outputs(&ahead, pass, &gy);
    return ahead;
}

static void gemm_weight_run_task(void *context, size_t index, int worker)
{
    const struct conv_weight_call *call = context;
    const struct conv_weight *weight = call->weight;
    const struct conv_weight_task task = conv_weight_task(call, index);
    const size_t bytes = weight->pass.scalar_bytes, row = gemm_weight_stride(weight) * bytes;
    struct arena arena = {.base = call->workers + (size_t)worker * call->plan->choice.worker};
    const struct gemm_weight_scratch scratch = gemm_weight_layout_scratch(weight, &arena);
    if (!task.n_terms) return;
    memset(scratch.sums, 0, task.n_out * row);
    for (size_t box = task.box; box < task.box_end; box++) {
        const struct conv_index at = conv_pass_index(&weight->pass, box);
        gemm_weight_pack_columns(call, &task, &at, &scratch);
        gemm_weight_pack_gy(call, &task, &at, &scratch);
        struct gemm_ahead ahead = gemm_weight_look_ahead(call, &task, box);
        gemm_weight_sum_box(call, &task, conv_index_outputs(&at), &scratch, &ahead);
    }
    for (size_t k = 0; k < task.n_out; k++)
        memcpy(task.gw + k * task.path, scratch.sums + k * row, task.n_terms * bytes);
}

const struct conv_weight_method gemm_weight_method = {.layout = gemm_weight_layout,
                                                      .count_work = gemm_weight_count_work,
                                                      .worker_bytes = gemm_weight_worker_bytes,
                                                      .run_task = gemm_weight_run_task};
