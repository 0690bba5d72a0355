// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/depthwise tap by tap: passes (conv_pass.h) run box by box on
// planes that lie side by side. A task packs a box of its planes, transposed, sums row after row of
// outputs (kernels->lanes_conv) and transposes them back with bias and activation. Boxes are cut by
// shape alone and an output's sum has one order, so bits do not depend on the number of threads.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "depthwise.h"

enum {
    MOST_RUNS = 64,        // summed in registers before a sum is rounded: 512 taps
    MOST_PASSES = 1 << 12, // of backward data
    MOST_TAPS = 1 << 16,
    ENOUGH_TASKS = 32,
};

struct run {
    struct conv_pass pass;
    struct depthwise_taps taps;
    size_t weights; // blocks of lanes before its own in the filter
};

// Forward has one plane in and `multiple` out for each channel, backward data the other way round.
struct runs {
    size_t n, planes_in, planes_out;
    bool covers; // every output belongs to a pass
    size_t taps; // of all passes
    struct run *run;
};

static size_t planes_in(const struct request *request)
{
    return request->direction == PARTITA_FORWARD ? 1 : depthwise_multiple(request->shape);
}

// Half of the L2 cache, less where there are few boxes; but many small ones would pack most samples
// several times.
static size_t most_packed(const struct request *request)
{
    const size_t tasks = depthwise_tasks(request->shape);
    size_t most = request->model->cache_bytes / 2;
    if (tasks < ENOUGH_TASKS) most /= 2;
    // The other half of a tight limit is for a row of sums.
    return request->workspace_limit / 2 < most ? request->workspace_limit / 2 : most;
}

static size_t pass_count(const struct request *request)
{
    return request->direction == PARTITA_FORWARD
               ? 1
               : conv_pass_count(request->shape, request->direction);
}

// Pass i of the direction for one image and one pair of channels; false if no output belongs to it.
static bool make_pass(const struct request *request, size_t i, struct conv_pass *ret)
{
    if (!conv_pass_make(request->shape, request->direction, i, ret)) return false;
    ret->in = ret->out = ret->batch = 1;
    conv_pass_choose_box(
        ret, &(struct conv_box_limits){.max_positions = SIZE_MAX,
                                       .max_bytes = most_packed(request) / planes_in(request) /
                                                    depthwise_width(request->shape),
                                       .tasks = 1});
    return true;
}

static size_t packed_bytes(const struct conv_pass *pass)
{
    return size_mul(pass->box.channel, CONV_BLOCK_BYTES);
}

static size_t worker_bytes(const struct request *request, const struct conv_pass *pass)
{
    return size_add(size_mul(planes_in(request), packed_bytes(pass)),
                    size_mul(pass->box.count[2], CONV_BLOCK_BYTES));
}

void depthwise_direct_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const size_t passes = pass_count(request), taps = shape_taps(shape);
    if (passes > MOST_PASSES || taps > MOST_TAPS) {
        snprintf(ret->reason, sizeof ret->reason, "%zu taps in %zu sub-problems; at most %d in %d",
                 taps, passes, MOST_TAPS, MOST_PASSES);
        return;
    }
    double reads = 0, writes = 0, calls = 0;
    for (size_t i = 0; i < passes; i++) {
        struct conv_pass pass;
        if (!make_pass(request, i, &pass)) continue;
        const size_t worker = worker_bytes(request, &pass);
        if (worker > ret->worker) ret->worker = worker;
        const double boxes = (double)conv_pass_boxes(&pass);
        reads += boxes * (double)conv_pass_rows(&pass) * (double)pass.box.extent[2];
        writes +=
            (double)pass.axis[0].count * (double)pass.axis[1].count * (double)pass.axis[2].count;
        calls +=
            (double)pass.axis[0].count * (double)pass.axis[1].count * (double)pass.axis[2].kernel;
        ret->hop = pass.box.count[0] * pass.box.count[1] * pass.box.count[2];
    }
    const double planes = (double)shape->batch * (double)shape->in_channels;
    const double multiple = (double)depthwise_multiple(shape),
                 products = (double)taps * (double)shape_outputs(shape);
    const bool forward = request->direction == PARTITA_FORWARD;
    // A row of taps of a row of outputs is begun and ended in the time of some products: measured
    // with rows of 7 and 56.
    enum { BEGIN = 8 };
    ret->flops = 2 * products * multiple * planes;
    ret->seconds = depthwise_seconds(
        request, (products * 1.05 + calls * BEGIN) * multiple * planes,
        (forward ? reads + writes * multiple : reads * multiple + writes) * planes);
    const double terms = fmin((double)taps, MOST_RUNS * MAX_SPAN_TAPS) * (forward ? 1 : multiple);
    ret->error = shape_roundoff(shape) * 0.3 * sqrt(terms + (double)taps / terms);
    ret->bytes = size_add(ret->worker, size_mul(size_mul(depthwise_blocks(shape), CONV_BLOCK_BYTES),
                                                size_mul(taps, depthwise_multiple(shape))));
    ret->variant = DEPTHWISE_DIRECT;
    ret->applicable = true;
}

static bool passes_cover(const struct request *request, size_t n_made)
{
    size_t all = 1;
    if (request->direction == PARTITA_FORWARD) return true;
    for (int i = 0; i < request->shape->rank; i++) {
        const struct axis *axis = &request->shape->axis[i];
        all = size_mul(all, axis->stride < axis->size ? axis->stride : axis->size);
    }
    return n_made == all;
}

// One arena: the list of passes, then each one's taps. Called twice, to size it and to cut it.
static struct runs *cut_runs(const struct request *request, struct arena *arena)
{
    const size_t n = pass_count(request);
    struct runs *runs = arena_take(arena, sizeof *runs);
    struct run *list = arena_take(arena, size_mul(n, sizeof *list));
    size_t made = 0, taps = 0;
    for (size_t i = 0; i < n; i++) {
        struct run run;
        if (!make_pass(request, i, &run.pass)) continue;
        depthwise_taps_cut(&run.pass, &run.taps, arena);
        run.weights = depthwise_blocks(request->shape) * depthwise_multiple(request->shape) * taps;
        taps += run.taps.n;
        if (arena->base) list[made] = run;
        made++;
    }
    const size_t in = planes_in(request), multiple = depthwise_multiple(request->shape);
    if (arena->base)
        *runs = (struct runs){.n = made,
                              .planes_in = in,
                              .planes_out = request->direction == PARTITA_FORWARD ? multiple : 1,
                              .covers = passes_cover(request, made),
                              .taps = taps,
                              .run = list};
    return runs;
}

enum partita_status depthwise_direct_plan_create(struct partita_plan *plan,
                                                 const struct request *request)
{
    struct arena arena = {0};
    cut_runs(request, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_runs(request, &arena);
    return PARTITA_OK;
}

// Blocks of lanes before the taps of output j of block b of channels.
static size_t weights_at(const struct run *run, const struct shape *shape, size_t b, size_t j)
{
    return run->weights + (b * depthwise_multiple(shape) + j) * run->taps.n;
}

enum partita_status depthwise_direct_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const struct runs *runs = plan->state;
    const size_t bytes = shape->scalar_bytes, multiple = depthwise_multiple(shape),
                 n_taps = shape_taps(shape);
    filter->state =
        mem_allocate(&plan->allocator, size_mul(size_mul(runs->taps, multiple * CONV_BLOCK_BYTES),
                                                depthwise_blocks(shape)));
    if (!filter->state) return PARTITA_ERR_NOMEM;
    for (const struct run *run = runs->run; run < runs->run + runs->n; run++)
        for (size_t b = 0; b < depthwise_blocks(shape); b++) {
            const struct depthwise_block block = depthwise_block(shape, b);
            for (size_t j = 0; j < multiple; j++)
                for (size_t t = 0; t < run->taps.n; t++) {
                    const size_t tap = conv_pass_tap(&run->pass, run->taps.order[t]);
                    char *to = (char *)filter->state +
                               (weights_at(run, shape, b, j) + t) * CONV_BLOCK_BYTES;
                    for (size_t l = 0; l < block.channels * block.images; l++) {
                        const size_t cell = (block.first + l % block.channels) * multiple + j;
                        memcpy(to + l * bytes, (const char *)taps + (cell * n_taps + tap) * bytes,
                               bytes);
                    }
                }
        }
    return PARTITA_OK;
}

struct call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const struct run *run;
    char *to;
    const char *from;
    char *workspace;
};

// A row of n sums: of one packed plane and one output's taps.
static void sum_row(const struct call *call, char *sums, const char *packed, const char *w,
                    size_t n)
{
    const struct depthwise_taps *taps = &call->run->taps;
    for (size_t r = 0; r < taps->n_runs; r += MOST_RUNS) {
        const size_t runs = taps->n_runs - r < MOST_RUNS ? taps->n_runs - r : MOST_RUNS;
        call->plan->kernels->lanes_conv(sums, packed, w, taps->run + r, runs, n);
        for (size_t i = 0; i < runs; i++) w += taps->run[r + i].taps * CONV_BLOCK_BYTES;
    }
}

// One task: one box of the planes of one block and turn.
struct box {
    struct conv_index place;
    size_t block;
    struct depthwise_lanes in, out;
    struct depthwise_lanes next; // those of the next task's inputs, if its box is the whole map
    char *packed, *sums;
};

// The row of output plane j that a row of a box goes to.
static struct depthwise_row row_of(const struct conv_pass *pass, const struct conv_index *place,
                                   size_t j, size_t d, size_t h)
{
    const struct conv_axis *axis = pass->axis;
    const size_t plane = axis[0].out_size * axis[1].out_size * axis[2].out_size;
    const size_t at_d = axis[0].first + axis[0].spread * (place->at[0] + d),
                 at_h = axis[1].first + axis[1].spread * (place->at[1] + h),
                 at_w = axis[2].first + axis[2].spread * place->at[2];
    return (struct depthwise_row){.plane_size = plane,
                                  .row = j * plane +
                                         (at_d * axis[1].out_size + at_h) * axis[2].out_size,
                                  .step = axis[2].spread,
                                  .n = place->count[2],
                                  .first = (ptrdiff_t)at_w};
}

// Rows of output plane j of each channel.
static void run_plane(const struct call *call, const struct box *box, size_t j)
{
    const struct shape *shape = &call->plan->shape;
    const struct runs *runs = call->plan->state;
    const struct conv_pass *pass = &call->run->pass;
    const bool forward = call->plan->direction == PARTITA_FORWARD,
               biased = forward && call->filter->bias;
    const size_t n_h = box->place.count[1], n = box->place.count[0] * n_h;
    _Alignas(CONV_BLOCK_BYTES) char bias[CONV_BLOCK_BYTES];
    if (biased) {
        const struct depthwise_block block = depthwise_block(shape, box->block);
        depthwise_bias(call->filter, &block, j, bias);
    }
    for (size_t i = 0; i < n; i++) {
        const size_t d = i / n_h, h = i % n_h;
        const struct depthwise_row row = row_of(pass, &box->place, j, d, h);
        const char *in =
            box->packed + (d * pass->box.extent[1] + h) * pass->box.extent[2] * CONV_BLOCK_BYTES;
        const size_t rows = pass->axis[0].size * pass->axis[1].size;
        if (j == 0)
            depthwise_fetch_ahead(call->plan, &box->next, call->from, i, rows, pass->axis[2].size);
        memset(box->sums, 0, row.n * CONV_BLOCK_BYTES);
        for (size_t k = 0; k < runs->planes_in; k++) {
            const size_t w = weights_at(call->run, shape, box->block, forward ? j : k);
            sum_row(call, box->sums, in + k * packed_bytes(pass),
                    (const char *)call->filter->state + w * CONV_BLOCK_BYTES, row.n);
        }
        depthwise_write(call->plan, &box->out, call->to, box->sums, &row, biased ? bias : NULL,
                        forward && shape->relu);
    }
}

static void run_box(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct shape *shape = &call->plan->shape;
    const struct runs *runs = call->plan->state;
    const struct conv_pass *pass = &call->run->pass;
    const size_t boxes = conv_pass_boxes(pass), of = task / boxes;
    const size_t plane = pass->axis[0].size * pass->axis[1].size * pass->axis[2].size;
    struct box box = {.place = conv_pass_index(pass, task % boxes),
                      .block = depthwise_task(shape, of).block,
                      .in = depthwise_task_lanes(shape, of, runs->planes_in),
                      .out = depthwise_task_lanes(shape, of, runs->planes_out)};
    if (boxes == 1) box.next = depthwise_task_lanes(shape, of + 1, runs->planes_in);
    box.packed = call->workspace + (size_t)worker * call->plan->choice.worker;
    box.sums = box.packed + runs->planes_in * packed_bytes(pass);
    for (size_t k = 0; k < runs->planes_in; k++)
        depthwise_pack(call->plan, pass, &box.place, &box.in, box.packed + k * packed_bytes(pass),
                       call->from + k * plane * shape->scalar_bytes);
    for (size_t j = 0; j < runs->planes_out; j++) run_plane(call, &box, j);
}

void depthwise_direct_run(const struct partita_plan *plan, const struct partita_filter *filter,
                          void *to, const void *from, void *workspace)
{
    const struct shape *shape = &plan->shape;
    const struct runs *runs = plan->state;
    struct call call = {plan, filter, NULL, to, from, workspace};
    // Samples that no tap reads.
    if (!runs->covers)
        memset(to, 0,
               shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    for (call.run = runs->run; call.run < runs->run + runs->n; call.run++)
        thread_loop(plan->threads, conv_pass_boxes(&call.run->pass) * depthwise_tasks(shape),
                    run_box, &call);
}
