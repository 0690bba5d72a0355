// SPDX-License-Identifier: MIT
// cpu/depthwise: layers in which every input channel is a group of its own, 16 (f32) or 8 (f64)
// planes side by side in the lanes of the vectors. Small kernels tap by tap, plane by plane with
// vectors along rows, or with channels last in vectors of adjacent channels, large ones by
// transforms; the cost model says which.
#include "depthwise.h"

#include <assert.h>

static const struct depthwise_method *const methods[] = {&depthwise_boxes, &depthwise_fft,
                                                         &depthwise_rows, &depthwise_channels};
static_assert(DEPTHWISE_FFT == 1 && DEPTHWISE_CHANNELS == 3, "in the order of the variants");

static const struct depthwise_method *method_of(const struct partita_plan *plan)
{
    return methods[plan->choice.variant];
}

// The cheapest variant that fits; if none is applicable, the reason of the first one.
// request->transform 1 asks for sums without transforms, more for those with transforms alone.
static void depthwise_estimate(const struct request *request, struct estimate *ret)
{
    if (request->shape->group_in > 1) {
        estimate_refuse(ret, "serves problems with as many groups as input channels");
        return;
    }
    for (int v = DEPTHWISE_DIRECT; v <= DEPTHWISE_CHANNELS; v++) {
        struct estimate now = {.variant = v};
        if (request->transform && (request->transform > 1) != (v == DEPTHWISE_FFT)) continue;
        methods[v]->estimate(request, &now);
        if (now.transform > request_max_transform(request)) continue;
        const bool fits = estimate_fits(request, &now), before = estimate_fits(request, ret);
        const bool cheaper = request_cost(request, &now) < request_cost(request, ret);
        const bool first = !ret->applicable && !*ret->reason;
        if (first || (fits && (!before || cheaper))) *ret = now;
    }
}

static void *depthwise_build(const struct partita_plan *plan, const struct request *request,
                             struct arena *arena)
{
    return method_of(plan)->build(plan, request, arena);
}

static struct filter_bytes depthwise_filter_bytes(const struct partita_plan *plan)
{
    return method_of(plan)->filter_bytes(plan);
}

static enum partita_status depthwise_filter_pack(struct partita_filter *filter, const void *taps,
                                                 const struct region *scratch)
{
    assert(depthwise_filter_bytes(filter->plan).scratch <= scratch->bytes);
    method_of(filter->plan)->filter_pack(filter, taps, scratch->data);
    return PARTITA_OK;
}

static enum partita_status depthwise_run(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, void *workspace)
{
    struct depthwise_call call = {.plan = plan,
                                  .filter = filter,
                                  .operands = operands,
                                  .from = operands->from[0],
                                  .gy = operands->from[1],
                                  .to = operands->to,
                                  .shared = workspace,
                                  .workers = (char *)workspace + plan->choice.shared,
                                  .far = depthwise_far(&plan->shape)};
    method_of(plan)->run(&call);
    return PARTITA_OK;
}

static void depthwise_plan_explain(const struct partita_plan *plan, struct text *text)
{
    if (plan->choice.variant == DEPTHWISE_FFT) depthwise_fft_explain(plan, text);
    else if (plan->choice.variant == DEPTHWISE_ROWS)
        text_add(text, "  plane by plane, vectors along rows: %zu outputs\n", plan->choice.hop);
    else if (plan->choice.variant == DEPTHWISE_CHANNELS)
        text_add(text, "  vectors of adjacent channels, %zu positions a task\n", plan->choice.hop);
    else
        text_add(text, "  %zu planes side by side, tap by tap, direct rows: boxes of %zu outputs\n",
                 depthwise_width(&plan->shape), plan->choice.hop);
}

const struct engine engine_depthwise = {
    .name = "cpu/depthwise",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .real = true,
    .channels_last = true,
    .layers = true,
    .estimate = depthwise_estimate,
    .build = depthwise_build,
    .explain = depthwise_plan_explain,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = depthwise_filter_bytes, .pack = depthwise_filter_pack},
    .bounded = {.run = depthwise_run},
};
