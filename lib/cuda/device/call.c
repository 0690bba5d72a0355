// SPDX-License-Identifier: MIT
#include "call.h"

#include "filter.h"

struct cuda_sizes cuda_sizes_of(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const size_t x = cuda_input_bytes(shape), y = cuda_output_bytes(shape);
    const size_t taps = cuda_taps_bytes(shape);
    struct cuda_sizes sizes = {.workspace = plan->choice.shared, .alignment = shape->sample_bytes};
    if (plan->direction == PARTITA_FORWARD) sizes.to = y, sizes.from[0] = x, sizes.from[1] = taps;
    else if (plan->direction == PARTITA_BACKWARD_DATA) sizes.to = x, sizes.from[0] = y;
    else sizes.to = taps, sizes.from[0] = x, sizes.from[1] = y;
    return sizes;
}

// Memory of the call's own in place of an array that kernels may not use as it is.
static enum partita_status view(const struct partita_plan *plan, const void *array, size_t bytes,
                                size_t alignment, void **ret_own)
{
    enum cuda_place place;
    const enum partita_status status = cuda_place_of(plan, array, 1, &place);
    const bool usable = place == CUDA_HERE && (!alignment || (uintptr_t)array % alignment == 0);
    return status == PARTITA_OK && !usable ? cuda_allocate(plan, bytes, ret_own) : status;
}

// How an array of the caller's is copied: through pinned memory, which the call then has, where its
// own pages are not.
static enum partita_status choose_way(struct cuda_call *call, const void *array, size_t bytes,
                                      bool *ret_staged)
{
    enum cuda_place place;
    enum partita_status status = cuda_place_of(call->plan, array, bytes, &place);
    *ret_staged = place == CUDA_PAGEABLE;
    if (status == PARTITA_OK && *ret_staged && !call->staging)
        status = cuda_staging_borrow(call->plan, &call->staging);
    return status;
}

static enum partita_status bring(struct cuda_call *call, void *to, const void *array, size_t bytes)
{
    bool staged;
    const enum partita_status status = choose_way(call, array, bytes, &staged);
    if (status != PARTITA_OK) return status;
    return staged ? cuda_stage_in(call->plan, call->staging, cudaStreamPerThread, to, array, bytes)
                  : cuda_copy(call->plan, to, array, bytes);
}

static enum partita_status bring_home(struct cuda_call *call)
{
    bool staged;
    const enum partita_status status = choose_way(call, call->caller_to, call->to_bytes, &staged);
    if (status != PARTITA_OK) return status;
    return staged ? cuda_stage_out(call->plan, call->staging, cudaStreamPerThread, call->caller_to,
                                   call->own[0], call->to_bytes)
                  : cuda_copy(call->plan, call->caller_to, call->own[0], call->to_bytes);
}

static enum partita_status view_input(struct cuda_call *call, int i, const void *array,
                                      const struct cuda_sizes *sizes)
{
    void **own = &call->own[1 + i];
    enum partita_status status = view(call->plan, array, sizes->from[i], sizes->alignment, own);
    if (status == PARTITA_OK && *own) status = bring(call, *own, array, sizes->from[i]);
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

enum partita_status cuda_call_begin(const struct partita_plan *plan,
                                    const struct operands *operands, const struct cuda_sizes *sizes,
                                    void *workspace, struct cuda_call *ret)
{
    *ret = (struct cuda_call){
        .plan = plan, .to_bytes = sizes->to, .caller_to = operands->to, .queued = operands->queued};
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK)
        status = view(plan, operands->to, sizes->to, sizes->alignment, &ret->own[0]);
    ret->to = ret->own[0] ? ret->own[0] : operands->to;
    for (int i = 0; i < 2 && status == PARTITA_OK; i++)
        if (operands->from[i]) status = view_input(ret, i, operands->from[i], sizes);
    if (status == PARTITA_OK) status = view_workspace(ret, workspace, sizes->workspace);
    return status;
}

enum partita_status cuda_call_end(struct cuda_call *call, enum partita_status status)
{
    const struct partita_plan *plan = call->plan;
    if (status == PARTITA_OK && call->own[0]) status = bring_home(call);
    for (size_t i = 0; i < sizeof call->own / sizeof *call->own; i++)
        cuda_release(plan, call->own[i]);
    if (call->queued) return status;
    // Also after a failure: what was queued reads the caller's arrays.
    const enum partita_status waited = cuda_wait(plan);
    cuda_staging_give_back(plan, call->staging);
    return status == PARTITA_OK ? waited : status;
}
