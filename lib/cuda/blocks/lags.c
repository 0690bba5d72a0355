// SPDX-License-Identifier: MIT
// Few outputs of long operands: sums of chunks of terms for every window of outputs, added in
// groups, one inverse transform a window.
#include "base/sizes.h"
#include "blocks.h"

// Which row of the taps and of x a row of outputs begins with, and how far it is to the next
// term's.
static void map_rows(const struct partita_plan *plan, struct cuda_lags *lags)
{
    const struct shape *shape = &cuda_blocks_of(plan)->shape;
    const int64_t in = (int64_t)shape->group_in, out = (int64_t)shape->group_out,
                  groups = (int64_t)shape->groups, batch = (int64_t)shape->batch;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) { // outputs [group][out][in], summed over items
        lags->taps_rows = (struct cuda_row_map){{groups, out, in}, {out, 1, 0}};
        lags->x_rows = (struct cuda_row_map){{groups, out, in}, {in, 0, 1}};
        lags->channels = batch;
        lags->taps_term = (int64_t)shape->out_channels;
        lags->x_term = (int64_t)shape->in_channels;
        return;
    }
    lags->taps_rows = (struct cuda_row_map){{batch, groups, out}, {0, in * out, in}};
    lags->x_rows = (struct cuda_row_map){{batch, groups, out}, {in * groups, in, 0}};
    lags->channels = in;
    lags->taps_term = lags->x_term = 1;
}

static struct cuda_lags lags_of(const struct partita_plan *plan, const void *taps, const void *x)
{
    const struct block_layout *layout = &cuda_blocks_of(plan)->layout;
    struct cuda_lags lags = {.taps = cuda_blocks_taps(plan),
                             .x = cuda_blocks_x(plan),
                             .taps_samples = taps,
                             .x_samples = x,
                             .hop = (int64_t)layout->hop,
                             .windows = (int64_t)layout->blocks,
                             .chunks = (int64_t)layout->chunks};
    lags.taps.first = (int64_t)layout->trimmed.first_tap;
    lags.taps.count = (int64_t)layout->segments;
    lags.taps.hop = lags.taps.length = (int64_t)layout->segment;
    lags.x.first = layout->trimmed.first - (ptrdiff_t)(layout->segment - 1);
    lags.x.length = (int64_t)layout->n;
    map_rows(plan, &lags);
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
    enum partita_status status =
        CU(plan, cuda_launch_lags(params, lags, sums, cudaStreamPerThread));
    for (int64_t chunks = lags->chunks; chunks > 1 && status == PARTITA_OK;
         chunks = (chunks - 1) / CUDA_LAGS_GROUP + 1) {
        char *free = from;
        status = CU(
            plan, cuda_launch_lags_add(params, to, from, lags->tasks, chunks, cudaStreamPerThread));
        from = to;
        to = free;
    }
    *ret_sums = from;
    return status;
}

enum partita_status cuda_lags_run(const struct cuda_call *call, const void *taps, const void *bias)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &cuda_blocks_of(plan)->shape;
    const struct block_layout *layout = &cuda_blocks_of(plan)->layout;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t rows = shape->out_channels * (weight ? shape->group_in : shape->batch);
    const struct cuda_fft_params *params = &cuda_blocks_of(plan)->fft.params;
    const struct cuda_sink sink = cuda_blocks_sink(plan, call->to, 0, rows, bias);
    struct cuda_lags lags = lags_of(plan, taps, call->from[0]);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, all = rows * layout->blocks; at < all && status == PARTITA_OK;
         at += layout->windows) {
        char *sums = NULL;
        lags.first = (int64_t)at;
        lags.tasks = (int64_t)size_min(layout->windows, all - at);
        status = sum_windows(plan, params, &lags, call->workspace, &sums);
        if (status == PARTITA_OK)
            status =
                CU(plan, cuda_launch_lags_results(params, &sink, &lags, sums, cudaStreamPerThread));
    }
    return status;
}
