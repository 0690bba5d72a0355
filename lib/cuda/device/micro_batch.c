// SPDX-License-Identifier: MIT
#include "micro_batch.h"

#include <assert.h>

#include "base/ranges.h"
#include "bounded_call.h"
#include "filter.h"
#include "geometry/signal_blocks.h"

// Bytes of a micro-batch's arrays where nothing is limited: copying them takes a hundred times as
// long as launching their kernels.
static const size_t TARGET_BYTES = 16 << 20;

// How many times as much new data a micro-batch of rows should bring as it shares with the one
// before.
enum { NEW_OF_SHARED = 4 };

// The dimension that is split.
enum dimension { BY_ROWS, BY_BATCH, DIMENSIONS };

static enum dimension dimension_of(const struct partita_plan *plan)
{
    const struct axis *whole = &plan->shape.axis[0], *part = &plan->micro_batch->shape.axis[0];
    return part->size == whole->size && part->out == whole->out ? BY_BATCH : BY_ROWS;
}

static size_t step_count(const struct partita_plan *plan, enum dimension by)
{
    const struct axis *axis = &plan->shape.axis[0];
    if (by == BY_BATCH) return plan->shape.batch;
    return plan->direction == PARTITA_BACKWARD_DATA ? ceil_div(axis->size, axis->stride)
                                                    : axis->out;
}

// Rows of an array, and the samples of each row that a step of the split dimension uses; none is
// used from `end` on. No rows: all steps use the whole array, or add to it.
struct rows {
    size_t count, size, bytes; // number of rows, of their samples, of bytes of a sample
    struct windows steps;
    ptrdiff_t end;
};

// A step is an item; an output with all inputs that it reads; of backward data `stride` inputs with
// all outputs that read them.
struct split {
    struct rows x, y;
};

static struct split split_of(const struct partita_plan *plan, enum dimension by)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, batch = shape->batch;
    const struct windows each = {0, 1, 1}, reads = {axis->begin, axis->stride, axis->span};
    struct rows x = {1, batch, cuda_input_bytes(shape) / batch, each, (ptrdiff_t)batch};
    struct rows y = {1, batch, cuda_output_bytes(shape) / batch, each, (ptrdiff_t)batch};
    if (by == BY_BATCH) return (struct split){.x = x, .y = y};
    const ptrdiff_t behind = range_end(windows_inputs(&reads, (struct range){0, axis->out}));
    x = (struct rows){shape->in_channels, axis->size, bytes, reads, behind};
    y = (struct rows){shape->out_channels, axis->out, bytes, each, (ptrdiff_t)axis->out};
    if (plan->direction == PARTITA_BACKWARD_DATA) {
        const struct range outputs = windows_outputs(&reads, (struct range){0, axis->stride});
        x.steps = (struct windows){0, axis->stride, axis->stride};
        x.end = (ptrdiff_t)axis->size;
        y.steps = (struct windows){outputs.first, 1, outputs.size};
        y.end = range_end(windows_outputs(&reads, (struct range){0, axis->size}));
    }
    return (struct split){.x = x, .y = y};
}

// Samples of a row that n steps use.
static size_t samples_of_steps(const struct rows *rows, size_t n)
{
    return windows_inputs(&rows->steps, (struct range){0, n}).size;
}

// Bytes of the arrays of n steps, but for those that stay where they are.
static size_t step_bytes(const struct partita_plan *plan, enum dimension by, size_t n)
{
    const struct split split = split_of(plan, by);
    return split.x.count * samples_of_steps(&split.x, n) * split.x.bytes +
           split.y.count * samples_of_steps(&split.y, n) * split.y.bytes;
}

// The problem of n steps.
static struct shape shape_of_steps(const struct partita_plan *plan, enum dimension by, size_t n)
{
    const struct split split = split_of(plan, by);
    struct shape shape = plan->shape;
    struct axis *axis = &shape.axis[0];
    shape.batch = by == BY_BATCH ? n : 1;
    if (by == BY_BATCH) return shape;
    axis->out = samples_of_steps(&split.y, n);
    axis->size = samples_of_steps(&split.x, n);
    axis->begin += (ptrdiff_t)axis->stride * split.y.steps.first - split.x.steps.first;
    return shape;
}

// Steps of rows, no fewer than `min` >= 1, within `max` bytes; all of them where that brings no
// more new data than is shared.
static size_t split_rows(const struct partita_plan *plan, size_t min, size_t target, size_t max)
{
    const size_t all = step_count(plan, BY_ROWS), one = step_bytes(plan, BY_ROWS, 1);
    if (all == 1) return 1;
    const size_t step = step_bytes(plan, BY_ROWS, 2) - one, shared = one > step ? one - step : 0;
    if (max <= shared) return all;
    size_t n = target > shared ? (target - shared) / step : 0;
    n = size_max(size_max(n, ceil_div(NEW_OF_SHARED * shared, step)), min);
    n = size_min(n, (max - shared) / step);
    if (n < min || n < ceil_div(shared, step)) return all;
    return size_max(size_split_even(all, n), min);
}

// Filters of transforms hold no taps that no output reads; those of micro-batches hold them all.
static bool reads_all_taps(const struct partita_plan *plan)
{
    struct shape shape;
    char reason[96];
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) return true; // no filter
    if (!shape_forward(&plan->shape, plan->direction, &shape, reason, sizeof reason)) return true;
    return shape_trim(&shape).taps == shape.axis[0].span;
}

// Whether a filter holds spectra: backward weight has no filter, and engines that read taps in
// place keep only the taps.
static bool has_spectra(const struct partita_plan *plan)
{
    return plan->direction != PARTITA_BACKWARD_WEIGHT && !plan->choice.from_taps;
}

// Steps of a micro-batch, all of them where this dimension is not to be split.
static size_t choose_steps(const struct partita_plan *plan, enum dimension by, size_t limit)
{
    const struct shape *shape = &plan->shape;
    // Two micro-batches are in the device's memory at a time.
    const size_t target = size_min(TARGET_BYTES, limit / 4), all = step_count(plan, by);
    const size_t max = size_min(limit, cuda_device_of(plan)->gpu->memory / 2) / 4;
    const size_t item = step_bytes(plan, BY_BATCH, 1);
    if (by == BY_BATCH) return size_split_even(all, size_max(target / item, 1));
    // Rows of items that fit are left whole.
    if (item <= target || shape->rank > 1 || step_bytes(plan, by, all) <= target) return all;
    // An engine that transforms needs a transform's length of samples, engines for layers as much
    // for each residue of dilated taps.
    size_t min = has_spectra(plan) ? size_max(plan->choice.transform, 1) : 1;
    if (plan->engine->max_rank) min = size_mul(min, shape->axis[0].dilation);
    return reads_all_taps(plan) ? split_rows(plan, min, target, max) : all;
}

// Whether the plan's engine serves a micro-batch within the request's limit.
static bool engine_serves(const struct partita_plan *plan, const struct request *request,
                          struct estimate *ret)
{
    *ret = (struct estimate){0};
    plan->engine->estimate(request, ret);
    return estimate_fits(request, ret) &&
           (!request->compatible_with || ret->variant == plan->choice.variant) &&
           (!request->transform || ret->transform == request->transform);
}

// Makes plan->micro_batch of n steps. PARTITA_ERR_UNSUPPORTED where the engine has no plan whose
// filters are the whole's.
static enum partita_status make_micro_batch(struct partita_plan *plan,
                                            const struct request *request, enum dimension by,
                                            size_t n)
{
    const size_t limit = request->workspace_limit;
    struct partita_plan *part = mem_allocate(&plan->allocator, sizeof *part);
    if (!part) return PARTITA_ERR_NOMEM;
    *part = *plan;
    part->shape = shape_of_steps(plan, by, n);
    part->state = NULL;
    struct request smaller = *request;
    smaller.shape = &part->shape;
    if (plan->direction != PARTITA_BACKWARD_WEIGHT) smaller.compatible_with = &plan->choice;
    if (!has_spectra(plan)) smaller.transform = 0;
    // The arrays have one half of the limit, the workspace the other, or all of it where the engine
    // needs more.
    if (limit != SIZE_MAX) smaller.workspace_limit = limit / 2;
    bool served = engine_serves(plan, &smaller, &part->choice);
    if (!served) {
        smaller.workspace_limit = limit;
        served = engine_serves(plan, &smaller, &part->choice);
    }
    smaller.transform = part->choice.transform;
    plan->micro_batch = part;
    const enum partita_status status =
        served ? plan_create_state(part, &smaller) : PARTITA_ERR_UNSUPPORTED;
    if (status != PARTITA_OK) cuda_micro_batch_release(plan);
    return status;
}

// Logs a line if a call needs more memory than the device has in all.
static void log_too_large(const struct partita_plan *plan, const struct partita_plan *part)
{
    const size_t of_part = step_bytes(part, BY_BATCH, part->shape.batch);
    const size_t arrays = size_mul(part == plan ? 1 : 2, of_part);
    const size_t others = part->choice.bytes, memory = cuda_device_of(plan)->gpu->memory;
    if (size_add(arrays, others) <= memory) return;
    log_line(&plan->log,
             "%s: %zu MiB for arrays%s, %zu MiB for filter and workspace; the device has %zu MiB",
             plan->engine->name, arrays >> 20,
             part == plan ? ", which are not split" : " of two micro-batches", others >> 20,
             memory >> 20);
}

enum partita_status cuda_micro_batch_plan(struct partita_plan *plan, const struct request *request)
{
    for (enum dimension by = 0; by < DIMENSIONS; by++) {
        // Sums of micro-batches are not rounded between them.
        if (plan->shape.half && plan->direction == PARTITA_BACKWARD_WEIGHT) continue;
        const size_t n = choose_steps(plan, by, request->workspace_limit);
        assert(n > 0);
        if (n >= step_count(plan, by)) continue;
        const enum partita_status status = make_micro_batch(plan, request, by, n);
        if (status == PARTITA_OK) log_too_large(plan, plan->micro_batch);
        if (status != PARTITA_ERR_UNSUPPORTED) return status;
    }
    log_too_large(plan, plan);
    return PARTITA_OK;
}

void cuda_micro_batch_release(struct partita_plan *plan)
{
    if (!plan->micro_batch) return;
    plan_destroy_state(plan->micro_batch);
    mem_release(&plan->allocator, plan->micro_batch);
    plan->micro_batch = NULL;
}

// The ranges of micro-batches of n steps.
static struct cuda_row_ranges ranges_of_steps(const struct rows *rows, size_t n)
{
    const size_t used = rows->end < 0 ? 0 : size_min((size_t)rows->end, rows->size);
    const ptrdiff_t bytes = (ptrdiff_t)rows->bytes;
    return (struct cuda_row_ranges){.rows = rows->count,
                                    .pitch = rows->size * rows->bytes,
                                    .end = used * rows->bytes,
                                    .bytes = samples_of_steps(rows, n) * rows->bytes,
                                    .first = rows->steps.first * bytes,
                                    .hop = (ptrdiff_t)(n * rows->steps.step) * bytes};
}

struct cuda_micro_batches cuda_micro_batches_of(const struct partita_plan *plan, bool from_taps)
{
    const enum dimension by = dimension_of(plan);
    const size_t n = step_count(plan->micro_batch, by), steps = step_count(plan, by);
    const size_t taps_bytes = cuda_taps_bytes(&plan->shape);
    const struct split split = split_of(plan, by);
    const struct cuda_row_ranges x = ranges_of_steps(&split.x, n), y = ranges_of_steps(&split.y, n);
    struct cuda_micro_batches ret = {.sets = by == BY_ROWS ? plan->shape.batch : 1,
                                     .of_set = ceil_div(steps, n)};
    if (from_taps)
        ret.from[1] = (struct cuda_row_ranges){.rows = 1, .end = taps_bytes, .bytes = taps_bytes};
    if (plan->direction == PARTITA_FORWARD) ret.to = y, ret.from[0] = x;
    else if (plan->direction == PARTITA_BACKWARD_DATA) ret.to = x, ret.from[0] = y;
    else ret.from[0] = x, ret.from[1] = y, ret.sum_bytes = taps_bytes;
    return ret;
}
