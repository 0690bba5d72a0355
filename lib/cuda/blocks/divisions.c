// SPDX-License-Identifier: MIT
// Parts of two sizes that the caller imposes: division by division, the pairs of every interval
// summed, one inverse an interval, its samples added to the outputs.
#include "base/sizes.h"
#include "blocks.h"
#include "cuda/kernels/sums.h"

struct part_schedule cuda_blocks_divisions(const struct shape *shape,
                                           const struct block_layout *layout)
{
    return part_schedule_of(shape, layout->segment, layout->signal_segment);
}

// x < n with t*x = at modulo n, t and n having no common divisor: Euclid's algorithm, keeping of
// each remainder which multiple of t it is.
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

// Intervals of division k, all of which `pairs` describes.
static struct cuda_intervals intervals_of(const struct part_schedule *divisions, size_t k,
                                          const struct cuda_pairs *pairs)
{
    const size_t taps = divisions->taps_part / divisions->unit;
    const size_t signal = divisions->signal_part / divisions->unit;
    const size_t begin = part_schedule_begin(divisions, k, 0) / divisions->unit;
    return (struct cuda_intervals){.pairs = *pairs,
                                   .taps_units = (int64_t)taps,
                                   .signal_units = (int64_t)signal,
                                   .signals = (int64_t)divisions->signals,
                                   .begin = (int64_t)begin,
                                   .residue = (int64_t)solve(taps, begin, signal)};
}

// Division k of some rows.
static enum partita_status run_division(const struct cuda_blocks_call *call,
                                        const struct part_schedule *divisions, size_t k,
                                        const struct cuda_pairs *pairs,
                                        const struct cuda_sink *sink)
{
    const struct partita_plan *plan = call->arrays->plan;
    const struct cuda_fft *fft = &call->blocks->fft;
    const size_t n = part_schedule_intervals(divisions, k), max = call->blocks->layout.in_flight;
    struct cuda_intervals intervals = intervals_of(divisions, k, pairs);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, count; at < n && status == PARTITA_OK; at += count) {
        count = size_min(max, n - at);
        intervals.pairs.first = (int64_t)at;
        intervals.pairs.count = (int64_t)count;
        const ptrdiff_t position =
            (ptrdiff_t)part_schedule_begin(divisions, k, at) - divisions->first;
        status = CU(plan, cuda_launch_intervals(&fft->params, &intervals, cudaStreamPerThread));
        if (status == PARTITA_OK)
            status = cuda_parts_back(plan, fft, sink, call->sums, position, count);
    }
    return status;
}

// Some units [item][group].
static enum partita_status cuda_blocks_run_units(const struct cuda_blocks_call *call, size_t unit,
                                                 size_t units)
{
    const struct partita_plan *plan = call->arrays->plan;
    const struct shape *shape = &call->blocks->shape;
    const struct part_schedule divisions = cuda_blocks_divisions(shape, &call->blocks->layout);
    const struct segment_range signals = part_schedule_signals(&divisions);
    const char *x = (const char *)call->arrays->from[0] +
                    unit * shape->group_in * shape->axis[0].size * shape->sample_bytes;
    struct cuda_windows windows = cuda_blocks_x(plan);
    windows.count = (int64_t)signals.count;
    windows.hop = windows.length = (int64_t)divisions.signal_part;
    windows.first = signals.first * windows.hop;
    struct cuda_pairs pairs = cuda_blocks_rows(call, unit, units);
    pairs.left = call->taps, pairs.left_count = (int64_t)divisions.taps;
    pairs.right = call->inputs, pairs.right_first = signals.first;
    pairs.right_count = (int64_t)signals.count;
    pairs.out = call->sums;
    struct cuda_sink sink =
        cuda_blocks_sink(plan, call->arrays->to, unit * shape->group_out, (size_t)pairs.rows, NULL);
    sink.accumulate = true;
    sink.apart = (int64_t)divisions.apart, sink.hop = sink.apart - 1;
    enum partita_status status = cuda_parts_forward(plan, &call->blocks->fft, call->inputs,
                                                    &windows, units * shape->group_in, x);
    for (size_t k = 0; k < divisions.count && status == PARTITA_OK; k++)
        status = run_division(call, &divisions, k, &pairs, &sink);
    return status;
}

// Bias and activation, which come behind the last sum.
static enum partita_status finish(const struct cuda_blocks_call *call)
{
    const struct partita_plan *plan = call->arrays->plan;
    const struct shape *shape = &call->blocks->shape;
    const struct cuda_finish finish = {.y = call->arrays->to,
                                       .bias = call->bias,
                                       .rows = (int64_t)(shape->batch * shape->out_channels),
                                       .length = (int64_t)shape->axis[0].out,
                                       .channels = (int64_t)shape->out_channels,
                                       .relu =
                                           plan->direction == PARTITA_FORWARD && plan->shape.relu};
    if (!finish.bias && !finish.relu) return PARTITA_OK;
    return CU(plan, cuda_launch_finish(&finish, shape->f64, cudaStreamPerThread));
}

enum partita_status cuda_divisions_run(const struct cuda_call *call,
                                       const struct cuda_filter *filter)
{
    struct cuda_blocks_call own;
    enum partita_status status = cuda_blocks_call_begin(call, filter, &own);
    const struct shape *shape = &own.blocks->shape;
    const size_t all = shape->batch * shape->groups, units = own.blocks->layout.units;
    if (status == PARTITA_OK)
        status = CU(call->plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t unit = 0; unit < all && status == PARTITA_OK; unit += units)
        status = cuda_blocks_run_units(&own, unit, size_min(units, all - unit));
    if (status == PARTITA_OK) status = finish(&own);
    return cuda_fft_end(call->plan, &own.blocks->fft, status);
}
