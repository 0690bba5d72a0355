// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of matrices, taps times panels (conv/panel.h), which are made box by
// box and shared by all output channels. A strip of a panel stays in the L1 cache while all
// channels sum over it; sums stay in the workspace until their last term, then go to their rows at
// once, or are added up in the results where these are whole vectors. Source: Goto & van de Geijn,
// Anatomy of high-performance matrix multiplication (2008); implicit products of convolution:
// Chetlur et al., cuDNN: efficient primitives for deep learning (2014).
#include "gemm.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/weight.h"

// A matrix of terms by positions, its rows at offsets, and the taps that its first row meets.
struct gemm_panel {
    const char *x;
    const size_t *offset;
    size_t terms, positions;
    size_t in, term; // the first of both write the sums
};

static bool gemm_panel_is_first(const struct gemm_panel *panel)
{
    return panel->in == 0 && panel->term == 0;
}

// Taps of a block of output channels that meet a panel.
static const char *gemm_panel_taps(const struct conv_call *call, const struct conv_task *task,
                                   const struct gemm_panel *panel, size_t first)
{
    const size_t row =
        conv_layout_block_width(call->layout, first) * call->layout->pass.scalar_bytes;
    return conv_call_taps(call, task->group, first, panel->in) + panel->term * row;
}

// Terms of a panel. With AVX2, a third of those of a chunk where they are read in place: half of
// them crowd the sets of the L1 cache.
static size_t gemm_panel_terms(const struct conv_call *call)
{
    const bool few = call->plan->isa == CPU_AVX2 && gemm_layout_is_in_place(call->layout);
    return few ? ceil_div(GEMM_MAX_TERMS, 3) : conv_call_terms(call->plan, GEMM_MAX_TERMS);
}

char *gemm_results(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t channel = task->group * pass->out + task->begin;
    return call->to +
           conv_pass_output_row(pass, &task->index, channel, 0, 0, 0) * pass->scalar_bytes;
}

// Adds a panel's share to the sums of all output channels of a task, positions along the vectors.
static void gemm_sum_positions(const struct conv_call *call, const struct conv_task *task,
                               const struct gemm_panel *panel, char *sums, struct gemm_ahead *ahead)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes;
    const size_t stride = sums ? conv_panel_stride(pass) : pass->to.channel;
    const size_t positions = conv_pass_vectors(pass, panel->positions);
    if (!sums) sums = gemm_results(call, task);
    for (size_t i = 0, n; i < positions; i += n) {
        n = gemm_strip(call->plan, positions - i, bytes);
        for (size_t first = task->begin; first < task->end; first += CONV_CHANNELS) {
            const size_t channels = conv_layout_block_width(call->layout, first);
            const struct conv_operands operands = {
                .y = sums + ((first - task->begin) * stride + i) * bytes,
                .x = panel->x + i * bytes,
                .w = gemm_panel_taps(call, task, panel, first),
                .offset = panel->offset,
                .y_stride = stride,
                .w_term = channels,
                .w_channel = 1,
                .terms = panel->terms,
                .channels = channels,
                .n = n,
                .fresh = gemm_panel_is_first(panel)};
            call->plan->kernels->conv(&operands, gemm_ahead_next(ahead, panel->terms));
        }
    }
}

// The same with output channels along the vectors: eight positions are what eight channels are
// above. `groups` takes the panel with the positions of each eight side by side.
static void gemm_sum_channels(const struct conv_call *call, const struct conv_task *task,
                              const struct gemm_panel *panel, const struct gemm_scratch *scratch,
                              struct gemm_ahead *ahead)
{
    const struct conv_layout *layout = call->layout;
    const struct kernels *kernels = call->plan->kernels;
    const size_t bytes = layout->pass.scalar_bytes, terms = panel->terms;
    const size_t stride = gemm_sums_stride(layout), positions = panel->positions;
    const size_t row = terms > 1 ? panel->offset[1] - panel->offset[0] : 0;
    size_t offset[GEMM_MAX_TERMS];
    char *groups = scratch->groups;
    assert(terms <= GEMM_MAX_TERMS);
    for (size_t p = 0; p < positions; p += CONV_CHANNELS)
        kernels->conv_rows(groups + p * terms * bytes, panel->x + (panel->offset[0] + p) * bytes,
                           row, terms, size_min(CONV_CHANNELS, positions - p));
    for (size_t first = task->begin; first < task->end; first += layout->oc_block) {
        const size_t width = conv_layout_block_width(layout, first);
        for (size_t t = 0; t < terms; t++) offset[t] = t * width;
        for (size_t p = 0; p < positions; p += CONV_CHANNELS) {
            const size_t n = size_min(CONV_CHANNELS, positions - p);
            const struct conv_operands operands = {.y = scratch->sums +
                                                        (p * stride + first - task->begin) * bytes,
                                                   .x = gemm_panel_taps(call, task, panel, first),
                                                   .w = groups + p * terms * bytes,
                                                   .offset = offset,
                                                   .y_stride = stride,
                                                   .w_term = n,
                                                   .w_channel = 1,
                                                   .terms = terms,
                                                   .channels = n,
                                                   .n = width,
                                                   .ahead = p ? 0 : CONV_AHEAD_BYTES,
                                                   .fresh = gemm_panel_is_first(panel)};
            kernels->conv(&operands, gemm_ahead_next(ahead, terms));
        }
    }
}

// Calls of the kernel for a panel.
static size_t gemm_panel_calls(const struct conv_layout *layout, const struct conv_task *task)
{
    const size_t bytes = layout->pass.scalar_bytes, positions = conv_index_outputs(&task->index);
    const bool transposed = gemm_is_transposed(layout);
    const size_t strips =
        transposed ? ceil_div(positions, CONV_CHANNELS) : ceil_div(positions * bytes, GEMM_STRIP);
    return strips * ceil_div(task->end - task->begin, layout->oc_block);
}

// What is fetched during the sums of n channels: what is packed next, and before that, with the
// last channels, the outputs of this task. Another worker may take the next task; its memory is
// shared.
static struct gemm_ahead gemm_look_ahead(const struct conv_call *call, const struct conv_task *task,
                                         size_t index, size_t in, size_t n)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t panels =
        gemm_is_rows(pass) ? 1 : ceil_div(n * pass->terms, gemm_panel_terms(call));
    struct gemm_ahead ahead = {.calls = panels * gemm_panel_calls(layout, task)};
    struct gemm_planes planes = {.array = call->from, .index = &task->index};
    if (in + n < pass->in) {
        planes.channel = task->group * pass->in + in + n;
        planes.n = size_min(pass->chunk, pass->in - in - n);
        gemm_ahead_inputs(&ahead, pass, &planes);
        return ahead;
    }
    const bool last = index + 1 >= conv_pass_boxes(pass) * layout->tasks;
    const struct conv_task next = conv_call_task(call, last ? index : index + 1);
    // Sums in the results are written from the begin of their task on.
    const bool early = gemm_is_rows(pass) || gemm_layout_sums_in_place(layout);
    const struct conv_task *stored = early ? &next : task;
    const struct gemm_planes outputs = {.array = call->to,
                                        .index = &stored->index,
                                        .channel = stored->group * pass->out + stored->begin,
                                        .n = stored->end - stored->begin};
    gemm_ahead_outputs(&ahead, pass, &outputs);
    if (last) return ahead;
    planes.index = &next.index;
    planes.channel = next.group * pass->in;
    planes.n = pass->chunk;
    // A split of the same box has packed these samples before.
    if (next.begin == 0 || pass->chunk < pass->in) gemm_ahead_inputs(&ahead, pass, &planes);
    return ahead;
}

// Where the panel of n channels from `in` on is in the array; NULL: it has to be packed. Kernels
// read whole vectors, but not past the end of the array.
static const char *gemm_panel_in_place(const struct conv_call *call, const struct conv_task *task,
                                       size_t in, size_t n)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t vectors = conv_pass_vectors(pass, conv_index_outputs(&task->index));
    const size_t first = task->index.item * pass->from.item +
                         (task->group * pass->in + in) * pass->from.channel + task->index.at[2];
    const size_t end = first + (n - 1) * pass->from.channel + vectors;
    const size_t beyond = CONV_BLOCK_BYTES / pass->scalar_bytes;
    if (!gemm_layout_is_in_place(call->layout) || end + beyond > pass->batch * pass->from.item)
        return NULL;
    return call->from + first * pass->scalar_bytes;
}

// Packs n channels from `in` on. Whole images of one tap are rows, which are closed up; but rows
// are read beyond their end, so those at the end of the array are left to the packing of all boxes.
static void gemm_pack(const struct conv_call *call, const struct conv_task *task, char *packed,
                      size_t in, size_t n)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes, row = pass->from.channel;
    const size_t channel = task->group * pass->in + in, outputs = conv_index_outputs(&task->index);
    const size_t beyond = ceil_div(CONV_BLOCK_BYTES / bytes, row);
    const size_t safe =
        size_min(n, pass->groups * pass->in - size_min(channel + beyond, pass->groups * pass->in));
    size_t c = 0;
    if (conv_pass_is_identity(pass) && pass->box.images > 1 && !pass->channels_last &&
        pass->sample_bytes == bytes)
        for (; c < safe; c++) {
            const size_t first = task->index.item * pass->from.item + (channel + c) * row;
            char *to = packed + c * conv_pass_channel_bytes(pass);
            call->plan->kernels->conv_rows(to, call->from + first * bytes, pass->from.item,
                                           task->index.items, row);
            memset(to + outputs * bytes, 0, conv_pass_channel_bytes(pass) - outputs * bytes);
        }
    if (c < n)
        conv_pass_pack(pass, &task->index, packed + c * conv_pass_channel_bytes(pass), call->from,
                       channel + c, n - c);
}

// The share of n channels from `in` on, panel by panel.
static void gemm_sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                           size_t n, const struct gemm_scratch *scratch, struct gemm_ahead *ahead)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_packed packed = {call->plan->kernels, pass, &task->index, scratch->packed};
    const char *in_place = gemm_panel_in_place(call, task, in, n);
    const size_t all = n * pass->terms, step = size_split_even(all, gemm_panel_terms(call));
    const size_t row = in_place ? pass->from.channel : conv_panel_stride(pass);
    size_t offset[GEMM_MAX_TERMS];
    for (size_t t = 0; t < GEMM_MAX_TERMS; t++) offset[t] = t * row;
    if (!in_place) gemm_pack(call, task, scratch->packed, in, n);
    for (size_t t = 0; t < all; t += step) {
        struct gemm_panel panel = {.x = scratch->packed,
                                   .offset = call->layout->offset + t,
                                   .terms = size_min(step, all - t),
                                   .positions = conv_index_outputs(&task->index),
                                   .in = in,
                                   .term = t};
        if (in_place) {
            panel.x = in_place + t * row * pass->scalar_bytes;
            panel.offset = offset;
        } else if (scratch->panel) {
            conv_panel_gather(&packed, scratch->panel, panel.offset, panel.terms);
            panel.x = scratch->panel;
            panel.offset = offset;
        }
        if (gemm_is_transposed(call->layout)) gemm_sum_channels(call, task, &panel, scratch, ahead);
        else gemm_sum_positions(call, task, &panel, scratch->sums, ahead);
    }
}

// Bias and activation for complete sums that are in the results.
static void gemm_finish_sums(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_sums complete = {.complete = true};
    char *y = gemm_results(call, task);
    for (size_t k = task->begin; k < task->end; k++, y += pass->to.channel * pass->scalar_bytes) {
        const struct conv_finish finish =
            conv_call_finish(call, task->group * pass->out + k, &complete);
        if (finish.bias || finish.relu)
            call->plan->kernels->conv_store(y, 1, y, task->index.count[2], &finish);
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
    assert(arena.used <= call->plan->choice.worker);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = size_min(pass->chunk, pass->in - in);
        struct gemm_ahead ahead = gemm_look_ahead(call, &task, index, in, n);
        const size_t step = size_split_even(n, conv_call_terms(call->plan, GEMM_MAX_TERMS));
        for (size_t c = 0; gemm_is_rows(pass) && c < n; c += step)
            gemm_rows_sum_chunk(call, &task, in + c, size_min(step, n - c), &ahead);
        if (!gemm_is_rows(pass)) gemm_sum_chunk(call, &task, in, n, &scratch, &ahead);
    }
    if (gemm_is_rows(pass)) gemm_rows_finish(call, &task);
    else if (scratch.sums) gemm_store_sums(call, &task, &scratch);
    else gemm_finish_sums(call, &task);
}

static const struct conv_method gemm_pass_method = {.layout = gemm_layout,
                                                    .count_work = gemm_count_work,
                                                    .worker_bytes = gemm_worker_bytes,
                                                    .run_task = gemm_run_task};
static const struct conv_methods gemm_methods = {&gemm_pass_method, &gemm_weight_method};

static void gemm_estimate(const struct request *request, struct estimate *ret)
{
    if (request->transform) estimate_refuse(ret, "has no transform");
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
    .real = true,
    .channels_last = true,
    .estimate = gemm_estimate,
    .plan_create = gemm_plan_create,
    .filter_bytes = conv_passes_filter_bytes,
    .filter_pack = conv_passes_filter_pack,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = gemm_run,
};
