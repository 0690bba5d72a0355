// SPDX-License-Identifier: MIT
// Few outputs of long operands (cuda/kernels/lags.h): sums of chunks of terms for every window of
// outputs, added, one inverse transform a window.
#include "cuda/kernels/lags.h"
#include "base/sizes.h"
#include "blocks.h"

// Outputs are lags of x and the taps from the last one on.
static struct cuda_lags lags_of(const struct cuda_blocks_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &call->blocks->shape;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const struct cuda_pairs rows =
        cuda_blocks_rows(call, 0, weight ? shape->batch : shape->batch * shape->groups);
    const struct block_layout *layout = &call->blocks->layout;
    const ptrdiff_t last_tap = (ptrdiff_t)(layout->tap_blocks * layout->tap_block) - 1;
    struct cuda_lags lags = {.form = call->blocks->fft.params.form,
                             .x = cuda_row_windows(shape->axis[0].size, shape->complex_signal),
                             .w = cuda_blocks_taps(plan),
                             .x_rows = rows.right_rows,
                             .w_rows = rows.left_rows,
                             .terms = rows.terms,
                             .x_term = rows.right_term,
                             .w_term = rows.left_term,
                             .chunk = (int64_t)layout->hop,
                             .chunks = (int64_t)layout->blocks,
                             .jobs = (int64_t)layout->blocks,
                             .splits = (int64_t)layout->chunks};
    lags.x.first = layout->trimmed.first - last_tap;
    lags.x.length = (int64_t)layout->n;
    lags.w.reversed = !lags.w.reversed;
    lags.w.conjugated = !lags.w.conjugated; // the kernel conjugates once more
    lags.w.first =
        (lags.w.size - 1) * lags.w.step - (ptrdiff_t)layout->trimmed.first_tap - last_tap;
    lags.w.count = (int64_t)layout->tap_blocks;
    lags.w.hop = lags.w.length = (int64_t)layout->tap_block;
    // No thread row shall be without a chain, nor a chain have more terms than are summed in a row.
    const size_t thread_rows = (size_t)cuda_fft_rows((size_t)call->blocks->fft.params.points);
    const size_t wanted = ceil_div(layout->chunks * thread_rows, (size_t)rows.terms);
    const size_t chains = size_max(wanted, ceil_div(layout->tap_blocks, CUDA_LAGS_TERMS));
    lags.chains = (int64_t)size_max(size_min(chains, layout->tap_blocks), 1);
    return lags;
}

enum partita_status cuda_lags_run(const struct cuda_blocks_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &call->blocks->shape;
    const struct block_layout *layout = &call->blocks->layout;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t rows = shape->out_channels * (weight ? shape->group_in : shape->batch);
    const struct cuda_sink sink = cuda_blocks_sink(plan, call->operands->to, 0, rows, call->bias);
    struct cuda_lags lags = lags_of(call);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, all = rows * layout->blocks; at < all && status == PARTITA_OK;
         at += layout->windows) {
        lags.first = (int64_t)at;
        lags.tasks = (int64_t)size_min(layout->windows, all - at);
        status = CU(plan, cuda_launch_lags(&lags, 1, shape->f64, call->sums,
                                           call->operands->from[0], call->taps));
        if (status == PARTITA_OK)
            status = CU(plan, cuda_launch_lags_results(&lags, &sink, shape->f64, call->sums));
    }
    return status;
}
