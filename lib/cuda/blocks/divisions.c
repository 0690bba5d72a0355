// SPDX-License-Identifier: MIT
// Parts of two sizes that the caller imposes: division by division, the pairs of every interval
// summed, one inverse an interval, its samples added to the outputs.
#include "geometry/part_schedule.h"

#include "base/sizes.h"
#include "blocks.h"
#include "cuda/kernels/sums.h"
#include "intervals.h"

struct part_schedule cuda_blocks_divisions(const struct shape *shape,
                                           const struct cuda_blocks_layout *layout)
{
    return part_schedule_of(shape, layout->part, layout->signal_part);
}

// x < n with t*x = at modulo n, t and n having no common divisor: Euclid's algorithm, keeping of
// each rest which multiple of t it is.
static size_t solve(size_t t, size_t at, size_t n)
{
    ptrdiff_t rest = (ptrdiff_t)n, next = (ptrdiff_t)(t % n), of_rest = 0, of_next = 1;
    while (next) {
        const ptrdiff_t times = rest / next, later = rest - times * next,
                        of_later = of_rest - times * of_next;
        rest = next, next = later;
        of_rest = of_next, of_next = of_later;
    }
    const size_t inverse = of_rest < 0 ? (size_t)(of_rest + (ptrdiff_t)n) : (size_t)of_rest;
    return at % n * (inverse % n) % n;
}

// What a call works on.
struct run {
    struct cuda_transforms transforms;
    const struct cuda_blocks *blocks;
    struct part_schedule divisions;
    struct segment_range signals;
    char *inputs, *sums; // spectra
    const void *taps;    // likewise
};

static struct cuda_windows parts_of_x(const struct run *run)
{
    struct cuda_windows windows = cuda_blocks_x(run->transforms.plan);
    windows.windows = (int64_t)run->signals.count;
    windows.hop = windows.length = (int64_t)run->divisions.signal_part;
    windows.first = run->signals.first * windows.hop;
    return windows;
}

// Intervals of division k, all of which `pairs` describes.
static struct cuda_intervals intervals_of(const struct run *run, size_t k,
                                          const struct cuda_pairs *pairs)
{
    const struct part_schedule *divisions = &run->divisions;
    const size_t taps = divisions->taps_part / divisions->unit,
                 signal = divisions->signal_part / divisions->unit;
    const size_t begin = part_schedule_begin(divisions, k, 0) / divisions->unit;
    return (struct cuda_intervals){.pairs = *pairs,
                                   .taps_units = (int64_t)taps,
                                   .signal_units = (int64_t)signal,
                                   .signals = (int64_t)divisions->signals,
                                   .begin = (int64_t)begin,
                                   .residue = (int64_t)solve(taps, begin, signal),
                                   .apart = (int64_t)divisions->apart,
                                   .hop = (int64_t)divisions->apart - 1};
}

// Division k of some lines.
static enum partita_status run_division(const struct run *run, size_t k,
                                        const struct cuda_pairs *pairs,
                                        const struct cuda_sink *sink)
{
    const struct partita_plan *plan = run->transforms.plan;
    const struct cuda_kit *kit = &run->transforms.kit;
    const size_t n = part_schedule_intervals(&run->divisions, k), most = run->blocks->layout.run;
    struct cuda_intervals intervals = intervals_of(run, k, pairs);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, count; at < n && status == PARTITA_OK; at += count) {
        count = size_min(most, n - at);
        intervals.pairs.first = (int64_t)at;
        intervals.pairs.count = (int64_t)count;
        intervals.position =
            (ptrdiff_t)part_schedule_begin(&run->divisions, k, at) - run->divisions.first;
        status = CU(plan, cuda_launch_intervals(kit, &intervals, cudaStreamPerThread));
        if (status == PARTITA_OK)
            status =
                cuda_transforms_long(&run->transforms, run->sums, (size_t)pairs->lines * count);
        if (status == PARTITA_OK)
            status =
                CU(plan, cuda_launch_add_intervals(kit, &intervals, sink, cudaStreamPerThread));
    }
    return status;
}

// Some units [item][group].
static enum partita_status run_units(const struct run *run, size_t unit, size_t units,
                                     const struct cuda_call *call)
{
    const struct partita_plan *plan = run->transforms.plan;
    const struct shape *shape = &run->blocks->shape;
    const struct cuda_windows windows = parts_of_x(run);
    const char *x = (const char *)call->from[0] +
                    unit * shape->group_in * shape->axis[0].size * shape->sample_bytes;
    struct cuda_pairs pairs = cuda_blocks_lines(run->blocks, unit, units);
    pairs.left = run->taps, pairs.left_count = (int64_t)run->divisions.taps;
    pairs.right = run->inputs, pairs.right_first = run->signals.first,
    pairs.right_count = (int64_t)run->signals.count;
    pairs.out = run->sums;
    const struct cuda_sink sink =
        cuda_blocks_sink(plan, call->to, unit * shape->group_out, (size_t)pairs.lines, NULL);
    enum partita_status status = cuda_transforms_forward(&run->transforms, run->inputs, &windows,
                                                         units * shape->group_in, x);
    for (size_t k = 0; k < run->divisions.count && status == PARTITA_OK; k++)
        status = run_division(run, k, &pairs, &sink);
    return status;
}

// Bias and activation, which come behind the last sum.
static enum partita_status finish(const struct run *run, const struct cuda_call *call,
                                  const void *bias)
{
    const struct shape *shape = &run->blocks->shape;
    const struct cuda_finish finish = {.y = call->to,
                                       .bias = bias,
                                       .rows = (int64_t)(shape->batch * shape->out_channels),
                                       .length = (int64_t)shape->axis[0].out,
                                       .channels = (int64_t)shape->out_channels,
                                       .relu = call->plan->direction == PARTITA_FORWARD &&
                                               call->plan->shape.relu};
    if (!finish.bias && !finish.relu) return PARTITA_OK;
    return CU(call->plan, cuda_launch_finish(&finish, shape->f64, cudaStreamPerThread));
}

enum partita_status cuda_divisions_run(const struct cuda_call *call,
                                       const struct cuda_blocks_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_blocks_layout *layout = &blocks->layout;
    const struct cuda_pairs_bytes bytes = cuda_pairs_bytes(&blocks->shape, plan->direction, layout);
    const size_t all = blocks->shape.batch * blocks->shape.groups;
    struct arena arena = {.base = call->workspace};
    struct run run = {.blocks = blocks,
                      .divisions = cuda_blocks_divisions(&blocks->shape, layout),
                      .taps = filter->taps};
    run.signals = part_schedule_signals(&run.divisions);
    run.inputs = arena_take(&arena, bytes.inputs);
    run.sums = arena_take(&arena, bytes.sums);
    void *area = arena_take(&arena, cuda_fft_area(&blocks->parts.fft));
    enum partita_status status = cuda_transforms_begin(plan, &blocks->parts, area, &run.transforms);
    if (status == PARTITA_OK)
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t unit = 0; unit < all && status == PARTITA_OK; unit += layout->units)
        status = run_units(&run, unit, size_min(layout->units, all - unit), call);
    if (status == PARTITA_OK) status = finish(&run, call, filter->bias);
    return cuda_transforms_end(&run.transforms, status);
}
