// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of matrices, taps times panels (conv_panel.h), which are made block
// by block and shared by all output channels. A strip of a panel stays in the L1 cache while all
// channels sum over it; sums stay in the workspace until their last term, then go to their rows at
// once. Source: Goto & van de Geijn, Anatomy of high-performance matrix multiplication (2008);
// implicit products of convolution: Chetlur et al., cuDNN: efficient primitives for deep learning
// (2014).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/cost.h"
#include "cpu/conv/panel.h"
#include "cpu/conv/runs.h"
#include "cpu/direct/layer.h"
#include "weight.h"

enum {
    MOST_TERMS =
        256, // of a panel: three vectors of each and the taps of eight channels fill an L1 cache
    STRIP = 3 * CONV_BLOCK_BYTES, // bytes of each term in the L1 cache
    MOST_POSITIONS =
        384, // a panel and the sums of a part fill an L2 cache with the taps that they meet
    LEAST_POSITIONS = 16,
    MOST_CHANNELS = 256,  // of a part
    ENOUGH_TASKS = 8,     // so many are worth packing the same inputs again ..
    LEAST_CHANNELS = 128, // .. for so many output channels
};

// Which of the two lies along the vectors, positions or output channels: small maps fill the
// vectors worse than many channels do. Channels along the vectors are packed in blocks of a strip.
static bool along_channels(const struct conv_run *run)
{
    return run->block > CONV_CHANNELS;
}

static size_t outputs_of(const struct conv_pass *pass)
{
    return pass->box.images * pass->box.count[0] * pass->box.count[1] * pass->box.count[2];
}

// Multiply-adds of a box and term either way.
static double box_sums(const struct conv_pass *pass, bool channels)
{
    enum { WIDTH = STRIP / CONV_BLOCK_BYTES };
    const size_t outputs = outputs_of(pass);
    return channels
               ? (double)conv_panel_vectors(pass, pass->out) * conv_cost_channels(outputs, WIDTH, 1)
               : (double)conv_panel_vectors(pass, outputs) *
                     conv_cost_channels(pass->out, WIDTH, 1);
}

static void choose_vectors(struct conv_run *run)
{
    const struct conv_pass *pass = &run->pass;
    const double worth = 0.95; // panels are packed once more and sums are transposed
    const bool channels = box_sums(pass, true) < worth * box_sums(pass, false);
    run->block = channels ? STRIP / pass->scalar_bytes : CONV_CHANNELS;
    run->padded = channels ? conv_panel_vectors(pass, pass->out) : pass->out;
}

// One worker's memory.
struct scratch {
    char *packed; // inputs of a chunk
    char *panel;  // [term][position]; NULL where the packed inputs are one
    char *sums;   // [channel][position], or [position][channel]
    // Channels along vectors:
    char *blocks;  // the panel as [block of positions][term][position]
    char *columns; // sums of a block of channels as [channel][position]
};

// Samples from one position's sums to the next, an odd number of lines.
static size_t sums_stride(const struct conv_run *run)
{
    const size_t lanes = CONV_BLOCK_BYTES / run->pass.scalar_bytes;
    return (ceil_div(size_min(run->part_out, run->padded), lanes) | 1) * lanes;
}

static struct scratch cut_scratch(const struct conv_run *run, struct arena *arena)
{
    const struct conv_pass *pass = &run->pass;
    const size_t bytes = pass->scalar_bytes,
                 terms = size_min(pass->chunk * pass->terms, MOST_TERMS),
                 row = size_mul(conv_panel_stride(pass), bytes);
    struct scratch scratch = {.packed = arena_take(arena, conv_run_packed_bytes(run))};
    if (!conv_panel_is_packed(pass))
        scratch.panel = arena_take(arena, conv_panel_bytes(pass, terms));
    if (along_channels(run)) {
        scratch.sums = arena_take(arena, size_mul(sums_stride(run), row));
        scratch.blocks = arena_take(arena, size_add(size_mul(terms, row), CONV_BLOCK_BYTES));
        scratch.columns = arena_take(arena, size_mul(run->block, row));
    } else scratch.sums = arena_take(arena, size_mul(size_min(run->part_out, pass->out), row));
    return scratch;
}

static size_t worker_bytes(const struct conv_run *run)
{
    struct arena arena = {0};
    cut_scratch(run, &arena);
    return arena.used;
}

static void cut(struct conv_run *run, size_t limit)
{
    struct conv_pass *pass = &run->pass;
    const size_t chunk = MOST_TERMS / pass->terms;
    pass->chunk = size_split_even(pass->in, chunk < 1 ? 1 : size_min(chunk, pass->in));
    for (size_t most = MOST_POSITIONS;; most /= 2) {
        conv_panel_cut(pass, most);
        choose_vectors(run);
        const size_t tasks = conv_pass_boxes(pass) * pass->groups,
                     wanted = ceil_div(ENOUGH_TASKS, tasks);
        const size_t parts =
            size_min(wanted, pass->out < LEAST_CHANNELS ? 1 : pass->out / LEAST_CHANNELS);
        const size_t needed = ceil_div(pass->out, MOST_CHANNELS);
        conv_run_split(run, parts > needed ? parts : needed);
        if (worker_bytes(run) <= limit || most <= LEAST_POSITIONS) break;
    }
    while (worker_bytes(run) > limit && (run->part_out > run->block || pass->chunk > 1)) {
        if (run->part_out > run->block) conv_run_split(run, 2 * run->parts);
        else pass->chunk = (pass->chunk + 1) / 2;
    }
}

static void count(const struct conv_run *run, struct conv_work *work)
{
    const struct conv_pass *pass = &run->pass;
    const size_t row = pass->box.count[2], outputs = outputs_of(pass);
    // Boxes at the end of an axis are smaller: as many as their outputs make up.
    const double boxes = (double)pass->batch * (double)pass->axis[0].count *
                         (double)pass->axis[1].count * (double)pass->axis[2].count /
                         (double)outputs * (double)pass->groups;
    const double positions = (double)conv_panel_vectors(pass, outputs),
                 terms = (double)pass->in * (double)pass->terms;
    const double parts = (double)run->parts, out = (double)run->padded;
    work->sums += boxes * terms * box_sums(pass, along_channels(run));
    conv_cost_pack(work, pass, (double)pass->in, boxes * parts);
    // Rows are closed up in whole vectors.
    if (!conv_panel_is_packed(pass))
        work->moved +=
            boxes * parts * terms * (double)(outputs / row) * (double)conv_panel_vectors(pass, row);
    if (along_channels(run)) work->moved += boxes * (parts * terms + 2 * out) * positions;
    // Sums are cleared, added to for each panel and stored; the taps come from afar for each box.
    work->moved += boxes * (out * positions * (2 + 2 * ceil(terms / MOST_TERMS)) + out * terms);
}

static void gemm_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (shape->stream || shape->complex_signal || request->transform) {
        snprintf(ret->reason, sizeof ret->reason, "%s",
                 shape->stream           ? "runs bounded problems alone"
                 : shape->complex_signal ? "runs layers of real types alone"
                                         : "has no transform");
        return;
    }
    if (conv_runs_refuse(request, ret)) return;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) {
        gemm_weight_estimate(request, ret);
        return;
    }
    const bool forward = request->direction == PARTITA_FORWARD;
    const double terms =
        (double)(forward ? shape->group_in : shape->group_out) * (double)shape_taps(shape);
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
        ret->hop = conv_panel_stride(&run.pass);
    }
    conv_cost_estimate(request, terms, &work, ret);
    ret->bytes = size_add(ret->worker, size_mul(taps, shape->scalar_bytes));
}

static enum partita_status gemm_plan_create(struct partita_plan *plan,
                                            const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT)
        return gemm_weight_plan_create(plan, request);
    return conv_runs_create(plan, request, cut);
}

// A matrix of terms by positions, rows at offsets, and the taps that its first row meets.
struct panel {
    const char *x;
    const size_t *offset;
    size_t terms, positions;
    size_t in, term;
};

// Taps of a block of output channels that meet a panel.
static const char *taps_of(const struct conv_call *call, const struct conv_task *task,
                           const struct panel *panel, size_t first)
{
    const size_t row = conv_run_width(call->run, first) * call->run->pass.scalar_bytes;
    return conv_call_taps(call, task->group, first, panel->in) + panel->term * row;
}

// Adds a panel's share to the sums of all output channels of a task, positions along the vectors.
static void sum_positions(const struct conv_call *call, const struct conv_task *task,
                          const struct panel *panel, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass),
                 strip = STRIP / bytes, lanes = CONV_BLOCK_BYTES / bytes,
                 positions = conv_panel_vectors(pass, panel->positions);
    for (size_t i = 0, n; i < positions; i += n) {
        n = positions - i == 4 * lanes ? 2 * lanes : size_min(positions - i, strip);
        for (size_t first = task->begin; first < task->end; first += CONV_CHANNELS)
            call->plan->kernels->conv(sums + ((first - task->begin) * stride + i) * bytes, stride,
                                      panel->x + i * bytes, panel->offset, panel->terms,
                                      taps_of(call, task, panel, first),
                                      conv_run_width(call->run, first), n, 0);
    }
}

// The same with output channels along the vectors: eight positions are what eight channels are
// above. `blocks` takes the panel with the positions of each eight side by side.
static void sum_channels(const struct conv_call *call, const struct conv_task *task,
                         const struct panel *panel, char *blocks, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = pass->scalar_bytes, terms = panel->terms, stride = sums_stride(call->run);
    const size_t row = terms > 1 ? panel->offset[1] - panel->offset[0] : 0;
    size_t offset[MOST_TERMS];
    for (size_t p = 0; p < panel->positions; p += CONV_CHANNELS)
        kernels->conv_rows(blocks + p * terms * bytes, panel->x + (panel->offset[0] + p) * bytes,
                           row, terms, size_min(CONV_CHANNELS, panel->positions - p));
    for (size_t first = task->begin; first < task->end; first += call->run->block) {
        const size_t width = conv_run_width(call->run, first);
        for (size_t t = 0; t < terms; t++) offset[t] = t * width;
        for (size_t p = 0; p < panel->positions; p += CONV_CHANNELS)
            kernels->conv(sums + (p * stride + first - task->begin) * bytes, stride,
                          taps_of(call, task, panel, first), offset, terms,
                          blocks + p * terms * bytes, size_min(CONV_CHANNELS, panel->positions - p),
                          width, p ? 0 : CONV_AHEAD_BYTES);
    }
}

// The share of n packed channels from `in` on, panel by panel.
static void sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                      size_t n, const struct scratch *scratch)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t all = n * pass->terms, step = size_split_even(all, MOST_TERMS);
    size_t extent[3], offset[MOST_TERMS];
    const size_t positions = conv_panel_extent(pass, &task->place, extent);
    for (size_t t = 0; t < MOST_TERMS; t++) offset[t] = t * conv_panel_stride(pass);
    for (size_t t = 0; t < all; t += step) {
        struct panel panel = {
            scratch->packed, call->run->offset + t, size_min(step, all - t), positions, in, t};
        if (!conv_panel_is_packed(pass)) {
            conv_panel_gather(call->plan->kernels, pass, &task->place, scratch->panel,
                              scratch->packed, panel.offset, panel.terms);
            panel.x = scratch->panel;
            panel.offset = offset;
        }
        if (along_channels(call->run))
            sum_channels(call, task, &panel, scratch->blocks, scratch->sums);
        else sum_positions(call, task, &panel, scratch->sums);
    }
}

// Finished sums to their rows.
static void store(const struct conv_call *call, const struct conv_task *task,
                  const struct scratch *scratch)
{
    const struct conv_run *run = call->run;
    const struct conv_pass *pass = &run->pass;
    const size_t bytes = pass->scalar_bytes, row = conv_panel_stride(pass) * bytes;
    size_t extent[3];
    const size_t positions =
        conv_panel_vectors(pass, conv_panel_extent(pass, &task->place, extent));
    for (size_t first = task->begin; first < task->end; first += run->block) {
        const char *sums = scratch->sums + (first - task->begin) * row;
        if (along_channels(run)) {
            sums = scratch->columns;
            call->plan->kernels->conv_columns(scratch->columns, conv_panel_stride(pass),
                                              scratch->sums + (first - task->begin) * bytes,
                                              sums_stride(run), positions,
                                              conv_run_width(run, first));
        }
        for (size_t k = first; k < task->end && k < first + run->block; k++)
            conv_call_store(call, task, k, sums + (k - first) * row, extent, true, true);
    }
}

// One task: one box of one group, or of a part of its output channels.
static void run_box(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_pass *pass = &call->run->pass;
    const struct conv_task task = conv_call_task(call, index);
    struct arena arena = {.base = call->workspace + (size_t)worker * call->plan->choice.worker};
    const struct scratch scratch = cut_scratch(call->run, &arena);
    const size_t rows = along_channels(call->run) ? sums_stride(call->run) : task.end - task.begin;
    memset(scratch.sums, 0, rows * conv_panel_stride(pass) * pass->scalar_bytes);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = size_min(pass->chunk, pass->in - in);
        conv_pass_pack(pass, &task.place, scratch.packed, call->from, task.group * pass->in + in,
                       n);
        sum_chunk(call, &task, in, n, &scratch);
    }
    store(call, &task, &scratch);
}

static enum partita_status gemm_run(const struct partita_plan *plan,
                                    const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        gemm_backward_weight(plan, operands->to, operands->from[0], operands->from[1], workspace);
        return PARTITA_OK;
    }
    struct conv_call call = {plan, filter, NULL, operands->to, operands->from[0], workspace};
    conv_call_run(&call, run_box);
    return PARTITA_OK;
}

const struct engine engine_gemm = {
    .name = "cpu/gemm",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .estimate = gemm_estimate,
    .plan_create = gemm_plan_create,
    .plan_destroy = layer_direct_plan_destroy,
    .filter_create = conv_runs_filter,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = gemm_run,
};
