// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of matrices, taps times panels (conv_panel.h), which are made block by block and shared
// by all output channels. A strip of a panel stays in the L1 cache while all
// channels sum over it; sums stay in the workspace until their last term, then go to their rows at once.
// Source: Goto & van de Geijn, Anatomy of high-performance matrix multiplication (2008); implicit products of
// convolution: Chetlur et al., cuDNN: efficient primitives for deep learning (2014).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conv_cost.h"
#include "conv_panel.h"
#include "conv_runs.h"
#include "gemm_weight.h"
#include "layer_direct.h"

enum {
    MOST_TERMS = 256,             // of a panel: three vectors of each and the taps of eight channels fill an L1 cache
    STRIP = 3 * CONV_BLOCK_BYTES, // bytes of each term in the L1 cache
    MOST_POSITIONS = 384,         // a panel and the sums of a part fill an L2 cache with the taps that they meet
    LEAST_POSITIONS = 16,
    MOST_CHANNELS = 256,  // of a part
    ENOUGH_TASKS = 8,     // so many are worth packing the same inputs again ..
    LEAST_CHANNELS = 128, // .. for so many output channels
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t quotient_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

// Even pieces of at most n.
static size_t even(size_t count, size_t n)
{
    return quotient_up(count, quotient_up(count, n));
}

static size_t panel_bytes(const struct conv_pass *pass)
{
    return conv_panel_is_packed(pass) ? 0 : conv_panel_bytes(pass, least(pass->chunk * pass->terms, MOST_TERMS));
}

static size_t sums_bytes(const struct conv_run *run)
{
    return size_mul(least(run->part_out, run->pass.out) * run->pass.scalar_bytes, conv_panel_stride(&run->pass));
}

static size_t worker_bytes(const struct conv_run *run)
{
    return size_add(conv_run_packed_bytes(run), size_add(panel_bytes(&run->pass), mem_round(sums_bytes(run))));
}

static void cut(struct conv_run *run, size_t limit)
{
    struct conv_pass *pass = &run->pass;
    const size_t chunk = MOST_TERMS / pass->terms;
    pass->chunk = even(pass->in, chunk < 1 ? 1 : least(chunk, pass->in));
    for (size_t most = MOST_POSITIONS;; most /= 2) {
        conv_panel_cut(pass, most);
        const size_t tasks = conv_pass_boxes(pass) * pass->groups, wanted = quotient_up(ENOUGH_TASKS, tasks);
        const size_t parts = least(wanted, pass->out < LEAST_CHANNELS ? 1 : pass->out / LEAST_CHANNELS);
        const size_t needed = quotient_up(pass->out, MOST_CHANNELS);
        conv_run_split(run, parts > needed ? parts : needed);
        if (worker_bytes(run) <= limit || most <= LEAST_POSITIONS) break;
    }
    while (worker_bytes(run) > limit && (run->part_out > CONV_CHANNELS || pass->chunk > 1)) {
        if (run->part_out > CONV_CHANNELS) conv_run_split(run, 2 * run->parts);
        else pass->chunk = (pass->chunk + 1) / 2;
    }
}

static void count(const struct conv_run *run, struct conv_work *work)
{
    const struct conv_pass *pass = &run->pass;
    const size_t row = pass->box.count[2], outputs = pass->box.images * pass->box.count[0] * pass->box.count[1] * row;
    // Boxes at the end of an axis are smaller: as many as their outputs make up.
    const double boxes = (double)pass->batch * (double)pass->axis[0].count * (double)pass->axis[1].count *
                         (double)pass->axis[2].count / (double)outputs * (double)pass->groups;
    const double positions = (double)conv_panel_vectors(pass, outputs), terms = (double)pass->in * (double)pass->terms;
    const double parts = (double)run->parts, out = (double)pass->out;
    work->sums += boxes * positions * terms * conv_cost_channels(pass->out, STRIP / CONV_BLOCK_BYTES, 1);
    conv_cost_pack(work, pass, (double)pass->in, boxes * parts);
    // Rows are closed up in whole vectors.
    if (!conv_panel_is_packed(pass))
        work->moved += boxes * parts * terms * (double)(outputs / row) * (double)conv_panel_vectors(pass, row);
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
    const double terms = (double)(forward ? shape->group_in : shape->group_out) * (double)shape_taps(shape);
    struct conv_work work = {0};
    for (size_t i = 0; i < conv_runs_count(request); i++) {
        struct conv_run run;
        if (!conv_runs_make(request, i, cut, &run)) continue;
        count(&run, &work);
        if (worker_bytes(&run) > ret->worker) ret->worker = worker_bytes(&run);
        ret->hop = conv_panel_stride(&run.pass);
    }
    conv_cost_estimate(request, terms, &work, ret);
    ret->bytes = size_add(ret->worker, conv_runs_filter_bytes(shape));
}

static enum partita_status gemm_plan_create(struct partita_plan *plan, const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return gemm_weight_plan_create(plan, request);
    return conv_runs_create(plan, request, cut);
}

// A matrix of terms by positions, rows at offsets.
struct panel {
    const char *x;
    const size_t *offset;
    size_t terms, positions; // positions in whole vectors
};

// Adds a panel's share to the sums of all output channels of a task. `in`, `term`: which taps its first row meets.
static void sum_panel(const struct conv_call *call, const struct conv_task *task, const struct panel *panel, size_t in,
                      size_t term, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t bytes = pass->scalar_bytes, stride = conv_panel_stride(pass), strip = STRIP / bytes,
                 lanes = CONV_BLOCK_BYTES / bytes;
    for (size_t i = 0, n; i < panel->positions; i += n) {
        const size_t left = panel->positions - i;
        n = left == 4 * lanes ? 2 * lanes : least(left, strip);
        for (size_t first = task->begin; first < task->end; first += CONV_CHANNELS) {
            const size_t channels = conv_block_size(pass, first);
            const char *w = conv_call_taps(call, task->group, first, in) + term * channels * bytes;
            call->plan->kernels->conv(sums + ((first - task->begin) * stride + i) * bytes, stride, panel->x + i * bytes,
                                      panel->offset, panel->terms, w, channels, n);
        }
    }
}

// The share of n packed channels from `in` on, panel by panel.
static void sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in, size_t n,
                      const char *packed, char *panel, char *sums)
{
    const struct conv_pass *pass = &call->run->pass;
    const size_t all = n * pass->terms, step = even(all, MOST_TERMS);
    size_t extent[3], offset[MOST_TERMS];
    const size_t positions = conv_panel_extent(pass, &task->place, extent);
    for (size_t t = 0; t < MOST_TERMS; t++) offset[t] = t * conv_panel_stride(pass);
    for (size_t t = 0; t < all; t += step) {
        struct panel p = {packed, call->run->offset + t, least(step, all - t), conv_panel_vectors(pass, positions)};
        if (!conv_panel_is_packed(pass)) {
            conv_panel_gather(call->plan->kernels, pass, &task->place, panel, packed, p.offset, p.terms);
            p.x = panel;
            p.offset = offset;
        }
        sum_panel(call, task, &p, in, t, sums);
    }
}

// One task: one box of one group, or of a part of its output channels.
static void run_box(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_pass *pass = &call->run->pass;
    const struct conv_task task = conv_call_task(call, index);
    const size_t row = conv_panel_stride(pass) * pass->scalar_bytes;
    char *packed = call->workspace + (size_t)worker * call->plan->choice.worker;
    char *panel = packed + conv_run_packed_bytes(call->run), *sums = panel + panel_bytes(pass);
    size_t extent[3];
    conv_panel_extent(pass, &task.place, extent);
    memset(sums, 0, (task.end - task.begin) * row);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = least(pass->chunk, pass->in - in);
        conv_pass_pack(pass, &task.place, packed, call->from, task.group * pass->in + in, n);
        sum_chunk(call, &task, in, n, packed, panel, sums);
    }
    for (size_t k = task.begin; k < task.end; k++)
        conv_call_store(call, &task, k, sums + (k - task.begin) * row, extent, true, true);
}

static void gemm_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y, const void *x,
                         void *workspace)
{
    struct conv_call call = {plan, filter, NULL, y, x, workspace};
    conv_call_run(&call, run_box);
}

static void gemm_backward_data(const struct partita_plan *plan, const struct partita_filter *filter, void *gx,
                               const void *gy, void *workspace)
{
    struct conv_call call = {plan, filter, NULL, gx, gy, workspace};
    conv_call_run(&call, run_box);
}

static bool gemm_finishes(const struct partita_plan *plan)
{
    (void)plan;
    return true;
}

const struct engine engine_gemm = {
    .name = "cpu/gemm",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .estimate = gemm_estimate,
    .plan_create = gemm_plan_create,
    .plan_destroy = layer_direct_plan_destroy,
    .filter_create = conv_runs_filter,
    .forward = gemm_forward,
    .finishes = gemm_finishes,
    .backward_data = gemm_backward_data,
    .backward_weight = gemm_backward_weight,
};
