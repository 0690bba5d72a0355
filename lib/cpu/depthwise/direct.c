// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise tap by tap: passes (conv/pass.h) are computed box by
// box on planes that lie side by side. A task packs a box of its planes, transposed, sums row after
// row of outputs (kernels->lanes_conv) and transposes them back with bias and activation. Boxes are
// chosen by shape alone and an output's sum has one order, so bits do not depend on the number of
// threads.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "depthwise.h"

// A pass of one image. Forward has one plane in and `multiplier` out for each channel, backward
// data the other way round: pass.in and pass.out. Half of the L2 cache is for packed planes, less
// where there are few boxes; but many small ones would pack most samples several times. The other
// half of a tight limit is for a row of sums.
static void depthwise_layout(const struct request *request, struct conv_layout *layout)
{
    const struct shape *shape = request->shape;
    struct conv_pass *pass = &layout->pass;
    const size_t tasks = depthwise_tasks(shape), planes = pass->in;
    size_t packed = request->model->cache_bytes / 2;
    if (tasks < DEPTHWISE.min_tasks) packed /= 2;
    packed = size_min(packed, request->workspace_limit / 2);
    const struct conv_box_limits limits = {.max_positions = SIZE_MAX,
                                           .max_bytes = packed / planes / depthwise_width(shape),
                                           .tasks = 1};
    pass->in = pass->batch = 1;
    conv_pass_choose_box(pass, &limits);
    pass->in = planes;
    pass->groups = depthwise_groups(shape);
    layout->oc_split = layout->oc_block;
    layout->tasks = tasks;
}

static size_t depthwise_worker_bytes(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    return size_add(size_mul(pass->in, depthwise_packed_bytes(pass)),
                    size_mul(pass->box.count[2], CONV_BLOCK_BYTES));
}

static void make_tables(struct conv_layout *layout, struct arena *arena)
{
    struct depthwise_taps taps, *tables = arena_take(arena, sizeof taps);
    depthwise_make_taps(&layout->pass, &taps, arena);
    if (arena->base) *tables = taps;
    layout->tables = tables;
}

// Index of the first block of the taps of output or input j of a group.
static size_t weights_at(const struct conv_layout *layout, size_t group, size_t j)
{
    const size_t multiplier = layout->pass.in * layout->pass.out;
    return layout->weights + (group * multiplier + j) * layout->pass.terms;
}

// A row of n sums of one packed plane and one output's taps.
static void sum_row(const struct conv_call *call, char *sums, const char *packed, size_t weights,
                    size_t n)
{
    const struct depthwise_taps *taps = call->layout->tables;
    const char *w = (const char *)call->filter->state + weights * CONV_BLOCK_BYTES;
    for (size_t s = 0; s < taps->spans; s += DEPTHWISE.max_spans) {
        const size_t spans = size_min(taps->spans - s, DEPTHWISE.max_spans);
        call->plan->kernels->lanes_conv(sums, packed, w, taps->span + s, spans, n);
        for (size_t i = 0; i < spans; i++) w += taps->span[s + i].taps * CONV_BLOCK_BYTES;
    }
}

// One task: one box of the planes of one group and set.
struct box_task {
    struct conv_index index;
    size_t group;
    struct depthwise_lanes in, out;
    // Of the next task, if its box is the whole map; no lanes where prefetching does not pay.
    struct depthwise_lanes next_in, next_out;
    char *packed, *sums;
};

// One of equal shares of planes, with samples of so many bytes.
struct share {
    size_t row, rows, bytes;
    bool write;
};

// Prefetches a share of planes of so many samples. Planes that follow one another are one, so that
// no line is prefetched twice.
static void prefetch_share(const struct depthwise_lanes *lanes, const char *planes, size_t plane,
                           const struct share *share)
{
    const size_t n = lanes->used;
    if (n == 0) return;
    const bool adjacent =
        lanes->strides.position == 1 && lanes->first[n - 1] - lanes->first[0] == (n - 1) * plane;
    const struct depthwise_lanes one = {
        .used = 1, .first = {lanes->first[0]}, .strides = lanes->strides};
    const size_t samples = adjacent ? n * plane : plane;
    depthwise_prefetch(adjacent ? &one : lanes, planes, share->bytes,
                       share->row * samples / share->rows, (share->row + 1) * samples / share->rows,
                       share->write);
}

// The part that a row of outputs prefetches of the reads and writes of the next task.
static void prefetch_next(const struct conv_call *call, const struct box_task *box, size_t row)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_axis *axis = pass->axis;
    const size_t rows = box->index.count[0] * box->index.count[1], bytes = pass->scalar_bytes;
    const size_t in = axis[0].size * axis[1].size * axis[2].size;
    const size_t out = axis[0].out_size * axis[1].out_size * axis[2].out_size;
    prefetch_share(&box->next_in, call->from, in, &(struct share){row, rows, bytes, false});
    prefetch_share(&box->next_out, call->to, out, &(struct share){row, rows, bytes, true});
}

// Computes the rows of output plane j of each channel.
static void sum_plane(const struct conv_call *call, const struct box_task *box, size_t j)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_axis *axis = pass->axis;
    const struct conv_index *index = &box->index;
    const bool forward = call->plan->direction == PARTITA_FORWARD;
    const size_t n_h = index->count[1], n = index->count[2];
    const bool apart = depthwise_apart(&call->plan->shape);
    const struct depthwise_box outputs = {pass, *index, j};
    _Alignas(CONV_BLOCK_BYTES) char bias[CONV_BLOCK_BYTES];
    const struct conv_finish finish = depthwise_finish(call->filter, box->group, j, bias);
    for (size_t i = 0; i < index->count[0] * n_h; i++) {
        const size_t d = i / n_h, h = i % n_h;
        const struct depthwise_row row = {.plane = j,
                                          .row = conv_pass_output_sample(pass, index, d, h),
                                          .step = axis[2].spread,
                                          .n = n};
        const char *in = depthwise_packed_row(pass, box->packed, d, h);
        if (j == 0) prefetch_next(call, box, i);
        if (apart) depthwise_prefetch_row(&outputs, &box->out, call->to, i + DEPTHWISE.ahead, true);
        memset(box->sums, 0, n * CONV_BLOCK_BYTES);
        for (size_t k = 0; k < pass->in; k++)
            sum_row(call, box->sums, in + k * depthwise_packed_bytes(pass),
                    weights_at(call->layout, box->group, forward ? j : k), n);
        depthwise_write(call->plan, &box->out, call->to, box->sums, &row, &finish);
    }
}

static void run_box(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct conv_pass *pass = &call->layout->pass;
    const size_t boxes = conv_pass_boxes(pass), task = index / boxes;
    const bool data = call->plan->direction == PARTITA_BACKWARD_DATA;
    struct box_task box = {.index = conv_pass_index(pass, index % boxes),
                           .group = depthwise_task(shape, task).group,
                           .in = depthwise_task_lanes(shape, task, data),
                           .out = depthwise_task_lanes(shape, task, !data)};
    const bool next = boxes == 1 && !depthwise_apart(shape);
    if (next && depthwise_array_bytes(shape) > DEPTHWISE.near_bytes)
        box.next_in = depthwise_task_lanes(shape, task + 1, data);
    if (next && depthwise_array_bytes(shape) > DEPTHWISE.far_bytes)
        box.next_out = depthwise_task_lanes(shape, task + 1, !data);
    box.packed = call->workspace + (size_t)worker * call->plan->choice.worker;
    box.sums = box.packed + pass->in * depthwise_packed_bytes(pass);
    for (size_t k = 0; k < pass->in; k++)
        depthwise_pack(call->plan, &(struct depthwise_box){pass, box.index, k}, &box.in,
                       box.packed + k * depthwise_packed_bytes(pass), call->from);
    for (size_t j = 0; j < pass->out; j++) sum_plane(call, &box, j);
}

static const struct conv_method direct_method = {.layout = depthwise_layout,
                                                 .make_tables = make_tables,
                                                 .worker_bytes = depthwise_worker_bytes,
                                                 .run_task = run_box};

void depthwise_direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t passes = conv_pass_count(shape, request->direction), taps = shape_taps(shape);
    if (passes > DEPTHWISE.max_passes || taps > DEPTHWISE.max_taps) {
        estimate_refuse(ret, "%zu taps in %zu sub-problems; at most %zu in %zu", taps, passes,
                        DEPTHWISE.max_taps, DEPTHWISE.max_passes);
        return;
    }
    double reads = 0, writes = 0, rows = 0;
    struct conv_class class[CONV_MAX_CLASSES];
    const size_t classes = conv_pass_classes(shape, request->direction, class);
    for (size_t k = 0; k < classes; k++) {
        struct conv_layout layout;
        const struct conv_pass *pass = &layout.pass;
        const struct conv_axis *axis = pass->axis;
        if (!conv_layout_make(request, &direct_method, class[k].first, &layout)) continue;
        const double n = (double)class[k].n, boxes = (double)conv_pass_boxes(pass);
        const double lines = (double)axis[0].count * (double)axis[1].count;
        reads += n * boxes * (double)conv_pass_rows(pass) * (double)pass->box.extent[2];
        writes += n * lines * (double)axis[2].count;
        rows += n * lines * (double)axis[2].kernel;
        ret->worker = size_max(ret->worker, depthwise_worker_bytes(&layout));
        ret->hop = conv_pass_box_outputs(pass);
    }
    const double scalars = (double)(depthwise_groups(shape) * taps) *
                           (double)(depthwise_multiplier(shape) * CONV_BLOCK_BYTES);
    ret->filter_seconds =
        filter_seconds(request, scalars / (double)shape->scalar_bytes, DEPTHWISE.filter_copies);
    const bool forward = request->direction == PARTITA_FORWARD;
    const double planes = (double)shape->batch * (double)shape->in_channels;
    const double multiplier = (double)depthwise_multiplier(shape);
    const double products = (double)taps * (double)shape_outputs(shape);
    const double moved = forward ? reads + writes * multiplier : reads * multiplier + writes;
    const double terms = fmin((double)taps, (double)(DEPTHWISE.max_spans * MAX_SPAN_TAPS)) *
                         (forward ? 1 : multiplier);
    ret->flops = 2 * products * multiplier * planes;
    ret->seconds = depthwise_seconds(
        request, (products * DEPTHWISE.product + rows * DEPTHWISE.row) * multiplier * planes,
        moved * planes);
    ret->error = conv_cost_error(shape, (double)taps, terms);
    ret->bytes = size_add(ret->worker, size_mul(size_mul(depthwise_groups(shape), CONV_BLOCK_BYTES),
                                                size_mul(taps, depthwise_multiplier(shape))));
    ret->variant = DEPTHWISE_DIRECT;
    ret->applicable = true;
}

static void *boxes_build(const struct partita_plan *plan, const struct request *request,
                         struct arena *arena)
{
    return conv_passes_build(plan, request, &direct_method, arena);
}

static struct filter_bytes boxes_filter_bytes(const struct partita_plan *plan)
{
    const struct conv_passes *passes = plan->state;
    return (struct filter_bytes){.packed = size_mul(passes->taps, CONV_BLOCK_BYTES)};
}

static void boxes_filter_pack(struct partita_filter *filter, const void *taps, void *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const struct conv_passes *passes = plan->state;
    struct conv_layout layout;
    (void)passes; // for the assertion
    (void)scratch;
    for (bool more = conv_passes_first(plan, &layout); more; more = conv_passes_next(plan, &layout))
        for (size_t g = 0; g < depthwise_groups(shape); g++) {
            const struct depthwise_taps *order = layout.tables;
            const struct depthwise_group group = depthwise_group(shape, g);
            for (size_t j = 0; j < depthwise_multiplier(shape); j++)
                for (size_t t = 0; t < order->n; t++) {
                    const size_t at = weights_at(&layout, g, j) + t;
                    assert(at < passes->taps);
                    depthwise_copy_tap(shape, &group, j,
                                       conv_pass_tap(&layout.pass, order->order[t]), taps,
                                       (char *)filter->state + at * CONV_BLOCK_BYTES);
                }
        }
}

static void boxes_run(struct depthwise_call *call)
{
    conv_passes_run(call->plan, call->filter, call->operands, call->workers);
}

const struct depthwise_method depthwise_direct = {.build = boxes_build,
                                                  .filter_bytes = boxes_filter_bytes,
                                                  .filter_pack = boxes_filter_pack,
                                                  .run = boxes_run};
