// SPDX-License-Identifier: MIT
// cpu/blocks: both the signal and the taps in segments, for filters about as long as the signal,
// and for a few outputs of long operands. layout.c chooses the sizes; each method has a file.
// Source: convolution in segments after Stockham (1966); the halves added in the spectrum:
// theory.md, 7.
#include "blocks.h"

#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/finish.h"
#include "geometry/samples.h"

static void blocks_estimate(const struct request *request, struct estimate *ret)
{
    struct block_layout layout;
    struct request forward = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    forward.shape = &shape;
    if (!blocks_search(&forward, &layout, ret->reason, sizeof ret->reason)) return;
    *ret = (struct estimate){
        .applicable = true,
        .transform = layout.n,
        .variant = (int)layout.method,
        .hop = layout.hop,
        .seconds = layout.seconds,
        .flops = layout.flops,
        .shared = layout.shared,
        .worker = layout.worker,
        .bytes = size_add(layout.filter, size_add(layout.shared, layout.worker)),
        .error = block_error(&forward, &layout),
        .from_taps = layout.method == BLOCK_LAGS,
    };
    estimate_store(ret, &layout, sizeof layout);
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
                                          .level = plan->isa};
    if (layout->n) {
        const enum partita_status status = fft_create(&transform, &plan->allocator, &blocks->fft);
        if (status != PARTITA_OK) return status;
    }
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) weight_sizes(plan, layout);
    else if (layout->method == BLOCK_PAIRS) pairs_sizes(plan, layout);
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

struct blocks_taps blocks_segment(const struct partita_plan *plan, const char *taps, size_t path,
                                  size_t segment, size_t n)
{
    const struct shape *shape = blocks_shape(plan);
    const struct block_layout *layout = blocks_layout(plan);
    const size_t first = segment * layout->segment;
    const size_t from = shape_path(shape, path / shape->group_in, path % shape->group_in);
    return (struct blocks_taps){
        .taps = taps + from * shape->axis[0].kernel * shape->tap_bytes,
        .first = layout->trimmed.first_tap + first,
        .count = size_min(layout->trimmed.taps - first, layout->segment),
        .n = n,
    };
}

void blocks_load_taps(const struct shape *shape, const struct blocks_taps *taps, char *samples,
                      char *narrow)
{
    const bool widen = shape->complex_signal && !shape->complex_taps;
    const size_t kept = widen ? 0 : taps->count;
    causal_part(shape, widen ? narrow : samples, taps->taps, taps->first, taps->count);
    memset(samples + kept * shape->sample_bytes, 0, (taps->n - kept) * shape->sample_bytes);
    if (widen) samples_copy(samples, 2, narrow, 1, taps->count, shape->tap_bytes);
}

enum partita_status blocks_filter(struct partita_filter *filter, const char *taps,
                                  size_t state_bytes, size_t work_bytes, task_fn *task)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const size_t paths = shape->out_channels * shape->group_in;
    struct blocks_filtering call = {filter, taps, NULL, work_bytes};
    filter->state = mem_reserve(&plan->allocator, state_bytes);
    call.work = mem_reserve(&plan->allocator, size_mul((size_t)plan->threads, work_bytes));
    const bool complete = filter->state && call.work;
    if (complete) thread_loop(plan->threads, paths * blocks_layout(plan)->segments, task, &call);
    mem_release(&plan->allocator, call.work);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static enum partita_status blocks_filter_create(struct partita_filter *filter, const void *taps)
{
    const enum block_method method = blocks_layout(filter->plan)->method;
    if (method == BLOCK_PAIRS) return pairs_filter(filter, taps);
    return method == BLOCK_LAGS ? lags_filter(filter, taps) : imposed_filter(filter, taps);
}

static enum partita_status blocks_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const enum block_method method = blocks_layout(plan)->method;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) weight_run(plan, operands, workspace);
    else if (method == BLOCK_PAIRS) pairs_run(plan, filter, operands, workspace);
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
    .filter_create = blocks_filter_create,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = blocks_run,
};
