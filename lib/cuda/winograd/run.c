// SPDX-License-Identifier: MIT
// Calls of cuda/winograd: runs of tiles, three kernels each, on the thread's stream; and its
// filters.
#include "cuda/device/call.h"
#include "winograd.h"

// The matrices of a call in its workspace.
struct matrices {
    char *from, *other, *sums;
};

static struct matrices matrices_of(const struct cuda_winograd *winograd, void *workspace)
{
    struct matrices at = {.from = workspace};
    at.other = at.from + winograd->from_bytes;
    at.sums = at.other + winograd->other_bytes;
    return at;
}

// Tiles of a run that begins at `first`.
static struct cuda_winograd_tiles run_of(const struct cuda_winograd *winograd,
                                         const struct cuda_winograd_tiles *of, size_t first)
{
    struct cuda_winograd_tiles tiles = *of;
    const size_t left = winograd->tiles - first;
    tiles.first = (uint32_t)first;
    tiles.n = (uint32_t)(left < winograd->run ? left : winograd->run);
    return tiles;
}

static enum partita_status queue_outputs(const struct cuda_call *call,
                                         const struct partita_filter *filter, size_t first)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_winograd_filter_state *state = filter->state;
    const struct matrices at = matrices_of(winograd, call->workspace);
    const struct cuda_winograd_tiles from = run_of(winograd, &winograd->from, first);
    struct cuda_winograd_tiles to = run_of(winograd, &winograd->to, first);
    const bool f64 = plan->shape.f64;
    struct cuda_product product = winograd->product;
    product.columns = from.n;
    to.wide = to.wide && (uintptr_t)call->to % CUDA_PRODUCT_ALIGN == 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&from, f64, at.from, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_launch_product(&product, cuda_device_of(plan)->processors, at.sums,
                                              state->taps, at.from, cudaStreamPerThread));
    if (status == PARTITA_OK)
        status =
            CU(plan, cuda_winograd_output(&to, f64, call->to, at.sums,
                                          plan->direction == PARTITA_FORWARD ? state->bias : NULL,
                                          cudaStreamPerThread));
    return status;
}

static enum partita_status queue_sums(const struct cuda_call *call, size_t first)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const struct matrices at = matrices_of(winograd, call->workspace);
    const struct cuda_winograd_tiles x = run_of(winograd, &winograd->from, first);
    const struct cuda_winograd_tiles gy = run_of(winograd, &winograd->to, first);
    const bool f64 = plan->shape.f64;
    struct cuda_product product = winograd->product;
    product.terms = x.n;
    product.onto = first > 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&x, f64, at.from, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan,
                    cuda_winograd_gradient(&gy, f64, at.other, call->from[1], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_launch_product(&product, cuda_device_of(plan)->processors, at.sums,
                                              at.other, at.from, cudaStreamPerThread));
    return status;
}

static enum partita_status queue_all(const struct cuda_call *call,
                                     const struct partita_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    enum partita_status status = PARTITA_OK;
    if (!winograd->grid.covers)
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t first = 0; first < winograd->tiles && status == PARTITA_OK; first += winograd->run)
        status = weight ? queue_sums(call, first) : queue_outputs(call, filter, first);
    if (!weight || status != PARTITA_OK) return status;
    return CU(plan, cuda_winograd_weight(&winograd->taps, plan->shape.f64, call->to,
                                         matrices_of(winograd, call->workspace).sums,
                                         winograd->product.parts, cudaStreamPerThread));
}

enum partita_status cuda_winograd_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const struct cuda_sizes sizes = cuda_sizes_of(plan);
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK) status = queue_all(&call, filter);
    return cuda_call_end(&call, status);
}

// Transforms taps that are in the device's memory.
static enum partita_status transform_taps(const struct partita_plan *plan, const void *taps,
                                          void **ret_taps)
{
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_winograd_taps *of = &winograd->taps;
    const size_t lines = size_mul(winograd->frequencies, (size_t)(of->groups * of->in));
    enum partita_status status = cuda_allocate(
        plan, size_mul(lines, (size_t)of->pitch * plan->shape.scalar_bytes), ret_taps);
    if (status == PARTITA_OK)
        status = CU(
            plan, cuda_winograd_filter(of, plan->shape.f64, *ret_taps, taps, cudaStreamPerThread));
    return status;
}

enum partita_status cuda_winograd_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t bytes =
        shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
    struct cuda_winograd_filter_state *state = mem_allocate(&plan->allocator, sizeof *state);
    void *given = NULL;
    filter->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_keep(plan, taps, bytes, &given);
    if (status == PARTITA_OK) status = transform_taps(plan, given, &state->taps);
    cuda_release(plan, given);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_winograd_filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct cuda_winograd_filter_state *state = filter->state;
    return cuda_keep(filter->plan, bias, shape->out_channels * shape->scalar_bytes, &state->bias);
}

void cuda_winograd_filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_winograd_filter_state *state = filter->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->taps);
    cuda_release(plan, state->bias);
    mem_release(&plan->allocator, state);
}
