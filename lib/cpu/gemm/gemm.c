// SPDX-License-Identifier: MIT
// cpu/gemm: layers as products of matrices, taps times panels (panel.c), which are made box by
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

// The first result of a task, in the call's array.
static char *gemm_results(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t channel = task->group * pass->out + task->begin;
    return call->to +
           conv_pass_output_row(pass, &task->index, channel, 0, 0, 0) * pass->scalar_bytes;
}

// Prefetches during the sums of n channels: the samples packed next, and before that, with the
// last channels, the outputs of this task. Another worker may take the next task; its memory is
// shared.
static struct product_prefetch gemm_look_ahead(const struct conv_call *call,
                                               const struct conv_task *task, size_t index,
                                               size_t in, size_t n)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    struct product_prefetch prefetch = {.n = 0};
    struct gemm_planes planes = {.array = call->from, .index = &task->index};
    if (in + n < pass->in) {
        planes.channel = task->group * pass->in + in + n;
        planes.n = size_min(pass->chunk, pass->in - in - n);
        gemm_prefetch(&prefetch, pass, &planes, false);
        return prefetch;
    }
    const bool last = index + 1 >= conv_pass_boxes(pass) * layout->tasks;
    const struct conv_task next = conv_call_task(call, last ? index : index + 1);
    // Sums in the results are written from the start of their task on.
    const bool early = gemm_is_rows(pass) || gemm_layout_sums_in_place(layout);
    const struct conv_task *stored = early ? &next : task;
    const struct gemm_planes outputs = {.array = call->to,
                                        .index = &stored->index,
                                        .channel = stored->group * pass->out + stored->begin,
                                        .n = stored->end - stored->begin};
    gemm_prefetch(&prefetch, pass, &outputs, true);
    if (last) return prefetch;
    planes.index = &next.index;
    planes.channel = next.group * pass->in;
    planes.n = pass->chunk;
    // A split of the same box has packed these samples before.
    if (next.begin == 0 || pass->chunk < pass->in) gemm_prefetch(&prefetch, pass, &planes, false);
    return prefetch;
}

// Where n channels from `in` on are in the array; NULL: they have to be packed. Kernels read whole
// vectors of positions, but not past the end of the array.
static const char *gemm_inputs_in_place(const struct conv_call *call, const struct conv_task *task,
                                        size_t in, size_t n)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t vectors = conv_pass_vectors(pass, conv_index_outputs(&task->index));
    const size_t first = task->index.item * pass->from.item +
                         (task->group * pass->in + in) * pass->from.channel +
                         task->index.at[2] * pass->from.position;
    const size_t end = first + (n - 1) * pass->from.channel + vectors;
    const size_t beyond = CONV_BLOCK_BYTES / pass->scalar_bytes;
    const bool inside = end + beyond <= pass->batch * pass->from.item;
    return gemm_is_rows(pass) || (gemm_layout_is_in_place(call->layout) && inside)
               ? call->from + first * pass->scalar_bytes
               : NULL;
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

// The matrix [term][position] of n channels from `in` on, which are packed where the array is
// not one matrix; with a panel it is the memory into which their terms are gathered.
static struct product_matrix gemm_positions(const struct conv_call *call,
                                            const struct conv_task *task, size_t in, size_t n,
                                            const struct gemm_scratch *scratch)
{
    const struct conv_pass *pass = &call->layout->pass;
    const char *in_place = gemm_inputs_in_place(call, task, in, n);
    if (in_place)
        return (struct product_matrix){
            .at = in_place, .term = pass->from.channel, .step = pass->from.position};
    gemm_pack(call, task, scratch->packed, in, n);
    if (scratch->panel)
        return (struct product_matrix){.at = scratch->panel, .term = gemm_panel_stride(pass)};
    return (struct product_matrix){.at = scratch->packed, .term = pass->box.channel};
}

// Adds the share of n channels from `in` on to the sums of all output channels of a task.
static void gemm_sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                           size_t n, const struct gemm_scratch *scratch,
                           const struct product_prefetch *prefetch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t terms = n * pass->terms, positions = conv_index_outputs(&task->index);
    const size_t channels =
        size_min(layout->out_padded, task->begin + layout->oc_split) - task->begin;
    const bool rows = gemm_is_rows(pass), transposed = gemm_is_transposed(layout);
    // With AVX2 half of a chunk crowds the sets of the L1 cache where it is read in place.
    const bool crowds = call->plan->isa == CPU_AVX2 && gemm_layout_is_in_place(layout);
    const struct product_matrix x = gemm_positions(call, task, in, n, scratch);
    const struct gemm_packed packed = {call->plan->kernels, pass, &task->index, scratch->packed};
    struct product_matrix taps = {.at = conv_call_taps(call, task->group, task->begin, 0),
                                  .block = layout->oc_block,
                                  .pitch = layout->oc_block * pass->in * pass->terms,
                                  .first = in * pass->terms};
    const bool gathered = x.at == scratch->panel;
    struct product product = {.plan = call->plan,
                              .rows = channels,
                              .columns = conv_pass_vectors(pass, positions),
                              .b = x,
                              .c = scratch->sums ? scratch->sums : gemm_results(call, task),
                              .c_step = scratch->sums ? gemm_panel_stride(pass) : pass->to.channel,
                              .segment = crowds ? ceil_div(GEMM_MAX_TERMS, 3)
                                                : product_segment(call->plan, GEMM_MAX_TERMS)};
    if (transposed) {
        product.rows = positions;
        product.columns = channels;
        product.a = x;
        product.next_b =
            conv_call_taps(call, task->group, task->begin, in + n < pass->in ? in + n : 0);
        product.c_pitch = layout->oc_block;
        product.c_step = rows ? pass->to.position : gemm_sums_stride(layout);
    }
    // A panel holds GEMM_MAX_TERMS terms, of channels with more taps a part.
    for (size_t t = 0; t < terms; t += product.terms, taps.first += product.terms) {
        product.terms = gathered ? size_min(terms - t, GEMM_MAX_TERMS) : terms;
        if (gathered) gemm_panel_gather(&packed, scratch->panel, layout->offset + t, product.terms);
        product.add = in > 0 || t > 0;
        product.prefetch = t + product.terms == terms ? prefetch : NULL;
        *(transposed ? &product.b : &product.a) = taps;
        if (transposed && !rows)
            product.a =
                product_pack_rows(call->plan, &x, product.terms, positions, scratch->groups);
        product_run(&product);
    }
}

// Bias and activation for complete sums that are in the results: rows of positions, or of channels.
static void gemm_finish_sums(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_sums complete = {.complete = true};
    const bool channels = gemm_is_rows(pass);
    const size_t out = task->end - task->begin, positions = conv_index_outputs(&task->index);
    const size_t step = (channels ? pass->to.position : pass->to.channel) * pass->scalar_bytes;
    char *y = gemm_results(call, task);
    for (size_t row = 0; row < (channels ? positions : out); row++, y += step) {
        struct conv_finish finish = conv_call_finish(
            call, task->group * pass->out + task->begin + (channels ? 0 : row), &complete);
        finish.each = channels && finish.bias;
        if (!finish.bias && !finish.relu) return;
        call->plan->kernels->conv_store(y, 1, y, channels ? out : positions, &finish);
    }
}

// Stores complete sums in their rows.
static void gemm_store_sums(const struct conv_call *call, const struct conv_task *task,
                            const struct gemm_scratch *scratch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes, stride = gemm_panel_stride(pass);
    const size_t positions = conv_pass_vectors(pass, conv_index_outputs(&task->index));
    // Channels that come last are stored together, so that lines are written whole.
    const bool adjacent = pass->channels_last && !gemm_is_transposed(layout);
    const size_t step = adjacent ? task->end - task->begin : layout->oc_block;
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
        const struct conv_sums from = {.planes = {sums, task->index.count, n, stride},
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
        const struct product_prefetch prefetch = gemm_look_ahead(call, &task, index, in, n);
        gemm_sum_chunk(call, &task, in, n, &scratch, &prefetch);
    }
    if (scratch.sums) gemm_store_sums(call, &task, &scratch);
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

static void *gemm_build(const struct partita_plan *plan, const struct request *request,
                        struct arena *arena)
{
    return conv_build(plan, request, &gemm_methods, arena);
}

const struct engine engine_gemm = {
    .name = "cpu/gemm",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .real = true,
    .channels_last = true,
    .layers = true,
    .estimate = gemm_estimate,
    .build = gemm_build,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = conv_passes_filter_bytes, .pack = conv_passes_filter_pack},
    .bounded = {.run = conv_run},
};
