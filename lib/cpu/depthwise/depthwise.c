// SPDX-License-Identifier: MIT
// cpu/depthwise: layers in which every input channel is a group of its own, 16 (f32) or 8 (f64)
// planes side by side in the lanes of the vectors. Small kernels tap by tap, plane by plane with
// vectors along rows, or with channels last in vectors of adjacent channels, large ones by
// transforms; the cost model says which.
#include "depthwise.h"

#include <assert.h>

static void depthwise_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (shape->group_in > 1) {
        estimate_refuse(ret, "serves problems with as many groups as input channels");
        return;
    }
    // request->transform 1 asks for sums without transforms.
    struct estimate direct = {0}, fft = {0}, rows;
    if (request->transform > 1) estimate_refuse(&direct, "sums tap by tap have no transform");
    else {
        depthwise_boxes_estimate(request, &direct);
        if (depthwise_rows_estimate(request, &direct, &rows) ||
            depthwise_channels_estimate(request, &direct, &rows))
            direct = rows;
    }
    if (request->transform != 1) depthwise_fft_estimate(request, &fft);
    *ret = direct;
    const bool near = fft.transform <= request_max_transform(request);
    if (fft.applicable && near &&
        (!estimate_fits(request, &direct) ||
         request_cost(request, &fft) < request_cost(request, &direct)))
        *ret = fft;
    if (!ret->applicable && request->transform > 1) *ret = fft;
}

static const struct depthwise_method *method_of(const struct partita_plan *plan)
{
    static const struct depthwise_method *const methods[] = {[DEPTHWISE_DIRECT] = &depthwise_boxes,
                                                             [DEPTHWISE_FFT] = &depthwise_fft,
                                                             [DEPTHWISE_ROWS] = &depthwise_rows,
                                                             [DEPTHWISE_CHANNELS] =
                                                                 &depthwise_channels};
    return methods[plan->choice.variant];
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
