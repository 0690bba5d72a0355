// SPDX-License-Identifier: MIT
// cpu/blocks: both the signal and the taps in parts, for filters about as long as the signal, and
// for a few outputs of long operands. How it is cut is blocks_layout.c's choice; what is done then
// is in a file a way. Source: convolution in parts after Stockham (1966); the halves brought
// together in the spectrum: theory.md, 7.
#include <math.h>

#include "blocks.h"

#include "cpu/conv/finish.h"

// Transforms walk as everywhere; products are summed up to 64 at a time and then the sums: two more
// walks.
static double error_of(const struct request *request, const struct blocks_layout *layout)
{
    const struct shape *shape = request->shape;
    const size_t lines =
        request->direction == PARTITA_BACKWARD_WEIGHT ? shape->batch : shape->group_in;
    const double terms = (double)layout->parts * (double)lines, row = fmin(terms, 64);
    const double transforms = layout->n ? 1.3 * sqrt(log2((double)layout->n)) : 0,
                 sums = 0.3 * sqrt(row + terms / 64);
    return shape_roundoff(shape) * hypot(transforms, sums);
}

static void blocks_estimate(const struct request *request, struct estimate *ret)
{
    struct blocks_layout layout;
    struct request run = *request;
    struct shape shape;
    if (!shape_forward(request->shape, request->direction, &shape, ret->reason, sizeof ret->reason))
        return;
    run.shape = &shape;
    if (!blocks_search(&run, -1, &layout, ret->reason, sizeof ret->reason)) return;
    *ret = (struct estimate){
        .applicable = true,
        .transform = layout.n,
        .variant = (int)layout.way,
        .hop = layout.hop,
        .seconds = layout.seconds,
        .flops = layout.flops,
        .shared = layout.shared,
        .worker = layout.worker,
        .bytes = size_add(layout.filter, size_add(layout.shared, layout.worker)),
        .error = error_of(&run, &layout),
        .from_taps = layout.way == BLOCKS_LAGS,
    };
}

static enum partita_status blocks_plan_create(struct partita_plan *plan,
                                              const struct request *request)
{
    struct blocks *blocks = mem_allocate(&plan->allocator, sizeof *blocks);
    char reason[96];
    if (!blocks) return PARTITA_ERR_NOMEM;
    plan->state = blocks;
    struct request run = *request;
    run.shape = &blocks->shape;
    if (!shape_forward(&plan->shape, plan->direction, &blocks->shape, reason, sizeof reason) ||
        !blocks_search(&run, plan->choice.variant, &blocks->layout, reason, sizeof reason))
        return PARTITA_ERR_UNSUPPORTED;
    const struct fft_request transform = {.n = blocks->layout.n,
                                          .f64 = plan->shape.f64,
                                          .complex = plan->shape.complex_signal,
                                          .measure = plan->measure,
                                          .level = plan->isa};
    if (blocks->layout.n) {
        const enum partita_status status = fft_create(&transform, &plan->allocator, &blocks->fft);
        if (status != PARTITA_OK) return status;
    }
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) weight_sizes(plan, blocks);
    else if (blocks->layout.way == BLOCKS_PAIRS) pairs_sizes(plan, blocks);
    else if (blocks->layout.way == BLOCKS_LAGS) lags_sizes(plan, blocks);
    else divisions_sizes(plan, blocks);
    plan->choice.shared = blocks->layout.shared;
    plan->choice.worker = blocks->layout.worker;
    return PARTITA_OK;
}

static void blocks_plan_destroy(struct partita_plan *plan)
{
    struct blocks *blocks = plan->state;
    if (blocks && blocks->fft) fft_destroy(blocks->fft);
    mem_release(&plan->allocator, blocks);
}

static enum blocks_way way_of(const struct partita_plan *plan)
{
    return ((const struct blocks *)plan->state)->layout.way;
}

enum partita_status blocks_filter(struct partita_filter *filter, const char *taps,
                                  size_t state_bytes, size_t work_bytes, task_fn *part)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = blocks_shape(plan);
    const size_t parts = ((const struct blocks *)plan->state)->layout.parts;
    struct blocks_filtering call = {filter, taps, NULL};
    filter->state = mem_reserve(&plan->allocator, state_bytes);
    call.work = mem_reserve(&plan->allocator, size_mul((size_t)plan->threads, work_bytes));
    const bool complete = filter->state && call.work;
    if (complete)
        thread_loop(plan->threads, shape->out_channels * shape->group_in * parts, part, &call);
    mem_release(&plan->allocator, call.work);
    return complete ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static enum partita_status blocks_filter_create(struct partita_filter *filter, const void *taps)
{
    const enum blocks_way way = way_of(filter->plan);
    if (way == BLOCKS_PAIRS) return pairs_filter(filter, taps);
    return way == BLOCKS_LAGS ? lags_filter(filter, taps) : divisions_filter(filter, taps);
}

static enum partita_status blocks_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const enum blocks_way way = way_of(plan);
    void *to = operands->to;
    const void *from = operands->from[0];
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        weight_run(plan, to, from, operands->from[1], workspace);
        return PARTITA_OK;
    }
    const void *taps = operands->from_taps ? operands->from[1] : NULL;
    if (way == BLOCKS_PAIRS) pairs_forward(filter, to, from, workspace);
    else if (way == BLOCKS_DIVISIONS) divisions_forward(filter, to, from, workspace);
    else lags_forward(plan, filter, taps, to, from, workspace);
    if (filter && plan->direction == PARTITA_FORWARD) conv_finish_outputs(plan, filter, to);
    return PARTITA_OK;
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
