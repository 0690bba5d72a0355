// SPDX-License-Identifier: MIT
#include "filter.h"

struct partita_filter *filter_allocate(const struct partita_plan *plan)
{
    struct partita_filter *filter = mem_allocate(&plan->allocator, sizeof *filter);
    if (filter) filter->plan = plan;
    return filter;
}

enum partita_status filter_pack(struct partita_filter *filter, const void *taps)
{
    const struct engine *engine = filter->plan->engine;
    return engine ? engine->filter_create(filter, taps) : PARTITA_OK;
}

enum partita_status filter_create(const struct partita_plan *plan, const void *taps,
                                  struct partita_filter **ret_filter)
{
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    const enum partita_status status = filter_pack(filter, taps);
    if (status == PARTITA_OK) *ret_filter = filter;
    else filter_destroy(filter);
    return status;
}

void filter_destroy(struct partita_filter *filter)
{
    if (!filter) return;
    const struct partita_allocator allocator = filter->plan->allocator;
    const struct engine *engine = filter->plan->engine;
    filter_destroy(filter->backward_data);
    if (engine && engine->filter_destroy) engine->filter_destroy(filter);
    else mem_release(&allocator, filter->state);
    mem_release(&allocator, filter->bias);
    mem_release(&allocator, filter);
}
