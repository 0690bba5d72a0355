// SPDX-License-Identifier: MIT
// cuda/overlap-add: blocks of inputs that do not overlap, whose outputs do. They are added without
// atomics by K launches, each over windows whose outputs do not overlap. Source: Stockham,
// High-speed convolution and correlation, AFIPS 1966; Oppenheim & Schafer, 8.7.3.

#include <stdio.h>

#include "base/sizes.h"
#include "cuda/device/call.h"
#include "cuda/kernels/sums.h"
#include "filtering.h"

struct overlap_add {
    struct shape shape; // what is run
    struct cuda_fft fft;
    struct cuda_filtering filtering;
    struct cuda_save_cut cut;
};

// As overlap-save's, but a window holds `hop` samples, and as many more windows as reach back into
// the outputs.
static struct cuda_filtering filtering_of(const struct shape *shape,
                                          const struct cuda_fft_form *form)
{
    const struct axis *axis = &shape->axis[0];
    struct cuda_filtering filtering = cuda_filtering_of(shape, form);
    const int64_t last = (int64_t)((axis->out - 1) * axis->stride);
    filtering.in.length = filtering.out.hop;
    filtering.in.windows = (last + filtering.out.skip) / filtering.out.hop + 1;
    return filtering;
}

// Steps that windows have to be apart.
static size_t least_steps(const struct cuda_filtering *filtering)
{
    return ceil_div((size_t)(filtering->out.hop + filtering->out.skip), (size_t)filtering->out.hop);
}

static bool consider(const struct request *request, const struct shape *shape, size_t points,
                     size_t steps, struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    if (cuda_spectral_samples(shape, points) < shape->axis[0].span) return false;
    const struct cuda_fft_form form = cuda_form_of(shape, points);
    const struct cuda_filtering filtering = filtering_of(shape, &form);
    struct cuda_save_cut cut;
    if (steps < least_steps(&filtering) ||
        !cuda_cut_save(&filtering, shape->f64, device->processors, device->shared_bytes,
                       request->workspace_limit, &cut))
        return false;
    struct cuda_work work = cuda_filtering_work(shape, &filtering, points, (double)cut.parts);
    work.launches = (double)steps + 2;
    work.bytes += 3 * (double)cuda_output_bytes(shape); // cleared, read and written
    work.lanes =
        (double)(cut.blocks * cuda_fft_rows(points) * cuda_fft_threads(points)) / (double)steps;
    *ret = cuda_filtering_estimate(request, shape, &filtering, &work, cut.kept_bytes);
    ret->variant = (int)steps;
    return true;
}

static bool consider_2_steps(const struct request *request, const struct shape *shape,
                             size_t points, struct estimate *ret)
{
    return consider(request, shape, points, 2, ret);
}

static bool consider_3_steps(const struct request *request, const struct shape *shape,
                             size_t points, struct estimate *ret)
{
    return consider(request, shape, points, 3, ret);
}

static bool consider_both(const struct request *request, const struct shape *shape, size_t points,
                          struct estimate *ret)
{
    struct estimate three = {0};
    const bool two = consider_2_steps(request, shape, points, ret);
    if (!consider_3_steps(request, shape, points, &three)) return two;
    if (!two || three.seconds < ret->seconds) *ret = three;
    return true;
}

static void estimate(const struct request *request, cuda_consider_fn *of, struct estimate *ret)
{
    struct shape shape;
    if (!cuda_spectral_shape(request, &shape, ret->reason, sizeof ret->reason)) return;
    if (request->direction == PARTITA_BACKWARD_WEIGHT)
        snprintf(ret->reason, sizeof ret->reason, "does not compute this gradient");
    else cuda_spectral_search(request, &shape, of, ret);
}

static void estimate_both(const struct request *request, struct estimate *ret)
{
    estimate(request, consider_both, ret);
}

static void estimate_2_steps(const struct request *request, struct estimate *ret)
{
    estimate(request, consider_2_steps, ret);
}

static void estimate_3_steps(const struct request *request, struct estimate *ret)
{
    estimate(request, consider_3_steps, ret);
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    const struct cuda_device *device = cuda_device_of(plan);
    struct overlap_add *add = mem_allocate(&plan->allocator, sizeof *add);
    plan->state = add;
    if (!add) return PARTITA_ERR_NOMEM;
    cuda_spectral_shape(request, &add->shape, plan->choice.reason,
                        sizeof plan->choice.reason); // as estimate saw
    const size_t points = cuda_spectral_points(&add->shape, plan->choice.transform);
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK)
        status = cuda_fft_create(plan, points, !add->shape.complex_signal, 1, &add->fft);
    if (status != PARTITA_OK) return status;
    add->filtering = filtering_of(&add->shape, &add->fft.form);
    add->filtering.out.relu = plan->shape.relu && plan->direction == PARTITA_FORWARD;
    cuda_cut_save(&add->filtering, add->fft.f64, device->processors, device->shared_bytes,
                  plan->choice.shared, &add->cut);
    return PARTITA_OK;
}

static void plan_destroy(struct partita_plan *plan)
{
    struct overlap_add *add = plan->state;
    if (!add) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_fft_destroy(plan, &add->fft);
    mem_release(&plan->allocator, add);
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct overlap_add *add = filter->plan->state;
    return cuda_spectra_create(filter->plan, &add->shape, &add->fft, taps,
                               (struct cuda_spectra **)&filter->state);
}

static enum partita_status run_steps(const struct cuda_call *call,
                                     const struct cuda_save_arrays *arrays)
{
    const struct partita_plan *plan = call->plan;
    const struct overlap_add *add = plan->state;
    const struct shape *shape = &add->shape;
    const int64_t steps = plan->choice.variant;
    enum partita_status status =
        CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    for (int64_t first = 0;
         first < steps && first < add->filtering.in.windows && status == PARTITA_OK; first++) {
        const struct cuda_step step = {first, steps};
        status = CU(plan, cuda_launch_add(&add->filtering, &add->cut, add->fft.f64, &step, arrays,
                                          cudaStreamPerThread));
    }
    const struct cuda_finish finish = {.y = call->to,
                                       .bias = arrays->bias,
                                       .rows = (int64_t)(shape->batch * shape->out_channels),
                                       .length = (int64_t)shape->axis[0].out,
                                       .channels = (int64_t)shape->out_channels,
                                       .relu = add->filtering.out.relu};
    if (status != PARTITA_OK || !(finish.bias || finish.relu)) return status;
    return CU(plan, cuda_launch_finish(&finish, add->fft.f64, cudaStreamPerThread));
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct overlap_add *add = plan->state;
    const struct cuda_spectra *spectra = filter->state;
    const struct cuda_sizes sizes = {.to = cuda_output_bytes(&add->shape),
                                     .from = {cuda_input_bytes(&add->shape)},
                                     .workspace = plan->choice.shared,
                                     .alignment = add->shape.sample_bytes};
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK) {
        const struct cuda_save_arrays arrays = {.y = call.to,
                                                .x = call.from[0],
                                                .spectra = spectra->taps,
                                                .bias = spectra->bias,
                                                .kept = call.workspace};
        status = run_steps(&call, &arrays);
    }
    return cuda_call_end(&call, status);
}

#define OVERLAP_ADD(variant_name, variant_estimate)                                                \
    {                                                                                              \
        .name = variant_name, .estimate = variant_estimate, .plan_create = plan_create,            \
        .plan_destroy = plan_destroy, .filter_create = filter_create,                              \
        .filter_bias = cuda_spectra_bias, .filter_destroy = cuda_spectra_destroy,                  \
        .directions = CUDA_ALL_DIRECTIONS, .run = run                                              \
    }

const struct engine cuda_overlap_add = OVERLAP_ADD("cuda/overlap-add", estimate_both);
const struct engine cuda_overlap_add_2_steps =
    OVERLAP_ADD("cuda/overlap-add-2-steps", estimate_2_steps);
const struct engine cuda_overlap_add_3_steps =
    OVERLAP_ADD("cuda/overlap-add-3-steps", estimate_3_steps);
