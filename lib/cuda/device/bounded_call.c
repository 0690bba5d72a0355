// SPDX-License-Identifier: MIT
#include "bounded_call.h"

#include <assert.h>
#include <string.h>

#include "cuda/kernels/sums.h"
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
static enum partita_status replace_array(const struct partita_plan *plan, const void *array,
                                         size_t bytes, size_t alignment, void **ret_own)
{
    enum cuda_memory memory;
    const enum partita_status status = cuda_memory_of(plan, array, 1, &memory);
    const bool aligned = !alignment || (uintptr_t)array % alignment == 0;
    if (status != PARTITA_OK || (memory == CUDA_ON_DEVICE && aligned)) return status;
    return cuda_allocate(plan, bytes, ret_own);
}

// The staging buffers through which an array is copied; NULL: the device copies it by itself.
static enum partita_status choose_staging(struct cuda_call *call, const void *array, size_t bytes,
                                          struct cuda_staging **ret)
{
    enum cuda_memory memory;
    enum partita_status status = cuda_memory_of(call->plan, array, bytes, &memory);
    const bool staged = memory == CUDA_PAGEABLE;
    if (status == PARTITA_OK && staged && !call->staging)
        status = cuda_staging_borrow(call->plan, &call->staging);
    *ret = staged ? call->staging : NULL;
    return status;
}

static enum partita_status take_input(struct cuda_call *call, int i, const void *array,
                                      const struct cuda_sizes *sizes)
{
    void **taken = &call->taken[1 + i];
    const size_t bytes = sizes->from[i];
    struct cuda_staging *staging;
    enum partita_status status = replace_array(call->plan, array, bytes, sizes->alignment, taken);
    call->from[i] = *taken ? *taken : array;
    if (status != PARTITA_OK || !*taken) return status;
    status = choose_staging(call, array, bytes, &staging);
    return status == PARTITA_OK
               ? cuda_stage_in(call->plan, staging, cudaStreamPerThread, *taken, array, bytes)
               : status;
}

static enum partita_status take_workspace(struct cuda_call *call, void *workspace, size_t bytes)
{
    if (!bytes) return PARTITA_OK;
    const enum partita_status status =
        replace_array(call->plan, workspace, bytes, 0, &call->taken[3]);
    call->workspace = call->taken[3] ? call->taken[3] : workspace;
    return status;
}

enum partita_status cuda_call_begin(const struct partita_plan *plan,
                                    const struct operands *operands, const struct cuda_sizes *sizes,
                                    void *workspace, struct cuda_call *ret)
{
    const struct cuda_sizes of_plan = sizes ? *sizes : cuda_sizes_of(plan);
    *ret = (struct cuda_call){.plan = plan,
                              .to_bytes = of_plan.to,
                              .caller_to = operands->to,
                              .queued = operands->queued};
    enum partita_status status =
        replace_array(plan, operands->to, of_plan.to, of_plan.alignment, &ret->taken[0]);
    ret->to = ret->taken[0] ? ret->taken[0] : operands->to;
    for (int i = 0; i < 2 && status == PARTITA_OK; i++)
        if (operands->from[i]) status = take_input(ret, i, operands->from[i], &of_plan);
    if (status == PARTITA_OK) status = take_workspace(ret, workspace, of_plan.workspace);
    return status;
}

static enum partita_status return_result(struct cuda_call *call)
{
    struct cuda_staging *staging;
    const enum partita_status status =
        choose_staging(call, call->caller_to, call->to_bytes, &staging);
    if (status != PARTITA_OK) return status;
    assert(!call->queued || !staging); // a caller who waits himself has no pageable arrays
    return cuda_stage_out(call->plan, staging, cudaStreamPerThread, call->caller_to, call->taken[0],
                          call->to_bytes);
}

enum partita_status cuda_call_end(struct cuda_call *call, enum partita_status status)
{
    const struct partita_plan *plan = call->plan;
    if (status == PARTITA_OK && call->taken[0]) status = return_result(call);
    for (size_t i = 0; i < sizeof call->taken / sizeof *call->taken; i++)
        cuda_release(plan, call->taken[i]);
    if (call->queued) return status;
    // Also after a failure: queued work reads the caller's arrays.
    const enum partita_status waited = cuda_wait(plan);
    cuda_staging_give_back(plan, call->staging);
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_bounded_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace)
{
    struct operands placed = *operands;
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, NULL, workspace, &call);
    placed.to = call.to;
    memcpy(placed.from, call.from, sizeof placed.from);
    if (status == PARTITA_OK)
        status = plan->engine->bounded.run(plan, filter, &placed, call.workspace);
    return cuda_call_end(&call, status);
}

enum partita_status cuda_clear_result(const struct partita_plan *plan, void *to)
{
    if (cuda_thread()->loads) return PARTITA_OK;
    return CU(plan, cudaMemsetAsync(to, 0, cuda_sizes_of(plan).to, cuda_thread()->stream));
}

enum partita_status cuda_finish_result(const struct partita_plan *plan, void *y, const void *bias)
{
    const struct shape *shape = &plan->shape;
    const struct cuda_finish finish = {.y = y,
                                       .bias = bias,
                                       .rows = (int64_t)(shape->batch * shape->out_channels),
                                       .length = (int64_t)shape_outputs(shape),
                                       .channels = (int64_t)shape->out_channels,
                                       .relu = shape->relu};
    if (plan->direction != PARTITA_FORWARD || !(bias || shape->relu)) return PARTITA_OK;
    return CU(plan, cuda_launch_finish(&finish, shape->f64));
}
