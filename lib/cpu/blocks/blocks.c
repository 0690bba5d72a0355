// SPDX-License-Identifier: MIT
// cpu/blocks: both the signal and the taps in blocks, for filters about as long as the signal,
// and for a few outputs of long operands. layout.c chooses the sizes, taps.c
// packs filters; each method has a file.
// Source: convolution in blocks after Stockham (1966); the halves added in the spectrum:
// theory.md, 7.
#include "blocks.h"

#include "cpu/conv/finish.h"
#include "cpu/conv/signal_rates.h"

// run: computes the problem as a forward problem.
static const struct {
    size_t (*shared)(const struct partita_plan *plan);
    void (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                const struct operands *operands, char *workspace);
} METHODS[] = {
    [BLOCK_PAIRS] = {pairs_shared, pairs_run},
    [BLOCK_LAGS] = {lags_shared, lags_run},
    [BLOCK_IMPOSED] = {imposed_shared, imposed_run},
};

static const char *const blocks_variants[] = {[BLOCK_PAIRS] = "pairs",
                                              [BLOCK_LAGS] = "lags",
                                              [BLOCK_IMPOSED] = "divisions",
                                              [PRIVATE_DIVISIONS] = "private-divisions",
                                              NULL};

static enum partita_status blocks_plan_create(struct partita_plan *plan,
                                              const struct request *request)
{
    struct blocks *blocks = plan->state;
    char reason[96];
    (void)request;
    struct block_layout *layout = &blocks->layout;
    estimate_load(&plan->choice, layout, sizeof *layout);
    shape_forward(&plan->shape, plan->direction, &blocks->shape, reason, sizeof reason);
    if (layout->n) {
        const enum partita_status status = plan_fft(plan, layout->n, &blocks->fft);
        if (status != PARTITA_OK) return status;
    }
    const struct block_transform transform = blocks_transform(plan, NULL);
    plan->choice.shared = METHODS[layout->method].shared(plan);
    plan->choice.worker = block_buffers_bytes(&transform);
    if (layout->method == BLOCK_PAIRS) plan->choice.worker += pair_sums_bytes(layout->tap_blocks);
    return PARTITA_OK;
}

static void blocks_plan_destroy(struct partita_plan *plan)
{
    fft_destroy(((struct blocks *)plan->state)->fft);
}

static enum partita_status blocks_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    METHODS[blocks_layout(plan)->method].run(plan, filter, operands, workspace);
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
    .variants = blocks_variants,
    .estimate = blocks_estimate,
    .state_bytes = sizeof(struct blocks),
    .plan_create = blocks_plan_create,
    .plan_destroy = blocks_plan_destroy,
    .explain = blocks_explain,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = blocks_filter_bytes, .pack = blocks_filter_pack},
    .bounded = {.run = blocks_run},
};
