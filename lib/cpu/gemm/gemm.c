// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of matrices, taps times panels (conv/panel.h), which are made box by
// box and shared by all output channels. A strip of a panel stays in the L1 cache while all
// channels sum over it; sums stay in the workspace until their last term, then go to their rows at
// once. Source: Goto & van de Geijn, Anatomy of high-performance matrix multiplication (2008);
// implicit products of convolution: Chetlur et al., cuDNN: efficient primitives for deep learning
// (2014).
#include "gemm.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/panel.h"
#include "cpu/conv/weight.h"

// Whether output channels lie along the vectors instead of positions: small maps fill the vectors
// worse than many channels do. Such channels are packed in blocks of a strip.
static bool gemm_is_transposed(const struct conv_layout *layout)
{
    return layout->oc_block > CONV_CHANNELS;
}

// Multiply-adds of a box and term either way.
static double gemm_box_products(const struct conv_pass *pass, bool transposed)
{
    const size_t outputs = conv_pass_box_outputs(pass);
    const size_t along = transposed ? pass->out : outputs, rows = transposed ? outputs : pass->out;
    return (double)conv_pass_vectors(pass, along) * conv_cost_channels(rows, GEMM_STRIP_VECTORS, 1);
}

// One worker's memory.
struct gemm_scratch {
    char *packed; // inputs of a chunk
    char *panel;  // [term][position]; NULL where the packed inputs are one
    char *sums;   // [channel][position], transposed [position][channel]
    // Transposed:
    char *groups;  // the panel as [eight positions][term][position]
    char *columns; // sums of a block of channels as [channel][position]
};

// Samples from one position's sums to the next when transposed, an odd number of blocks.
static size_t gemm_sums_stride(const struct conv_layout *layout)
{
    const size_t lanes = CONV_BLOCK_BYTES / layout->pass.scalar_bytes;
    return (ceil_div(size_min(layout->oc_split, layout->out_padded), lanes) | 1) * lanes;
}

static struct gemm_scratch gemm_layout_scratch(const struct conv_layout *layout,
                                               struct arena *arena)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes;
    const size_t terms = size_min(pass->chunk * pass->terms, GEMM_MAX_TERMS);
    const size_t row = size_mul(conv_panel_stride(pass), bytes);
    struct gemm_scratch scratch = {.packed = arena_take(arena, conv_layout_packed_bytes(layout))};
    if (!conv_panel_is_packed(pass))
        scratch.panel = arena_take(arena, conv_panel_bytes(pass, terms));
    if (gemm_is_transposed(layout)) {
        scratch.sums = arena_take(arena, size_mul(gemm_sums_stride(layout), row));
        scratch.groups = arena_take(arena, size_add(size_mul(terms, row), CONV_BLOCK_BYTES));
        scratch.columns = arena_take(arena, size_mul(layout->oc_block, row));
    } else scratch.sums = arena_take(arena, size_mul(size_min(layout->oc_split, pass->out), row));
    return scratch;
}

static size_t gemm_worker_bytes(const struct conv_layout *layout)
{
    struct arena arena = {0};
    gemm_layout_scratch(layout, &arena);
    return arena.used;
}

static void gemm_choose_operand(struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const double positions = gemm_box_products(pass, false),
                 channels = gemm_box_products(pass, true);
    const bool transposed = channels < GEMM.transposed_gain * positions;
    layout->oc_block = transposed ? GEMM_STRIP / pass->scalar_bytes : CONV_CHANNELS;
    layout->out_padded = transposed ? conv_pass_vectors(pass, pass->out) : pass->out;
}

static void gemm_layout(const struct request *request, struct conv_layout *layout)
{
    const size_t limit = request->workspace_limit;
    struct conv_pass *pass = &layout->pass;
    const size_t chunk = size_min(size_max(GEMM_MAX_TERMS / pass->terms, 1), pass->in);
    pass->chunk = size_split_even(pass->in, chunk);
    for (size_t outputs = GEMM.max_outputs;; outputs /= 2) {
        conv_panel_choose_box(pass, outputs);
        gemm_choose_operand(layout);
        const size_t wanted = ceil_div(GEMM.min_tasks, conv_pass_boxes(pass) * pass->groups);
        const size_t splits = size_min(wanted, size_max(pass->out / GEMM.min_channels, 1));
        conv_layout_split_outputs(layout, size_max(splits, ceil_div(pass->out, GEMM.max_channels)));
        if (gemm_worker_bytes(layout) <= limit || outputs <= GEMM.min_outputs) break;
    }
    while (gemm_worker_bytes(layout) > limit &&
           (layout->oc_split > layout->oc_block || pass->chunk > 1)) {
        if (layout->oc_split > layout->oc_block)
            conv_layout_split_outputs(layout, 2 * layout->oc_splits);
        else pass->chunk = (pass->chunk + 1) / 2;
    }
}

static void gemm_count_work(const struct conv_layout *layout, struct conv_work *work)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t row = pass->box.count[2], outputs = conv_pass_box_outputs(pass);
    const bool transposed = gemm_is_transposed(layout);
    work->hop = conv_panel_stride(pass);
    // Boxes at the end of an axis are smaller: as many as their outputs make up.
    const double boxes = (double)pass->batch * (double)pass->axis[0].count *
                         (double)pass->axis[1].count * (double)pass->axis[2].count /
                         (double)outputs * (double)pass->groups;
    const double positions = (double)conv_pass_vectors(pass, outputs);
    const double terms = (double)pass->in * (double)pass->terms;
    const double splits = (double)layout->oc_splits;
    const double out = (double)layout->out_padded;
    work->sums += boxes * terms * gemm_box_products(pass, transposed);
    conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    // Rows are closed up in whole vectors.
    const double rows = (double)(outputs / row);
    if (!conv_panel_is_packed(pass))
        work->moved += boxes * splits * terms * rows * (double)conv_pass_vectors(pass, row);
    if (transposed) work->moved += boxes * (splits * terms + 2 * out) * positions;
    // Sums are cleared, added to for each panel and stored; the taps come from afar for each box.
    const double panels = ceil(terms / GEMM_MAX_TERMS);
    work->moved += boxes * (out * positions * (2 + 2 * panels) + out * terms);
}

// A matrix of terms by positions, its rows at offsets, and the taps that its first row meets.
struct gemm_panel {
    const char *x;
    const size_t *offset;
    size_t terms, positions;
    size_t in, term;
};

// Taps of a block of output channels that meet a panel.
static const char *gemm_panel_taps(const struct conv_call *call, const struct conv_task *task,
                                   const struct gemm_panel *panel, size_t first)
{
    const size_t row =
        conv_layout_block_width(call->layout, first) * call->layout->pass.scalar_bytes;
    return conv_call_taps(call, task->group, first, panel->in) + panel->term * row;
}

// Adds a panel's share to the sums of all output channels of a task, positions along the vectors.
static void gemm_sum_positions(const struct conv_call *call, const struct conv_task *task,
                               const struct gemm_panel *panel, char *sums)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass);
    const size_t strip = GEMM_STRIP / bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t positions = conv_pass_vectors(pass, panel->positions);
    for (size_t i = 0, n; i < positions; i += n) {
        n = positions - i == 4 * lanes ? 2 * lanes : size_min(positions - i, strip);
        for (size_t first = task->begin; first < task->end; first += CONV_CHANNELS)
            call->plan->kernels->conv(sums + ((first - task->begin) * stride + i) * bytes, stride,
                                      panel->x + i * bytes, panel->offset, panel->terms,
                                      gemm_panel_taps(call, task, panel, first),
                                      conv_layout_block_width(call->layout, first), n, 0);
    }
}

// The same with output channels along the vectors: eight positions are what eight channels are
// above. `groups` takes the panel with the positions of each eight side by side.
static void gemm_sum_channels(const struct conv_call *call, const struct conv_task *task,
                              const struct gemm_panel *panel, char *groups, char *sums)
{
    const struct conv_layout *layout = call->layout;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = layout->pass.scalar_bytes, terms = panel->terms;
    const size_t stride = gemm_sums_stride(layout), positions = panel->positions;
    const size_t row = terms > 1 ? panel->offset[1] - panel->offset[0] : 0;
    size_t offset[GEMM_MAX_TERMS];
    assert(terms <= GEMM_MAX_TERMS);
    for (size_t p = 0; p < positions; p += CONV_CHANNELS)
        kernels->conv_rows(groups + p * terms * bytes, panel->x + (panel->offset[0] + p) * bytes,
                           row, terms, size_min(CONV_CHANNELS, positions - p));
    for (size_t first = task->begin; first < task->end; first += layout->oc_block) {
        const size_t width = conv_layout_block_width(layout, first);
        for (size_t t = 0; t < terms; t++) offset[t] = t * width;
        for (size_t p = 0; p < positions; p += CONV_CHANNELS)
            kernels->conv(sums + (p * stride + first - task->begin) * bytes, stride,
                          gemm_panel_taps(call, task, panel, first), offset, terms,
                          groups + p * terms * bytes, size_min(CONV_CHANNELS, positions - p), width,
                          p ? 0 : CONV_AHEAD_BYTES);
    }
}

// The share of n packed channels from `in` on, panel by panel.
static void gemm_sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                           size_t n, const struct gemm_scratch *scratch)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_packed packed = {call->plan->kernels, pass, &task->index, scratch->packed};
    const size_t all = n * pass->terms, step = size_split_even(all, GEMM_MAX_TERMS);
    size_t offset[GEMM_MAX_TERMS];
    for (size_t t = 0; t < GEMM_MAX_TERMS; t++) offset[t] = t * conv_panel_stride(pass);
    for (size_t t = 0; t < all; t += step) {
        struct gemm_panel panel = {.x = scratch->packed,
                                   .offset = call->layout->offset + t,
                                   .terms = size_min(step, all - t),
                                   .positions = conv_index_outputs(&task->index),
                                   .in = in,
                                   .term = t};
        if (scratch->panel) {
            conv_panel_gather(&packed, scratch->panel, panel.offset, panel.terms);
            panel.x = scratch->panel;
            panel.offset = offset;
        }
        if (gemm_is_transposed(call->layout))
            gemm_sum_channels(call, task, &panel, scratch->groups, scratch->sums);
        else gemm_sum_positions(call, task, &panel, scratch->sums);
    }
}

// Stores complete sums in their rows.
static void gemm_store_sums(const struct conv_call *call, const struct conv_task *task,
                            const struct gemm_scratch *scratch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass);
    const size_t positions = conv_pass_vectors(pass, conv_index_outputs(&task->index));
    // Channels that come last are stored together, so that lines are written whole.
    const bool together = pass->channels_last && !gemm_is_transposed(layout);
    const size_t step = together ? task->end - task->begin : layout->oc_block;
    for (size_t first = task->begin; first < task->end; first += step) {
        char *sums = scratch->sums + (first - task->begin) * stride * bytes;
        if (gemm_is_transposed(layout)) {
            sums = scratch->columns;
            call->plan->kernels->interleave(scratch->columns, stride,
                                            scratch->sums + (first - task->begin) * bytes,
                                            (ptrdiff_t)gemm_sums_stride(layout), positions,
                                            conv_layout_block_width(layout, first));
        }
        const size_t n = size_min(task->end - first, step);
        const struct conv_sums from = {.of = {sums, task->index.count, n, stride},
                                       .complete = true};
        conv_call_store(call, task, first, &from);
    }
}

// One task: one box of one group, or of a split of its output channels.
static void gemm_run_task(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const struct conv_task task = conv_call_task(call, index);
    struct arena arena = {.base = call->workspace + (size_t)worker * call->plan->choice.worker};
    const struct gemm_scratch scratch = gemm_layout_scratch(layout, &arena);
    const size_t rows =
        gemm_is_transposed(layout) ? gemm_sums_stride(layout) : task.end - task.begin;
    assert(arena.used <= call->plan->choice.worker);
    memset(scratch.sums, 0, rows * conv_panel_stride(pass) * pass->scalar_bytes);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = size_min(pass->chunk, pass->in - in);
        conv_pass_pack(pass, &task.index, scratch.packed, call->from, task.group * pass->in + in,
                       n);
        gemm_sum_chunk(call, &task, in, n, &scratch);
    }
    gemm_store_sums(call, &task, &scratch);
}

static const struct conv_method gemm_pass_method = {.layout = gemm_layout,
                                                    .count_work = gemm_count_work,
                                                    .worker_bytes = gemm_worker_bytes,
                                                    .run_task = gemm_run_task};
static const struct conv_methods gemm_methods = {&gemm_pass_method, &gemm_weight_method};

static void gemm_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const char *reason = NULL;
    if (shape->stream) reason = "computes bounded problems alone";
    else if (shape->complex_signal) reason = "computes layers of real types alone";
    else if (request->transform) reason = "has no transform";
    if (reason) snprintf(ret->reason, sizeof ret->reason, "%s", reason);
    else conv_estimate(request, &gemm_methods, ret);
}

static enum partita_status gemm_plan_create(struct partita_plan *plan,
                                            const struct request *request)
{
    return conv_plan_create(plan, request, &gemm_methods);
}

static enum partita_status gemm_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    conv_run(&gemm_methods, plan, filter, operands, workspace);
    return PARTITA_OK;
}

const struct engine engine_gemm = {
    .name = "cpu/gemm",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .channels_last = true,
    .estimate = gemm_estimate,
    .plan_create = gemm_plan_create,
    .filter_bytes = conv_passes_filter_bytes,
    .filter_pack = conv_passes_filter_pack,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = gemm_run,
};
