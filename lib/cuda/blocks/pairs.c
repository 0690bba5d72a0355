// SPDX-License-Identifier: MIT
// All pairs of blocks: spectra of x, sums of products of some output blocks at a time, one inverse
// transform a block.
#include "base/sizes.h"
#include "blocks.h"

static void set_windows(struct cuda_windows *windows, const struct block_layout *layout,
                        ptrdiff_t first, size_t count)
{
    windows->first = first;
    windows->count = (int64_t)count;
    windows->hop = windows->length = (int64_t)layout->tap_block;
}

// Blocks of the taps from the first tap that any output reads.
static struct cuda_windows tap_windows(const struct partita_plan *plan)
{
    const struct block_layout *layout = &cuda_blocks_of(plan)->layout;
    struct cuda_windows windows = cuda_blocks_taps(plan);
    set_windows(&windows, layout, (ptrdiff_t)layout->trimmed.first_tap, layout->tap_blocks);
    return windows;
}

enum partita_status cuda_pairs_filter(const struct partita_plan *plan, void *spectra,
                                      const void *taps, void *area)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_windows windows = tap_windows(plan);
    const size_t paths = blocks->shape.out_channels * blocks->shape.group_in;
    enum partita_status status = cuda_fft_begin(plan, &blocks->fft, area);
    if (status == PARTITA_OK)
        status = cuda_blocks_forward(plan, &blocks->fft, spectra, &windows, paths, taps);
    cuda_fft_end(&blocks->fft);
    return status;
}

// Rows of an array from one on.
static const char *rows_from(const struct shape *shape, const void *array, size_t length,
                             size_t row)
{
    return (const char *)array + row * length * shape->sample_bytes;
}

// Queues spectra of blocks of `rows` rows of x from one on, and the pairs that output blocks
// pairs->first .. sum of them with the taps.
static enum partita_status sum_pairs(const struct cuda_blocks_call *call, struct cuda_pairs *pairs,
                                     size_t row, size_t rows)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_blocks *blocks = call->blocks;
    const struct cuda_fft_params *params = &blocks->fft.params;
    const struct block_layout *layout = &blocks->layout;
    const struct shape *shape = &blocks->shape;
    const size_t first = (size_t)pairs->first, end = first + (size_t)pairs->count;
    const struct range range = block_inputs_read(&blocks->shape, &blocks->layout, first, end);
    struct cuda_windows inputs = cuda_row_windows(shape->axis[0].size, shape->complex_signal);
    set_windows(&inputs, layout, layout->trimmed.first + range.first * (ptrdiff_t)layout->tap_block,
                range.size);
    pairs->left = call->taps, pairs->left_count = (int64_t)layout->tap_blocks;
    pairs->right = call->inputs, pairs->right_first = range.first;
    pairs->right_count = (int64_t)range.size;
    pairs->out = call->sums;
    pairs->per_thread = (int64_t)cuda_blocks_per_thread((size_t)(params->points * params->planes),
                                                        (size_t)pairs->rows, (size_t)pairs->count);
    const char *x = rows_from(shape, call->operands->from[0], shape->axis[0].size, row);
    enum partita_status status =
        cuda_blocks_forward(plan, &blocks->fft, call->inputs, &inputs, rows, x);
    if (status != PARTITA_OK) return status;
    return CU(plan, cuda_launch_pairs(params, pairs));
}

// Forward, of some units [item][group] and some blocks of outputs.
static enum partita_status cuda_blocks_pairs_run_units(const struct cuda_blocks_call *call,
                                                       size_t unit, size_t units, size_t first,
                                                       size_t count)
{
    const struct shape *shape = &call->blocks->shape;
    struct cuda_pairs pairs = cuda_blocks_rows(call, unit, units);
    pairs.first = (int64_t)first, pairs.count = (int64_t)count;
    const struct cuda_sink sink = cuda_blocks_sink(
        call->plan, call->operands->to, unit * shape->group_out, (size_t)pairs.rows, call->bias);
    const enum partita_status status =
        sum_pairs(call, &pairs, unit * shape->group_in, units * shape->group_in);
    if (status != PARTITA_OK) return status;
    return cuda_blocks_back(call->plan, &call->blocks->fft, &sink, call->sums,
                            (ptrdiff_t)(first * call->blocks->layout.hop), count);
}

static enum partita_status run_forward(const struct cuda_blocks_call *call)
{
    const struct shape *shape = &call->blocks->shape;
    const struct block_layout *layout = &call->blocks->layout;
    enum partita_status status = PARTITA_OK;
    for (size_t unit = 0, all = shape->batch * shape->groups; unit < all; unit += layout->units)
        for (size_t at = 0; at < layout->blocks && status == PARTITA_OK; at += layout->in_flight)
            status =
                cuda_blocks_pairs_run_units(call, unit, size_min(layout->units, all - unit), at,
                                            size_min(layout->in_flight, layout->blocks - at));
    return status;
}

// Some items of the batch of backward weight: sums of all paths, added to those of the items
// before.
static enum partita_status add_items(const struct cuda_blocks_call *call, size_t item, size_t items)
{
    const struct shape *shape = &call->blocks->shape;
    const struct cuda_windows taps = tap_windows(call->plan);
    const char *gy = rows_from(shape, call->operands->from[1], shape->axis[0].kernel,
                               item * shape->out_channels);
    struct cuda_pairs pairs = cuda_blocks_rows(call, item, items);
    pairs.count = (int64_t)call->blocks->layout.blocks;
    pairs.accumulate = item > 0;
    const enum partita_status status = cuda_blocks_forward(
        call->plan, &call->blocks->fft, call->taps, &taps, items * shape->out_channels, gy);
    return status == PARTITA_OK
               ? sum_pairs(call, &pairs, item * shape->in_channels, items * shape->in_channels)
               : status;
}

static enum partita_status run_weight(const struct cuda_blocks_call *call)
{
    const struct shape *shape = &call->blocks->shape;
    const size_t paths = shape->out_channels * shape->group_in;
    const size_t units = call->blocks->layout.units;
    enum partita_status status = PARTITA_OK;
    for (size_t item = 0; item < shape->batch && status == PARTITA_OK; item += units)
        status = add_items(call, item, size_min(units, shape->batch - item));
    const struct cuda_sink sink = cuda_blocks_sink(call->plan, call->operands->to, 0, paths, NULL);
    return status == PARTITA_OK ? cuda_blocks_back(call->plan, &call->blocks->fft, &sink,
                                                   call->sums, 0, call->blocks->layout.blocks)
                                : status;
}

enum partita_status cuda_pairs_run(const struct cuda_blocks_call *call)
{
    return call->plan->direction == PARTITA_BACKWARD_WEIGHT ? run_weight(call) : run_forward(call);
}
