// SPDX-License-Identifier: MIT
// cuda/direct: the sum itself, for layers.
#include "direct.h"

#include <assert.h>

#include "cuda/device/call.h"
#include "cuda/device/filter.h"
#include "cuda/device/passes.h"

// Everything is in plan->choice and the shape.
static enum partita_status cuda_direct_plan_create(struct partita_plan *plan,
                                                   const struct request *request)
{
    (void)request;
    return cuda_enter(plan);
}

static enum partita_status cuda_direct_filter_create(struct partita_filter *filter,
                                                     const void *taps)
{
    return cuda_filter_copy(filter, taps, cuda_taps_bytes(&filter->plan->shape));
}

static enum partita_status direct_run_pass(const struct cuda_call *call,
                                           const struct cuda_pass *pass,
                                           const struct partita_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const bool f64 = plan->shape.f64;
    const struct cuda_pass_arrays arrays = {.to = call->to,
                                            .from = call->from[0],
                                            .taps =
                                                ((const struct cuda_filter *)filter->state)->taps,
                                            .bias = cuda_filter_added(filter)};
    struct cuda_tile tile;
    assert(plan->choice.variant >= 0 && plan->choice.variant < CUDA_DIRECT_VARIANTS);
    for (int a = 0; a < 3; a++)
        if (pass->axis[a].n == 0) return PARTITA_OK;
    if (plan->choice.variant == CUDA_DIRECT_PLAIN)
        return CU(plan, cuda_direct_queue_plain(pass, f64, &arrays, cudaStreamPerThread));
    // Estimate split the pass with most taps, so that the others can be split too.
    if (!cuda_tile_split(pass, f64, cuda_device_of(plan)->shared_bytes, &tile))
        return PARTITA_ERR_UNSUPPORTED;
    return CU(plan, cuda_direct_queue_tiles(pass, f64, &tile, &arrays, cudaStreamPerThread));
}

static enum partita_status run_backward_data(const struct cuda_call *call,
                                             const struct partita_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    bool covers;
    const size_t passes = cuda_passes_backward(&plan->shape, &covers);
    enum partita_status status = PARTITA_OK;
    if (!covers)
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t i = 0; i < passes && status == PARTITA_OK; i++) {
        const struct cuda_pass pass = cuda_pass_backward(&plan->shape, i);
        status = direct_run_pass(call, &pass, filter);
    }
    return status;
}

static enum partita_status run_backward_weight(const struct cuda_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    const struct cuda_pass pass = cuda_pass_forward(shape);
    const struct cuda_weight_arrays arrays = {
        .gw = call->to, .sums = call->workspace, .x = call->from[0], .gy = call->from[1]};
    // The workspace that the estimate asked for allows as many chunks as the limit did.
    const int64_t chunks = cuda_weight_chunks(&pass, shape->f64, plan->choice.shared);
    assert(chunks == 1 || call->workspace);
    return CU(plan,
              cuda_direct_queue_weight(&pass, shape->f64, &arrays, chunks, cudaStreamPerThread));
}

static enum partita_status cuda_direct_run(const struct partita_plan *plan,
                                           const struct partita_filter *filter,
                                           const struct operands *operands, void *workspace)
{
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, NULL, workspace, &call);
    if (status != PARTITA_OK) return cuda_call_end(&call, status);
    if (plan->direction == PARTITA_FORWARD) {
        const struct cuda_pass pass = cuda_pass_forward(&plan->shape);
        status = direct_run_pass(&call, &pass, filter);
    } else if (plan->direction == PARTITA_BACKWARD_DATA) status = run_backward_data(&call, filter);
    else status = run_backward_weight(&call);
    return cuda_call_end(&call, status);
}

const struct engine cuda_direct = {
    .name = "cuda/direct",
    .variants = (const char *const[]){"plain", "halo", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .estimate = cuda_direct_estimate,
    .plan_create = cuda_direct_plan_create,
    .filter_create = cuda_direct_filter_create,
    .filter_bias = cuda_filter_bias,
    .filter_destroy = cuda_filter_destroy,
    .run = cuda_direct_run,
};
