// SPDX-License-Identifier: MIT
#include "bounded.h"

#include <assert.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "core/filter.h"
#include "core/storage.h"
#include "filter.h"
#include "geometry/upsampling.h"
#include "nonfinite.h"

// Whether the engine computes outputs of branches, from which a call takes its results.
static bool computes_branches(const struct partita_plan *plan)
{
    return plan->shape.up.branches && !plan->choice.resamples;
}

size_t bounded_workspace(const struct partita_plan *plan)
{
    const size_t engine = plan_workspace(plan);
    const size_t branches = computes_branches(plan) ? upsampling_bytes(&plan->shape) : 0;
    const size_t more =
        size_add(branches, size_add(plan_wide_taps(plan), boundary_bytes(&plan->shape)));
    return more ? size_add(mem_round(engine), more) : engine;
}

size_t bounded_call_workspace(const struct partita_plan *plan, const struct operands *operands)
{
    const size_t bytes = bounded_workspace(plan);
    return operands->accumulate ? size_add(mem_round(bytes), operands->accumulate) : bytes;
}

// Results of all channels and items.
static void take_from_branches(const struct shape *shape, char *y, const char *branches)
{
    const struct upsampling *up = &shape->up;
    const size_t bytes = shape->sample_bytes, pitch = shape->axis[0].out;
    for (size_t row = 0; row < shape->batch * up->out_channels; row++) {
        const struct branches from = {branches + row * up->branches * pitch * bytes, pitch,
                                      up->first};
        upsampling_take(shape, &from, y + row * up->axis.out * bytes, 1, up->axis.out);
    }
}

enum { ADDED = 4096 }; // scalars of a task

struct addition {
    const struct partita_plan *plan;
    char *to;
    const char *results;
    size_t scalars;
};

static void add_task(void *context, size_t task, int worker)
{
    const struct addition *all = context;
    const size_t first = task * ADDED, at = first * shape_alignment(&all->plan->shape);
    (void)worker;
    storage_add(all->plan, all->to + at, all->results + at, size_min(ADDED, all->scalars - first));
}

enum partita_status cpu_run(const struct partita_plan *plan, const struct partita_filter *filter,
                            const struct operands *operands, void *workspace)
{
    const bool branches = computes_branches(plan), ghosts = boundary_bytes(&plan->shape);
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    const bool narrows = plan->shape.half && plan->direction == PARTITA_BACKWARD_WEIGHT;
    struct operands inner = *operands;
    const bool extends = ghosts && !data && operands->from[0]; // not where x is saved
    _Atomic uint64_t peak = 0;
    const size_t bytes = bounded_call_workspace(plan, operands);
    void *allocated = workspace ? NULL : mem_reserve(&plan->allocator, bytes);
    if (!workspace) workspace = allocated;
    if (!workspace) return PARTITA_ERR_NOMEM;
    char *results = operands->accumulate ? (char *)workspace + bytes - operands->accumulate
                                         : (char *)operands->to;
    inner.accumulate = 0;
    inner.peak = &peak;
    char *more = (char *)workspace + mem_round(plan_workspace(plan));
    char *extended = more + plan_wide_taps(plan);
    inner.to = results;
    if (branches || narrows) inner.to = more;
    else if (ghosts && data) inner.to = extended;
    if (extends) boundary_move(plan, extended, (void *)(uintptr_t)operands->from[0]);
    if (extends) inner.from[0] = extended;
    struct saved_slot *slot = inner.saved[plan->direction == PARTITA_FORWARD ? SAVED_X : SAVED_GY];
    if (slot && slot->ready) peak = slot->peak;
    enum partita_status status = plan->engine->bounded.run(plan, filter, &inner, workspace);
    if (slot) slot->peak = peak;
    if (status == PARTITA_OK) status = nonfinite_confine(plan, filter, &inner, workspace);
    if (status == PARTITA_OK && branches) take_from_branches(&plan->shape, results, inner.to);
    if (status == PARTITA_OK && narrows)
        storage_convert(plan, results, inner.to, plan_taps(plan), false);
    if (status == PARTITA_OK && ghosts && data) boundary_move(plan, extended, results);
    struct addition sums = {plan, operands->to, results,
                            operands->accumulate / shape_alignment(&plan->shape)};
    assert(!operands->accumulate || results != operands->to);
    if (status == PARTITA_OK)
        thread_loop(plan->threads, ceil_div(sums.scalars, ADDED), add_task, &sums);
    mem_release(&plan->allocator, allocated);
    return status;
}

// The taps are packed in the memory that the call then works in, if packing on all threads needs no
// more: new memory is cleared once.
static enum partita_status pack_and_run(const struct bounded_call *call, void *workspace)
{
    const struct partita_plan *plan = call->plan;
    const struct engine *engine = plan->engine;
    const bool fits = workspace && !engine->filter.create &&
                      engine->filter.bytes(plan).scratch <= plan_workspace(plan);
    struct partita_filter *filter = NULL;
    enum partita_status status;
    if (plan->shape.up.branches)
        status = filter_from_taps(plan, &(struct partita_taps){.dense = call->taps}, &filter);
    else status = filter_create(plan, call->taps, fits ? workspace : NULL, &filter);
    if (status == PARTITA_OK) status = plan->device->run(plan, filter, &call->operands, workspace);
    filter_destroy(filter);
    return status;
}

enum partita_status bounded_run(const struct bounded_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    struct operands operands = call->operands;
    if (!call->taps) return plan->device->run(plan, call->filter, &operands, call->workspace);
    if (plan->direction == PARTITA_FORWARD && plan->choice.from_taps && !shape->relu &&
        !shape->up.branches) {
        operands.from[1] = call->taps;
        operands.from_taps = true;
        return plan->device->run(plan, NULL, &operands, call->workspace);
    }
    if (operands.queue)
        return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "call.queue: %s needs a filter",
                         plan->engine->name);
    const bool allocates = !call->workspace && plan->device->host;
    void *allocated =
        allocates ? mem_reserve(&plan->allocator, bounded_call_workspace(plan, &operands)) : NULL;
    if (allocates && !allocated) return PARTITA_ERR_NOMEM;
    const enum partita_status status = pack_and_run(call, allocates ? allocated : call->workspace);
    mem_release(&plan->allocator, allocated);
    return status;
}
