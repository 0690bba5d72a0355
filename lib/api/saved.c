// SPDX-License-Identifier: MIT
// Public functions of saved transforms: arguments are checked, then the engine of forward does it.
#include "bounded.h"
#include "core/device.h"
#include "layer.h"

// The plan of backward weight if what forward transforms can serve it.
static const struct partita_plan *partner(const struct partita_plan *plan)
{
    const struct partita_plan *weight = plan ? plan->backward_weight : NULL;
    return weight && plan->engine && plan->engine->saved_plan && weight->engine == plan->engine
               ? weight
               : NULL;
}

size_t partita_saved_bytes(const struct partita_plan *plan)
{
    return partner(plan) ? plan->engine->saved_bytes(plan) : 0;
}

size_t partita_saved_workspace(const struct partita_saved *saved)
{
    return saved ? plan_workspace(&saved->weight) : 0;
}

// Room for transforms, where the engine works.
static enum partita_status reserve(const struct partita_plan *plan, void **ret_data)
{
    if (plan->engine->saved_create) return plan->engine->saved_create(plan, ret_data);
    *ret_data = mem_reserve(&plan->allocator, partita_saved_bytes(plan));
    return *ret_data ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

static void release(const struct partita_plan *plan, void *data)
{
    if (plan->engine->saved_destroy) plan->engine->saved_destroy(plan, data);
    else mem_release(&plan->allocator, data);
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
    enum partita_status status = reserve(plan, &saved->data);
    if (status == PARTITA_OK)
        status = plan->engine->saved_plan(plan, partner(plan), &saved->weight);
    if (status == PARTITA_OK) *ret_saved = saved;
    else partita_saved_destroy(saved);
    return status;
}

void partita_saved_destroy(struct partita_saved *saved)
{
    if (!saved) return;
    const struct partita_allocator allocator = saved->plan->allocator;
    if (saved->weight.engine) saved->weight.engine->plan_destroy(&saved->weight);
    release(saved->plan, saved->data);
    mem_release(&allocator, saved);
}

// Forward on a device. What a failure leaves is of no use.
static enum partita_status keep_filled(struct partita_saved *saved,
                                       const struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    const struct partita_plan *plan = saved->plan;
    const enum partita_status status =
        plan->engine->run_saved(plan, filter, saved->data, operands, workspace);
    saved->filled = status == PARTITA_OK;
    return status;
}

enum partita_status partita_forward_saved(const struct partita_plan *plan,
                                          const struct partita_filter *filter,
                                          struct partita_saved *saved, void *y, const void *x,
                                          void *workspace)
{
    if (!plan || !filter || !saved || !y || !x || filter->plan != plan || saved->plan != plan)
        return PARTITA_ERR_ARG;
    const enum partita_status status = bounded_check(plan, plan, y, x, workspace);
    if (status != PARTITA_OK) return status;
    if (plan->engine->run_saved)
        return keep_filled(saved, filter, &(struct operands){.to = y, .from = {x}}, workspace);
    void *own, *work = bounded_workspace(plan, workspace, &own);
    if (!work) return PARTITA_ERR_NOMEM;
    plan->engine->forward_saving(plan, filter, saved->data, y, x, work);
    layer_finish(plan, filter, y);
    saved->filled = true;
    mem_release(&plan->allocator, own);
    return PARTITA_OK;
}

enum partita_status partita_backward_weight_saved(const struct partita_plan *plan,
                                                  const struct partita_saved *saved, void *gw,
                                                  const void *gy, void *workspace)
{
    if (!plan || !saved || !gw || !gy || saved->plan != plan) return PARTITA_ERR_ARG;
    const enum partita_status status = bounded_check(plan, &saved->weight, gw, gy, workspace);
    if (status != PARTITA_OK) return status;
    if (!saved->filled) return PARTITA_ERR_STATE;
    const struct partita_plan *weight = &saved->weight;
    if (weight->engine->run_saved)
        return weight->engine->run_saved(
            weight, NULL, saved->data, &(struct operands){.to = gw, .from = {NULL, gy}}, workspace);
    void *own, *work = bounded_workspace(weight, workspace, &own);
    if (!work) return PARTITA_ERR_NOMEM;
    weight->engine->backward_weight_saved(weight, gw, saved->data, gy, work);
    mem_release(&plan->allocator, own);
    return PARTITA_OK;
}
