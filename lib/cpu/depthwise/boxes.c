// SPDX-License-Identifier: MIT
// cpu/depthwise tap by tap: passes (conv/pass.h) are computed box by box on planes that lie side by
// side. A box of inputs is packed, transposed. Forward and backward data sum row after row of
// outputs (kernels->lanes_conv); in backward weight each row of gy adds to a sum for each tap
// (kernels->lanes_weight).
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "depthwise.h"

// The taps of a pass in the order of their offsets in the packed box; adjacent taps form spans.
struct box_taps {
    size_t spans;
    size_t *order; // term of the pass at each index
    struct tap_span *span;
};

// Boxes of one image. Forward has one plane in and `multiplier` out for each channel, backward data
// the other way round: pass.in and pass.out. Half of the L2 cache is for packed planes, less where
// there are few tasks; but many small boxes would pack most samples several times. The other half
// of a tight limit is for a row of sums.
static void box_layout(const struct request *request, struct conv_layout *layout)
{
    const struct shape *shape = request->shape;
    struct conv_pass *pass = &layout->pass;
    const size_t tasks = shape->batch * depthwise_groups(shape), planes = pass->in;
    size_t packed = request->model->cache_bytes / 2;
    if (tasks < DEPTHWISE.min_tasks) packed /= 2;
    packed = size_min(packed, request->workspace_limit / 2);
    pass->in = pass->batch = 1;
    conv_pass_choose_box(pass, packed / planes / depthwise_width(shape));
    pass->in = planes;
    pass->groups = depthwise_groups(shape);
    layout->oc_split = layout->oc_block;
    layout->tasks = tasks;
}

static size_t packed_bytes(const struct conv_pass *pass)
{
    return size_mul(pass->box.channel, CONV_BLOCK_BYTES);
}

// Packed planes and a row of sums, or of gy.
static size_t box_worker_bytes(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    return size_add(size_mul(pass->in, packed_bytes(pass)),
                    size_mul(pass->box.count[2], CONV_BLOCK_BYTES));
}

static int compare_offsets(const void *a, const void *b)
{
    const struct tap_span *one = a, *other = b;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

// Replaces n single taps, ordered by offset, by even spans of contiguous taps; returns the
// number of spans, which are never ahead of the taps that are still to be read.
static size_t make_spans(struct tap_span *span, size_t n)
{
    size_t spans = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && span[end].offset == span[end - 1].offset + 1;) end++;
        const size_t stretches = ceil_div(end - i, MAX_SPAN_TAPS), offset = span[i].offset;
        for (size_t s = 0; s < stretches; s++, spans++) {
            const size_t first = (end - i) * s / stretches, last = (end - i) * (s + 1) / stretches;
            span[spans] = (struct tap_span){offset + first, last - first};
        }
    }
    return spans;
}

static void make_tables(struct conv_layout *layout, struct arena *arena)
{
    const size_t n = layout->pass.terms;
    struct box_taps *taps = arena_take(arena, sizeof *taps);
    size_t *order = arena_take(arena, size_mul(n, sizeof *order));
    struct tap_span *span = arena_take(arena, size_mul(n, sizeof *span));
    layout->tables = taps;
    if (!arena->base) return;
    conv_pass_offsets(&layout->pass, order, 1);
    for (size_t t = 0; t < n; t++) span[t] = (struct tap_span){order[t], t};
    size_t sorted = 1;
    while (sorted < n && order[sorted - 1] < order[sorted]) sorted++;
    if (sorted < n) qsort(span, n, sizeof *span, compare_offsets);
    for (size_t t = 0; t < n; t++) order[t] = span[t].taps;
    *taps = (struct box_taps){make_spans(span, n), order, span};
    assert(taps->spans > 0 && taps->spans <= n);
}

// Index of the first block of the taps of output j from input k of a group; one of both is 0.
static size_t weights_at(const struct conv_layout *layout, size_t group, size_t j, size_t k)
{
    const struct conv_pass *pass = &layout->pass;
    return layout->weights + (group * pass->in * pass->out + j * pass->in + k) * pass->terms;
}

struct packing {
    const struct depthwise_task *task;
    size_t plane;
    char *to;
};

static void pack_planes_row(void *context, const struct conv_row *row)
{
    const struct packing *packing = context;
    const struct conv_pass *pass = &packing->task->call->layout->pass;
    const struct conv_axis *axis = pass->axis;
    const struct depthwise_row from = {.plane = packing->plane,
                                       .row = row->row,
                                       .pitch = axis[1].step * axis[2].size,
                                       .size = axis[2].size,
                                       .step = axis[2].step,
                                       .n = pass->box.extent[2],
                                       .first = row->first};
    char *to = packing->to + row->to * CONV_BLOCK_BYTES;
    if (row->zero) memset(to, 0, from.n * CONV_BLOCK_BYTES);
    else depthwise_read(packing->task, to, &from);
}

static void pack_box(const struct depthwise_task *task, size_t j)
{
    const struct conv_pass *pass = &task->call->layout->pass;
    for (size_t k = 0; k < pass->in && j == 0; k++) {
        struct packing packing = {task, k, task->memory + k * packed_bytes(pass)};
        conv_pass_each_row(pass, &task->index, pack_planes_row, &packing);
    }
}

// The packed samples of a plane that row i of the outputs reads.
static const char *packed_row(const struct depthwise_task *task, size_t plane, size_t i)
{
    const struct conv_pass *pass = &task->call->layout->pass;
    const size_t n_h = task->index.count[1];
    const size_t row = i / n_h * pass->box.extent[1] + i % n_h;
    return task->memory + plane * packed_bytes(pass) + row * pass->box.extent[2] * CONV_BLOCK_BYTES;
}

// The worker's memory after the packed planes: a row; then in backward weight the sums.
static char *row_memory(const struct depthwise_task *task)
{
    const struct conv_pass *pass = &task->call->layout->pass;
    return task->memory + pass->in * packed_bytes(pass);
}

static char *sums_memory(const struct depthwise_task *task)
{
    return task->memory + box_worker_bytes(task->call->layout);
}

static char *sum_row(const struct depthwise_task *task, size_t j, size_t i)
{
    const struct depthwise_call *call = task->call;
    const struct box_taps *taps = call->layout->tables;
    const size_t n = task->index.count[2];
    char *sums = row_memory(task);
    memset(sums, 0, n * CONV_BLOCK_BYTES);
    for (size_t k = 0; k < call->layout->pass.in; k++) {
        const char *x = packed_row(task, k, i);
        const char *w = (const char *)call->filter->state +
                        weights_at(call->layout, task->group, j, k) * CONV_BLOCK_BYTES;
        for (size_t s = 0; s < taps->spans; s += DEPTHWISE.max_spans) {
            const size_t spans = size_min(taps->spans - s, DEPTHWISE.max_spans);
            call->plan->kernels->lanes_conv(sums, x, w, taps->span + s, spans, n);
            for (size_t r = s; r < s + spans; r++) w += taps->span[r].taps * CONV_BLOCK_BYTES;
        }
    }
    return sums;
}

static void add_box(const struct depthwise_task *task, size_t j, bool first)
{
    const struct conv_layout *layout = task->call->layout;
    const struct box_taps *taps = layout->tables;
    const size_t rows = task->index.count[0] * task->index.count[1];
    char *gy = row_memory(task), *sums = sums_memory(task);
    if (first) memset(sums, 0, layout->pass.terms * CONV_BLOCK_BYTES);
    pack_box(task, 0);
    for (size_t i = 0; i < rows; i++) {
        depthwise_read_gy(task, j, i, gy);
        task->call->plan->kernels->lanes_weight(sums, gy, packed_row(task, 0, i), taps->span,
                                                taps->spans, task->index.count[2]);
    }
}

static void order_sums(const struct depthwise_task *task, char *gradient)
{
    const struct conv_pass *pass = &task->call->layout->pass;
    const struct box_taps *taps = task->call->layout->tables;
    for (size_t t = 0; t < pass->terms; t++)
        memcpy(gradient + conv_pass_tap(pass, taps->order[t]) * CONV_BLOCK_BYTES,
               sums_memory(task) + t * CONV_BLOCK_BYTES, CONV_BLOCK_BYTES);
}

static const struct depthwise_sums sums_by_taps = {pack_box, sum_row, add_box, order_sums};

static void run_pass_box(void *context, size_t i, int worker)
{
    const struct conv_call *pass = context;
    struct depthwise_call call = {.plan = pass->plan,
                                  .filter = pass->filter,
                                  .from = pass->from,
                                  .to = pass->to,
                                  .workers = pass->workspace,
                                  .far = depthwise_far(&pass->plan->shape),
                                  .sums = &sums_by_taps,
                                  .layout = pass->layout};
    depthwise_run_task(&call, i, worker);
}

static const struct conv_method box_method = {.layout = box_layout,
                                              .make_tables = make_tables,
                                              .worker_bytes = box_worker_bytes,
                                              .run_task = run_pass_box};

static void boxes_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t taps = shape_taps(shape);
    if (conv_passes_refuse(request, ret)) return;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const bool data = request->direction == PARTITA_BACKWARD_DATA;
    const double multiplier = (double)depthwise_multiplier(shape);
    const double lanes = depthwise_all_lanes(shape);
    double moved = 0, rows = 0;
    struct conv_class class[CONV_MAX_CLASSES];
    const size_t classes = conv_pass_classes(shape, request->direction, class);
    for (size_t k = 0; k < classes; k++) {
        struct conv_layout layout;
        if (!conv_layout_make(request, &box_method, class[k].first, &layout)) continue;
        const struct conv_pass *pass = &layout.pass;
        const double n = (double)class[k].n * lanes, boxes = (double)conv_pass_boxes(pass);
        const double lines = (double)(pass->axis[0].count * pass->axis[1].count);
        const double reads = boxes * (double)conv_pass_rows(pass) * (double)pass->box.extent[2];
        const double writes = lines * (double)pass->axis[2].count;
        const double rows_of_taps = (double)(pass->terms / pass->axis[2].taps);
        moved += n * (data ? reads * multiplier + writes : reads + writes * multiplier);
        rows += n * lines * (double)pass->box.boxes[2] * rows_of_taps * multiplier;
        ret->hop = conv_pass_box_outputs(pass);
        ret->worker = size_max(ret->worker, box_worker_bytes(&layout));
        ret->error = conv_cost_error(shape, (double)shape->batch * (double)shape_outputs(shape),
                                     (double)pass->box.count[2]);
        const size_t sums = size_mul(pass->terms, CONV_BLOCK_BYTES);
        if (weight)
            depthwise_split_memory(
                request, size_add(box_worker_bytes(&layout), sums), depthwise_groups(shape),
                size_mul(depthwise_last_sets(shape), conv_pass_boxes(pass)), ret);
    }
    const double error = ret->error;
    const size_t blocks = size_mul(depthwise_groups(shape), size_mul(taps, shape->group_out));
    bool strided = false;
    for (int i = 0; i < shape->rank; i++) strided |= !data && shape->axis[i].stride > 1;
    const double products = (double)taps * (double)shape_outputs(shape) * multiplier * lanes;
    // Samples are copied and transposed, those of 16 bits also converted; a row of taps loads and
    // stores a row of sums. Loads are the bound with a stride, and in backward weight.
    struct ledger ledger = {
        .work = {.copy = (shape->half ? 3 : 2) * moved, .sum = rows},
        .filter = {.pack = weight ? 0 : (double)blocks * (double)depthwise_width(shape)}};
    if (strided) ledger.work.two_loads = products;
    else *(weight ? &ledger.work.one_load : &ledger.work.fma) = products;
    conv_cost_estimate(request, (double)taps, &ledger, ret);
    ret->error = error;
    ret->spread = weight;
    if (weight) return;
    const double terms = fmin((double)taps, (double)(DEPTHWISE.max_spans * MAX_SPAN_TAPS));
    ret->error = conv_cost_error(shape, (double)taps, data ? terms * multiplier : terms);
    ret->bytes = size_add(ret->worker, size_mul(blocks, CONV_BLOCK_BYTES));
}

static void *boxes_build(const struct partita_plan *plan, const struct request *request,
                         struct arena *arena)
{
    if (plan->direction != PARTITA_BACKWARD_WEIGHT)
        return conv_passes_build(plan, request, &box_method, arena);
    struct conv_layout made, *layout = arena_take(arena, sizeof *layout);
    const bool fits = conv_layout_make(request, &box_method, 0, &made);
    assert(fits);
    (void)fits;
    make_tables(&made, arena);
    if (arena->base) *layout = made;
    return layout;
}

static struct filter_bytes boxes_filter_bytes(const struct partita_plan *plan)
{
    const struct conv_passes *passes = plan->state;
    return (struct filter_bytes){.packed = size_mul(passes->taps, CONV_BLOCK_BYTES)};
}

// Packs the taps of output j from input k of a group.
static void pack_planes_taps(struct partita_filter *filter, const struct conv_layout *layout,
                             size_t group, size_t j, size_t k, const char *taps)
{
    const struct shape *shape = &filter->plan->shape;
    const struct box_taps *order = layout->tables;
    const size_t bytes = shape->scalar_bytes, path = shape_taps(shape);
    const size_t at = weights_at(layout, group, j, k), n = layout->pass.terms;
    char *to = (char *)filter->state + at * CONV_BLOCK_BYTES;
    assert(at + n <= ((const struct conv_passes *)filter->plan->state)->taps);
    for (size_t t = 0; t < n; t++, to += CONV_BLOCK_BYTES) {
        const size_t tap = (j + k) * path + conv_pass_tap(&layout->pass, order->order[t]);
        depthwise_copy_lanes(shape, group, to, taps + tap * bytes,
                             depthwise_multiplier(shape) * path);
    }
}

static void boxes_filter_pack(struct partita_filter *filter, const void *taps, void *scratch)
{
    const struct partita_plan *plan = filter->plan;
    struct conv_layout layout;
    (void)scratch;
    for (bool more = conv_passes_first(plan, &layout); more; more = conv_passes_next(plan, &layout))
        for (size_t g = 0; g < depthwise_groups(&plan->shape); g++)
            for (size_t j = 0; j < layout.pass.out; j++)
                for (size_t k = 0; k < layout.pass.in; k++)
                    pack_planes_taps(filter, &layout, g, j, k, taps);
}

static void boxes_run(struct depthwise_call *call)
{
    if (call->filter) conv_passes_run(call->plan, call->filter, call->operands, call->workers);
    else depthwise_sum(call, &sums_by_taps);
}

const struct depthwise_method depthwise_boxes = {.estimate = boxes_estimate,
                                                 .build = boxes_build,
                                                 .filter_bytes = boxes_filter_bytes,
                                                 .filter_pack = boxes_filter_pack,
                                                 .run = boxes_run};
