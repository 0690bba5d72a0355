// SPDX-License-Identifier: MIT
// Forward and backward data as products of matrices: taps times the samples that they read, box by
// box, for all output channels. The samples are a panel (panel.h), or the packed inputs, in which a
// term is an offset; layers of one tap read panels in the array.
// Sums stay in the workspace until their last term and then go to their rows, or are added up in
// the results where these are whole vectors. Source: Goto & van de Geijn, Anatomy of
// high-performance matrix multiplication (2008); implicit products of convolution: Chetlur et al.,
// cuDNN: efficient primitives for deep learning (2014).
#include "products.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/sizes.h"
#include "core/storage.h"
#include "finish.h"
#include "panel.h"
#include "passes.h"
#include "weight.h"

enum {
    // With fewer tasks output channels are split, and inputs packed for each split; minimum
    // channels of such a split. Chosen.
    MIN_TASKS = 8,
    MIN_CHANNELS = 128,
    // Of a box that is read at offsets: outputs, whose sums of eight channels stay in an L1 cache,
    // and bytes of packed inputs, a quarter of L2; derived. Loads of a vector that is rarely
    // aligned; vectors of a kernel's rectangle of few channels.
    OFFSET_OUTPUTS = 1024,
    OFFSET_PACKED = 256 << 10,
    OFFSET_LOADS = 2,
    OFFSET_VECTORS = 6,
};

// One worker's memory.
struct products_scratch {
    char *packed; // inputs of a chunk; NULL: they are in the array
    char *panel;  // [term][position]; NULL where the packed inputs are one, or are read at offsets
    char *sums;   // [channel][position], transposed [position][channel]; NULL: in the results
    // Transposed:
    char *groups;  // the panel as [eight positions][term][position]
    char *columns; // sums of a block of channels as [channel][position]
};

// Whether output channels lie along the vectors instead of positions: small maps fill the vectors
// worse than many channels do. Such channels are packed in blocks of a strip.
static bool is_transposed(const struct conv_layout *layout)
{
    return layout->oc_block > CONV_CHANNELS;
}

// Whether layers of one tap are read in the array: positions are adjacent, and channels are a plane
// apart that does not crowd a cache; or channels come last and are whole vectors, for another task
// may be writing the next position.
static bool reads_array(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    const bool scalars = pass->sample_bytes == pass->scalar_bytes;
    if (layout->by_offsets || !conv_pass_is_identity(pass) ||
        !(scalars || (pass->pairs && pass->channels_last && !pass->odd)) ||
        !MODE_IS_ON("gemm:in-place"))
        return false;
    return pass->channels_last
               ? pass->out % lanes == 0
               : pass->box.images == 1 && !panel_crowds(pass, pass->chunk, pass->from.channel);
}

// Whether rows are written where they belong by terms at offsets: no copy waits for memory, since
// the processor stores a rectangle while it sums the next. The last block of a row overlaps the one
// before, so rows that are little longer than a block would cost up to twice the products.
static bool writes_rows(const struct conv_pass *pass)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes, row = pass->box.count[2];
    const size_t last = (pass->axis[2].count - 1) % row + 1;
    return pass->chunk == pass->in && pass->in * pass->terms <= PRODUCT_TERMS && last >= lanes &&
           4 * ceil_div(row, lanes) * lanes <= 5 * pass->box.extent[2];
}

// Whether sums are added up in the results: whole vectors of adjacent outputs, or rows.
static bool sums_in_results(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const struct conv_axis *axis = pass->axis;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    if (pass->channels_last) return reads_array(layout) && !pass->pairs;
    if (is_transposed(layout) || pass->sample_bytes < pass->scalar_bytes || pass->box.images > 1 ||
        axis[0].spread * axis[1].spread * axis[2].spread > 1)
        return false;
    if (layout->by_offsets) return writes_rows(pass);
    return MODE_IS_ON("gemm:sums-in-place") && axis[2].count % lanes == 0 &&
           pass->box.count[2] % lanes == 0 &&
           !panel_crowds(pass, layout->oc_split, pass->to.channel);
}

// Scalars from the sums of one row to those of the next.
static size_t sums_row(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    if (is_transposed(layout))
        return panel_row(pass, size_min(layout->oc_split, layout->out_padded));
    return layout->by_offsets ? panel_row(pass, pass->box.positions) : panel_stride(pass);
}

static struct products_scratch take_scratch(const struct conv_layout *layout, struct arena *arena)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes, row = size_mul(panel_stride(pass), bytes);
    const bool panel = !layout->by_offsets && !panel_is_packed(pass);
    const size_t terms = size_min(pass->chunk * pass->terms, panel ? PANEL_TERMS : SIZE_MAX);
    struct products_scratch scratch = {0};
    if (pass->channels_last && reads_array(layout)) {
        if (pass->pairs) scratch.sums = arena_take(arena, size_mul(sums_row(layout), row));
        return scratch;
    }
    scratch.packed = arena_take(arena, conv_pass_packed_bytes(pass));
    if (panel) scratch.panel = arena_take(arena, panel_bytes(pass, terms));
    if (is_transposed(layout)) {
        scratch.sums = arena_take(arena, size_mul(sums_row(layout), row));
        scratch.groups = arena_take(arena, size_add(size_mul(terms, row), CONV_BLOCK_BYTES));
        scratch.columns = arena_take(arena, size_mul(layout->oc_block, row));
    } else if (!sums_in_results(layout))
        scratch.sums = arena_take(
            arena, size_mul(size_min(layout->oc_split, pass->out) * bytes, sums_row(layout)));
    return scratch;
}

static size_t worker_bytes(const struct conv_layout *layout)
{
    struct arena arena = {0};
    take_scratch(layout, &arena);
    return arena.used;
}

// Multiply-adds of a box and term, with channels along the vectors if `transposed`.
static double box_products(const struct conv_layout *layout, bool transposed)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t outputs = conv_pass_box_outputs(pass), out = pass->out;
    const size_t width = out < CONV_CHANNELS ? OFFSET_VECTORS : PRODUCT_STRIP_VECTORS;
    if (layout->by_offsets)
        return (double)pass->box.positions * conv_cost_channels(out, width, OFFSET_LOADS);
    return transposed ? panel_products(pass, out, outputs) : panel_products(pass, outputs, out);
}

// Chooses the box, of at most max_outputs outputs, and the operand along the vectors.
static void choose_operands(struct conv_layout *layout, size_t max_outputs)
{
    struct conv_pass *pass = &layout->pass;
    panel_choose_box(pass, max_outputs);
    const double gain = box_products(layout, true) / box_products(layout, false);
    const bool transposed = (pass->channels_last && reads_array(layout)) ||
                            (MODE_IS_ON("gemm:transposed") && gain < PANEL_EXCHANGE);
    layout->oc_block = transposed ? PRODUCT_STRIP_BYTES / pass->scalar_bytes : CONV_CHANNELS;
    layout->out_padded = transposed ? conv_pass_vectors(pass, pass->out) : pass->out;
    // Splits that make enough tasks of the boxes.
    const size_t wanted = ceil_div(MIN_TASKS, conv_pass_boxes(pass) * pass->groups);
    const size_t splits = size_min(wanted, size_max(pass->out / MIN_CHANNELS, 1));
    conv_layout_split_outputs(layout, size_max(splits, ceil_div(pass->out, PANEL_CHANNELS)));
}

static void products_layout(const struct request *request, struct conv_layout *layout)
{
    const size_t limit = request->workspace_limit;
    struct conv_pass *pass = &layout->pass;
    const size_t terms = layout->by_offsets ? PRODUCT_TERMS : PANEL_TERMS;
    // Where channels come last the array of samples is one of pairs, if their number is even.
    pass->odd = pass->in % 2;
    pass->pairs = panel_pairs(request) && (!pass->odd || (pass->in > 1 && pass->groups == 1));
    const size_t adjacent = pass->pairs ? 2 : 1;
    pass->in = ceil_div(pass->in, adjacent);
    pass->from.channel *= adjacent;
    const size_t chunk = size_min(size_max(terms / pass->terms, 1), pass->in);
    const size_t max_packed = layout->by_offsets ? OFFSET_PACKED : SIZE_MAX;
    pass->chunk = size_split_even(pass->in, chunk);
    for (size_t outputs = layout->by_offsets ? OFFSET_OUTPUTS : PANEL_OUTPUTS;; outputs /= 2) {
        choose_operands(layout, outputs);
        const bool fits =
            worker_bytes(layout) <= limit && conv_pass_packed_bytes(pass) <= max_packed;
        if (fits || outputs <= PANEL_MIN_OUTPUTS) break;
    }
    while (worker_bytes(layout) > limit &&
           (layout->oc_split > layout->oc_block || pass->chunk > 1)) {
        if (layout->oc_split > layout->oc_block)
            conv_layout_split_outputs(layout, 2 * layout->oc_splits);
        else pass->chunk = (pass->chunk + 1) / 2;
    }
    const size_t results = size_mul(pass->batch * pass->to.item, pass->scalar_bytes);
    layout->past_caches = results > request->model->shared_bytes && sums_in_results(layout);
}

static void products_layout_at_offsets(const struct request *request, struct conv_layout *layout)
{
    layout->by_offsets = true;
    products_layout(request, layout);
}

static size_t products_count_work(const struct conv_layout *layout, struct ledger *ledger)
{
    struct work *work = &ledger->work;
    const struct conv_pass *pass = &layout->pass;
    const size_t row = pass->box.count[2], outputs = conv_pass_box_outputs(pass);
    const bool transposed = is_transposed(layout);
    // Boxes at the end of an axis are smaller: as many as their outputs make up.
    const double boxes = (double)pass->batch * (double)pass->axis[0].count *
                         (double)pass->axis[1].count * (double)pass->axis[2].count /
                         (double)outputs * (double)pass->groups;
    const double positions =
        (double)(layout->by_offsets ? pass->box.positions : conv_pass_vectors(pass, outputs));
    const double terms = (double)pass->in * (double)pass->terms;
    const double splits = (double)layout->oc_splits;
    const double out = (double)layout->out_padded;
    const double panels = ceil(terms / PANEL_TERMS);
    *(pass->pairs ? &work->pair : &work->fma) += boxes * terms * box_products(layout, transposed);
    // Sums are written, then read and written once for each further panel, and stored; taps are
    // read for each box. One clearing and reading of the sums more is counted than happens. Rows
    // are written once, but packing them waits for memory.
    const bool rows_written = layout->by_offsets && sums_in_results(layout);
    work->copy += boxes * (out * positions * (rows_written ? 1 : 2 + 2 * panels) + out * terms);
    if (rows_written) work->copy_far += boxes * (double)(pass->in * pass->box.channel);
    ledger->waits = layout->by_offsets && !rows_written;
    if (pass->channels_last && reads_array(layout))
        return layout->by_offsets ? pass->box.positions : panel_stride(pass);
    if (!reads_array(layout)) conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    // Rows are closed up in whole vectors.
    const double rows = (double)(outputs / row);
    if (!layout->by_offsets && !panel_is_packed(pass))
        work->copy += boxes * splits * terms * rows * (double)conv_pass_vectors(pass, row);
    if (transposed) work->copy += boxes * (splits * terms + 2 * out) * positions;
    return layout->by_offsets ? pass->box.positions : panel_stride(pass);
}

// The first result of a task, in the call's array.
static char *task_results(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t channel = task->group * pass->out + task->begin;
    return call->to +
           conv_pass_output_row(pass, &task->index, channel, 0, 0, 0) * pass->sample_bytes;
}

// Layers that are read in the array prefetch during the sums of n channels: the samples read next,
// and before that, with the last channels, the results of the next task if it adds to them, else
// of this one. Another worker may take the next task; its memory is shared.
static struct product_prefetch look_ahead(const struct conv_call *call,
                                          const struct conv_task *task, size_t index, size_t in,
                                          size_t n)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    struct product_prefetch prefetch = {.n = 0};
    if (!reads_array(layout)) return prefetch;
    const size_t from = task->group * pass->in;
    if (in + n < pass->in) {
        const size_t inputs[] = {from + in + n, size_min(pass->chunk, pass->in - in - n)};
        panel_prefetch(&prefetch, pass, &task->index, call->from, &pass->from, inputs);
        return prefetch;
    }
    const bool last = index + 1 >= conv_pass_boxes(pass) * layout->tasks;
    const struct conv_task next = conv_call_task(call, last ? index : index + 1);
    const struct conv_task *stored = sums_in_results(layout) ? &next : task;
    const size_t outputs[] = {stored->group * pass->out + stored->begin,
                              stored->end - stored->begin};
    const size_t inputs[] = {next.group * pass->in, pass->chunk};
    panel_prefetch(&prefetch, pass, &stored->index, call->to, &pass->to, outputs);
    // A split of the same box has read these samples before.
    if (!last && (next.begin == 0 || pass->chunk < pass->in))
        panel_prefetch(&prefetch, pass, &next.index, call->from, &pass->from, inputs);
    return prefetch;
}

// The matrix [term][position] of n channels from `in` on: in the array, or packed; with a panel it
// is the memory into which their terms are gathered. Kernels read whole vectors of positions, but
// not past the end of the array.
static struct product_matrix task_positions(const struct conv_call *call,
                                            const struct conv_task *task, size_t in, size_t n,
                                            const struct products_scratch *scratch)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes, step = pass->from.channel;
    const size_t channel = task->group * pass->in + in;
    const size_t first = task->index.item * pass->from.item + channel * step +
                         task->index.at[2] * pass->from.position;
    const size_t end = first + (n - 1) * step + conv_index_outputs(&task->index) + 2 * lanes;
    if (reads_array(call->layout) && (pass->channels_last || end <= pass->batch * pass->from.item))
        return (struct product_matrix){.at = call->from + first * pass->sample_bytes,
                                       .term = pass->pairs ? 1 : step,
                                       .step = pass->from.position / (pass->pairs ? 2 : 1)};
    conv_pass_pack(pass, &task->index, scratch->packed, call->from, channel, n);
    if (call->layout->by_offsets)
        return (struct product_matrix){.at = scratch->packed, .offset = call->layout->offset};
    if (scratch->panel)
        return (struct product_matrix){.at = scratch->panel, .term = panel_stride(pass)};
    return (struct product_matrix){.at = scratch->packed, .term = pass->box.channel};
}

// Whether the results are written past the caches: whole lines that are written once.
static bool stores_past_caches(const struct conv_call *call, const struct product *product)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_finish finish = filter_finish(call->filter, 0);
    return call->layout->past_caches && pass->chunk == pass->in &&
           product->terms <= product->segment && !finish.bias && !finish.relu &&
           ((uintptr_t)product->c | pass->to.channel * pass->scalar_bytes |
            pass->axis[2].count * pass->scalar_bytes) %
                   CONV_BLOCK_BYTES ==
               0;
}

// Rows of outputs, from the samples that the first one reads.
static void products_write_rows(const struct conv_call *call, const struct conv_task *task,
                                struct product *product)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t *count = task->index.count, *extent = pass->box.extent;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t whole = count[2] / lanes * lanes, rest = count[2] - lanes;
    const char *from = product->b.at;
    char *to = product->c;
    for (size_t row = 0; row < count[0] * count[1]; row++) {
        const size_t at = (row / count[1] * extent[1] + row % count[1]) * extent[2];
        product->b.at = from + at * bytes;
        product->c = to + row * count[2] * bytes;
        product->columns = whole;
        product_run(product);
        if (whole == count[2]) continue;
        // The last vector ends with the row: it computes some outputs once more.
        product->b.at += rest * bytes;
        product->c += rest * bytes;
        product->columns = lanes;
        product_run(product);
    }
}

// Adds the share of n channels from `in` on to the sums of all output channels of a task.
static void sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                      size_t n, const struct products_scratch *scratch,
                      const struct product_prefetch *prefetch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t terms = n * pass->terms, positions = conv_index_outputs(&task->index);
    const size_t channels =
        size_min(layout->out_padded, task->begin + layout->oc_split) - task->begin;
    const bool transposed = is_transposed(layout);
    const struct product_matrix x = task_positions(call, task, in, n, scratch);
    const struct panel_source packed = {call->plan->kernels, pass, &task->index, scratch->packed};
    struct product_matrix taps = {.at = conv_call_taps(call, task->group, task->begin, 0),
                                  .block = layout->oc_block,
                                  .pitch = layout->oc_block * pass->in * pass->terms,
                                  .first = in * pass->terms};
    const bool gathered = scratch->panel && x.at == scratch->panel;
    // With AVX2 half of a chunk crowds the sets of the L1 cache where it is read in place.
    const bool crowds = call->plan->isa == CPU_AVX2 && !pass->channels_last && reads_array(layout);
    struct product product = {.plan = call->plan,
                              .rows = channels,
                              .columns = layout->by_offsets ? pass->box.positions
                                                            : conv_pass_vectors(pass, positions),
                              .b = x,
                              .c = scratch->sums ? scratch->sums : task_results(call, task),
                              .c_step = scratch->sums ? sums_row(layout) : pass->to.channel,
                              .pairs = pass->pairs,
                              .segment = product_segment(call->plan, PANEL_TERMS),
                              .prefetch = prefetch};
    if (crowds) product.segment = ceil_div(PANEL_TERMS, 3);
    if (layout->by_offsets) product.segment = PRODUCT_TERMS;
    if (transposed) {
        product.rows = positions;
        product.columns = channels;
        product.a = x;
        product.next_b =
            conv_call_taps(call, task->group, task->begin, in + n < pass->in ? in + n : 0);
        product.c_pitch = layout->oc_block;
        if (!scratch->sums) product.c_step = pass->to.position;
    }
    // A panel holds PANEL_TERMS terms, of channels with more taps a part.
    for (size_t t = 0; t < terms; t += product.terms, taps.first += product.terms) {
        product.terms = gathered ? size_min(terms - t, PANEL_TERMS) : terms;
        if (gathered) panel_gather(&packed, scratch->panel, layout->offset + t, product.terms);
        product.add = in > 0 || t > 0;
        *(transposed ? &product.b : &product.a) = taps;
        if (transposed && scratch->groups)
            product.a =
                product_pack_rows(call->plan, &x, product.terms, positions, scratch->groups);
        product.past_caches = stores_past_caches(call, &product);
        if (layout->by_offsets && !scratch->sums) products_write_rows(call, task, &product);
        else product_run(&product);
    }
}

// Bias and activation for sums that are in the results, or of pairs in the workspace: rows of
// positions, or of channels.
static void finish_sums(const struct conv_call *call, const struct conv_task *task, char *sums)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const bool channels = pass->channels_last;
    const size_t out = task->end - task->begin, positions = conv_index_outputs(&task->index);
    const size_t first = task->group * pass->out + task->begin, n = channels ? out : positions;
    const size_t step = (channels ? pass->to.position : pass->to.channel) * pass->sample_bytes;
    char *y = task_results(call, task);
    for (size_t row = 0; row < (channels ? positions : out); row++, y += step) {
        struct conv_finish finish = filter_finish(call->filter, first + (channels ? 0 : row));
        char *at = sums ? sums + row * sums_row(layout) * pass->scalar_bytes : y;
        finish.each = channels && finish.bias;
        if (finish.bias || finish.relu) call->plan->kernels->conv_store(at, 1, at, n, &finish);
        else if (!sums) return;
        if (sums) plan_narrow(call->plan)(y, at, n);
    }
}

// Stores sums of the workspace in their rows.
static void products_store(const struct conv_call *call, const struct conv_task *task,
                           const struct products_scratch *scratch)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const bool transposed = is_transposed(layout);
    const size_t step = transposed ? layout->oc_block : task->end - task->begin;
    struct conv_planes from = {scratch->sums,
                               layout->by_offsets ? pass->box.extent : task->index.count, 0,
                               transposed ? panel_stride(pass) : sums_row(layout)};
    for (size_t first = task->begin; first < task->end; first += step) {
        from.n = size_min(task->end - first, step);
        if (transposed) {
            from.rows = scratch->columns;
            call->plan->kernels->transpose(
                scratch->columns, from.stride,
                scratch->sums + (first - task->begin) * pass->scalar_bytes, sums_row(layout),
                conv_index_outputs(&task->index), from.n);
        }
        conv_call_store(call, task, first, &from);
    }
}

// One task: one box of one group, or of a split of its output channels.
static void products_run_task(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const struct conv_task task = conv_call_task(call, index);
    struct arena arena = {.base = call->workspace + (size_t)worker * call->plan->choice.worker};
    const struct products_scratch scratch = take_scratch(layout, &arena);
    assert(arena.used <= call->plan->choice.worker);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        const size_t n = size_min(pass->chunk, pass->in - in);
        const struct product_prefetch prefetch = look_ahead(call, &task, index, in, n);
        sum_chunk(call, &task, in, n, &scratch, &prefetch);
    }
    if (!scratch.sums || !scratch.packed) finish_sums(call, &task, scratch.sums);
    else products_store(call, &task, &scratch);
    if (layout->past_caches) atomic_thread_fence(memory_order_seq_cst);
}

const struct conv_method products_by_panels = {.layout = products_layout,
                                               .count_work = products_count_work,
                                               .worker_bytes = worker_bytes,
                                               .run_task = products_run_task};
const struct conv_method products_at_offsets = {.layout = products_layout_at_offsets,
                                                .count_work = products_count_work,
                                                .worker_bytes = worker_bytes,
                                                .run_task = products_run_task};

static const struct conv_method *products_method(enum partita_direction direction,
                                                 const struct conv_method *method)
{
    return direction == PARTITA_BACKWARD_WEIGHT ? &products_weight : method;
}

void products_estimate(const struct request *request, const struct conv_method *method,
                       struct estimate *ret)
{
    if (!conv_passes_refuse(request, ret))
        conv_passes_estimate(request, products_method(request->direction, method), ret);
}

void *products_build(const struct partita_plan *plan, const struct request *request,
                     const struct conv_method *method, struct arena *arena)
{
    return conv_passes_build(plan, request, products_method(plan->direction, method), arena);
}

enum partita_status products_run(const struct partita_plan *plan,
                                 const struct partita_filter *filter,
                                 const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) products_weight_run(plan, operands, workspace);
    else conv_passes_run(plan, filter, operands, workspace);
    return PARTITA_OK;
}
