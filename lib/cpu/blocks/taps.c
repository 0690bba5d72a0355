// SPDX-License-Identifier: MIT
// Blocks of the taps, as a filter and as the methods read them, and the buffers of a thread.
#include <string.h>

#include "base/sizes.h"
#include "blocks.h"
#include "geometry/samples.h"

struct blocks_buffers blocks_buffers_layout(const struct partita_plan *plan, struct arena *arena)
{
    const struct fft *fft = blocks_of(plan)->fft;
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    static const size_t n_spectra[] = {
        [BLOCK_PAIRS] = 1, [BLOCK_LAGS] = 2 * LAGS_GROUP + 1, [BLOCK_IMPOSED] = 3};
    const size_t interval = layout->hop * shape->sample_bytes;
    const size_t samples = fft ? layout->n : layout->hop + layout->tap_block - 1;
    struct blocks_buffers buffers;
    buffers.samples = arena_take(arena, samples * shape->sample_bytes);
    buffers.narrow = arena_take(arena, fft ? layout->tap_block * shape->tap_bytes : 0);
    buffers.scratch = arena_take(arena, fft ? fft->scratch_bytes : 0);
    buffers.spectra =
        arena_take(arena, fft ? n_spectra[layout->method] * fft->spectrum_bytes : interval);
    return buffers;
}

size_t blocks_buffers_bytes(const struct partita_plan *plan)
{
    struct arena arena = {0};
    blocks_buffers_layout(plan, &arena);
    return arena.used;
}

void blocks_load_taps(const struct partita_plan *plan, const char *taps, size_t block,
                      char *samples, char *narrow)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const bool pairs = layout->method == BLOCK_PAIRS;
    const size_t length = pairs ? layout->tap_block : layout->n;
    const size_t first = block * layout->tap_block;
    const size_t count = size_min(layout->trimmed.taps - first, layout->tap_block);
    const size_t kept = widen ? 0 : count;
    causal_part(shape, widen ? narrow : samples, taps, layout->trimmed.first_tap + first, count);
    memset(samples + kept * shape->sample_bytes, 0, (length - kept) * shape->sample_bytes);
    if (widen) samples_copy(samples, 2, narrow, 1, count, shape->tap_bytes);
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
    char *work; // blocks_buffers_bytes per thread
};

// One task: one block of one path.
static void filter_block(void *context, size_t task, int worker)
{
    const struct filtering *call = context;
    const struct partita_plan *plan = call->filter->plan;
    const struct block_layout *layout = blocks_layout(plan);
    const size_t path = task / layout->tap_blocks, block = task % layout->tap_blocks;
    const char *taps = blocks_path(plan, call->taps, path);
    struct arena arena = {.base = call->work + (size_t)worker * blocks_buffers_bytes(plan)};
    const struct blocks_buffers buffers = blocks_buffers_layout(plan, &arena);
    char *state = call->filter->state, *to = state + task * blocks_taps_bytes(plan);
    if (!layout->n) {
        causal_part(blocks_shape(plan), to, taps, block * layout->tap_block, layout->tap_block);
        return;
    }
    blocks_load_taps(plan, taps, block, buffers.samples, buffers.narrow);
    if (layout->method != BLOCK_PAIRS) {
        fft_forward(blocks_of(plan)->fft, to, buffers.samples, buffers.scratch);
        return;
    }
    const struct block_transform transform = blocks_transform(plan);
    const struct block_spectra spectra = blocks_taps_spectra(plan, state, path);
    struct block_buffers worker_buffers = {buffers.samples, buffers.spectra, buffers.scratch};
    block_forward(&transform, &spectra, block, buffers.samples, &worker_buffers);
}

struct filter_bytes blocks_filter_bytes(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    const size_t path = layout->method == BLOCK_PAIRS
                            ? block_spectra_bytes(blocks_of(plan)->fft->lines, layout->tap_blocks)
                            : size_mul(layout->tap_blocks, blocks_taps_bytes(plan));
    return (struct filter_bytes){.packed = size_mul(shape_path_count(blocks_shape(plan)), path),
                                 .scratch =
                                     size_mul((size_t)plan->threads, blocks_buffers_bytes(plan))};
}

enum partita_status blocks_filter_pack(struct partita_filter *filter, const void *taps,
                                       const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    struct filtering call = {.filter = filter, .taps = taps, .work = scratch->data};
    thread_loop(plan_threads_in(plan, scratch, blocks_buffers_bytes(plan)),
                shape_path_count(blocks_shape(plan)) * blocks_layout(plan)->tap_blocks,
                filter_block, &call);
    return PARTITA_OK;
}
