// SPDX-License-Identifier: MIT
#include "passes.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "finish.h"
#include "geometry/samples.h"
#include "product/split_k.h"

enum {
    MAX_PASSES = 1 << 16, // of backward data
    MAX_TAPS = 1 << 24,   // of one path
    // Input channels whose taps, of a block of output channels, stay in the L1 cache.
    CONV_PACK_CHANNELS = 16,
    MIN_SHARED_TAPS = 1 << 14, // of a pass: packed sooner than a second thread starts
};

bool conv_layout_make(const struct request *request, const struct conv_method *method, size_t i,
                      struct conv_layout *ret)
{
    *ret = (struct conv_layout){.oc_splits = 1, .oc_block = CONV_CHANNELS, .k_splits = 1};
    if (!conv_pass_make(request->shape, request->direction, i, &ret->pass)) return false;
    ret->out_padded = ret->pass.out;
    method->layout(request, ret);
    if (!ret->tasks) ret->tasks = ret->pass.groups * ret->oc_splits;
    assert(ret->oc_split % ret->oc_block == 0);
    assert((ret->oc_splits - 1) * ret->oc_split < ret->pass.out);
    assert(ret->pass.chunk > 0 && ret->pass.chunk <= ret->pass.in);
    return true;
}

static size_t conv_layout_taps(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    return size_mul(size_mul(pass->groups * layout->out_padded, pass->in), pass->terms);
}

bool conv_passes_refuse(const struct request *request, struct estimate *ret)
{
    const size_t taps = shape_taps(request->shape);
    const size_t passes = conv_pass_count(request->shape, request->direction);
    if (taps > MAX_TAPS)
        estimate_refuse(ret, "stores every tap: %d at most, not %zu", MAX_TAPS, taps);
    else if (passes > MAX_PASSES)
        estimate_refuse(ret, "stride and kernel make %zu sub-problems; at most %d", passes,
                        MAX_PASSES);
    return taps > MAX_TAPS || passes > MAX_PASSES;
}

void conv_passes_estimate(const struct request *request, const struct conv_method *method,
                          struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const bool forward = request->direction == PARTITA_FORWARD;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    struct ledger ledger = {.waits = false};
    size_t taps = 0;
    struct conv_class class[CONV_MAX_CLASSES];
    const size_t classes = conv_pass_classes(shape, request->direction, class);
    for (size_t k = 0; k < classes; k++) {
        struct conv_layout layout;
        struct ledger one = {.waits = false};
        if (!conv_layout_make(request, method, class[k].first, &layout)) continue;
        ret->hop = method->count_work(&layout, &one);
        work_add(&ledger.work, &one.work, (double)class[k].n);
        ledger.waits |= one.waits;
        if (layout.pass.pairs) ret->pair_row = (forward ? 1 : shape->group_in) * shape_taps(shape);
        ret->worker = size_max(ret->worker, method->worker_bytes(&layout));
        ret->shared = (layout.k_splits - 1) * split_k_bytes(shape);
        if (!weight) taps = size_add(taps, size_mul(class[k].n, conv_layout_taps(&layout)));
    }
    double terms =
        (double)(forward ? shape->group_in : shape->group_out) * (double)shape_taps(shape);
    if (weight) terms = (double)shape->batch * (double)shape_outputs(shape);
    ledger.filter.gather = (double)taps;
    conv_cost_estimate(request, terms, &ledger, ret);
    // Zeros beyond the rows of x are multiplied by samples of gy.
    if (weight) ret->spread = 1;
    ret->bytes = size_add(ret->worker + ret->shared, size_mul(taps, shape->scalar_bytes));
}

void conv_layout_split_outputs(struct conv_layout *layout, size_t splits)
{
    const size_t blocks = ceil_div(layout->pass.out, layout->oc_block);
    layout->oc_split = ceil_div(blocks, splits) * layout->oc_block;
    layout->oc_splits = ceil_div(layout->pass.out, layout->oc_split);
}

static void conv_layout_make_offsets(struct conv_layout *layout, bool by_tap, struct arena *arena)
{
    const struct conv_pass *pass = &layout->pass;
    layout->offset =
        arena_take(arena, size_mul(size_mul(pass->chunk, pass->terms), sizeof *layout->offset));
    if (arena->base && by_tap) conv_pass_offsets_by_tap(pass, layout->offset, pass->chunk);
    else if (arena->base) conv_pass_offsets(pass, layout->offset, pass->chunk);
}

// Number of parts of the batch that go through all passes, one part after the other; 0: each pass
// is computed for the whole batch. The phases of a stride write to the same cache lines of the
// results, which then stay in a cache from pass to pass. A part is the items of one box, the same
// ones in each pass: no two threads write to the same item. The taps of all passes must take at
// most half of the memory of a part's results, for each part reads them again.
static size_t conv_passes_parts(const struct partita_plan *plan, const struct conv_passes *passes,
                                size_t made)
{
    enum { PARTS_A_THREAD = 4 };
    const struct shape *shape = &plan->shape;
    const size_t threads = (size_t)plan->threads;
    if (plan->direction != PARTITA_BACKWARD_DATA || !made || (made == 1 && passes->covers))
        return 0;
    const struct conv_pass *first = &passes->layout[0].pass;
    for (size_t k = 0; k < passes->n; k++) {
        const struct conv_pass *pass = &passes->layout[k].pass;
        if (pass->box.images != first->box.images || pass->batch != first->batch) return 0;
    }
    const size_t parts = first->box.image_boxes;
    const size_t results = shape_samples(shape, false) / parts;
    if (made > 1 && 2 * passes->taps > results) return 0;
    if (threads == 1) return parts > 1 ? parts : 0;
    // Threads finish together if each computes many parts, and about as many as the others.
    const size_t even = ceil_div(parts, threads) * threads;
    return parts >= PARTS_A_THREAD * threads && 10 * even <= 11 * parts ? parts : 0;
}

void *conv_passes_build(const struct partita_plan *plan, const struct request *request,
                        const struct conv_method *method, struct arena *arena)
{
    struct conv_class class[CONV_MAX_CLASSES];
    const size_t classes = conv_pass_classes(request->shape, request->direction, class);
    struct conv_passes *passes = arena_take(arena, sizeof *passes);
    struct conv_layout *list = arena_take(arena, classes * sizeof *list);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    size_t n = 0, made = 0, taps = 0;
    for (size_t k = 0; k < classes; k++) {
        struct conv_layout layout;
        if (!conv_layout_make(request, method, class[k].first, &layout)) continue;
        made += class[k].n;
        taps = size_add(taps, size_mul(class[k].n, conv_layout_taps(&layout)));
        if (method->make_tables) method->make_tables(&layout, arena);
        else conv_layout_make_offsets(&layout, weight, arena);
        if (!arena->base) continue;
        layout.index = class[k].first;
        list[n++] = layout;
    }
    const bool covers = conv_pass_covers(request->shape, request->direction, made);
    if (!arena->base) return passes;
    const size_t count = conv_pass_count(request->shape, request->direction);
    *passes = (struct conv_passes){method, n, count, covers, list, taps, 0};
    passes->parts = conv_passes_parts(plan, passes, made);
    return passes;
}

void conv_layout_set_plan(struct conv_layout *layout, const struct partita_plan *plan)
{
    layout->pass.plan = plan;
    layout->pass.sample_bytes = shape_alignment(&plan->shape);
    layout->pairs = layout->pairs && plan->shape.half; // or the call is repeated in f32
}

bool conv_passes_first(const struct partita_plan *plan, struct conv_layout *ret)
{
    const struct conv_passes *passes = plan->state;
    if (!passes->n) return false;
    *ret = passes->layout[0];
    conv_layout_set_plan(ret, plan);
    return true;
}

bool conv_passes_next(const struct partita_plan *plan, struct conv_layout *layout)
{
    const struct conv_passes *passes = plan->state;
    const size_t weights = layout->weights + conv_layout_taps(layout);
    for (size_t i = layout->index + 1; i < passes->count; i++) {
        const struct conv_layout *class = passes->layout;
        struct conv_pass pass;
        if (!conv_pass_make(&plan->shape, plan->direction, i, &pass)) continue;
        while (!conv_pass_same_class(&class->pass, &pass)) class ++;
        assert(class < passes->layout + passes->n);
        *layout = *class;
        memcpy(layout->pass.axis, pass.axis, sizeof pass.axis);
        layout->index = i;
        layout->weights = weights;
        conv_layout_set_plan(layout, plan);
        return true;
    }
    return false;
}

// Data for packing the taps of one pass.
struct conv_pack {
    const struct partita_plan *plan;
    const struct conv_layout *layout;
    char *state;
    const char *taps;
};

// Taps of one block of output channels of one group: [in][term][channel of the block].
static void conv_pack_block(const struct conv_pack *pack, size_t group, size_t first)
{
    const struct conv_layout *layout = pack->layout;
    const struct conv_pass *pass = &layout->pass;
    const bool forward = pack->plan->direction == PARTITA_FORWARD;
    const size_t bytes = pass->scalar_bytes, path_taps = shape_taps(&pack->plan->shape);
    const size_t width = conv_layout_block_width(layout, first);
    const size_t n = size_min(pass->out - first, width);
    const size_t next_in = forward ? 1 : pass->out, next_out = forward ? pass->in : 1; // in paths
    const size_t path = group * pass->out * pass->in + first * next_out;
    const size_t row = pass->in * pass->terms; // of a channel
    char *to = pack->state + conv_layout_block_at(layout, group, first) * bytes;
    const char *from = pack->taps + path * path_taps * bytes;
    if (n < width) memset(to, 0, row * width * bytes);
    // Terms follow one another as the caller's taps do.
    if (forward && (!pass->flip || pass->terms == 1)) {
        pack->plan->kernels->transpose(to, width, from, row, n, row);
        return;
    }
    for (size_t first_in = 0; first_in < pass->in; first_in += CONV_PACK_CHANNELS)
        for (size_t term = 0; term < pass->terms; term++) {
            const size_t tap = conv_pass_tap(pass, term);
            const size_t end = size_min(pass->in, first_in + CONV_PACK_CHANNELS);
            for (size_t c = first_in; c < end; c++)
                samples_copy(to + (c * pass->terms + term) * width * bytes, 1,
                             from + (c * next_in * path_taps + tap) * bytes, next_out * path_taps,
                             n, bytes);
        }
}

static void conv_pack_task(void *context, size_t index, int worker)
{
    const struct conv_pack *pack = context;
    const size_t blocks = ceil_div(pack->layout->pass.out, pack->layout->oc_block);
    (void)worker;
    conv_pack_block(pack, index / blocks, index % blocks * pack->layout->oc_block);
}

struct filter_bytes conv_passes_filter_bytes(const struct partita_plan *plan)
{
    const struct conv_passes *passes = plan->state;
    return (struct filter_bytes){.packed = size_mul(passes->taps, plan->shape.scalar_bytes)};
}

enum partita_status conv_passes_filter_pack(struct partita_filter *filter, const void *taps,
                                            const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct conv_passes *passes = plan->state;
    struct conv_layout layout;
    (void)scratch;
    (void)passes; // for the assertion
    for (bool more = conv_passes_first(plan, &layout); more;
         more = conv_passes_next(plan, &layout)) {
        const struct conv_pass *pass = &layout.pass;
        const size_t all = conv_layout_taps(&layout);
        assert(layout.weights + all <= passes->taps);
        struct conv_pack pack = {plan, &layout, filter->state, taps};
        thread_loop(all < MIN_SHARED_TAPS ? 1 : plan->threads,
                    pass->groups * ceil_div(pass->out, layout.oc_block), conv_pack_task, &pack);
    }
    return PARTITA_OK;
}

// A row of results of adjacent channels, counted over all groups.
static void conv_call_store_channels(const struct conv_call *call, char *to,
                                     const struct sample_rows *from, size_t channel)
{
    for (size_t k = 0; k < from->channels; k++) {
        char *row = from->rows + k * from->stride * call->layout->pass.scalar_bytes;
        const struct conv_finish finish = filter_finish(call->filter, channel + k);
        if (finish.bias || finish.relu)
            call->plan->kernels->conv_store(row, 1, row, from->n, &finish);
    }
    samples_move(call->plan, from, to, true);
}

void conv_call_store(const struct conv_call *call, const struct conv_task *task, size_t channel,
                     const struct conv_planes *from)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_axis *axis = pass->axis;
    const struct conv_index *index = &task->index;
    const size_t *extent = from->extent, bytes = pass->scalar_bytes;
    const size_t first = task->group * pass->out + channel;
    const size_t adjacent = pass->channels_last ? from->n : 1;
    const bool scalars = !pass->channels_last && pass->sample_bytes == bytes;
    size_t n_h = index->count[1], n_w = index->count[2];
    // Rows that are contiguous on both sides are one.
    if (axis[1].spread == 1 && axis[2].spread == 1 && n_w == axis[2].out_size && n_w == extent[2]) {
        n_w *= n_h;
        n_h = 1;
    }
    for (size_t k = 0; k < from->n; k += adjacent) {
        const struct conv_finish finish = filter_finish(call->filter, first + k);
        for (size_t i = 0; i < index->items * index->count[0] * n_h; i++) {
            const size_t h = i % n_h, d = i / n_h % index->count[0];
            const size_t n = i / n_h / index->count[0];
            const size_t in = ((n * extent[0] + d) * extent[1] + h) * extent[2];
            char *sums = from->rows + (k * from->stride + in) * bytes;
            char *to = call->to +
                       conv_pass_output_row(pass, index, first + k, n, d, h) * pass->sample_bytes;
            const struct sample_rows row = {sums, adjacent, from->stride,
                                            axis[2].spread * pass->to.position, n_w};
            if (scalars) call->plan->kernels->conv_store(to, row.step, sums, n_w, &finish);
            else conv_call_store_channels(call, to, &row, first + k);
        }
    }
}

struct conv_task conv_call_task(const struct conv_call *call, size_t task)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t begin = task % layout->oc_splits * layout->oc_split;
    const size_t box = task / layout->oc_splits / pass->groups;
    return (struct conv_task){.index = conv_pass_index(pass, box),
                              .group = task / layout->oc_splits % pass->groups,
                              .begin = begin,
                              .end = size_min(pass->out, begin + layout->oc_split)};
}

// All passes of one part of the batch, or of the whole batch with all threads, of a call but for
// the layout. Outputs that belong to no pass become 0.
static void conv_passes_run_part(void *context, size_t part, int worker)
{
    struct conv_call call = *(const struct conv_call *)context;
    const struct partita_plan *plan = call.plan;
    const struct shape *shape = &plan->shape;
    const struct conv_passes *passes = plan->state;
    const size_t item = shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
    const size_t images = passes->parts ? passes->layout->pass.box.images : shape->batch;
    struct conv_layout layout;
    call.layout = &layout;
    if (!passes->covers)
        memset(call.to + part * images * item, 0,
               size_min(images, shape->batch - part * images) * item);
    for (bool more = conv_passes_first(plan, &layout); more;
         more = conv_passes_next(plan, &layout)) {
        const size_t tasks = conv_pass_boxes(&layout.pass) * layout.tasks;
        assert(passes->method->worker_bytes(&layout) <= plan->choice.worker);
        if (!passes->parts) thread_loop(plan->threads, tasks, passes->method->run_task, &call);
        for (size_t i = 0; passes->parts && i < tasks / passes->parts; i++)
            passes->method->run_task(&call, tasks / passes->parts * part + i, worker);
    }
}

void conv_passes_run(const struct partita_plan *plan, const struct partita_filter *filter,
                     const struct operands *operands, void *workspace)
{
    const struct conv_passes *passes = plan->state;
    struct conv_call call = {.plan = plan,
                             .filter = filter,
                             .to = operands->to,
                             .from = operands->from[0],
                             .workspace = workspace};
    if (passes->parts) thread_loop(plan->threads, passes->parts, conv_passes_run_part, &call);
    else conv_passes_run_part(&call, 0, 0);
}
