// SPDX-License-Identifier: MIT
// Engine cpu/depthwise: layers in which every input channel is a group of its own, 16 (f32) or 8 (f64) planes side by
// side in the lanes of the vectors. Small kernels tap by tap, large ones by transforms; the model says which.
#include "depthwise.h"

#include <stdio.h>

static void depthwise_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    if (shape->stream || shape->complex_signal || shape->group_in > 1) {
        snprintf(ret->reason, sizeof ret->reason, "serves bounded real problems with as many groups as input channels");
        return;
    }
    if (request->direction == PARTITA_BACKWARD_WEIGHT) depthwise_weight_estimate(request, ret);
    else depthwise_direct_estimate(request, ret);
}

static enum partita_status depthwise_plan_create(struct partita_plan *plan, const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return depthwise_weight_plan_create(plan, request);
    return depthwise_direct_plan_create(plan, request);
}

static void depthwise_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

static bool depthwise_finishes(const struct partita_plan *plan)
{
    (void)plan;
    return true;
}

const struct engine engine_depthwise = {
    .name = "cpu/depthwise",
    .max_rank = PARTITA_MAX_RANK,
    .estimate = depthwise_estimate,
    .plan_create = depthwise_plan_create,
    .plan_destroy = depthwise_plan_destroy,
    .filter_create = depthwise_direct_filter_create,
    .forward = depthwise_direct_run,
    .finishes = depthwise_finishes,
    .backward_data = depthwise_direct_run,
    .backward_weight = depthwise_weight_run,
};
