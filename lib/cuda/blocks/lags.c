// SPDX-License-Identifier: MIT
// Few outputs of long operands: sums of chunks of terms for every window of outputs, added in
// groups, one inverse transform a window.
#include "base/sizes.h"
#include "blocks.h"

static struct cuda_lags lags_of(const struct cuda_blocks_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &call->blocks->shape;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const struct cuda_pairs rows =
        cuda_blocks_rows(call, 0, weight ? shape->batch : shape->batch * shape->groups);
    const struct block_layout *layout = &cuda_blocks_of(plan)->layout;
    struct cuda_lags lags = {.taps = cuda_blocks_taps(plan),
                             .x = cuda_blocks_x(plan),
                             .taps_samples = call->taps,
                             .x_samples = call->operands->from[0],
                             .taps_rows = rows.left_rows,
                             .x_rows = rows.right_rows,
                             .channels = rows.terms,
                             .taps_term = rows.left_term,
                             .x_term = rows.right_term,
                             .hop = (int64_t)layout->hop,
                             .windows = (int64_t)layout->blocks,
                             .chunks = (int64_t)layout->chunks};
    lags.taps.first = (int64_t)layout->trimmed.first_tap;
    lags.taps.count = (int64_t)layout->tap_blocks;
    lags.taps.hop = lags.taps.length = (int64_t)layout->tap_block;
    lags.x.first = layout->trimmed.first - (ptrdiff_t)(layout->tap_block - 1);
    lags.x.length = (int64_t)layout->n;
    return lags;
}

// Sums of all chunks, and of these: *ret_sums is where those of whole windows are, in `sums` or
// behind it.
static enum partita_status sum_windows(const struct partita_plan *plan,
                                       const struct cuda_fft_params *params,
                                       const struct cuda_lags *lags, char *sums, char **ret_sums)
{
    const struct block_layout *layout = &cuda_blocks_of(plan)->layout;
    const size_t spectrum = (size_t)params->points * 2 * plan->shape.scalar_bytes;
    char *from = sums, *to = sums + layout->windows * layout->chunks * spectrum;
    enum partita_status status = CU(plan, cuda_launch_lags(params, lags, sums));
    for (int64_t chunks = lags->chunks; chunks > 1 && status == PARTITA_OK;
         chunks = (chunks - 1) / CUDA_LAGS_GROUP + 1) {
        char *free = from;
        status = CU(plan, cuda_launch_lags_add(params, to, from, lags->tasks, chunks));
        from = to;
        to = free;
    }
    *ret_sums = from;
    return status;
}

enum partita_status cuda_lags_run(const struct cuda_blocks_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &call->blocks->shape;
    const struct block_layout *layout = &call->blocks->layout;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t rows = shape->out_channels * (weight ? shape->group_in : shape->batch);
    const struct cuda_fft_params *params = &call->blocks->fft.params;
    const struct cuda_sink sink = cuda_blocks_sink(plan, call->operands->to, 0, rows, call->bias);
    struct cuda_lags lags = lags_of(call);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, all = rows * layout->blocks; at < all && status == PARTITA_OK;
         at += layout->windows) {
        char *sums = NULL;
        lags.first = (int64_t)at;
        lags.tasks = (int64_t)size_min(layout->windows, all - at);
        status = sum_windows(plan, params, &lags, call->sums, &sums);
        if (status == PARTITA_OK)
            status = CU(plan, cuda_launch_lags_results(params, &sink, &lags, sums));
    }
    return status;
}
