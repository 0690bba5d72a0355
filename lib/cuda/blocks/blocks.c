// SPDX-License-Identifier: MIT
// cuda/blocks: the signal and the taps in blocks, for filters about as long as the signal, and for
// a few outputs of long operands. layout.c chooses how, each method has a file (decision 24).
#include "blocks.h"

#include <assert.h>

static enum partita_status cuda_blocks_plan_create(struct partita_plan *plan,
                                                   const struct request *request)
{
    struct cuda_blocks *blocks = plan->state;
    char reason[96];
    (void)request;
    const bool forward =
        shape_forward(&plan->shape, plan->direction, &blocks->shape, reason, sizeof reason);
    assert(forward); // as estimate saw
    (void)forward;
    struct block_layout *layout = &blocks->layout;
    estimate_load(&plan->choice, layout, sizeof *layout);
    const bool lags = layout->method == BLOCK_LAGS;
    const enum partita_status status =
        cuda_fft_create(plan, cuda_blocks_points(&blocks->shape, layout),
                        cuda_blocks_batch(&blocks->shape, layout), !lags, &blocks->fft);
    if (status == PARTITA_OK && !lags) // the size of cuFFT's work area is known now
        plan->choice.shared = cuda_pairs_workspace(&blocks->shape, plan->direction, layout,
                                                   cuda_fft_work_bytes(&blocks->fft));
    return status;
}

static void cuda_blocks_plan_destroy(struct partita_plan *plan)
{
    cuda_fft_destroy(plan, &((struct cuda_blocks *)plan->state)->fft);
}

static struct filter_bytes cuda_blocks_filter_bytes(const struct partita_plan *plan)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    if (blocks->layout.method == BLOCK_LAGS) return cuda_filter_copy_bytes(plan);
    return (struct filter_bytes){.packed = blocks->layout.filter,
                                 .scratch = cuda_fft_work_bytes(&blocks->fft)};
}

static enum partita_status cuda_blocks_filter_pack(struct partita_filter *filter, const void *taps,
                                                   const struct region *scratch)
{
    const struct cuda_filter *state = filter->state;
    if (cuda_blocks_of(filter->plan)->layout.method == BLOCK_LAGS)
        return cuda_filter_copy(filter, taps, scratch);
    return cuda_pairs_filter(filter->plan, state->taps, taps, scratch->data);
}

static enum partita_status cuda_blocks_run(const struct partita_plan *plan,
                                           const struct partita_filter *filter,
                                           const struct operands *operands, void *workspace)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    const struct cuda_filter *state = filter ? filter->state : NULL;
    struct cuda_blocks_call call = {.plan = plan, .blocks = blocks, .operands = operands};
    if (state) call.taps = state->taps, call.bias = state->bias;
    if (blocks->layout.method == BLOCK_LAGS) {
        if (!state) call.taps = (char *)operands->from[1];
        call.sums = workspace;
        return cuda_lags_run(&call);
    }
    const struct cuda_pairs_bytes bytes =
        cuda_pairs_bytes(&blocks->shape, plan->direction, &blocks->layout);
    struct arena arena = {.base = workspace};
    call.inputs = arena_take(&arena, bytes.inputs);
    if (!state) call.taps = arena_take(&arena, bytes.taps);
    call.sums = arena_take(&arena, bytes.sums);
    void *area = arena_take(&arena, cuda_fft_work_bytes(&blocks->fft));
    assert(arena.used <= plan->choice.shared);
    enum partita_status status = cuda_fft_begin(plan, &blocks->fft, area);
    if (status == PARTITA_OK)
        status = blocks->layout.method == BLOCK_PAIRS ? cuda_pairs_run(&call)
                                                      : cuda_divisions_run(&call);
    cuda_fft_end(&blocks->fft);
    return status;
}

static void cuda_blocks_explain(const struct partita_plan *plan, struct text *text)
{
    const struct cuda_blocks *blocks = cuda_blocks_of(plan);
    block_explain(&blocks->shape, &blocks->layout, text);
}

const struct engine cuda_blocks = {
    .name = "cuda/blocks",
    .estimate = cuda_blocks_estimate,
    .state_bytes = sizeof(struct cuda_blocks),
    .plan_create = cuda_blocks_plan_create,
    .plan_destroy = cuda_blocks_plan_destroy,
    .explain = cuda_blocks_explain,
    .directions = CUDA_ALL_DIRECTIONS,
    .filter = {CUDA_FILTER_OPS(cuda_blocks_filter_bytes, cuda_blocks_filter_pack)},
    .bounded = {.run = cuda_blocks_run},
};
