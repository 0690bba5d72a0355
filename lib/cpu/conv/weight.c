// SPDX-License-Identifier: MIT
// Backward weight is a product over the pass of forward: the terms are the outputs of a box, of
// which gy has a row for each output channel and the box's panel (panel.h) one for each tap. Taps
// lie along the vectors, for which panels are transposed strip by strip, so that no sum crosses
// lanes; but few taps are summed along the outputs. A task computes a split of the taps of a chunk
// of input channels, for a split of the output channels, over a split of the boxes; all of these
// depend only on the shape.
#include "weight.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "panel.h"
#include "product/split_k.h"

enum {
    // Outputs of a box, for panels or for splits of more than LARGE_SPLIT channels: with more of
    // both, gy, sums and prefetched data do not fit an L2 cache of 1 MiB; measured.
    LARGE_OUTPUTS = 256,
    LARGE_SPLIT = 256,
    MIN_TASKS = 8, // with fewer tasks the boxes are split; measured
    // Taps and channels, at most, that kernels->conv_weight sums at once. Taps of all input
    // channels up to which it is used, and how many of them for each output channel; measured.
    DOT_TAPS = 6,
    DOT_CHANNELS = 4,
    DOT_OUTPUTS = 1024, // of a box, since adding the lanes of a sum takes as long as eight vectors
    DOT_TERMS = 64,
    MAX_DOT_COPIES = 3,
};

static struct split_k weight_splits(const struct conv_call *call)
{
    return (struct split_k){call->plan, call->to, call->workspace, call->layout->k_splits,
                            split_k_bytes(&call->plan->shape)};
}

// Adjacent channels of an array of inputs, or of outputs, at a box; channels are counted over all
// groups.
struct conv_weight_samples {
    const char *array;
    const struct conv_index *index;
    size_t channel, n;
    bool outputs;
};

// A task of a call: taps term .. term+n_terms-1 of the n_in channels from `in` on, output channels
// first .. first+n_out-1, boxes box .. box_end-1. n_terms may be 0.
struct conv_weight_task {
    size_t group, in, n_in, term, n_terms, first, n_out;
    size_t box, box_end;
    char *gw;    // address of its first sum
    size_t path; // bytes from the sums of one output channel to those of the next
};

// One worker's memory.
struct conv_weight_scratch {
    char *packed;  // inputs of a chunk; NULL where the samples of the array are the panel
    char *panel;   // [tap][position], or a copy of inputs; NULL: they are read where they are
    char *gy;      // a copy of gy; NULL: it is read where it is
    char *columns; // a strip of the operand along the vectors, transposed
    char *sums;    // [row][column]
};

// Whether the samples of n channels at a box are read where they are: scalars at one distance that
// crowds no cache.
static bool weight_in_place(const struct conv_pass *pass, const struct sample_strides *strides,
                            size_t n)
{
    if (pass->sample_bytes < pass->scalar_bytes) return false;
    return pass->channels_last ? !panel_crowds(pass, conv_pass_box_outputs(pass), strides->position)
                               : pass->box.images == 1 && !panel_crowds(pass, n, strides->channel);
}

// Whether the sums of few taps run along the outputs of boxes, which are whole vectors then: taps
// along the vectors would leave lanes idle, and transposing them would take longer.
static bool weight_suits_dots(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    const size_t *count = pass->box.count, outputs = conv_pass_box_outputs(pass);
    return !pass->channels_last && pass->in * pass->terms <= DOT_TERMS && pass->terms > 1 &&
           pass->in * pass->terms <= MAX_DOT_COPIES * pass->out && pass->box.images == 1 &&
           outputs >= DOT_OUTPUTS / 2 && outputs % lanes == 0 &&
           pass->axis[0].count % count[0] == 0 && pass->axis[1].count % count[1] == 0 &&
           pass->axis[2].count % count[2] == 0;
}

static struct conv_weight_scratch weight_scratch(const struct conv_layout *layout,
                                                 struct arena *arena)
{
    const struct conv_pass *pass = &layout->pass;
    const bool identity = conv_pass_is_identity(pass);
    const size_t terms = panel_row(pass, layout->term_split);
    struct conv_weight_scratch scratch = {0};
    if (!identity) scratch.packed = arena_take(arena, conv_pass_packed_bytes(pass));
    if (!identity || !weight_in_place(pass, &pass->from, layout->term_split))
        scratch.panel = arena_take(arena, panel_bytes(pass, terms));
    if (!weight_in_place(pass, &pass->to, layout->oc_split))
        scratch.gy = arena_take(arena, panel_bytes(pass, panel_row(pass, layout->oc_split)));
    scratch.columns = arena_take(arena, size_mul(panel_stride(pass), PRODUCT_STRIP_BYTES));
    scratch.sums = arena_take(arena, size_mul(layout->oc_split * pass->scalar_bytes, terms));
    return scratch;
}

static size_t weight_worker_bytes(const struct conv_layout *layout)
{
    struct arena arena = {0};
    weight_scratch(layout, &arena);
    return arena.used;
}

// Tasks of one split of the boxes.
static size_t weight_tasks(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    return pass->groups * ceil_div(pass->in, pass->chunk) * layout->term_splits * layout->oc_splits;
}

// The largest box and splits within the limit of the workspace: halved together.
static void weight_layout(const struct request *request, struct conv_layout *layout)
{
    const size_t limit = request->workspace_limit;
    struct conv_pass *pass = &layout->pass;
    for (size_t halves = 0;; halves++) {
        const size_t terms = size_max(PANEL_TERMS >> halves, 1);
        const size_t channels = size_max(PANEL_CHANNELS >> halves, CONV_CHANNELS);
        const size_t chunk = size_min(size_max(terms / pass->terms, 1), pass->in);
        pass->chunk = size_split_even(pass->in, chunk);
        layout->term_splits = ceil_div(pass->chunk * pass->terms, terms);
        layout->term_split = ceil_div(pass->chunk * pass->terms, layout->term_splits);
        layout->oc_split =
            conv_pass_vectors(pass, ceil_div(pass->out, ceil_div(pass->out, channels)));
        layout->oc_splits = ceil_div(pass->out, layout->oc_split);
        const bool small = conv_pass_is_identity(pass) && layout->oc_split <= LARGE_SPLIT;
        const size_t max = small ? PANEL_OUTPUTS : LARGE_OUTPUTS;
        panel_choose_box(pass, size_max(DOT_OUTPUTS >> halves, PANEL_MIN_OUTPUTS));
        if (!weight_suits_dots(layout))
            panel_choose_box(pass, size_max(max >> halves, PANEL_MIN_OUTPUTS));
        if (weight_worker_bytes(layout) <= limit || terms == 1) break;
    }
    layout->pairs = panel_pairs(request) && !weight_suits_dots(layout);
    layout->k_splits =
        split_k_count(request->shape, MIN_TASKS, weight_tasks(layout), conv_pass_boxes(pass),
                      limit - size_min(limit, weight_worker_bytes(layout)));
}

static size_t weight_count_work(const struct conv_layout *layout, struct ledger *ledger)
{
    struct work *work = &ledger->work;
    const struct conv_pass *pass = &layout->pass;
    const size_t outputs = conv_pass_box_outputs(pass), bytes = pass->scalar_bytes;
    // Boxes at the end of an axis are smaller; a position counts where it is one, a tap in whole
    // vectors.
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups;
    const double positions =
        (double)pass->batch *
        (double)(pass->axis[0].count * pass->axis[1].count * pass->axis[2].count) *
        (double)pass->groups;
    const double chunks = (double)(ceil_div(pass->in, pass->chunk) * layout->term_splits);
    const double terms = chunks * (double)conv_pass_vectors(pass, layout->term_split);
    const double splits = (double)layout->oc_splits;
    const double out = (double)pass->out;
    const double products =
        positions * chunks * panel_products(pass, layout->term_split, pass->out);
    if (layout->pairs) work->pair = products / 2;
    else work->fma = products;
    // Few taps fill every lane.
    if (weight_suits_dots(layout)) work->fma *= chunks * (double)layout->term_split / terms;
    // Sums are added to in memory. Panels are gathered, transposed and read again for each split;
    // gy is for each chunk.
    work->copy += 2 * boxes * terms * out;
    if (conv_pass_is_identity(pass)) {
        if (!pass->channels_last) work->copy += splits * positions * terms;
        if (pass->sample_bytes < bytes || (!pass->channels_last && pass->box.images > 1))
            work->copy += chunks * positions * out;
        return panel_stride(pass);
    }
    conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    if (weight_suits_dots(layout)) {
        work->copy += splits * positions * terms;
        return panel_stride(pass);
    }
    work->copy += 2 * splits * positions * terms + 2 * chunks * positions * out;
    work->row +=
        chunks * out * positions / (double)outputs * (double)(outputs / pass->box.count[2]);
    return panel_stride(pass);
}

static struct conv_weight_task weight_task(const struct conv_call *call, size_t index)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t chunks = ceil_div(pass->in, pass->chunk), boxes = conv_pass_boxes(pass);
    struct conv_weight_task task = {.term = index % layout->term_splits * layout->term_split,
                                    .path = pass->in * pass->terms * pass->scalar_bytes};
    index /= layout->term_splits;
    task.in = index % chunks * pass->chunk;
    task.first = index / chunks % layout->oc_splits * layout->oc_split;
    index /= chunks * layout->oc_splits;
    task.group = index % pass->groups;
    const size_t split = index / pass->groups;
    const struct split_k split_k = weight_splits(call);
    assert(split < layout->k_splits);
    task.n_in = size_min(pass->chunk, pass->in - task.in);
    const size_t terms = task.n_in * pass->terms;
    task.n_terms = task.term < terms ? size_min(layout->term_split, terms - task.term) : 0;
    task.n_out = size_min(layout->oc_split, pass->out - task.first);
    task.box = split * boxes / layout->k_splits;
    task.box_end = (split + 1) * boxes / layout->k_splits;
    task.gw = split_k_sums(&split_k, split) + (task.group * pass->out + task.first) * task.path +
              (task.in * pass->terms + task.term) * pass->scalar_bytes;
    return task;
}

// Adjacent channels at the outputs of a box, which lie one after the other in each image: where
// they are, or a copy without gaps between images; or pairs of outputs, the last with a zero if
// their number is odd.
static struct product_matrix weight_operand(const struct conv_layout *layout,
                                            const struct conv_weight_samples *samples, char *copy)
{
    const struct conv_pass *pass = &layout->pass;
    const struct sample_strides *strides = samples->outputs ? &pass->to : &pass->from;
    const struct conv_index *index = samples->index;
    const size_t bytes = pass->scalar_bytes, outputs = conv_index_outputs(index);
    const size_t first = index->item * strides->item +
                         conv_pass_output_sample(pass, index, 0, 0) * strides->position +
                         samples->channel * strides->channel;
    const struct product_matrix there = {.at = samples->array + first * pass->sample_bytes,
                                         .step = strides->channel,
                                         .term = strides->position};
    if (!copy) return there;
    const size_t images = pass->channels_last ? 1 : index->items;
    const size_t rows = pass->channels_last ? outputs : samples->n;
    const size_t row = pass->channels_last ? samples->n : outputs / images;
    const size_t step = pass->channels_last ? there.term : there.step;
    const size_t stride = panel_row(pass, row * images), half = pass->sample_bytes;
    const bool crossed = layout->pairs && pass->channels_last; // pairs are of two rows
    const size_t size = layout->pairs ? half : bytes;          // of a sample of a copied row
    for (size_t i = 0; i < rows * images && !crossed; i++) {
        const size_t from = i / images * step + i % images * strides->item;
        char *to = copy + i / images * stride * bytes + i % images * row * size;
        const struct sample_rows wide = {to, 1, 0, 1, row};
        if (!layout->pairs) samples_move(pass->plan, &wide, there.at + from * half, false);
        else samples_window(to, there.at + from * half, row, 0, 1, row + 1, half);
    }
    for (size_t i = 0; i < rows && crossed; i += 2) {
        const char *from = there.at + i * step * half;
        char *to = copy + i / 2 * stride * bytes;
        if (i + 1 < rows) pass->plan->kernels->pair(to, from, from + step * half, 1, row);
        else samples_copy(memset(to, 0, row * bytes), 2, from, 1, row, half);
    }
    return pass->channels_last ? (struct product_matrix){.at = copy, .step = 1, .term = stride}
                               : (struct product_matrix){.at = copy, .step = stride, .term = 1};
}

// The samples that the task's taps read for a box.
static struct product_matrix weight_inputs(const struct conv_call *call,
                                           const struct conv_weight_task *task,
                                           const struct conv_index *index,
                                           const struct conv_weight_scratch *scratch)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t *offset = call->layout->offset + task->term;
    const size_t channel = task->group * pass->in + task->in;
    if (!scratch->packed) {
        const struct conv_weight_samples x = {call->from, index, channel + task->term,
                                              task->n_terms, false};
        return weight_operand(call->layout, &x, scratch->panel);
    }
    conv_pass_pack(pass, index, scratch->packed, call->from, channel, task->n_in);
    if (panel_is_packed(pass))
        return (struct product_matrix){.at = scratch->packed + *offset * pass->scalar_bytes,
                                       .step = pass->box.channel,
                                       .term = 1};
    const struct panel_source packed = {call->plan->kernels, pass, index, scratch->packed};
    panel_gather(&packed, scratch->panel, offset, task->n_terms);
    return (struct product_matrix){.at = scratch->panel, .step = panel_stride(pass), .term = 1};
}

// The strip of columns from t on, of n, out of the rows of an operand. Sums of columns beyond the
// last one are not stored. Rows that were packed in f32 become pairs in the second half of
// `columns`, which pairs leave free.
static struct product_matrix weight_columns(const struct product *product,
                                            const struct product_matrix *operand, size_t t,
                                            size_t n, const struct conv_weight_scratch *scratch)
{
    const struct kernels *kernels = product->plan->kernels;
    const size_t bytes = kernels->f64 ? sizeof(double) : sizeof(float);
    const size_t width = product->columns, left = size_min(width, n - t);
    const char *from = operand->at + t * operand->step * bytes;
    char *columns = scratch->columns;
    if (product->pairs && scratch->packed) {
        char *rows = columns + product->terms * width * bytes;
        for (size_t k = 0; k < left; k++)
            plan_narrow(product->plan)(rows + k * product->terms * bytes,
                                       from + k * operand->step * bytes, 2 * product->terms);
        kernels->transpose(columns, width, rows, product->terms, left, product->terms);
        return (struct product_matrix){.at = columns, .term = width};
    }
    if (operand->step == 1 && left == width)
        return (struct product_matrix){.at = from, .term = operand->term};
    if (operand->step == 1)
        for (size_t p = 0; p < product->terms; p++)
            memcpy(columns + p * width * bytes, from + p * operand->term * bytes, left * bytes);
    else kernels->transpose(columns, width, from, operand->step, left, product->terms);
    return (struct product_matrix){.at = columns, .term = width};
}

// Adds a box's share by sums along its outputs: a few taps of inputs stay in the L1 cache for all
// channels. Meanwhile the samples of gy behind the box are prefetched, one row of a rectangle with
// each block of taps.
static void weight_add_dots(const struct conv_call *call, const struct conv_weight_task *task,
                            const struct product *product, const struct product_matrix *x)
{
    const struct product_matrix *gy = &product->a;
    const size_t bytes = call->layout->pass.scalar_bytes;
    size_t offset[DOT_TAPS];
    for (size_t c = 0; c < DOT_TAPS; c++) offset[c] = c * x->step;
    for (size_t t = 0; t < task->n_terms; t += DOT_TAPS)
        for (size_t k = 0; k < task->n_out; k += DOT_CHANNELS) {
            const size_t channels = size_min(DOT_CHANNELS, task->n_out - k), fetched = t / DOT_TAPS;
            const char *y = gy->at + k * gy->step * bytes;
            // A number, as it may lie beyond the array.
            const uintptr_t behind = (uintptr_t)y + (fetched * gy->step + product->terms) * bytes;
            call->plan->kernels->conv_weight(&(struct conv_weight_operands){
                .w = product->c + (k * product->c_step + t) * bytes,
                .y = y,
                .x = x->at + t * x->step * bytes,
                .ahead = fetched < channels ? (const void *)behind : NULL,
                .offset = offset,
                .w_stride = product->c_step,
                .y_stride = gy->step,
                .channels = channels,
                .terms = size_min(DOT_TAPS, task->n_terms - t),
                .n = product->terms});
        }
}

// Adds a box's share to all sums of a task.
static void weight_sum_box(const struct conv_call *call, const struct conv_weight_task *task,
                           size_t box, const struct conv_weight_scratch *scratch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const struct conv_index index = conv_pass_index(pass, box);
    const struct conv_weight_samples outputs = {
        call->gy, &index, task->group * pass->out + task->first, task->n_out, true};
    const struct product_matrix x = weight_inputs(call, task, &index, scratch);
    struct product product = {.plan = call->plan,
                              .rows = task->n_out,
                              .terms = conv_index_outputs(&index),
                              .a = weight_operand(layout, &outputs, scratch->gy),
                              .pairs = layout->pairs,
                              .c = scratch->sums,
                              .c_step = panel_row(pass, layout->term_split),
                              .add = box > task->box,
                              .segment = product_segment(call->plan, PANEL_OUTPUTS)};
    if (weight_suits_dots(layout)) {
        if (!product.add) memset(product.c, 0, product.rows * product.c_step * pass->scalar_bytes);
        weight_add_dots(call, task, &product, &x);
        return;
    }
    if (product.pairs) product.terms = ceil_div(product.terms, 2);
    for (size_t t = 0; t < task->n_terms; t += product.columns) {
        product.columns = product_strip(call->plan, conv_pass_vectors(pass, task->n_terms - t));
        product.b = weight_columns(&product, &x, t, task->n_terms, scratch);
        product.c = scratch->sums + t * pass->scalar_bytes;
        product_run(&product);
    }
}

static void weight_run_task(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_layout *layout = call->layout;
    const struct conv_weight_task task = weight_task(call, index);
    const size_t bytes = layout->pass.scalar_bytes;
    const size_t row = panel_row(&layout->pass, layout->term_split) * bytes;
    const struct estimate *choice = &call->plan->choice;
    struct arena arena = {.base =
                              call->workspace + choice->shared + (size_t)worker * choice->worker};
    const struct conv_weight_scratch scratch = weight_scratch(layout, &arena);
    assert(arena.used <= choice->worker);
    if (!task.n_terms) return;
    for (size_t box = task.box; box < task.box_end; box++)
        weight_sum_box(call, &task, box, &scratch);
    for (size_t k = 0; k < task.n_out; k++)
        memcpy(task.gw + k * task.path, scratch.sums + k * row, task.n_terms * bytes);
}

const struct conv_method products_weight = {.layout = weight_layout,
                                            .count_work = weight_count_work,
                                            .worker_bytes = weight_worker_bytes,
                                            .run_task = weight_run_task};

void products_weight_run(const struct partita_plan *plan, const struct operands *operands,
                         void *workspace)
{
    const struct conv_passes *passes = plan->state;
    struct conv_layout made = *passes->layout, *layout = &made;
    conv_layout_set_plan(layout, plan);
    struct conv_call call = {
        plan, NULL, layout, operands->to, operands->from[0], operands->from[1], workspace};
    const struct split_k split_k = weight_splits(&call);
    thread_loop(plan->threads, layout->k_splits * weight_tasks(layout), weight_run_task, &call);
    split_k_reduce(&split_k);
}
