// SPDX-License-Identifier: MIT
// cpu/blocks: both the signal and the taps in blocks, for filters about as long as the signal,
// and for a few outputs of long operands. layout.c chooses the sizes; each method has a file.
// Source: convolution in blocks after Stockham (1966); the halves added in the spectrum:
// theory.md, 7.
#include "blocks.h"

#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"

enum { COPIES_A_SCALAR = 8 }; // that preparing a scalar of a filter takes as long as; measured

static size_t blocks_spread(const struct shape *shape, const struct block_layout *layout)
{
    return layout->method == BLOCK_IMPOSED ? 1 : size_max(layout->hop / shape->axis[0].stride, 1);
}

static void blocks_estimate(const struct request *request, struct estimate *ret)
{
    struct block_layout layout;
    struct request forward = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    forward.shape = &shape;
    // What preparing a filter for one call takes is in `seconds`.
    const bool kept = !request_used_once(request, request->shape) &&
                      request->direction != PARTITA_BACKWARD_WEIGHT;
    const double byte =
        kept ? filter_seconds(request, 1 / (double)shape.scalar_bytes, COPIES_A_SCALAR) : 0;
    const double share = request->filter_uses ? byte / request->filter_uses : 0;
    if (!blocks_search(&forward, share, &layout, ret->reason, sizeof ret->reason)) return;
    block_estimate(&forward, &layout, ret);
    ret->spread = blocks_spread(&shape, &layout);
    ret->filter_seconds = byte * (double)layout.filter;
}

static enum partita_status blocks_plan_create(struct partita_plan *plan,
                                              const struct request *request)
{
    struct blocks *blocks = mem_allocate(&plan->allocator, sizeof *blocks);
    char reason[96];
    (void)request;
    if (!blocks) return PARTITA_ERR_NOMEM;
    plan->state = blocks;
    struct block_layout *layout = &blocks->layout;
    estimate_load(&plan->choice, layout, sizeof *layout);
    shape_forward(&plan->shape, plan->direction, &blocks->shape, reason, sizeof reason);
    const struct fft_request transform = {.n = layout->n,
                                          .f64 = plan->shape.f64,
                                          .complex = plan->shape.complex_signal,
                                          .measure = plan->measure,
                                          .isa = plan->isa};
    if (layout->n) {
        const enum partita_status status = fft_create(&transform, &plan->allocator, &blocks->fft);
        if (status != PARTITA_OK) return status;
    }
    if (layout->method == BLOCK_PAIRS) pairs_sizes(plan, layout);
    else if (layout->method == BLOCK_LAGS) lags_sizes(plan, layout);
    else imposed_sizes(plan, layout);
    plan->choice.shared = layout->shared;
    plan->choice.worker = layout->worker;
    return PARTITA_OK;
}

static void blocks_plan_destroy(struct partita_plan *plan)
{
    struct blocks *blocks = plan->state;
    if (blocks && blocks->fft) fft_destroy(blocks->fft);
    mem_release(&plan->allocator, blocks);
}

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

void blocks_load_taps(const struct partita_plan *plan, const struct blocks_taps *taps,
                      char *samples, char *narrow)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t first = taps->block * layout->tap_block;
    const size_t count = size_min(layout->trimmed.taps - first, layout->tap_block);
    const size_t kept = widen ? 0 : count;
    causal_part(shape, widen ? narrow : samples, taps->taps, layout->trimmed.first_tap + first,
                count);
    memset(samples + kept * shape->sample_bytes, 0, (taps->n - kept) * shape->sample_bytes);
    if (widen) samples_copy(samples, 2, narrow, 1, count, shape->tap_bytes);
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
    const bool pairs = layout->method == BLOCK_PAIRS;
    const struct blocks_taps taps = {blocks_path(plan, call->taps, path), block,
                                     pairs ? layout->tap_block : layout->n};
    struct arena arena = {.base = call->work + (size_t)worker * blocks_buffers_bytes(plan)};
    const struct blocks_buffers buffers = blocks_buffers_layout(plan, &arena);
    char *state = call->filter->state, *to = state + task * blocks_taps_bytes(plan);
    if (!layout->n) {
        causal_part(blocks_shape(plan), to, taps.taps, block * layout->tap_block,
                    layout->tap_block);
        return;
    }
    blocks_load_taps(plan, &taps, buffers.samples, buffers.narrow);
    if (!pairs) {
        fft_forward(blocks_of(plan)->fft, to, buffers.samples, buffers.scratch);
        return;
    }
    pairs_scale(plan, buffers.samples);
    const struct block_transform transform = blocks_transform(plan);
    const struct block_spectra spectra = blocks_taps_spectra(plan, state, path);
    struct block_buffers own = {buffers.samples, buffers.spectra, buffers.scratch};
    block_forward(&transform, &spectra, block, own.samples, &own);
}

static struct filter_bytes blocks_filter_bytes(const struct partita_plan *plan)
{
    const struct block_layout *layout = blocks_layout(plan);
    const size_t path = layout->method == BLOCK_PAIRS
                            ? block_spectra_bytes(blocks_of(plan)->fft->lines, layout->tap_blocks)
                            : size_mul(layout->tap_blocks, blocks_taps_bytes(plan));
    return (struct filter_bytes){.packed = size_mul(shape_path_count(blocks_shape(plan)), path),
                                 .scratch =
                                     size_mul((size_t)plan->threads, blocks_buffers_bytes(plan))};
}

static enum partita_status blocks_filter_pack(struct partita_filter *filter, const void *taps,
                                              const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    struct filtering call = {.filter = filter, .taps = taps, .work = scratch->data};
    thread_loop(plan_threads_in(plan, scratch, blocks_buffers_bytes(plan)),
                shape_path_count(blocks_shape(plan)) * blocks_layout(plan)->tap_blocks,
                filter_block, &call);
    return PARTITA_OK;
}

static enum partita_status blocks_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const enum block_method method = blocks_layout(plan)->method;
    if (method == BLOCK_PAIRS) pairs_run(plan, filter, operands, workspace);
    else if (method == BLOCK_IMPOSED) imposed_run(plan, filter, operands, workspace);
    else lags_run(plan, filter, operands, workspace);
    if (filter && plan->direction == PARTITA_FORWARD)
        conv_finish_outputs(plan, filter, operands->to);
    return PARTITA_OK;
}

static void blocks_explain(const struct partita_plan *plan, struct text *text)
{
    block_explain(blocks_shape(plan), blocks_layout(plan), text);
}

const struct engine engine_blocks = {
    .name = "cpu/blocks",
    .estimate = blocks_estimate,
    .plan_create = blocks_plan_create,
    .plan_destroy = blocks_plan_destroy,
    .plan_explain = blocks_explain,
    .filter_bytes = blocks_filter_bytes,
    .filter_pack = blocks_filter_pack,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = blocks_run,
};
