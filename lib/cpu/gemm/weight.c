// SPDX-License-Identifier: MIT
// Backward weight of cpu/gemm: gy of a box of outputs times the box's panel (panel.c). An
// output is a term of the sums, eight output channels are its weights, and the taps lie along the
// vectors, for which panels are transposed: the kernel of forward without a sum across lanes.
#include "cpu/conv/weight.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "gemm.h"

// One worker's memory.
struct gemm_weight_scratch {
    char *packed;  // inputs of a chunk
    char *panel;   // [term][position]; both NULL where strips come from the array itself
    char *columns; // a strip of inputs, transposed: [position][term]
    char *gy;      // [block][position][channel]
    char *sums;    // [channel][term]
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
    const size_t positions = gemm_panel_stride(pass);
    const size_t row = size_mul(positions, pass->scalar_bytes);
    const size_t terms = size_mul(gemm_weight_stride(weight), pass->scalar_bytes);
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    struct gemm_weight_scratch scratch = {0};
    if (!conv_pass_is_identity(pass)) {
        scratch.packed = arena_take(arena, conv_pass_packed_bytes(pass));
        scratch.panel = arena_take(arena, gemm_panel_bytes(pass, gemm_weight_stride(weight)));
    }
    scratch.columns = arena_take(arena, size_mul(positions, PRODUCT_STRIP_BYTES));
    if (!weight->prepared)
        scratch.gy = arena_take(arena, size_mul(ceil_div(weight->oc_split, lanes) * lanes, row));
    scratch.sums = arena_take(arena, size_mul(weight->oc_split, terms));
    return scratch;
}

static size_t gemm_weight_worker_bytes(const struct conv_weight *weight)
{
    struct arena arena = {0};
    gemm_weight_layout_scratch(weight, &arena);
    return arena.used;
}

// Bytes of a block of gy, transposed: as many channels as a vector has lanes.
static size_t gemm_weight_block_bytes(const struct conv_pass *pass)
{
    return gemm_panel_stride(pass) * CONV_BLOCK_BYTES;
}

static size_t gemm_weight_blocks(const struct conv_pass *pass)
{
    return ceil_div(pass->out, CONV_BLOCK_BYTES / pass->scalar_bytes);
}

// Small maps: gy is transposed for all tasks before them, [box][group][block], if it fits.
static void gemm_weight_layout_prepared(struct conv_weight *weight, size_t limit)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t tasks = conv_pass_boxes(pass) * pass->groups * gemm_weight_blocks(pass);
    const size_t bytes = size_mul(tasks, gemm_weight_block_bytes(pass));
    if (pass->box.images == 1 || pass->channels_last || pass->chunk == pass->in ||
        bytes > GEMM.max_prepared || size_add(bytes, gemm_weight_worker_bytes(weight)) > limit)
        return;
    weight->prepared = tasks;
    weight->prepared_bytes = bytes;
}

// The largest box and splits within a limit: halved together.
static void gemm_weight_layout(struct conv_weight *weight, size_t limit)
{
    struct conv_pass *pass = &weight->pass;
    weight->min_tasks = GEMM.weight_tasks;
    for (size_t halves = 0;; halves++) {
        const size_t terms = size_max(GEMM_MAX_TERMS >> halves, 1);
        const size_t channels = size_max(GEMM.max_channels >> halves, CONV_CHANNELS);
        const size_t chunk = size_min(size_max(terms / pass->terms, 1), pass->in);
        pass->chunk = size_split_even(pass->in, chunk);
        weight->term_splits = ceil_div(pass->chunk * pass->terms, terms);
        weight->term_split = ceil_div(pass->chunk * pass->terms, weight->term_splits);
        const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
        const size_t blocks = ceil_div(pass->out, lanes);
        weight->oc_split = ceil_div(blocks, ceil_div(pass->out, channels)) * lanes;
        weight->oc_splits = ceil_div(pass->out, weight->oc_split);
        const bool small = conv_pass_is_identity(pass) && weight->oc_split <= GEMM_WEIGHT_CHANNELS;
        const size_t max = small ? GEMM_MAX_OUTPUTS : GEMM_MAX_WEIGHT_OUTPUTS;
        gemm_panel_choose_box(pass, size_max(max >> halves, GEMM.min_outputs));
        if (gemm_weight_worker_bytes(weight) <= limit || terms == 1) break;
    }
    gemm_weight_layout_prepared(weight, limit);
}

static void gemm_weight_count_work(const struct conv_weight *weight, struct conv_work *work)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t outputs = conv_pass_box_outputs(pass);
    work->hop = gemm_panel_stride(pass);
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
    work->sums = positions * terms * conv_cost_channels(pass->out, PRODUCT_STRIP_VECTORS, 1);
    // Sums are added to in memory. Panels are gathered, transposed and read again for each split;
    // gy is for each chunk.
    work->moved += 2 * boxes * terms * out;
    if (conv_pass_is_identity(pass)) {
        if (!pass->channels_last) work->moved += splits * positions * terms;
        if (!pass->channels_last && pass->box.images > 1) work->moved += chunks * positions * out;
        return;
    }
    conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    work->moved += 2 * splits * positions * terms + 2 * chunks * positions * out;
    work->rows +=
        chunks * out * positions / (double)outputs * (double)(outputs / pass->box.count[2]);
}

// Adjacent channels of an array at the outputs of a box, which lie one after the other in each
// image.
static struct product_matrix gemm_weight_in_array(const struct conv_pass *pass,
                                                  const struct gemm_planes *planes,
                                                  const struct sample_strides *strides)
{
    const size_t first = planes->index->item * strides->item +
                         conv_pass_output_sample(pass, planes->index, 0, 0) * strides->position +
                         planes->channel * strides->channel;
    return (struct product_matrix){.at = (const char *)planes->array + first * pass->scalar_bytes,
                                   .step = strides->channel,
                                   .term = strides->position};
}

// Whether its rows, which are read several times, are far from crowding a few sets of a cache.
static bool gemm_weight_is_spread(size_t rows, size_t bytes)
{
    return rows * (bytes & -bytes) <= GEMM.max_spread;
}

// Inputs of a box from the caller's array, which are packed unless they are read in place.
static void gemm_weight_pack(const struct conv_weight_call *call,
                             const struct conv_weight_task *task, const struct conv_index *index,
                             const struct gemm_weight_scratch *scratch)
{
    const struct conv_pass *pass = &call->weight->pass;
    if (!scratch->packed) return;
    conv_pass_pack(pass, index, scratch->packed, call->x, task->group * pass->in + task->in,
                   task->n_in);
    if (gemm_panel_is_packed(pass)) return;
    const struct gemm_packed packed = {call->plan->kernels, pass, index, scratch->packed};
    gemm_panel_gather(&packed, scratch->panel, call->weight->offset + task->term, task->n_terms);
}

// n terms of a box from term t on, whole vectors, transposed; sums of terms beyond the last one are
// not stored.
static struct product_matrix gemm_weight_columns(const struct conv_weight_call *call,
                                                 const struct conv_weight_task *task,
                                                 const struct conv_index *index,
                                                 const struct gemm_weight_scratch *scratch,
                                                 size_t t, size_t n)
{
    const struct conv_weight *weight = call->weight;
    const struct conv_pass *pass = &weight->pass;
    const struct kernels *kernels = call->plan->kernels;
    const size_t outputs = conv_index_outputs(index), bytes = pass->scalar_bytes;
    const size_t positions = conv_pass_vectors(pass, outputs);
    const size_t terms = size_min(n, task->n_terms - t);
    const struct product_matrix columns = {.at = scratch->columns, .term = n};
    if (scratch->packed) {
        const bool packed = gemm_panel_is_packed(pass);
        const char *first = scratch->packed + weight->offset[task->term + t] * bytes;
        const size_t stride = packed ? pass->box.channel : gemm_panel_stride(pass);
        kernels->interleave(scratch->columns, n,
                            packed ? first : scratch->panel + t * stride * bytes, (ptrdiff_t)stride,
                            packed ? terms : n, positions);
        return columns;
    }
    const struct gemm_planes planes = {call->x, index,
                                       task->group * pass->in + task->in + task->term + t, terms};
    const struct product_matrix x = gemm_weight_in_array(pass, &planes, &pass->from);
    if (pass->channels_last && terms == n && gemm_weight_is_spread(outputs, x.term * bytes))
        return x;
    const size_t images = pass->channels_last ? 1 : index->items, each = outputs / images;
    for (size_t i = 0; i < images; i++) {
        const char *from = x.at + i * pass->from.item * bytes;
        char *to = scratch->columns + i * each * n * bytes;
        if (!pass->channels_last) kernels->transpose(to, n, from, x.step, terms, each);
        else
            for (size_t p = 0; p < each; p++)
                memcpy(to + p * n * bytes, from + p * x.term * bytes, terms * bytes);
    }
    return columns;
}

// Transposes gy of adjacent channels, from the first output of a box on, into blocks.
static void gemm_weight_transpose(const struct conv_weight_call *call, size_t items, size_t outputs,
                                  const struct product_matrix *gy, size_t n_out, char *blocks)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t images = pass->channels_last ? 1 : items, n = outputs / images;
    for (size_t i = 0; i < images; i++)
        for (size_t k = 0; k < n_out; k += lanes) {
            const size_t channels = size_min(lanes, n_out - k);
            const char *from = gy->at + (i * pass->to.item + k * gy->step) * bytes;
            char *to =
                blocks + k / lanes * gemm_weight_block_bytes(pass) + i * n * CONV_BLOCK_BYTES;
            if (!pass->channels_last)
                call->plan->kernels->transpose(to, lanes, from, gy->step, channels, n);
            else
                for (size_t p = 0; p < n; p++)
                    memcpy(to + p * lanes * bytes, from + p * gy->term * bytes, channels * bytes);
        }
}

static void gemm_weight_prepare(void *context, size_t task, int worker)
{
    const struct conv_weight_call *call = context;
    const struct conv_pass *pass = &call->weight->pass;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes, blocks = gemm_weight_blocks(pass);
    const struct conv_index index = conv_pass_index(pass, task / blocks / pass->groups);
    const size_t first = task % blocks * lanes, n = size_min(lanes, pass->out - first);
    const struct gemm_planes planes = {call->gy, &index,
                                       task / blocks % pass->groups * pass->out + first, n};
    const struct product_matrix gy = gemm_weight_in_array(pass, &planes, &pass->to);
    (void)worker;
    gemm_weight_transpose(call, index.items, conv_index_outputs(&index), &gy, n,
                          call->prepared + task * gemm_weight_block_bytes(pass));
}

// The prepared gy of a group at a box.
static char *gemm_weight_prepared(const struct conv_weight_call *call, size_t group, size_t box)
{
    const struct conv_pass *pass = &call->weight->pass;
    return call->prepared +
           (box * pass->groups + group) * gemm_weight_blocks(pass) * gemm_weight_block_bytes(pass);
}

// gy of the task's output channels at the box's outputs: in place, prepared, or transposed.
static struct product_matrix gemm_weight_outputs(const struct conv_weight_call *call,
                                                 const struct conv_weight_task *task, size_t box,
                                                 const struct gemm_weight_scratch *scratch)
{
    const struct conv_pass *pass = &call->weight->pass;
    const struct conv_index index = conv_pass_index(pass, box);
    const size_t bytes = pass->scalar_bytes, outputs = conv_index_outputs(&index);
    const struct gemm_planes planes = {call->gy, &index, task->group * pass->out + task->first,
                                       task->n_out};
    const struct product_matrix gy = gemm_weight_in_array(pass, &planes, &pass->to);
    const size_t lanes = CONV_BLOCK_BYTES / bytes;
    struct product_matrix ret = {.at = scratch->gy,
                                 .block = lanes,
                                 .pitch = gemm_weight_block_bytes(pass) / bytes,
                                 .step = 1,
                                 .term = lanes};
    if (call->weight->prepared) {
        ret.at = gemm_weight_prepared(call, task->group, box) +
                 task->first / lanes * gemm_weight_block_bytes(pass);
        return ret;
    }
    if (pass->channels_last
            ? gemm_weight_is_spread(outputs, gy.term * bytes)
            : index.items == 1 && gemm_weight_is_spread(task->n_out, gy.step * bytes))
        return gy;
    gemm_weight_transpose(call, index.items, outputs, &gy, task->n_out, scratch->gy);
    return ret;
}

// Prefetches during the sums of n terms from term t on, of a box: the inputs of the terms that
// follow, and a share of the outputs of the next box, or of the taps. Inputs that are packed are
// those of the next box.
static struct product_prefetch gemm_weight_look_ahead(const struct conv_weight_call *call,
                                                      const struct conv_weight_task *task,
                                                      size_t box, size_t t, size_t n)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, terms = conv_pass_vectors(pass, task->n_terms);
    const size_t first = t * task->n_out / terms, end = (t + n) * task->n_out / terms;
    const bool last = box + 1 == task->box_end, in_place = conv_pass_is_identity(pass);
    const struct conv_index index = conv_pass_index(pass, box);
    const struct conv_index next = conv_pass_index(pass, last ? box : box + 1);
    struct gemm_planes x = {call->x, &next, task->group * pass->in + task->in, 0};
    const struct gemm_planes gy = {call->gy, &next, task->group * pass->out + task->first + first,
                                   end - first};
    struct product_prefetch prefetch = {.n = 0};
    if (in_place && t + n < terms) {
        x.index = &index;
        x.channel += task->term + t + n;
        x.n = size_min(PRODUCT_STRIP_BYTES / bytes, task->n_terms - t - n);
    } else if (in_place && !last) {
        x.channel += task->term;
        x.n = size_min(PRODUCT_STRIP_BYTES / bytes, task->n_terms);
    } else if (!last) {
        x.channel += t * task->n_in / terms;
        x.n = (t + n) * task->n_in / terms - t * task->n_in / terms;
    }
    if (x.n) gemm_prefetch(&prefetch, pass, &x, false);
    if (gy.n && !last && call->weight->prepared)
        product_prefetch_rows(&prefetch,
                              gemm_weight_prepared(call, task->group, box + 1) +
                                  (task->first + first) * gemm_panel_stride(pass) * bytes,
                              gy.n * gemm_panel_stride(pass) * bytes, 1, 0);
    else if (gy.n && !last) gemm_prefetch(&prefetch, pass, &gy, true);
    if (last)
        product_prefetch_rows(&prefetch, task->gw + first * task->path, task->n_terms * bytes, gy.n,
                              task->path);
    return prefetch;
}

// Adds a box's share to all sums of a task, strip by strip of its terms.
static void gemm_weight_sum_box(const struct conv_weight_call *call,
                                const struct conv_weight_task *task, size_t box,
                                const struct gemm_weight_scratch *scratch)
{
    const struct conv_pass *pass = &call->weight->pass;
    const struct conv_index index = conv_pass_index(pass, box);
    const size_t bytes = pass->scalar_bytes, row = gemm_weight_stride(call->weight);
    const size_t terms = conv_pass_vectors(pass, task->n_terms);
    const size_t positions = conv_index_outputs(&index);
    struct product_prefetch prefetch;
    struct product product = {.plan = call->plan,
                              .rows = task->n_out,
                              .terms = positions,
                              .a = gemm_weight_outputs(call, task, box, scratch),
                              .c = scratch->sums,
                              .c_step = row,
                              .add = box > task->box,
                              .segment = product_segment(call->plan, GEMM_MAX_OUTPUTS),
                              .prefetch = &prefetch};
    gemm_weight_pack(call, task, &index, scratch);
    for (size_t t = 0; t < terms; t += product.columns) {
        product.columns = product_strip(call->plan, terms - t);
        product.b = gemm_weight_columns(call, task, &index, scratch, t, product.columns);
        prefetch = gemm_weight_look_ahead(call, task, box, t, product.columns);
        product.c = scratch->sums + t * bytes;
        product_run(&product);
    }
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
    for (size_t box = task.box; box < task.box_end; box++) {
        gemm_weight_sum_box(call, &task, box, &scratch);
    }
    for (size_t k = 0; k < task.n_out; k++)
        memcpy(task.gw + k * task.path, scratch.sums + k * row, task.n_terms * bytes);
}

const struct conv_weight_method gemm_weight_method = {.layout = gemm_weight_layout,
                                                      .count_work = gemm_weight_count_work,
                                                      .worker_bytes = gemm_weight_worker_bytes,
                                                      .run_task = gemm_weight_run_task,
                                                      .prepare = gemm_weight_prepare};
