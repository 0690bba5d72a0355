// SPDX-License-Identifier: MIT
// Few outputs of long operands: the lags around zero of two recordings. A window of outputs reads
// each block of the taps through a window of the signal; all their products fall on the same
// outputs, so one spectrum sums them and one inverse transform ends it. Memory is that of some
// spectra, however long the operands are.
//
// Blocks are summed in chunks of up to 64. In a round LAGS_CHUNKS of these go in parallel; their
// sums are added in a tree, and then to those of earlier rounds: one order for any number of
// threads.
#include <assert.h>
#include <string.h>

#include "base/ranges.h"
#include "blocks.h"
#include "geometry/samples.h"
#include "product/split_k.h"

enum { MAX_CHUNK = 64 };

size_t lags_shared(const struct partita_plan *plan)
{
    return (LAGS_CHUNKS + 1) * blocks_of(plan)->fft->spectrum_bytes;
}

// One window of outputs of one channel: the sum over the blocks of each input of the group that
// read any of the signal.
struct window {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const char *taps; // without a filter
    const char *x;    // of the group's first channel
    size_t first_path;
    struct range blocks;
    ptrdiff_t base;       // where the samples that block 0 reads begin
    size_t chunk, chunks; // elements of a chunk; all chunks
    size_t first_chunk;   // of those at hand
    char *sums, *total;   // [LAGS_CHUNKS] spectra, one spectrum
    struct block_transform transform;
    size_t bytes, reals; // of a spectrum
};

static void lags_transform_signal(const struct window *window, size_t channel, size_t block,
                                  char *spectrum, const struct block_buffers *buffers)
{
    const struct block_layout *layout = blocks_layout(window->plan);
    const size_t size = blocks_shape(window->plan)->axis[0].size;
    const size_t bytes = blocks_shape(window->plan)->sample_bytes;
    const ptrdiff_t first = window->base - (ptrdiff_t)(block * layout->tap_block);
    const void *x = samples_at(buffers->samples, window->x + channel * size * bytes, size, first,
                               layout->n, bytes);
    fft_forward(blocks_of(window->plan)->fft, spectrum, x, buffers->scratch);
}

// Both operands of the elements from `at` on, of one channel: their sum goes to y.
static void lags_sum_group(const struct window *window, size_t at, size_t count, char *y,
                           const struct block_buffers *buffers)
{
    const struct partita_plan *plan = window->plan;
    const struct block_layout *layout = blocks_layout(plan);
    const size_t channel = at / window->blocks.size, path = window->first_path + channel;
    const size_t block = (size_t)window->blocks.first + at % window->blocks.size;
    const size_t bytes = window->bytes, lines = blocks_of(plan)->fft->lines;
    char *signal = buffers->spectrum, *transformed = signal + LAGS_GROUP * bytes;
    const char *taps = transformed;
    assert(count <= LAGS_GROUP && block + count <= layout->tap_blocks);
    if (window->filter)
        taps = (const char *)window->filter->state + (path * layout->tap_blocks + block) * bytes;
    for (size_t i = 0; i < count; i++) {
        lags_transform_signal(window, channel, block + i, signal + i * bytes, buffers);
        if (window->filter) continue;
        blocks_load_taps(plan, blocks_path(plan, window->taps, path), block + i, buffers);
        fft_forward(blocks_of(plan)->fft, transformed + i * bytes, buffers->samples,
                    buffers->scratch);
    }
    plan->kernels->cmac(y, signal, lines, taps, lines, count, lines);
}

// One task: one chunk of elements; element e is block e % count of channel e / count.
static void lags_sum_chunk(void *context, size_t task, int worker)
{
    const struct window *window = context;
    const struct partita_plan *plan = window->plan;
    const struct block_buffers buffers = block_buffers_of(&window->transform, worker);
    char *spare = buffers.spectrum + 2 * LAGS_GROUP * window->bytes;
    const size_t all = blocks_shape(plan)->group_in * window->blocks.size;
    const size_t first = (window->first_chunk + task) * window->chunk;
    const size_t end = size_min(all, first + window->chunk);
    char *sum = window->sums + task * window->bytes;
    for (size_t at = first, n; at < end; at += n) {
        const size_t rest_of_channel = window->blocks.size - at % window->blocks.size;
        n = size_min(size_min(rest_of_channel, LAGS_GROUP), end - at);
        lags_sum_group(window, at, n, at == first ? sum : spare, &buffers);
        if (at > first) plan->kernels->add(sum, spare, window->reals);
    }
}

// Fills window->total, round by round.
static void sum_window(struct window *window)
{
    const struct partita_plan *plan = window->plan;
    const size_t bytes = window->bytes, reals = window->reals;
    memset(window->total, 0, bytes);
    for (window->first_chunk = 0; window->first_chunk < window->chunks;
         window->first_chunk += LAGS_CHUNKS) {
        const size_t n = size_min(window->chunks - window->first_chunk, LAGS_CHUNKS);
        thread_loop(plan->threads, n, lags_sum_chunk, window);
        split_k_reduce_tree(plan->kernels, window->sums, window->sums + bytes, bytes, n, reals);
        plan->kernels->add(window->total, window->sums, reals);
    }
}

// The blocks that read any of the signal: those whose n samples from base - i*block on do.
static void find_blocks(struct window *window)
{
    const struct block_layout *layout = blocks_layout(window->plan);
    const size_t size = blocks_shape(window->plan)->axis[0].size;
    const struct windows blocks = {0, layout->tap_block, 1};
    const struct range reading = {window->base - (ptrdiff_t)size + 1, size + layout->n - 1};
    window->blocks =
        range_within(windows_outputs(&blocks, reading), 0, (ptrdiff_t)layout->tap_blocks);
}

static void run_window(struct window *window, size_t block, char *y)
{
    const struct partita_plan *plan = window->plan;
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const struct fft *fft = blocks_of(plan)->fft;
    const size_t bytes = shape->sample_bytes, before = layout->tap_block - 1;
    const size_t begin = block * layout->hop;
    const struct block_outputs out = block_outputs(&shape->axis[0], begin, begin + layout->hop);
    if (!out.count) return;
    window->base = layout->trimmed.first + (ptrdiff_t)begin - (ptrdiff_t)before;
    find_blocks(window);
    const size_t all = window->blocks.size * shape->group_in, each = ceil_div(all, LAGS_CHUNKS);
    window->chunk = size_max(size_min(each, MAX_CHUNK), 1);
    window->chunks = ceil_div(all, window->chunk);
    sum_window(window);
    const struct block_buffers buffers = block_buffers_of(&window->transform, 0);
    fft_inverse(fft, buffers.samples, window->total, buffers.scratch);
    char *first = buffers.samples + before * bytes;
    plan->kernels->scale(first, first, 1 / fft->gain, layout->hop * bytes / shape->scalar_bytes);
    samples_copy(y + out.first * bytes, 1, first + out.skip * bytes, shape->axis[0].stride,
                 out.count, bytes);
}

void lags_run(const struct partita_plan *plan, const struct partita_filter *filter,
              const struct operands *operands, char *workspace)
{
    const struct shape *shape = blocks_shape(plan);
    const size_t bytes = shape->sample_bytes, spectrum = blocks_of(plan)->fft->spectrum_bytes;
    struct window window = {.plan = plan,
                            .filter = filter,
                            .taps = operands->from_taps ? operands->from[1] : NULL,
                            .sums = workspace,
                            .total = workspace + LAGS_CHUNKS * spectrum,
                            .transform = blocks_transform(plan, workspace),
                            .bytes = spectrum,
                            .reals = spectrum / shape->scalar_bytes};
    for (size_t at = 0; at < shape->batch * shape->out_channels; at++) {
        const size_t channel = at / shape->group_out * shape->group_in;
        char *y = (char *)operands->to + at * shape->axis[0].out * bytes;
        window.x = (const char *)operands->from[0] + channel * shape->axis[0].size * bytes;
        window.first_path = at % shape->out_channels * shape->group_in;
        for (size_t block = 0; block < blocks_layout(plan)->blocks; block++)
            run_window(&window, block, y);
    }
}
