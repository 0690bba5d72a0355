// SPDX-License-Identifier: MIT
// cuda/direct: the sum itself, for layers. Its variants (kernels.h) are engines too, so that each
// can be asked for, tested and timed by name; cuda/direct is the one among them that should be
// fastest.
#include "direct.h"

#include <string.h>

#include "cost.h"
#include "cuda/device/call.h"
#include "cuda/device/passes.h"

// A filter: the caller's taps in the device's memory.
struct direct_filter {
    void *taps, *bias; // in the device's memory; bias NULL: none
    void *on_host;     // the taps again, for CUDA_CONSTANT; NULL for others
};

static void estimate_auto(const struct request *request, struct estimate *ret)
{
    struct estimate best = {0};
    for (int v = 0; v < CUDA_VARIANTS; v++) {
        struct estimate estimate = {0};
        if (request->like && request->like->variant != v) continue;
        cuda_direct_estimate(request, (enum cuda_variant)v, &estimate);
        if (v == CUDA_PLAIN ||
            (estimate.applicable && (!best.applicable || estimate.seconds < best.seconds)))
            best = estimate;
    }
    *ret = best;
}

static void estimate_plain(const struct request *request, struct estimate *ret)
{
    cuda_direct_estimate(request, CUDA_PLAIN, ret);
}

static void estimate_constant(const struct request *request, struct estimate *ret)
{
    cuda_direct_estimate(request, CUDA_CONSTANT, ret);
}

static void estimate_halo(const struct request *request, struct estimate *ret)
{
    cuda_direct_estimate(request, CUDA_HALO, ret);
}

static void estimate_cached(const struct request *request, struct estimate *ret)
{
    cuda_direct_estimate(request, CUDA_CACHED, ret);
}

// Everything is in plan->choice and the shape.
static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    (void)request;
    return cuda_enter(plan);
}

static void plan_destroy(struct partita_plan *plan)
{
    (void)plan;
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t bytes =
        shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
    struct direct_filter *direct = mem_allocate(&plan->allocator, sizeof *direct);
    filter->state = direct;
    if (!direct) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_keep(plan, taps, bytes, &direct->taps);
    if (status != PARTITA_OK || plan->choice.variant != CUDA_CONSTANT) return status;
    direct->on_host = mem_allocate(&plan->allocator, bytes);
    if (!direct->on_host) return PARTITA_ERR_NOMEM;
    status = cuda_copy(plan, direct->on_host, direct->taps, bytes);
    return status == PARTITA_OK ? cuda_wait(plan) : status;
}

static enum partita_status filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct direct_filter *direct = filter->state;
    return cuda_keep(filter->plan, bias, shape->out_channels * shape->scalar_bytes, &direct->bias);
}

static void filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct direct_filter *direct = filter->state;
    if (!direct) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, direct->taps);
    cuda_release(plan, direct->bias);
    mem_release(&plan->allocator, direct->on_host);
    mem_release(&plan->allocator, direct);
}

static enum partita_status run_pass(const struct cuda_call *call, const struct cuda_pass *pass,
                                    const struct direct_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    const bool f64 = plan->shape.f64;
    const void *bias = plan->direction == PARTITA_FORWARD ? filter->bias : NULL;
    const enum cuda_variant variant = (enum cuda_variant)plan->choice.variant;
    struct cuda_tile tile;
    for (int a = 0; a < 3; a++)
        if (pass->axis[a].n == 0) return PARTITA_OK;
    if (variant == CUDA_PLAIN)
        return CU(plan, cuda_launch_plain(pass, f64, call->to, call->from[0], filter->taps, bias,
                                          cudaStreamPerThread));
    if (variant == CUDA_CONSTANT)
        return CU(plan, cuda_launch_constant(pass, f64, call->to, call->from[0], filter->on_host,
                                             bias, cudaStreamPerThread));
    // Estimate saw that the pass with most taps can be cut, so that the others can be too.
    if (!cuda_tile_cut(pass, variant, f64, cuda_device_of(plan)->shared_bytes, &tile))
        return PARTITA_ERR_UNSUPPORTED;
    return CU(plan, cuda_launch_tile(pass, variant, &tile, f64, call->to, call->from[0],
                                     filter->taps, bias, cudaStreamPerThread));
}

static enum partita_status run_backward_data(const struct cuda_call *call,
                                             const struct direct_filter *filter)
{
    const struct partita_plan *plan = call->plan;
    bool covers;
    const size_t passes = cuda_passes_backward(&plan->shape, &covers);
    enum partita_status status = PARTITA_OK;
    if (!covers)
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (size_t i = 0; i < passes && status == PARTITA_OK; i++) {
        const struct cuda_pass pass = cuda_pass_backward(&plan->shape, i);
        status = run_pass(call, &pass, filter);
    }
    return status;
}

static enum partita_status run_backward_weight(const struct cuda_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    const struct cuda_pass pass = cuda_pass_forward(shape);
    // What the estimate gave to the workspace is what the limit allowed.
    const int64_t parts = cuda_weight_parts(&pass, shape->f64, plan->choice.shared);
    return CU(plan, cuda_launch_weight(&pass, shape->f64, call->to, call->workspace, call->from[0],
                                       call->from[1], parts, cudaStreamPerThread));
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct cuda_sizes sizes = cuda_sizes_of(plan);
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status != PARTITA_OK) return cuda_call_end(&call, status);
    if (plan->direction == PARTITA_FORWARD) {
        const struct cuda_pass pass = cuda_pass_forward(&plan->shape);
        status = run_pass(&call, &pass, filter->state);
    } else if (plan->direction == PARTITA_BACKWARD_DATA)
        status = run_backward_data(&call, filter->state);
    else status = run_backward_weight(&call);
    return cuda_call_end(&call, status);
}

#define DIRECT(variant_name, variant_estimate)                                                     \
    {                                                                                              \
        .name = variant_name, .max_rank = PARTITA_MAX_RANK, .estimate = variant_estimate,          \
        .plan_create = plan_create, .plan_destroy = plan_destroy, .filter_create = filter_create,  \
        .filter_bias = filter_bias, .filter_destroy = filter_destroy, .run = run                   \
    }

const struct engine cuda_direct = DIRECT("cuda/direct", estimate_auto);
const struct engine cuda_direct_plain = DIRECT("cuda/direct-plain", estimate_plain);
const struct engine cuda_direct_constant = DIRECT("cuda/direct-constant", estimate_constant);
const struct engine cuda_direct_halo = DIRECT("cuda/direct-halo", estimate_halo);
const struct engine cuda_direct_cached = DIRECT("cuda/direct-cached", estimate_cached);
