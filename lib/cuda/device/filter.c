// SPDX-License-Identifier: MIT
#include "filter.h"

#include <assert.h>

size_t cuda_taps_bytes(const struct shape *shape)
{
    return shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
}

static struct cuda_filter *make_state(struct partita_filter *filter)
{
    assert(!filter->state);
    filter->state = mem_allocate(&filter->plan->allocator, sizeof(struct cuda_filter));
    return filter->state;
}

enum partita_status cuda_filter_copy(struct partita_filter *filter, const void *taps, size_t bytes)
{
    struct cuda_filter *state = make_state(filter);
    return state ? cuda_upload(filter->plan, taps, bytes, &state->taps) : PARTITA_ERR_NOMEM;
}

enum partita_status cuda_filter_transform(struct partita_filter *filter, const void *taps,
                                          size_t bytes,
                                          cudaError_t (*transform)(const struct partita_plan *plan,
                                                                   void *to, const void *taps))
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_filter *state = make_state(filter);
    void *copy = NULL;
    assert(bytes > 0);
    enum cuda_memory memory = CUDA_PAGEABLE;
    if (!state) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_memory_of(plan, taps, 1, &memory);
    const bool usable = memory == CUDA_ON_DEVICE && (uintptr_t)taps % plan->shape.tap_bytes == 0;
    if (status == PARTITA_OK && !usable)
        status = cuda_upload(plan, taps, cuda_taps_bytes(&plan->shape), &copy);
    if (status == PARTITA_OK) status = cuda_allocate(plan, bytes, &state->taps);
    if (status == PARTITA_OK) status = CU(plan, transform(plan, state->taps, usable ? taps : copy));
    cuda_release(plan, copy);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct cuda_filter *state = filter->state;
    return cuda_upload(filter->plan, bias, shape->out_channels * shape->scalar_bytes, &state->bias);
}

void cuda_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_filter *state = filter->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->taps);
    cuda_release(plan, state->bias);
    mem_release(&plan->allocator, state);
}
