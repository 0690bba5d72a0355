// SPDX-License-Identifier: MIT
// Public functions of layers: arguments are checked, then one internal call follows. And what is
// the same for every engine: bias, activation and the gradient of the bias.
#include "layer.h"

#include "base/thread.h"
#include "bounded.h"

static const struct partita_plan *plan_of(const struct partita_plan *plan,
                                          enum partita_direction direction)
{
    if (!plan) return NULL;
    if (direction == PARTITA_BACKWARD_DATA) return plan->backward_data;
    if (direction == PARTITA_BACKWARD_WEIGHT) return plan->backward_weight;
    return plan->engine && direction == PARTITA_FORWARD ? plan : NULL;
}

size_t partita_plan_workspace(const struct partita_plan *plan, enum partita_direction direction)
{
    const struct partita_plan *of = plan_of(plan, direction);
    return of && !of->shape.stream ? plan_workspace(of) : 0;
}

const char *partita_plan_engine_of(const struct partita_plan *plan,
                                   enum partita_direction direction)
{
    const struct partita_plan *of = plan_of(plan, direction);
    return of ? of->engine->name : "";
}

enum partita_status partita_backward_data(const struct partita_plan *plan,
                                          const struct partita_filter *filter, void *gx,
                                          const void *gy, void *workspace)
{
    if (!plan || !filter || !gx || !gy || filter->plan != plan) return PARTITA_ERR_ARG;
    const struct partita_plan *of = plan->backward_data;
    const enum partita_status status = bounded_check(plan, of, gx, gy, workspace);
    if (status != PARTITA_OK) return status;
    if (of->device)
        return of->device->run(of, filter->backward_data,
                               &(struct operands){.to = gx, .from = {gy}}, workspace);
    void *own, *work = bounded_workspace(of, workspace, &own);
    if (!work) return PARTITA_ERR_NOMEM;
    of->engine->backward_data(of, filter->backward_data, gx, gy, work);
    mem_release(&plan->allocator, own);
    return PARTITA_OK;
}

enum partita_status partita_backward_weight(const struct partita_plan *plan, void *gw,
                                            const void *x, const void *gy, void *workspace)
{
    if (!plan || !gw || !x || !gy || (uintptr_t)x % shape_alignment(&plan->shape))
        return PARTITA_ERR_ARG;
    const struct partita_plan *of = plan->backward_weight;
    const enum partita_status status = bounded_check(plan, of, gw, gy, workspace);
    if (status != PARTITA_OK) return status;
    if (of->device)
        return of->device->run(of, NULL, &(struct operands){.to = gw, .from = {x, gy}}, workspace);
    void *own, *work = bounded_workspace(of, workspace, &own);
    if (!work) return PARTITA_ERR_NOMEM;
    of->engine->backward_weight(of, gw, x, gy, work);
    mem_release(&plan->allocator, own);
    return PARTITA_OK;
}

// One channel's share of the work below.
struct channels {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *to;
    const char *from;
};

static void bias_channel(void *context, size_t k, int worker)
{
    const struct channels *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->scalar_bytes;
    double sum = 0; // of sums of planes: few, and each as exact as its kernel
    (void)worker;
    for (size_t item = 0; item < shape->batch; item++)
        sum +=
            call->plan->kernels->sum(call->from + (item * shape->out_channels + k) * n * bytes, n);
    if (shape->f64) ((double *)call->to)[k] = sum;
    else ((float *)call->to)[k] = (float)sum;
}

enum partita_status partita_backward_bias(const struct partita_plan *plan, void *gb, const void *gy)
{
    if (!plan || !gb || !gy) return PARTITA_ERR_ARG;
    const enum partita_status status = bounded_check(
        plan, plan->shape.complex_signal || plan->shape.half ? NULL : plan, gb, gy, NULL);
    if (status != PARTITA_OK) return status;
    if (plan->device) return plan->device->backward_bias(plan, gb, gy);
    struct channels call = {plan, NULL, gb, gy};
    thread_loop(plan->threads, plan->shape.out_channels, bias_channel, &call);
    return PARTITA_OK;
}

static void finish_plane(void *context, size_t plane, int worker)
{
    const struct channels *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->scalar_bytes;
    const char *bias = call->filter->bias;
    char *y = call->to + plane * n * bytes;
    const struct conv_finish finish = {
        .bias = bias ? bias + plane % shape->out_channels * bytes : NULL, .relu = shape->relu};
    (void)worker;
    call->plan->kernels->conv_store(y, 1, y, n, &finish);
}

void layer_finish(const struct partita_plan *plan, const struct partita_filter *filter, void *y)
{
    const struct shape *shape = &plan->shape;
    if ((!filter->bias && !shape->relu) || (plan->engine->finishes && plan->engine->finishes(plan)))
        return;
    struct channels call = {plan, filter, y, NULL};
    thread_loop(plan->threads, shape->batch * shape->out_channels, finish_plane, &call);
}
