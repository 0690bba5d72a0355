// SPDX-License-Identifier: MIT
// Public functions of the transforms that the calls of a training step save for each other.
#include "core/arguments.h"
#include "layer/bounded.h"

// The plan of backward weight if what forward transforms can serve it.
static const struct partita_plan *saved_partner(const struct partita_plan *plan)
{
    const bool may = plan && plan->engine && (plan->shares || !plan->alone);
    const struct partita_plan *weight = may ? plan->backward_weight : NULL;
    const bool same = weight && weight->engine == plan->engine;
    return same && plan->engine->bounded.cached_plan ? weight : NULL;
}

size_t partita_saved_bytes(const struct partita_plan *plan)
{
    if (!saved_partner(plan)) return 0;
    const size_t x = plan->engine->bounded.cached_bytes(plan);
    return plan->shares ? size_add(x, plan->engine->bounded.cached_bytes(plan->backward_data)) : x;
}

size_t partita_saved_workspace(const struct partita_saved *saved)
{
    if (!saved) return 0;
    return bounded_workspace(saved->plan->shares ? saved->plan->backward_weight : &saved->weight);
}

enum partita_status partita_saved_create(const struct partita_plan *plan,
                                         struct partita_saved **ret_saved)
{
    if (!arguments_given(log_of(plan), plan, ret_saved)) return PARTITA_ERR_ARG;
    if (partita_saved_bytes(plan) == 0)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED,
                         "saved transforms: forward and backward weight must both be planned by "
                         "cpu/tiles, or by cuda/tiles with spectra in memory");
    struct partita_saved *saved = mem_allocate(&plan->allocator, sizeof *saved);
    if (!saved) return PARTITA_ERR_NOMEM;
    saved->plan = plan;
    struct saved_slot *x = &saved->slot[SAVED_X], *gy = &saved->slot[SAVED_GY];
    enum partita_status status = plan->device->reserve(plan, partita_saved_bytes(plan), &x->data);
    if (status == PARTITA_OK && plan->shares)
        gy->data = (char *)x->data + plan->engine->bounded.cached_bytes(plan);
    if (status == PARTITA_OK && !plan->shares)
        status = plan->engine->bounded.cached_plan(plan, saved_partner(plan), &saved->weight);
    if (status == PARTITA_OK) *ret_saved = saved;
    else partita_saved_destroy(saved);
    return status;
}

void partita_saved_destroy(struct partita_saved *saved)
{
    if (!saved) return;
    const struct partita_allocator allocator = saved->plan->allocator;
    if (saved->weight.engine) plan_destroy_state(&saved->weight);
    saved->plan->device->release(saved->plan, saved->slot[SAVED_X].data);
    mem_release(&allocator, saved);
}
