// SPDX-License-Identifier: MIT
// Blocks of two sizes that the caller imposes: division by division, the pairs of every interval
// summed, one inverse an interval, its samples added to the outputs.
#include "base/sizes.h"
#include "blocks.h"

// Division k of some rows.
static enum partita_status run_division(const struct cuda_blocks_call *call,
                                        const struct part_schedule *divisions, size_t k,
                                        const struct cuda_pairs *pairs,
                                        const struct cuda_sink *sink)
{
    const struct cuda_fft *fft = &call->blocks->fft;
    const size_t n = part_schedule_intervals(divisions, k);
    const size_t max = size_min(call->blocks->layout.in_flight, CUDA_MAX_INTERVALS);
    struct cuda_intervals intervals = {
        .pairs = *pairs,
        .taps_step = (int64_t)(divisions->signal_part / divisions->unit),
        .signal_step = (int64_t)(divisions->taps_part / divisions->unit),
    };
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, count; at < n && status == PARTITA_OK; at += count) {
        const size_t begin = part_schedule_begin(divisions, k, at);
        count = size_min(max, n - at);
        intervals.pairs.count = (int64_t)count;
        for (size_t i = 0; i < count; i++) {
            const struct part_schedule_pairs chain =
                part_schedule_pairs(divisions, begin + i * divisions->apart);
            intervals.chain[i].taps = (int)chain.taps;
            intervals.chain[i].signal = (int)chain.signal;
            intervals.chain[i].count = (int)chain.count;
        }
        status = CU(call->plan, cuda_launch_intervals(&fft->params, &intervals));
        if (status == PARTITA_OK)
            status = cuda_blocks_back(call->plan, fft, sink, call->sums,
                                      (ptrdiff_t)begin - divisions->first, count);
    }
    return status;
}

// Some units [item][group].
static enum partita_status cuda_blocks_run_units(const struct cuda_blocks_call *call, size_t unit,
                                                 size_t units)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &call->blocks->shape;
    const struct block_layout *layout = &call->blocks->layout;
    const struct part_schedule divisions =
        part_schedule_of(shape, layout->tap_block, layout->signal_block);
    const struct range signals = part_schedule_signals(&divisions);
    const char *x = (const char *)call->operands->from[0] +
                    unit * shape->group_in * shape->axis[0].size * shape->sample_bytes;
    struct cuda_windows windows = cuda_row_windows(shape->axis[0].size, shape->complex_signal);
    windows.count = (int64_t)signals.size;
    windows.hop = windows.length = (int64_t)divisions.signal_part;
    windows.first = signals.first * windows.hop;
    struct cuda_pairs pairs = cuda_blocks_rows(call, unit, units);
    pairs.left = call->taps, pairs.left_count = (int64_t)divisions.taps;
    pairs.right = call->inputs, pairs.right_first = signals.first;
    pairs.right_count = (int64_t)signals.size;
    pairs.out = call->sums;
    struct cuda_sink sink = cuda_blocks_sink(plan, call->operands->to, unit * shape->group_out,
                                             (size_t)pairs.rows, NULL);
    sink.accumulate = true;
    sink.apart = (int64_t)divisions.apart, sink.hop = sink.apart - 1;
    enum partita_status status = cuda_blocks_forward(plan, &call->blocks->fft, call->inputs,
                                                     &windows, units * shape->group_in, x);
    for (size_t k = 0; k < divisions.count && status == PARTITA_OK; k++)
        status = run_division(call, &divisions, k, &pairs, &sink);
    return status;
}

enum partita_status cuda_divisions_run(const struct cuda_blocks_call *call)
{
    const struct shape *shape = &call->blocks->shape;
    const size_t all = shape->batch * shape->groups, units = call->blocks->layout.units;
    enum partita_status status = cuda_clear_result(call->plan, call->operands->to);
    for (size_t unit = 0; unit < all && status == PARTITA_OK; unit += units)
        status = cuda_blocks_run_units(call, unit, size_min(units, all - unit));
    // Bias and activation come behind the last sum.
    return status == PARTITA_OK ? cuda_finish_result(call->plan, call->operands->to, call->bias)
                                : status;
}
