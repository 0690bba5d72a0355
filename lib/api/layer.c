// SPDX-License-Identifier: MIT
// Public functions of layers, and of the transforms that forward leaves for backward weight.
#include "base/thread.h"
#include "bounded.h"
#include "kernels/kernels.h"

size_t partita_plan_workspace(const struct partita_plan *plan, enum partita_direction direction)
{
    const struct partita_plan *of = bounded_direction(plan, direction);
    return of && !of->shape.stream ? plan_workspace(of) : 0;
}

const char *partita_plan_engine_of(const struct partita_plan *plan,
                                   enum partita_direction direction)
{
    const struct partita_plan *of = bounded_direction(plan, direction);
    return of ? of->engine->name : "";
}

enum partita_status partita_backward_data(const struct partita_plan *plan,
                                          const struct partita_filter *filter, void *gx,
                                          const void *gy, void *workspace)
{
    if (!plan || !filter || !gx || !gy || filter->plan != plan) return PARTITA_ERR_ARG;
    return bounded_run(plan, plan->backward_data, filter->backward_data,
                       &(struct operands){.to = gx, .from = {gy}}, workspace);
}

enum partita_status partita_backward_weight(const struct partita_plan *plan, void *gw,
                                            const void *x, const void *gy, void *workspace)
{
    if (!plan || !gw || !x || !gy) return PARTITA_ERR_ARG;
    return bounded_run(plan, plan->backward_weight, NULL,
                       &(struct operands){.to = gw, .from = {x, gy}}, workspace);
}

// The gradient of the bias on the CPU: gb[k] = the sum of gy over items and outputs.
struct bias_call {
    const struct partita_plan *plan;
    char *gb;
    const char *gy;
};

static void sum_bias_channel(void *context, size_t k, int worker)
{
    const struct bias_call *call = context;
    const struct shape *shape = &call->plan->shape;
    const size_t n = shape_outputs(shape), bytes = shape->scalar_bytes;
    double sum = 0; // of sums of planes: few, and each as exact as its kernel
    (void)worker;
    for (size_t item = 0; item < shape->batch; item++)
        sum += call->plan->kernels->sum(call->gy + (item * shape->out_channels + k) * n * bytes, n);
    if (shape->f64) ((double *)call->gb)[k] = sum;
    else ((float *)call->gb)[k] = (float)sum;
}

enum partita_status partita_backward_bias(const struct partita_plan *plan, void *gb, const void *gy)
{
    if (!plan || !gb || !gy) return PARTITA_ERR_ARG;
    const bool supported = !plan->shape.complex_signal && !plan->shape.half;
    const enum partita_status status = bounded_check(
        plan, supported ? plan : NULL, &(struct operands){.to = gb, .from = {gy}}, NULL);
    if (status != PARTITA_OK) return status;
    if (plan->device) return plan->device->backward_bias(plan, gb, gy);
    struct bias_call call = {plan, gb, gy};
    thread_loop(plan->threads, plan->shape.out_channels, sum_bias_channel, &call);
    return PARTITA_OK;
}

// The plan of backward weight if what forward transforms can serve it.
static const struct partita_plan *saved_partner(const struct partita_plan *plan)
{
    const struct partita_plan *weight = plan ? plan->backward_weight : NULL;
    return weight && plan->engine && plan->engine->cached_spectra_plan &&
                   weight->engine == plan->engine
               ? weight
               : NULL;
}

size_t partita_saved_bytes(const struct partita_plan *plan)
{
    return saved_partner(plan) ? plan->engine->cached_spectra_bytes(plan) : 0;
}

size_t partita_saved_workspace(const struct partita_saved *saved)
{
    return saved ? plan_workspace(&saved->weight) : 0;
}

static enum partita_status reserve_spectra(const struct partita_plan *plan, void **ret_data)
{
    const size_t bytes = partita_saved_bytes(plan);
    if (plan->device) return plan->device->reserve(plan, bytes, ret_data);
    *ret_data = mem_reserve(&plan->allocator, bytes);
    return *ret_data ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

enum partita_status partita_saved_create(const struct partita_plan *plan,
                                         struct partita_saved **ret_saved)
{
    if (!plan || !ret_saved) return PARTITA_ERR_ARG;
    if (partita_saved_bytes(plan) == 0) {
        log_line(&plan->log,
                 "saved transforms: forward and backward weight must both be planned by %s",
                 plan->device ? "cuda/tiles, with spectra in memory" : "cpu/tiles");
        return PARTITA_ERR_UNSUPPORTED;
    }
    struct partita_saved *saved = mem_allocate(&plan->allocator, sizeof *saved);
    if (!saved) return PARTITA_ERR_NOMEM;
    saved->plan = plan;
    enum partita_status status = reserve_spectra(plan, &saved->data);
    if (status == PARTITA_OK)
        status = plan->engine->cached_spectra_plan(plan, saved_partner(plan), &saved->weight);
    if (status == PARTITA_OK) *ret_saved = saved;
    else partita_saved_destroy(saved);
    return status;
}

void partita_saved_destroy(struct partita_saved *saved)
{
    if (!saved) return;
    const struct partita_allocator allocator = saved->plan->allocator;
    if (saved->weight.engine) plan_destroy_state(&saved->weight);
    if (saved->plan->device) saved->plan->device->release(saved->plan, saved->data);
    else mem_release(&allocator, saved->data);
    mem_release(&allocator, saved);
}

enum partita_status partita_forward_saved(const struct partita_plan *plan,
                                          const struct partita_filter *filter,
                                          struct partita_saved *saved, void *y, const void *x,
                                          void *workspace)
{
    if (!plan || !filter || !saved || !y || !x || filter->plan != plan || saved->plan != plan)
        return PARTITA_ERR_ARG;
    const struct operands operands = {.to = y, .from = {x}, .cached_spectra = saved->data};
    const enum partita_status status = bounded_run(plan, plan, filter, &operands, workspace);
    if (status != PARTITA_ERR_ARG) saved->filled = status == PARTITA_OK;
    return status;
}

enum partita_status partita_backward_weight_saved(const struct partita_plan *plan,
                                                  const struct partita_saved *saved, void *gw,
                                                  const void *gy, void *workspace)
{
    if (!plan || !saved || !gw || !gy || saved->plan != plan) return PARTITA_ERR_ARG;
    const struct operands operands = {.to = gw, .from = {NULL, gy}, .cached_spectra = saved->data};
    if (saved->filled) return bounded_run(plan, &saved->weight, NULL, &operands, workspace);
    const enum partita_status status = bounded_check(plan, &saved->weight, &operands, workspace);
    return status == PARTITA_OK ? PARTITA_ERR_STATE : status;
}
