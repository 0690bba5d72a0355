// SPDX-License-Identifier: MIT
#include "filter.h"

#include <assert.h>

#include "base/sizes.h"

size_t cuda_taps_bytes(const struct shape *shape)
{
    return shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
}

struct cuda_windows cuda_row_windows(size_t size, bool complex_samples)
{
    return (struct cuda_windows){.size = (int64_t)size,
                                 .step = 1,
                                 .outer = 1,
                                 .inner = 1,
                                 .pitch = 1,
                                 .complex_samples = complex_samples,
                                 .scale = 1};
}

struct cuda_windows cuda_taps_windows(const struct shape *shape, bool transposed)
{
    struct cuda_windows windows = cuda_row_windows(shape->axis[0].kernel, shape->complex_taps);
    windows.step = (int64_t)shape->axis[0].dilation;
    if (transposed) windows.outer = (int64_t)shape->group_out;
    if (transposed) windows.inner = (int64_t)shape->group_in;
    windows.reversed = windows.conjugated = !shape->flip;
    return windows;
}

struct filter_bytes cuda_filter_copy_bytes(const struct partita_plan *plan)
{
    return (struct filter_bytes){.packed = cuda_taps_bytes(&plan->shape)};
}

enum partita_status cuda_filter_copy(struct partita_filter *filter, const void *taps,
                                     const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_filter *state = filter->state;
    (void)scratch;
    if (cuda_thread()->loads) return PARTITA_OK;
    return cuda_copy(plan, state->taps, taps, cuda_taps_bytes(&plan->shape));
}

enum partita_status cuda_filter_queue(struct partita_filter *filter, const struct operands *arrays,
                                      const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_filter *state = filter->state;
    enum partita_status status = PARTITA_OK;
    for (struct partita_filter *f = filter; f && status == PARTITA_OK; f = f->backward_data)
        if (f->plan->engine) status = f->plan->engine->filter.pack(f, arrays->from[0], scratch);
    if (status != PARTITA_OK || !arrays->from[1] || !plan->engine) return status;
    return cuda_copy(plan, state->bias, arrays->from[1],
                     plan->shape.out_channels * shape_alignment(&plan->shape));
}

size_t cuda_filter_scratch(const struct partita_filter *filter)
{
    size_t bytes = 0;
    for (; filter; filter = filter->backward_data)
        if (filter->plan->engine)
            bytes = size_max(bytes, filter->plan->engine->filter.bytes(filter->plan).scratch);
    return bytes;
}

enum partita_status cuda_filter_repack(struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const size_t alignment = plan->shape.tap_bytes;
    struct operands arrays = *operands;
    struct region scratch = {workspace, cuda_filter_scratch(filter)};
    enum cuda_memory memory = CUDA_PAGEABLE;
    void *taken = NULL, *copy = NULL;
    enum partita_status status = cuda_memory_of(plan, operands->from[0], 1, &memory);
    const bool usable = memory == CUDA_ON_DEVICE && (uintptr_t)arrays.from[0] % alignment == 0;
    if (status == PARTITA_OK && !usable)
        status = cuda_upload(plan, operands->from[0], cuda_taps_bytes(&plan->shape), &copy);
    if (copy) arrays.from[0] = copy;
    if (status == PARTITA_OK) status = cuda_memory_of(plan, workspace, 1, &memory);
    if (status == PARTITA_OK && memory != CUDA_ON_DEVICE && scratch.bytes) {
        status = cuda_allocate(plan, scratch.bytes, &taken);
        scratch.data = taken;
    }
    if (status == PARTITA_OK) status = cuda_filter_queue(filter, &arrays, &scratch);
    cuda_release(plan, taken);
    cuda_release(plan, copy);
    // Also after a failure: queued work reads the caller's arrays.
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_filter *state = mem_allocate(&plan->allocator, sizeof *state);
    assert(!filter->state);
    filter->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK)
        status = cuda_allocate(plan, plan->engine->filter.bytes(plan).packed, &state->taps);
    if (status == PARTITA_OK)
        status = cuda_filter_repack(filter, &(struct operands){.from = {taps}}, NULL);
    cuda_leave(&scope);
    return status;
}

enum partita_status cuda_filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct cuda_filter *state = filter->state;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(filter->plan, &scope);
    if (status == PARTITA_OK)
        status = cuda_upload(filter->plan, bias, shape->out_channels * shape_alignment(shape),
                             &state->bias);
    cuda_leave(&scope);
    return status;
}

void cuda_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_filter *state = filter->state;
    if (!state) return;
    plan->device->release(plan, state->taps);
    plan->device->release(plan, state->bias);
    mem_release(&plan->allocator, state);
}
