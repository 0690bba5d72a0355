// SPDX-License-Identifier: MIT
// cuda/overlap-save: windows of the inputs, each with the span-1 samples before it, as one kernel
// (save.h) where a window fits a thread block. Backward data is the same with the adjoint problem
// (decision 18). Backward weight has ways of its own, which are engines too, so that each can be
// asked for, tested and timed by name. Source: Stockham, High-speed convolution and correlation,
// AFIPS 1966; Adamek, Dimoudi, Giles, Armour, GPU fast convolution via the overlap-and-save method
// in shared memory, ACM TACO 2020.
#include "save_engine.h"

#include <math.h>

#include "base/sizes.h"
#include "cuda/device/call.h"
#include "filtering.h"
#include "weight.h"

// A plan's state: of backward weight the last member, of filtering the others.
struct overlap_save {
    struct shape shape; // what is run
    struct cuda_fft fft;
    struct cuda_filtering filtering;
    struct cuda_save_cut cut; // within a thread block
    size_t room;              // beyond: jobs at hand at once
    struct cuda_weight weight;
};

static bool consider_within(const struct request *request, const struct shape *shape, size_t points,
                            const struct cuda_filtering *filtering, struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    struct cuda_save_cut cut;
    if (!cuda_cut_save(filtering, shape->f64, device->processors, device->shared_bytes,
                       request->workspace_limit, &cut))
        return false;
    struct cuda_work work = cuda_filtering_work(shape, filtering, points, (double)cut.parts);
    work.lanes = (double)(cut.blocks * cuda_fft_rows(points) * cuda_fft_threads(points));
    *ret = cuda_filtering_estimate(request, shape, filtering, &work, cut.kept_bytes);
    return true;
}

// Spectra of a job's inputs, its products, and cuFFT's area.
static size_t long_spectra(const struct shape *shape)
{
    return shape->group_in + 2;
}

// Jobs at hand at once.
static size_t long_room(const struct shape *shape, const struct cuda_filtering *filtering,
                        size_t limit)
{
    const size_t spectrum = ((size_t)1 << filtering->form.log2_points) * 2 * shape->scalar_bytes;
    const size_t jobs = shape->batch * shape->groups * (size_t)filtering->in.windows;
    return cuda_room(jobs, long_spectra(shape), spectrum, limit);
}

static bool consider_long(const struct request *request, const struct shape *shape, size_t points,
                          const struct cuda_filtering *filtering, struct estimate *ret)
{
    const size_t room = long_room(shape, filtering, request->workspace_limit);
    if (!room) return false;
    const double spectrum = (double)(points * 2 * shape->scalar_bytes);
    const double windows = (double)shape->batch * (double)filtering->in.windows;
    const double chunks = ceil(windows * (double)shape->groups / (double)room);
    struct cuda_work work = cuda_filtering_work(shape, filtering, points, 1);
    work.launches = chunks * (2 * (double)shape->group_in + 3 * (double)shape->group_out);
    // Points are written, transformed in two passes there and back, multiplied and read.
    work.bytes +=
        windows * spectrum * (6 * (double)shape->in_channels + 7 * (double)shape->out_channels);
    work.lanes = (double)room * (double)points / CUDA_FFT_POINTS;
    *ret = cuda_filtering_estimate(request, shape, filtering, &work,
                                   room * long_spectra(shape) * (size_t)spectrum);
    return true;
}

static bool consider(const struct request *request, const struct shape *shape, size_t points,
                     struct estimate *ret)
{
    if (cuda_spectral_samples(shape, points) < shape->axis[0].span) return false;
    const struct cuda_fft_form form = cuda_form_of(shape, points);
    const struct cuda_filtering filtering = cuda_filtering_of(shape, &form);
    return points <= cuda_fft_most(shape->f64)
               ? consider_within(request, shape, points, &filtering, ret)
               : consider_long(request, shape, points, &filtering, ret);
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

static void estimate_spectra(const struct request *request, struct estimate *ret)
{
    estimate_with(request, cuda_weight_consider_spectra, ret);
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
    if (points <=
        cuda_fft_most(shape->f64)) // as estimate saw, with the workspace that it asked for
        cuda_cut_save(&save->filtering, shape->f64, device->processors, device->shared_bytes,
                      plan->choice.shared, &save->cut);
    else save->room = long_room(shape, &save->filtering, plan->choice.shared);
    const enum partita_status status =
        cuda_fft_create(plan, points, form.turned, save->room, &save->fft);
    save->filtering.form = save->fft.form;
    const size_t area =
        save->room * points * 2 * shape->scalar_bytes; // what estimate gave it; it lies last
    if (cuda_fft_area(&save->fft) > area) plan->choice.shared += cuda_fft_area(&save->fft) - area;
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

static enum partita_status run_outputs(const struct cuda_call *call,
                                       const struct cuda_spectra *spectra,
                                       const struct cuda_range *jobs,
                                       const struct cuda_fft_lease *lease, void *x, void *y)
{
    const struct partita_plan *plan = call->plan;
    const struct overlap_save *save = plan->state;
    const bool f64 = save->fft.f64;
    struct cuda_products products = {.jobs = *jobs,
                                     .room = (int64_t)save->room,
                                     .of_group = save->filtering.batch * save->filtering.in.windows,
                                     .group_in = save->filtering.group_in,
                                     .group_out = save->filtering.group_out,
                                     .points = (int64_t)save->fft.points};
    enum partita_status status = PARTITA_OK;
    for (; products.k < products.group_out && status == PARTITA_OK; products.k++) {
        status = CU(plan,
                    cuda_launch_products(&products, f64, y, x, spectra->taps, cudaStreamPerThread));
        if (status == PARTITA_OK) status = cuda_fft_run(plan, &save->fft, lease, y, true);
        if (status == PARTITA_OK)
            status = CU(plan, cuda_launch_outputs(&save->filtering, f64, jobs, products.k, call->to,
                                                  y, spectra->bias, cudaStreamPerThread));
    }
    return status;
}

static enum partita_status run_long(const struct cuda_call *call,
                                    const struct cuda_spectra *spectra,
                                    struct cuda_fft_lease **ret_lease)
{
    const struct partita_plan *plan = call->plan;
    const struct overlap_save *save = plan->state;
    const struct cuda_filtering *filtering = &save->filtering;
    const size_t spectrum = save->fft.points * 2 * save->shape.scalar_bytes,
                 room = save->room * spectrum;
    const size_t line = (size_t)filtering->in.size * save->shape.sample_bytes;
    char *x = call->workspace, *y = x + (size_t)filtering->group_in * room;
    const int64_t jobs = filtering->groups * filtering->batch * filtering->in.windows,
                  most = (int64_t)save->room;
    enum partita_status status = cuda_fft_borrow(plan, &save->fft, y + room, ret_lease);
    for (int64_t first = 0; first < jobs && status == PARTITA_OK; first += most) {
        const struct cuda_range range = {first, jobs - first < most ? jobs - first : most};
        for (size_t c = 0; c < (size_t)filtering->group_in && status == PARTITA_OK; c++)
            status = cuda_spectra_of(plan, &save->fft, *ret_lease, &filtering->in, &range,
                                     x + c * room, (const char *)call->from[0] + c * line);
        if (status == PARTITA_OK) status = run_outputs(call, spectra, &range, *ret_lease, x, y);
    }
    return status;
}

static enum partita_status run_within(const struct cuda_call *call,
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
    struct cuda_fft_lease *lease = NULL;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK && save->fft.within) status = run_within(&call, spectra);
    else if (status == PARTITA_OK) status = run_long(&call, spectra, &lease);
    status = cuda_call_end(&call, status);
    cuda_fft_give_back(&save->fft, lease);
    return status;
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
        .filter_bias = cuda_spectra_bias, .filter_destroy = cuda_spectra_destroy, .run = run       \
    }

const struct engine cuda_overlap_save = OVERLAP_SAVE("cuda/overlap-save", estimate);
const struct engine cuda_overlap_save_spectra =
    OVERLAP_SAVE("cuda/overlap-save-spectra", estimate_spectra);
const struct engine cuda_overlap_save_1_sum =
    OVERLAP_SAVE("cuda/overlap-save-1-sum", estimate_1_sum);
const struct engine cuda_overlap_save_2_sums =
    OVERLAP_SAVE("cuda/overlap-save-2-sums", estimate_2_sums);
