// SPDX-License-Identifier: MIT
#include "micro_batch.h"

#include <assert.h>

#include "base/sizes.h"
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
enum dimension { BY_TAPS, BY_ROWS, BY_BATCH, DIMENSIONS };

static enum dimension dimension_of(const struct partita_plan *plan)
{
    const struct axis *whole = &plan->shape.axis[0], *part = &plan->micro_batch->shape.axis[0];
    if (part->kernel < whole->kernel) return BY_TAPS;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    const bool shorter = data ? part->size < whole->size : part->out < whole->out;
    return shorter ? BY_ROWS : BY_BATCH;
}

bool cuda_micro_batches_of_taps(const struct partita_plan *plan)
{
    return plan->micro_batch && dimension_of(plan) == BY_TAPS;
}

// The first output that backward data's first input is read by, were there outputs on either side.
static ptrdiff_t first_output_seen(const struct axis *axis)
{
    return -floor_div(axis->begin + (ptrdiff_t)axis->span - 1, axis->stride);
}

// The problem of n steps: items; taps; outputs with all inputs that they read; of backward data
// `stride` times as many inputs, with all outputs that read them.
static struct shape shape_of_steps(const struct partita_plan *plan, enum dimension by, size_t n)
{
    struct shape shape = plan->shape;
    struct axis *axis = &shape.axis[0];
    if (by == BY_BATCH) {
        shape.batch = n;
        return shape;
    }
    if (by == BY_ROWS) shape.batch = 1;
    if (by == BY_ROWS && plan->direction == PARTITA_BACKWARD_DATA) {
        axis->size = n * axis->stride;
        axis->begin += (ptrdiff_t)axis->stride * first_output_seen(axis);
        axis->out = (size_t)floor_div((ptrdiff_t)axis->size - 1 - axis->begin, axis->stride) + 1;
        return shape;
    }
    if (by == BY_ROWS) axis->out = n;
    else axis->kernel = n, axis->span = (n - 1) * axis->dilation + 1;
    axis->begin = 0;
    axis->size = (axis->out - 1) * axis->stride + axis->span;
    return shape;
}

// Bytes of the arrays of n steps, but for those that stay where they are.
static size_t step_bytes(const struct partita_plan *plan, enum dimension by, size_t n)
{
    const struct shape shape = shape_of_steps(plan, by, n);
    return size_add(cuda_input_bytes(&shape),
                    by == BY_TAPS ? cuda_taps_bytes(&shape) : cuda_output_bytes(&shape));
}

static size_t step_count(const struct partita_plan *plan, enum dimension by)
{
    const struct axis *axis = &plan->shape.axis[0];
    if (by == BY_BATCH) return plan->shape.batch;
    if (by == BY_TAPS) return axis->kernel;
    return plan->direction == PARTITA_BACKWARD_DATA ? ceil_div(axis->size, axis->stride)
                                                    : axis->out;
}

// Items of a micro-batch: as many micro-batches as it takes, all about as large.
static size_t split_batch(const struct partita_plan *plan, size_t target)
{
    return size_split_even(plan->shape.batch, size_max(target / step_bytes(plan, BY_BATCH, 1), 1));
}

// Steps of rows or taps, no fewer than `min` >= 1, within `max` bytes; all of them where that
// brings no more new data than is shared.
static size_t split_steps(const struct partita_plan *plan, enum dimension by, size_t min,
                          size_t target, size_t max)
{
    const size_t all = step_count(plan, by), one = step_bytes(plan, by, 1);
    if (all == 1) return 1;
    const size_t step = step_bytes(plan, by, 2) - one, shared = one > step ? one - step : 0;
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

// Whether a filter holds more than the taps: gradients of taps have none, engines that read taps in
// place keep them.
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
    const size_t max = size_min(limit, cuda_device_of(plan)->memory / 2) / 4;
    const bool fits = step_bytes(plan, BY_BATCH, 1) <= target;
    if (by == BY_BATCH) return split_batch(plan, target);
    // Rows of items that fit are left whole; taps that are read in place may be long beside them.
    if (fits && !(by == BY_TAPS && plan->choice.from_taps)) return all;
    if (shape->rank > 1 || step_bytes(plan, by, all) <= target) return all;
    if (by == BY_TAPS) {
        const bool lone = shape->batch == 1 && plan->direction == PARTITA_FORWARD && !shape->relu;
        const bool in_place = plan->choice.from_taps && plan->engine->filter.taps;
        return lone && in_place ? split_steps(plan, by, 1, target, max) : all;
    }
    // An engine that transforms needs a transform's length of samples, engines for layers as much
    // for each residue of dilated taps.
    size_t min = has_spectra(plan) ? size_max(plan->choice.transform, 1) : 1;
    if (plan->engine->max_rank) min = size_mul(min, shape->axis[0].dilation);
    return reads_all_taps(plan) ? split_steps(plan, by, min, target, max) : all;
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
        served ? plan->engine->plan_create(part, &smaller) : PARTITA_ERR_UNSUPPORTED;
    if (status != PARTITA_OK) cuda_micro_batch_release(plan);
    return status;
}

// Logs it when a call cannot have its memory, however little else is on the device.
static void log_too_large(const struct partita_plan *plan, const struct partita_plan *part)
{
    const size_t of_part = step_bytes(part, BY_BATCH, part->shape.batch);
    const size_t arrays = size_mul(part == plan ? 1 : 2, of_part);
    const size_t others = part->choice.bytes, memory = cuda_device_of(plan)->memory;
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
        const bool sums = by == BY_TAPS || plan->direction == PARTITA_BACKWARD_WEIGHT;
        if (plan->shape.half && sums) continue;
        const size_t n = choose_steps(plan, by, request->workspace_limit);
        assert(n > 0);
        if (n >= step_count(plan, by)) continue;
        const enum partita_status status = make_micro_batch(plan, request, by, n);
        if (status == PARTITA_OK && by != BY_TAPS) log_too_large(plan, plan->micro_batch);
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

// Items of a batch as one row.
static struct cuda_row_ranges batch_ranges(size_t batch, size_t items, size_t bytes)
{
    const size_t of_items = bytes / batch * items;
    return (struct cuda_row_ranges){
        .rows = 1, .pitch = bytes, .end = bytes, .bytes = of_items, .hop = (ptrdiff_t)of_items};
}

// A range of the samples of a row, and how far it is to the next one's.
struct steps {
    ptrdiff_t first, hop;
    size_t n;
};

// Rows of `size` samples of so many bytes, of which none is read from `end` on.
static struct cuda_row_ranges sample_ranges(size_t rows, size_t size, ptrdiff_t end, size_t bytes,
                                            const struct steps *steps)
{
    const size_t behind = end < 0 ? 0 : size_min((size_t)end, size);
    return (struct cuda_row_ranges){.rows = rows,
                                    .pitch = size * bytes,
                                    .end = behind * bytes,
                                    .bytes = steps->n * bytes,
                                    .first = steps->first * (ptrdiff_t)bytes,
                                    .hop = steps->hop * (ptrdiff_t)bytes};
}

// The end of the inputs that any output reads.
static ptrdiff_t inputs_end(const struct axis *axis)
{
    return axis->begin + (ptrdiff_t)((axis->out - 1) * axis->stride + axis->span);
}

// Outputs of rows, with the inputs that they read; or inputs, with the outputs that read them.
static void split_rows(const struct partita_plan *plan, struct cuda_row_ranges *ret_x,
                       struct cuda_row_ranges *ret_y)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0], *part = &plan->micro_batch->shape.axis[0];
    const ptrdiff_t stride = (ptrdiff_t)axis->stride;
    struct steps x = {axis->begin, (ptrdiff_t)part->out * stride, part->size};
    struct steps y = {0, (ptrdiff_t)part->out, part->out};
    ptrdiff_t x_end = inputs_end(axis), y_end = (ptrdiff_t)axis->out;
    if (plan->direction == PARTITA_BACKWARD_DATA) {
        x = (struct steps){0, (ptrdiff_t)part->size, part->size};
        y = (struct steps){first_output_seen(axis), (ptrdiff_t)part->size / stride, part->out};
        x_end = (ptrdiff_t)axis->size;
        y_end = floor_div((ptrdiff_t)axis->size - 1 - axis->begin, axis->stride) + 1;
    }
    *ret_x = sample_ranges(shape->in_channels, axis->size, x_end, shape->sample_bytes, &x);
    *ret_y = sample_ranges(shape->out_channels, axis->out, y_end, shape->sample_bytes, &y);
}

// x from where its first tap meets the first output on, and taps in the order in which they meet
// it.
static struct cuda_micro_batches split_taps(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0], *part = &plan->micro_batch->shape.axis[0];
    const ptrdiff_t n = (ptrdiff_t)part->kernel, kernel = (ptrdiff_t)axis->kernel;
    const struct steps x = {axis->begin, n * (ptrdiff_t)axis->dilation, part->size};
    const struct steps w = {shape->flip ? kernel - n : 0, shape->flip ? -n : n, part->kernel};
    const size_t paths = shape->out_channels * shape->group_in;
    return (struct cuda_micro_batches){
        .sets = 1,
        .of_set = ceil_div(axis->kernel, part->kernel),
        .from = {sample_ranges(shape->in_channels, axis->size, inputs_end(axis),
                               shape->sample_bytes, &x),
                 sample_ranges(paths, axis->kernel, kernel, shape->tap_bytes, &w)},
        .sum_bytes = cuda_output_bytes(shape),
    };
}

struct cuda_micro_batches cuda_micro_batches_of(const struct partita_plan *plan, bool from_taps)
{
    const struct shape *shape = &plan->shape, *part = &plan->micro_batch->shape;
    const enum dimension by = dimension_of(plan);
    const size_t taps = cuda_taps_bytes(shape);
    struct cuda_row_ranges x, y;
    struct cuda_micro_batches ret = {.sets = 1};
    if (by == BY_TAPS) return split_taps(plan);
    if (by == BY_ROWS) {
        const bool data = plan->direction == PARTITA_BACKWARD_DATA;
        const size_t n = data ? part->axis[0].size / part->axis[0].stride : part->axis[0].out;
        ret.sets = shape->batch;
        ret.of_set = ceil_div(step_count(plan, by), n);
        split_rows(plan, &x, &y);
    } else {
        ret.of_set = ceil_div(shape->batch, part->batch);
        x = batch_ranges(shape->batch, part->batch, cuda_input_bytes(shape));
        y = batch_ranges(shape->batch, part->batch, cuda_output_bytes(shape));
    }
    if (from_taps) // the same for all
        ret.from[1] = (struct cuda_row_ranges){.rows = 1, .end = taps, .bytes = taps};
    if (plan->direction == PARTITA_FORWARD) ret.to = y, ret.from[0] = x;
    else if (plan->direction == PARTITA_BACKWARD_DATA) ret.to = x, ret.from[0] = y;
    else ret.from[0] = x, ret.from[1] = y, ret.sum_bytes = taps;
    return ret;
}

// As one of the plan's directions is split.
bool cuda_micro_batches_of_bias(const struct partita_plan *plan, struct cuda_micro_batches *ret,
                                struct shape *ret_shape)
{
    const struct partita_plan *const plans[] = {plan, plan->backward_weight, plan->backward_data};
    const struct shape *shape = &plan->shape;
    if (shape->half) return false; // likewise
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        if (!plans[i] || !plans[i]->micro_batch || dimension_of(plans[i]) == BY_TAPS) continue;
        *ret = (struct cuda_micro_batches){.sets = 1,
                                           .sum_bytes = shape->out_channels * shape->scalar_bytes};
        *ret_shape = plans[i]->micro_batch->shape;
        if (dimension_of(plans[i]) == BY_BATCH) {
            ret->of_set = ceil_div(shape->batch, ret_shape->batch);
            ret->from[0] = batch_ranges(shape->batch, ret_shape->batch, cuda_output_bytes(shape));
            return true;
        }
        const size_t out = shape->axis[0].out;
        const size_t n = ret_shape->axis[0].out = size_min(ret_shape->axis[0].out, out);
        const struct steps steps = {0, (ptrdiff_t)n, n};
        ret->sets = shape->batch;
        ret->of_set = ceil_div(out, n);
        ret->from[0] =
            sample_ranges(shape->out_channels, out, (ptrdiff_t)out, shape->sample_bytes, &steps);
        return true;
    }
    return false;
}
