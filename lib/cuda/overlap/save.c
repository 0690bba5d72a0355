// SPDX-License-Identifier: MIT
// cuda/overlap-save: windows of the inputs, each with the span-1 samples before it, as one kernel
// (save.h). Backward data is the same with the adjoint problem
// (decision 18). Backward weight has ways of its own, which are engines too, so that each can be
// asked for, tested and timed by name. Source: Stockham, High-speed convolution and correlation,
// AFIPS 1966; Adamek, Dimoudi, Giles, Armour, GPU fast convolution via the overlap-and-save method
// in shared memory, ACM TACO 2020.

#include "cuda/device/call.h"
#include "filtering.h"
#include "weight.h"

// A plan's state: of backward weight the last member, of filtering the others.
struct overlap_save {
    struct shape shape; // what is run
    struct cuda_fft fft;
    struct cuda_filtering filtering;
    struct cuda_save_cut cut;
    struct cuda_weight weight;
};

static bool consider(const struct request *request, const struct shape *shape, size_t points,
                     struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    if (cuda_spectral_samples(shape, points) < shape->axis[0].span) return false;
    const struct cuda_fft_form form = cuda_form_of(shape, points);
    const struct cuda_filtering filtering = cuda_filtering_of(shape, &form);
    struct cuda_save_cut cut;
    if (!cuda_cut_save(&filtering, shape->f64, device->processors, device->shared_bytes,
                       request->workspace_limit, &cut))
        return false;
    struct cuda_work work = cuda_filtering_work(shape, &filtering, points, (double)cut.parts);
    work.lanes = (double)(cut.blocks * cuda_fft_rows(points) * cuda_fft_threads(points));
    *ret = cuda_filtering_estimate(request, shape, &filtering, &work, cut.kept_bytes);
    return true;
}

static void estimate_with(const struct request *request, cuda_consider_fn *consider_weight,
                          struct estimate *ret)
{
    struct shape shape;
    if (!cuda_spectral_shape(request, &shape, ret->reason, sizeof ret->reason)) return;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    cuda_spectral_search(request, &shape, weight ? consider_weight : consider, ret);
}

static void estimate(const struct request *request, struct estimate *ret)
{
    estimate_with(request, cuda_weight_consider, ret);
}

static void estimate_1_sum(const struct request *request, struct estimate *ret)
{
    estimate_with(request, cuda_weight_consider_1_sum, ret);
}

static void estimate_2_sums(const struct request *request, struct estimate *ret)
{
    estimate_with(request, cuda_weight_consider_2_sums, ret);
}

static enum partita_status prepare_filtering(struct partita_plan *plan, struct overlap_save *save)
{
    const struct cuda_device *device = cuda_device_of(plan);
    const struct shape *shape = &save->shape;
    const struct cuda_fft_form form =
        cuda_form_of(shape, cuda_spectral_points(shape, plan->choice.transform));
    const size_t points = (size_t)1 << form.log2_points;
    save->filtering = cuda_filtering_of(shape, &form);
    save->filtering.out.relu = plan->shape.relu && plan->direction == PARTITA_FORWARD;
    cuda_cut_save(&save->filtering, shape->f64, device->processors, device->shared_bytes,
                  plan->choice.shared, &save->cut); // as estimate saw
    const enum partita_status status = cuda_fft_create(plan, points, form.turned, 1, &save->fft);
    save->filtering.form = save->fft.form;
    return status;
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    struct overlap_save *save = mem_allocate(&plan->allocator, sizeof *save);
    plan->state = save;
    if (!save) return PARTITA_ERR_NOMEM;
    cuda_spectral_shape(request, &save->shape, plan->choice.reason,
                        sizeof plan->choice.reason); // as estimate saw
    const enum partita_status status = cuda_enter(plan);
    if (status != PARTITA_OK) return status;
    return plan->direction == PARTITA_BACKWARD_WEIGHT ? cuda_weight_create(plan, &save->weight)
                                                      : prepare_filtering(plan, save);
}

static void plan_destroy(struct partita_plan *plan)
{
    struct overlap_save *save = plan->state;
    if (!save) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_fft_destroy(plan, &save->fft);
    cuda_fft_destroy(plan, &save->weight.fft);
    mem_release(&plan->allocator, save);
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct overlap_save *save = filter->plan->state;
    return cuda_spectra_create(filter->plan, &save->shape, &save->fft, taps,
                               (struct cuda_spectra **)&filter->state);
}

static enum partita_status queue_windows(const struct cuda_call *call,
                                         const struct cuda_spectra *spectra)
{
    const struct overlap_save *save = call->plan->state;
    const struct cuda_step all = {0, 1};
    const struct cuda_save_arrays arrays = {.y = call->to,
                                            .x = call->from[0],
                                            .spectra = spectra->taps,
                                            .bias = spectra->bias,
                                            .kept = call->workspace};
    return CU(call->plan, cuda_launch_save(&save->filtering, &save->cut, save->fft.f64, &all,
                                           &arrays, cudaStreamPerThread));
}

static enum partita_status run_filter(const struct partita_plan *plan,
                                      const struct cuda_spectra *spectra,
                                      const struct operands *operands, void *workspace)
{
    const struct overlap_save *save = plan->state;
    const struct cuda_sizes sizes = {.to = cuda_output_bytes(&save->shape),
                                     .from = {cuda_input_bytes(&save->shape)},
                                     .workspace = plan->choice.shared,
                                     .alignment = save->shape.sample_bytes};
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK) status = queue_windows(&call, spectra);
    return cuda_call_end(&call, status);
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct overlap_save *save = plan->state;
    return plan->direction == PARTITA_BACKWARD_WEIGHT
               ? cuda_weight_run(plan, &save->weight, operands, workspace)
               : run_filter(plan, filter->state, operands, workspace);
}

#define OVERLAP_SAVE(variant_name, variant_estimate)                                               \
    {                                                                                              \
        .name = variant_name, .estimate = variant_estimate, .plan_create = plan_create,            \
        .plan_destroy = plan_destroy, .filter_create = filter_create,                              \
        .filter_bias = cuda_spectra_bias, .filter_destroy = cuda_spectra_destroy,                  \
        .directions = CUDA_ALL_DIRECTIONS, .run = run                                              \
    }

const struct engine cuda_overlap_save = OVERLAP_SAVE("cuda/overlap-save", estimate);
const struct engine cuda_overlap_save_1_sum =
    OVERLAP_SAVE("cuda/overlap-save-1-sum", estimate_1_sum);
const struct engine cuda_overlap_save_2_sums =
    OVERLAP_SAVE("cuda/overlap-save-2-sums", estimate_2_sums);
