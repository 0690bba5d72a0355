// SPDX-License-Identifier: MIT
// cpu/depthwise: layers in which every input channel is a group of its own, 16 (f32) or 8 (f64)
// planes side by side in the lanes of the vectors. Small kernels tap by tap, large ones by
// transforms; the cost model says which.
#include "depthwise.h"

#include <stdio.h>

static bool fits(const struct request *request, const struct estimate *estimate)
{
    return estimate->applicable &&
           size_add(estimate->shared, estimate->worker) <= request->workspace_limit;
}

static void depthwise_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (shape->stream || shape->complex_signal || shape->group_in > 1) {
        snprintf(ret->reason, sizeof ret->reason,
                 "serves bounded real problems with as many groups as input channels");
        return;
    }
    // A transform of one sample is none.
    struct estimate direct = {0}, fft = {0};
    if (request->transform > 1)
        snprintf(direct.reason, sizeof direct.reason, "sums tap by tap have no transform");
    else if (request->direction == PARTITA_BACKWARD_WEIGHT)
        depthwise_weight_estimate(request, &direct);
    else depthwise_direct_estimate(request, &direct);
    if (request->transform != 1) depthwise_fft_estimate(request, &fft);
    *ret = direct;
    if (fft.applicable && (!fits(request, &direct) || fft.seconds < direct.seconds)) *ret = fft;
    if (!ret->applicable && request->transform > 1) *ret = fft;
}

static enum partita_status depthwise_plan_create(struct partita_plan *plan,
                                                 const struct request *request)
{
    if (plan->choice.variant == DEPTHWISE_FFT) return depthwise_fft_plan_create(plan, request);
    if (request->direction == PARTITA_BACKWARD_WEIGHT)
        return depthwise_weight_plan_create(plan, request);
    return depthwise_direct_plan_create(plan, request);
}

static enum partita_status depthwise_filter_create(struct partita_filter *filter, const void *taps)
{
    if (filter->plan->choice.variant == DEPTHWISE_FFT)
        return depthwise_fft_filter_create(filter, taps);
    return depthwise_direct_filter_create(filter, taps);
}

static enum partita_status depthwise_run(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, void *workspace)
{
    if (plan->choice.variant == DEPTHWISE_FFT) depthwise_fft_run(plan, filter, operands, workspace);
    else if (plan->direction == PARTITA_BACKWARD_WEIGHT)
        depthwise_weight_run(plan, operands, workspace);
    else depthwise_direct_run(plan, filter, operands, workspace);
    return PARTITA_OK;
}

static void depthwise_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

static void depthwise_plan_explain(const struct partita_plan *plan, struct text *text)
{
    if (plan->choice.variant == DEPTHWISE_FFT) depthwise_fft_explain(plan, text);
    else
        text_add(text, "  %zu planes side by side, tap by tap, direct rows: boxes of %zu outputs\n",
                 depthwise_width(&plan->shape), plan->choice.hop);
}

const struct engine engine_depthwise = {
    .name = "cpu/depthwise",
    .max_rank = PARTITA_MAX_RANK,
    .estimate = depthwise_estimate,
    .plan_create = depthwise_plan_create,
    .plan_destroy = depthwise_plan_destroy,
    .plan_explain = depthwise_plan_explain,
    .filter_create = depthwise_filter_create,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = depthwise_run,
};
