// SPDX-License-Identifier: MIT
// Calls of cuda/winograd: batches of tiles, three kernels each, on the thread's stream; and its
// filters.
#include <assert.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "cuda/device/call.h"
#include "cuda/device/filter.h"
#include "winograd.h"

// The matrices of a call in its workspace.
struct matrices {
    char *from, *other, *sums;
};

static struct matrices matrices_of(const struct cuda_call *call)
{
    const struct cuda_winograd *winograd = call->plan->state;
    struct matrices at = {.from = call->workspace};
    at.other = at.from + winograd->from_bytes;
    at.sums = at.other + winograd->other_bytes;
    assert(at.sums + winograd->sum_bytes - at.from == (ptrdiff_t)call->plan->choice.shared);
    return at;
}

// The batch that begins at `first`.
static struct cuda_winograd_tiles tiles_from(const struct cuda_winograd *winograd,
                                             const struct cuda_winograd_tiles *of, size_t first)
{
    struct cuda_winograd_tiles tiles = *of;
    assert(first < winograd->tiles);
    tiles.first = (uint32_t)first;
    tiles.n = (uint32_t)size_min(winograd->tiles - first, winograd->choice.batch);
    return tiles;
}

static enum partita_status winograd_multiply(const struct partita_plan *plan,
                                             const struct cuda_product *product, void *c,
                                             const void *a, const void *b)
{
    return CU(plan, cuda_launch_product(product, cuda_device_of(plan)->processors, c, a, b,
                                        cudaStreamPerThread));
}

static enum partita_status queue_outputs(const struct cuda_call *call,
                                         const struct partita_filter *filter, size_t first)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_filter *state = filter->state;
    const struct matrices at = matrices_of(call);
    const struct cuda_winograd_tiles from = tiles_from(winograd, &winograd->from, first);
    struct cuda_winograd_tiles to = tiles_from(winograd, &winograd->to, first);
    struct cuda_product product = winograd->product;
    const bool f64 = plan->shape.f64;
    assert(from.n <= (size_t)product.columns && from.n == to.n);
    product.columns = from.n;
    to.wide = to.wide && (uintptr_t)call->to % CUDA_PRODUCT_ALIGN == 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&from, f64, at.from, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = winograd_multiply(plan, &product, at.sums, state->taps, at.from);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_winograd_output(&to, f64, call->to, at.sums,
                                               cuda_filter_added(filter), cudaStreamPerThread));
    return status;
}

static enum partita_status queue_sums(const struct cuda_call *call, size_t first)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const struct matrices at = matrices_of(call);
    const struct cuda_winograd_tiles x = tiles_from(winograd, &winograd->from, first);
    const struct cuda_winograd_tiles gy = tiles_from(winograd, &winograd->to, first);
    struct cuda_product product = winograd->product;
    const bool f64 = plan->shape.f64;
    assert(x.n <= (size_t)product.terms && x.n == gy.n);
    product.terms = x.n;
    product.onto = first > 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&x, f64, at.from, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan,
                    cuda_winograd_gradient(&gy, f64, at.other, call->from[1], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = winograd_multiply(plan, &product, at.sums, at.other, at.from);
    return status;
}

static enum partita_status queue_all(const struct cuda_call *call,
                                     const struct partita_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const struct cuda_winograd *winograd = plan->state;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t batch = winograd->choice.batch;
    enum partita_status status = PARTITA_OK;
    if (!winograd->covers)
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t first = 0; first < winograd->tiles && status == PARTITA_OK; first += batch)
        status = weight ? queue_sums(call, first) : queue_outputs(call, filter, first);
    if (!weight || status != PARTITA_OK) return status;
    return CU(plan, cuda_winograd_weight(&winograd->taps, plan->shape.f64, call->to,
                                         matrices_of(call).sums, winograd->choice.chunks,
                                         cudaStreamPerThread));
}

enum partita_status cuda_winograd_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, NULL, workspace, &call);
    if (status == PARTITA_OK) status = queue_all(&call, filter);
    return cuda_call_end(&call, status);
}

static cudaError_t queue_winograd_taps(const struct partita_plan *plan, void *to, const void *taps)
{
    const struct cuda_winograd *winograd = plan->state;
    return cuda_winograd_filter(&winograd->taps, plan->shape.f64, to, taps, cudaStreamPerThread);
}

enum partita_status cuda_winograd_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct cuda_winograd *winograd = filter->plan->state;
    const struct cuda_winograd_taps *of = &winograd->taps;
    const size_t lines = size_mul(winograd->frequencies, (size_t)(of->groups * of->in));
    return cuda_filter_transform(
        filter, taps, size_mul(lines, (size_t)of->pitch * filter->plan->shape.scalar_bytes),
        queue_winograd_taps);
}
