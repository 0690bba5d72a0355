// SPDX-License-Identifier: MIT
#include "call.h"

struct cuda_sizes cuda_sizes_of(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const size_t scalar = shape->scalar_bytes, workspace = plan->choice.shared;
    const size_t x = shape->batch * shape->in_channels * shape_inputs(shape) * scalar;
    const size_t y = shape->batch * shape->out_channels * shape_outputs(shape) * scalar;
    if (plan->direction == PARTITA_FORWARD) return (struct cuda_sizes){.to = y, .from = {x}, .workspace = workspace};
    if (plan->direction == PARTITA_BACKWARD_DATA)
        return (struct cuda_sizes){.to = x, .from = {y}, .workspace = workspace};
    const size_t gw = shape->out_channels * shape->group_in * shape_taps(shape) * scalar;
    return (struct cuda_sizes){.to = gw, .from = {x, y}, .workspace = workspace};
}

// The device's view of an array of the caller's: itself, or memory of the call's own.
static enum partita_status view(const struct partita_plan *plan, const void *array, size_t bytes, size_t alignment,
                                void **ret_own)
{
    bool owns;
    const enum partita_status status = cuda_owns(plan, array, &owns);
    if (alignment && (uintptr_t)array % alignment) owns = false;
    return status == PARTITA_OK && !owns ? cuda_allocate(plan, bytes, ret_own) : status;
}

static enum partita_status view_input(struct cuda_call *call, int i, const void *array, const struct cuda_sizes *sizes)
{
    void **own = &call->own[1 + i];
    enum partita_status status = view(call->plan, array, sizes->from[i], sizes->alignment, own);
    if (status == PARTITA_OK && *own) status = cuda_copy(call->plan, *own, array, sizes->from[i]);
    call->from[i] = *own ? *own : array;
    return status;
}

static enum partita_status view_workspace(struct cuda_call *call, void *workspace, size_t bytes)
{
    if (!bytes) return PARTITA_OK;
    const enum partita_status status = view(call->plan, workspace, bytes, 0, &call->own[3]);
    call->workspace = call->own[3] ? call->own[3] : workspace;
    return status;
}

enum partita_status cuda_call_begin(const struct partita_plan *plan, const struct operands *operands,
                                    const struct cuda_sizes *sizes, void *workspace, struct cuda_call *ret)
{
    *ret = (struct cuda_call){.plan = plan, .to_bytes = sizes->to, .caller_to = operands->to};
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = view(plan, operands->to, sizes->to, sizes->alignment, &ret->own[0]);
    ret->to = ret->own[0] ? ret->own[0] : operands->to;
    for (int i = 0; i < 2 && status == PARTITA_OK; i++)
        if (operands->from[i]) status = view_input(ret, i, operands->from[i], sizes);
    if (status == PARTITA_OK) status = view_workspace(ret, workspace, sizes->workspace);
    return status;
}

enum partita_status cuda_call_end(struct cuda_call *call, enum partita_status status)
{
    const struct partita_plan *plan = call->plan;
    if (status == PARTITA_OK && call->own[0]) status = cuda_copy(plan, call->caller_to, call->own[0], call->to_bytes);
    for (size_t i = 0; i < sizeof call->own / sizeof *call->own; i++) cuda_release(plan, call->own[i]);
    // Also after a failure: what was queued reads the caller's arrays.
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}
