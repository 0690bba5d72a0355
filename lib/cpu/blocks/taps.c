// SPDX-License-Identifier: MIT
// Blocks of the taps, as a filter and as the methods read them.
#include <string.h>

#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"

struct block_transform blocks_transform(const struct partita_plan *plan, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    static const size_t n_spectra[] = {
        [BLOCK_PAIRS] = 1, [BLOCK_LAGS] = 2 * LAGS_GROUP + 1, [BLOCK_IMPOSED] = 2};
    const bool widen = shape->complex_signal && !shape->complex_taps;
    struct block_transform ret = {
        .fft = blocks_of(plan)->fft,
        .kernels = plan->kernels,
        .sample_bytes = shape->sample_bytes,
        .threads = plan->threads,
        .samples =
            (layout->n ? layout->n : layout->hop + layout->tap_block - 1) * shape->sample_bytes,
        .spectra = layout->hop * shape->sample_bytes,
        .narrow = widen ? layout->tap_block * shape->tap_bytes : 0,
        .work = workspace ? workspace + plan->choice.shared : NULL,
        .work_stride = plan->choice.worker,
    };
    if (ret.fft) ret.spectra = n_spectra[layout->method] * ret.fft->spectrum_bytes;
    return ret;
}

void blocks_load_taps(const struct partita_plan *plan, const char *taps, size_t block,
                      const struct block_buffers *buffers)
{
    char *samples = buffers->samples;
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const bool pairs = layout->method == BLOCK_PAIRS;
    const size_t length = pairs ? layout->tap_block : layout->n;
    const size_t first = block * layout->tap_block;
    const size_t count = size_min(layout->trimmed.taps - first, layout->tap_block);
    const size_t kept = widen ? 0 : count;
    causal_part(shape, widen ? buffers->narrow : samples, taps, layout->trimmed.first_tap + first,
                count);
    memset(samples + kept * shape->sample_bytes, 0, (length - kept) * shape->sample_bytes);
    if (widen) samples_copy(samples, 2, buffers->narrow, 1, count, shape->tap_bytes);
    if (pairs)
        plan->kernels->scale(samples, samples, 1 / blocks_of(plan)->fft->gain,
                             length * (shape->sample_bytes / shape->scalar_bytes));
}

size_t blocks_taps_bytes(const struct partita_plan *plan)
{
    const struct fft *fft = blocks_of(plan)->fft;
    const size_t in_time =
        mem_round(blocks_layout(plan)->tap_block * blocks_shape(plan)->tap_bytes);
    return fft ? fft->spectrum_bytes : in_time;
}

struct filtering {
    const struct partita_filter *filter;
    const char *taps;
    struct block_transform transform;
};

// One task: one block of one path.
static void filter_block(void *context, size_t task, int worker)
{
    const struct filtering *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct block_layout *layout = blocks_layout(plan);
    const size_t path = task / layout->tap_blocks, block = task % layout->tap_blocks;
    const char *taps = blocks_path(plan, call->taps, path);
    struct block_buffers buffers = block_buffers_of(&call->transform, worker);
    char *state = call->filter->state, *to = state + task * blocks_taps_bytes(plan);
    if (!layout->n) {
        causal_part(blocks_shape(plan), to, taps, block * layout->tap_block, layout->tap_block);
        return;
    }
    blocks_load_taps(plan, taps, block, &buffers);
    if (layout->method != BLOCK_PAIRS) {
        fft_forward(blocks_of(plan)->fft, to, buffers.samples, buffers.scratch);
        return;
    }
    const struct block_spectra spectra = blocks_taps_spectra(plan, state, path);
    block_forward(&call->transform, &spectra, block, buffers.samples, &buffers);
}

struct filter_bytes blocks_filter_bytes(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    const struct block_transform transform = blocks_transform(plan, NULL);
    const size_t path = layout->method == BLOCK_PAIRS
                            ? block_spectra_bytes(transform.fft->lines, layout->tap_blocks)
                            : size_mul(layout->tap_blocks, blocks_taps_bytes(plan));
    return (struct filter_bytes){
        .packed = size_mul(shape_path_count(blocks_shape(plan)), path),
        .scratch = size_mul((size_t)plan->threads, block_buffers_bytes(&transform))};
}

enum partita_status blocks_filter_pack(struct partita_filter *filter, const void *taps,
                                       const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    struct filtering call = {
        .filter = filter, .taps = taps, .transform = blocks_transform(plan, NULL)};
    call.transform.work = scratch->data;
    call.transform.work_stride = block_buffers_bytes(&call.transform);
    thread_loop(plan_threads_in(plan, scratch, call.transform.work_stride),
                shape_path_count(blocks_shape(plan)) * blocks_layout(plan)->tap_blocks,
                filter_block, &call);
    return PARTITA_OK;
}
