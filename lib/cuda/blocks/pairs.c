// SPDX-License-Identifier: MIT
// All pairs of parts: spectra of x, a run of output blocks after the other, sums of products, one
// inverse transform a block.
#include "base/sizes.h"
#include "blocks.h"

static void cut_windows(const struct cuda_blocks_layout *layout, struct cuda_windows *windows,
                        ptrdiff_t first, size_t count)
{
    windows->first = first;
    windows->windows = (int64_t)count;
    windows->hop = windows->length = (int64_t)layout->part;
}

// Parts of the taps from the first that any output sees.
static struct cuda_windows parts_of_taps(const struct partita_plan *plan)
{
    const struct cuda_blocks_layout *layout = &cuda_blocks_of(plan)->layout;
    struct cuda_windows windows = cuda_blocks_taps(plan);
    cut_windows(layout, &windows, (ptrdiff_t)layout->trimmed.first_tap, layout->parts);
    return windows;
}

// Parts of x that output blocks first .. end-1 see.
static struct segment_range inputs_of(const struct cuda_blocks *blocks, size_t first, size_t end)
{
    const struct cuda_blocks_layout *layout = &blocks->layout;
    struct segment_range range =
        segments_inside(layout->trimmed.first, layout->part, blocks->shape.axis[0].size);
    const ptrdiff_t from = (ptrdiff_t)first - (ptrdiff_t)layout->parts;
    ptrdiff_t behind = range.first + (ptrdiff_t)range.count;
    if (range.first < from) range.first = from;
    if (behind > (ptrdiff_t)end) behind = (ptrdiff_t)end;
    range.count = behind > range.first ? (size_t)(behind - range.first) : 0;
    return range;
}

static struct cuda_windows parts_of_x(const struct partita_plan *plan,
                                      const struct segment_range *range)
{
    const struct cuda_blocks_layout *layout = &cuda_blocks_of(plan)->layout;
    struct cuda_windows windows = cuda_blocks_x(plan);
    cut_windows(layout, &windows, layout->trimmed.first + range->first * (ptrdiff_t)layout->part,
                range->count);
    return windows;
}

enum partita_status cuda_pairs_filter(const struct partita_plan *plan, void *spectra,
                                      const void *taps)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_windows windows = parts_of_taps(plan);
    const size_t area_bytes = cuda_fft_area(&blocks->parts.fft);
    struct cuda_transforms transforms = {0};
    void *area = NULL;
    enum partita_status status = area_bytes ? cuda_allocate(plan, area_bytes, &area) : PARTITA_OK;
    if (status == PARTITA_OK)
        status = cuda_transforms_begin(plan, &blocks->parts, area, &transforms);
    if (status == PARTITA_OK)
        status = cuda_transforms_forward(&transforms, spectra, &windows,
                                         blocks->shape.out_channels * blocks->shape.group_in, taps);
    const enum partita_status waited = cuda_wait(plan);
    status = cuda_transforms_end(&transforms, status);
    cuda_release(plan, area);
    return status == PARTITA_OK ? waited : status;
}

// What a call works on.
struct run {
    struct cuda_transforms transforms;
    const struct cuda_blocks *blocks;
    char *inputs, *taps, *sums; // spectra
    const char *x, *gy;
    void *y;
    const void *bias;
};

// A line of an array and those behind it.
static const char *lines_from(const struct shape *shape, const char *array, size_t length,
                              size_t line)
{
    return array + line * length * shape->sample_bytes;
}

static size_t blocks_of_thread(const struct cuda_blocks *blocks, size_t lines, size_t count)
{
    return cuda_parts_of_thread(blocks->layout.points * (size_t)blocks->parts.planes, lines, count);
}

struct cuda_pairs cuda_blocks_lines(const struct cuda_blocks *blocks, size_t unit, size_t units)
{
    const struct shape *shape = &blocks->shape;
    return (struct cuda_pairs){
        .left_lines = {{1, 1, (int64_t)shape->out_channels}, {0, 0, (int64_t)shape->group_in}},
        .right_lines = {{1, (int64_t)units, (int64_t)shape->group_out},
                        {0, (int64_t)shape->group_in, 0}},
        .left_first = (int64_t)(unit % shape->groups * shape->group_out),
        .lines = (int64_t)(units * shape->group_out),
        .terms = (int64_t)shape->group_in,
        .left_term = 1,
        .right_term = 1,
    };
}

// Forward, of some units [item][group] and some blocks of outputs.
static enum partita_status run_units(const struct run *run, size_t unit, size_t units, size_t first,
                                     size_t count)
{
    const struct partita_plan *plan = run->transforms.plan;
    const struct cuda_blocks *blocks = run->blocks;
    const struct shape *shape = &blocks->shape;
    const struct segment_range range = inputs_of(blocks, first, first + count);
    const struct cuda_windows windows = parts_of_x(plan, &range);
    const size_t lines = units * shape->group_out;
    struct cuda_pairs pairs = cuda_blocks_lines(blocks, unit, units);
    pairs.left = run->taps, pairs.left_count = (int64_t)blocks->layout.parts;
    pairs.right = run->inputs, pairs.right_first = range.first,
    pairs.right_count = (int64_t)range.count;
    pairs.out = run->sums, pairs.first = (int64_t)first, pairs.count = (int64_t)count;
    pairs.run = (int64_t)blocks_of_thread(blocks, lines, count);
    const struct cuda_sink sink =
        cuda_blocks_sink(plan, run->y, unit * shape->group_out, lines, run->bias);
    const char *x = lines_from(shape, run->x, shape->axis[0].size, unit * shape->group_in);
    enum partita_status status = cuda_transforms_forward(&run->transforms, run->inputs, &windows,
                                                         units * shape->group_in, x);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_launch_pairs(&run->transforms.kit, &pairs, cudaStreamPerThread));
    if (status != PARTITA_OK) return status;
    return cuda_transforms_back(&run->transforms, &sink, run->sums,
                                (ptrdiff_t)(first * blocks->layout.hop), count);
}

static enum partita_status run_forward(const struct run *run)
{
    const struct shape *shape = &run->blocks->shape;
    const struct cuda_blocks_layout *layout = &run->blocks->layout;
    enum partita_status status = PARTITA_OK;
    for (size_t unit = 0, all = shape->batch * shape->groups; unit < all; unit += layout->units)
        for (size_t at = 0; at < layout->blocks && status == PARTITA_OK; at += layout->run)
            status = run_units(run, unit, size_min(layout->units, all - unit), at,
                               size_min(layout->run, layout->blocks - at));
    return status;
}

// Some items of the batch of backward weight: sums of all cells, added to those of the items
// before.
static enum partita_status add_items(const struct run *run, size_t item, size_t items)
{
    const struct partita_plan *plan = run->transforms.plan;
    const struct cuda_blocks *blocks = run->blocks;
    const struct shape *shape = &blocks->shape;
    const int64_t in = (int64_t)shape->group_in, out = (int64_t)shape->group_out,
                  groups = (int64_t)shape->groups;
    const struct segment_range range = inputs_of(blocks, 0, blocks->layout.blocks);
    const struct cuda_windows inputs = parts_of_x(plan, &range), taps = parts_of_taps(plan);
    const size_t cells = shape->out_channels * shape->group_in;
    const char *x = lines_from(shape, run->x, shape->axis[0].size, item * shape->in_channels);
    const char *gy = lines_from(shape, run->gy, shape->axis[0].kernel, item * shape->out_channels);
    const struct cuda_pairs pairs = {
        .left_lines = {{groups, out, in}, {out, 1, 0}},
        .right_lines = {{groups, out, in}, {in, 0, 1}},
        .lines = (int64_t)cells,
        .terms = (int64_t)items,
        .left_term = (int64_t)shape->out_channels,
        .right_term = (int64_t)shape->in_channels,
        .left_count = (int64_t)blocks->layout.parts,
        .right_count = (int64_t)range.count,
        .right_first = range.first,
        .count = (int64_t)blocks->layout.blocks,
        .run = (int64_t)blocks_of_thread(blocks, cells, blocks->layout.blocks),
        .add = item > 0,
        .left = run->taps,
        .right = run->inputs,
        .out = run->sums,
    };
    enum partita_status status = cuda_transforms_forward(&run->transforms, run->inputs, &inputs,
                                                         items * shape->in_channels, x);
    if (status == PARTITA_OK)
        status = cuda_transforms_forward(&run->transforms, run->taps, &taps,
                                         items * shape->out_channels, gy);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_launch_pairs(&run->transforms.kit, &pairs, cudaStreamPerThread));
    return status;
}

static enum partita_status run_weight(const struct run *run)
{
    const struct shape *shape = &run->blocks->shape;
    const size_t cells = shape->out_channels * shape->group_in, units = run->blocks->layout.units;
    enum partita_status status = PARTITA_OK;
    for (size_t item = 0; item < shape->batch && status == PARTITA_OK; item += units)
        status = add_items(run, item, size_min(units, shape->batch - item));
    const struct cuda_sink sink = cuda_blocks_sink(run->transforms.plan, run->y, 0, cells, NULL);
    return status == PARTITA_OK ? cuda_transforms_back(&run->transforms, &sink, run->sums, 0,
                                                       run->blocks->layout.blocks)
                                : status;
}

enum partita_status cuda_pairs_run(const struct cuda_call *call,
                                   const struct cuda_blocks_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_pairs_bytes bytes =
        cuda_pairs_bytes(&blocks->shape, plan->direction, &blocks->layout);
    struct arena arena = {.base = call->workspace};
    struct run run = {.blocks = blocks,
                      .x = call->from[0],
                      .gy = call->from[1],
                      .y = call->to,
                      .bias = filter ? filter->bias : NULL};
    run.inputs = arena_take(&arena, bytes.inputs);
    run.taps = filter ? filter->taps : arena_take(&arena, bytes.taps);
    run.sums = arena_take(&arena, bytes.sums);
    enum partita_status status = cuda_transforms_begin(
        plan, &blocks->parts, arena_take(&arena, cuda_fft_area(&blocks->parts.fft)),
        &run.transforms);
    if (status == PARTITA_OK) status = filter ? run_forward(&run) : run_weight(&run);
    return cuda_transforms_end(&run.transforms, status);
}
