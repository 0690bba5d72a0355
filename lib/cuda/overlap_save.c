// SPDX-License-Identifier: MIT
// cuda/overlap-save: windows of the inputs, each with the span-1 samples before it, as one kernel (save.h) where a
// window fits a thread block. Backward data is the same with the adjoint problem (decision 18).
// Source: Stockham, High-speed convolution and correlation, AFIPS 1966; Adamek, Dimoudi, Giles, Armour, GPU fast
// convolution via the overlap-and-save method in shared memory, ACM TACO 2020.
#include "overlap_save.h"

#include <string.h>

#include "../sizes.h"
#include "call.h"
#include "save.h"
#include "spectral.h"

struct overlap_save {
    struct shape shape; // what is run
    struct cuda_fft fft;
    struct cuda_filtering filtering;
    struct cuda_save_cut cut;
};

static struct cuda_filtering filtering_of(const struct shape *shape, const struct cuda_fft_form *form, bool relu)
{
    const struct axis *axis = &shape->axis[0];
    const size_t samples = cuda_spectral_samples(shape, (size_t)1 << form->log2_points), hop = samples - axis->span + 1;
    const size_t windows = ceil_div((axis->out - 1) * axis->stride + 1, hop);
    return (struct cuda_filtering){
        .form = *form,
        .in = cuda_input_windows(shape, axis->begin, hop, windows, samples),
        .out = {.skip = (int64_t)axis->span - 1,
                .hop = (int64_t)hop,
                .stride = (int64_t)axis->stride,
                .size = (int64_t)axis->out,
                .relu = relu},
        .batch = (int64_t)shape->batch,
        .groups = (int64_t)shape->groups,
        .group_in = (int64_t)shape->group_in,
        .group_out = (int64_t)shape->group_out,
    };
}

static struct cuda_fft_form form_of(const struct shape *shape, size_t points)
{
    struct cuda_fft_form form = {.turned = !shape->complex_signal};
    while ((size_t)1 << form.log2_points < points) form.log2_points++;
    return form;
}

static bool consider(const struct request *request, const struct shape *shape, size_t points, struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const size_t samples = cuda_spectral_samples(shape, points);
    if (samples < shape->axis[0].span || points > cuda_fft_most(shape->f64)) return false;
    const struct cuda_fft_form form = form_of(shape, points);
    const struct cuda_filtering filtering = filtering_of(shape, &form, false);
    struct cuda_save_cut cut;
    if (!cuda_cut_save(&filtering, shape->f64, device->processors, device->shared_bytes, request->workspace_limit,
                       &cut))
        return false;
    const double windows = (double)shape->batch * (double)filtering.in.windows, in = (double)shape->in_channels,
                 out = (double)shape->out_channels, cells = out * (double)shape->group_in;
    const double sample = (double)shape->sample_bytes,
                 spectra = cells * (double)points * 2 * (double)shape->scalar_bytes;
    const struct cuda_work work = {
        .launches = 1,
        .slots =
            windows * (cuda_transform_slots(points, in * (double)cut.parts + out) + cuda_product_slots(points, cells)),
        .bytes = windows * in * (double)samples * sample + (double)cuda_output_bytes(shape) + spectra,
        .lanes = (double)(cut.blocks * cuda_fft_rows(points) * cuda_fft_threads(points)),
    };
    *ret = (struct estimate){
        .applicable = true,
        .transform = samples,
        .hop = (size_t)filtering.out.hop,
        .seconds = cuda_work_seconds(request, &work),
        .flops = windows * (5 * (in + out) * log2((double)points) + 8 * cells) * (double)points,
        .shared = cut.kept_bytes,
        .bytes = size_add((size_t)spectra, cut.kept_bytes),
        .error = cuda_transform_error(shape, points, (double)shape->group_in),
    };
    return true;
}

static void estimate(const struct request *request, struct estimate *ret)
{
    struct shape shape;
    if (!cuda_spectral_shape(request, &shape, ret->reason, sizeof ret->reason)) return;
    cuda_spectral_search(request, &shape, consider, ret);
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    const struct cuda_device *device = cuda_device_of(plan);
    struct overlap_save *save = mem_allocate(&plan->allocator, sizeof *save);
    plan->state = save;
    if (!save) return PARTITA_ERR_NOMEM;
    cuda_spectral_shape(request, &save->shape, plan->choice.reason, sizeof plan->choice.reason); // as estimate saw
    const size_t points = cuda_spectral_points(&save->shape, plan->choice.transform);
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_fft_create(plan, points, !save->shape.complex_signal, 1, &save->fft);
    if (status != PARTITA_OK) return status;
    const bool relu = plan->shape.relu && plan->direction == PARTITA_FORWARD;
    save->filtering = filtering_of(&save->shape, &save->fft.form, relu);
    cuda_cut_save(&save->filtering, save->fft.f64, device->processors, device->shared_bytes, plan->choice.shared,
                  &save->cut);
    return PARTITA_OK;
}

static void plan_destroy(struct partita_plan *plan)
{
    struct overlap_save *save = plan->state;
    if (!save) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_fft_destroy(plan, &save->fft);
    mem_release(&plan->allocator, save);
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct overlap_save *save = filter->plan->state;
    return cuda_spectra_create(filter->plan, &save->shape, &save->fft, taps, (struct cuda_spectra **)&filter->state);
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct overlap_save *save = plan->state;
    const struct cuda_spectra *spectra = filter->state;
    const struct cuda_sizes sizes = {.to = cuda_output_bytes(&save->shape),
                                     .from = {cuda_input_bytes(&save->shape)},
                                     .workspace = plan->choice.shared};
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_launch_save(&save->filtering, &save->cut, save->fft.f64, call.to, call.from[0],
                                           spectra->taps, spectra->bias, call.workspace, cudaStreamPerThread));
    return cuda_call_end(&call, status);
}

const struct engine cuda_overlap_save = {
    .name = "cuda/overlap-save",
    .estimate = estimate,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .filter_create = filter_create,
    .filter_bias = cuda_spectra_bias,
    .filter_destroy = cuda_spectra_destroy,
    .run = run,
};
