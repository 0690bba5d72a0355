// SPDX-License-Identifier: MIT
#include "spectral.h"

#include <math.h>
#include <stdio.h>

#include "base/sizes.h"

// Instructions of a point, counted from what ptxas made of fft.cuh for sm_90 (decision 23), not
// measured: in a pass by 2, 4, 8 and 16, means of both ways, with its load and store in shared
// memory; in coming from and going to lines.
static const double SLOTS_OF_PASS[] = {0, 18.6, 17.4, 20.3, 22.9}, SLOTS_OF_EDGE = 8;
// A product with a filter's bin, whose loads wait for the caches; with one kept in shared memory.
static const double SLOTS_OF_PRODUCT = 12, SLOTS_OF_KEPT = 9.5;
static const double LAUNCH = 3e-6; // seconds to queue a kernel
enum { FULL_LANES = 512 };         // of a processor, from which on it is busy

bool cuda_spectral_shape(const struct request *request, struct shape *ret, char *ret_reason,
                         size_t size)
{
    const bool data =
        request->direction == PARTITA_BACKWARD_DATA; // the gradient is that of the problem itself
    return shape_forward(request->shape, data ? PARTITA_BACKWARD_DATA : PARTITA_FORWARD, ret,
                         ret_reason, size);
}

size_t cuda_spectral_samples(const struct shape *shape, size_t points)
{
    return shape->complex_signal ? points : 2 * points;
}

size_t cuda_spectral_points(const struct shape *shape, size_t samples)
{
    const size_t points = shape->complex_signal ? samples : samples / 2;
    return points && cuda_spectral_samples(shape, points) == samples &&
                   cuda_fft_size(points) == points
               ? points
               : 0;
}

void cuda_spectral_search(const struct request *request, const struct shape *shape,
                          cuda_consider_fn *consider, struct estimate *ret)
{
    const size_t span = shape->axis[0].span, within = cuda_fft_most(shape->f64);
    // Behind this size one window holds everything.
    const size_t whole = size_add(shape->axis[0].size, 2 * span);
    // Gradients of the taps may have them in parts, of half a window at the longest that a thread
    // block holds.
    const size_t least = ceil_div(span, shape->complex_signal ? 1 : 2);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    size_t first = cuda_fft_size(weight ? size_min(least / 2, within) : least),
           last = cuda_fft_size(whole);
    if (request->transform) first = last = cuda_spectral_points(shape, request->transform);
    if (!last || last > within) last = within;
    struct estimate best = {0};
    for (size_t points = first; points && points <= last; points *= 2) {
        struct estimate estimate = {0};
        if (consider(request, shape, points, &estimate) &&
            (!best.applicable || estimate.seconds < best.seconds))
            best = estimate;
    }
    if (best.applicable) *ret = best;
    else if (!first || first > within)
        snprintf(ret->reason, sizeof ret->reason,
                 "taps span %zu samples; transforms in a thread block have at most %zu", span,
                 cuda_spectral_samples(shape, within));
    else
        snprintf(ret->reason, sizeof ret->reason,
                 "no transform size fits taps and workspace limit");
}

double cuda_transform_slots(size_t points, double n)
{
    const int log2_points = (int)log2((double)points), passes = 1 + (log2_points - 1) / 4;
    const double second = passes > 1 ? SLOTS_OF_PASS[CUDA_FFT_SECOND_RADIX(log2_points)] : 0;
    return n * (double)points *
           (SLOTS_OF_EDGE + SLOTS_OF_PASS[4] * (passes > 1 ? passes - 1 : 1) + second);
}

double cuda_spectral_slots(size_t points, double n)
{
    return n * (double)points * SLOTS_OF_PRODUCT;
}

double cuda_kept_slots(size_t points, double n)
{
    return n * (double)points * SLOTS_OF_KEPT;
}

double cuda_work_seconds(const struct request *request, const struct cuda_work *work)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const double busy = fmin(1, work->lanes / ((double)device->processors * FULL_LANES));
    const double rate = device->flops / (request->shape->f64 ? device->f64_share : 1) / 2;
    return work->launches * LAUNCH + fmax(work->slots / (rate * busy), work->bytes / device->bytes);
}

double cuda_transform_error(const struct shape *shape, size_t points, double terms)
{
    const double samples = (double)cuda_spectral_samples(shape, points);
    return shape_roundoff(shape) * hypot(1.5 * sqrt(log2(samples)), 0.3 * sqrt(terms));
}

struct cuda_windows cuda_input_windows(const struct shape *shape, ptrdiff_t first, size_t hop,
                                       size_t windows, size_t length)
{
    return (struct cuda_windows){.size = (int64_t)shape->axis[0].size,
                                 .step = 1,
                                 .windows = (int64_t)windows,
                                 .first = first,
                                 .hop = (int64_t)hop,
                                 .length = (int64_t)length,
                                 .rows = (int64_t)shape->groups,
                                 .columns = (int64_t)shape->batch,
                                 .pitch = (int64_t)shape->group_in,
                                 .complex_samples = shape->complex_signal,
                                 .scale = 1};
}

// Taps in causal order, `dilation` apart: those of a correlation are read from the last one on.
static struct cuda_windows tap_windows(const struct shape *shape, const struct cuda_fft *fft)
{
    return (struct cuda_windows){.size = (int64_t)shape->axis[0].kernel,
                                 .step = (int64_t)shape->axis[0].dilation,
                                 .windows = 1,
                                 .length = (int64_t)cuda_spectral_samples(shape, fft->points),
                                 .rows = shape->adjoint ? (int64_t)shape->group_out : 1,
                                 .columns = shape->adjoint ? (int64_t)shape->group_in : 1,
                                 .pitch = 1,
                                 .complex_samples = shape->complex_taps,
                                 .reversed = !shape->flip,
                                 .conjugated = !shape->flip && shape->complex_taps,
                                 .scale = 1 / (double)fft->points};
}

static enum partita_status transform_taps(const struct partita_plan *plan,
                                          const struct shape *shape, const struct cuda_fft *fft,
                                          const void *taps, struct cuda_spectra *spectra)
{
    const size_t cells = shape->out_channels * shape->group_in;
    const struct cuda_windows windows = tap_windows(shape, fft);
    const struct cuda_range all = {.n = (int64_t)cells};
    const enum partita_status status =
        cuda_allocate(plan, cells * fft->points * 2 * shape->scalar_bytes, &spectra->taps);
    if (status != PARTITA_OK) return status;
    return CU(plan, cuda_launch_spectra(&fft->form, fft->f64, &windows, &all, spectra->taps, taps,
                                        cudaStreamPerThread));
}

enum partita_status cuda_spectra_create(const struct partita_plan *plan, const struct shape *shape,
                                        const struct cuda_fft *fft, const void *taps,
                                        struct cuda_spectra **ret)
{
    bool owns = false;
    void *copy = NULL;
    *ret = mem_allocate(&plan->allocator, sizeof **ret);
    if (!*ret) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_owns(plan, taps, &owns);
    if ((uintptr_t)taps % shape->tap_bytes) owns = false; // kernels read whole samples
    if (status == PARTITA_OK && !owns)
        status = cuda_keep(
            plan, taps,
            shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes, &copy);
    if (status == PARTITA_OK) status = transform_taps(plan, shape, fft, owns ? taps : copy, *ret);
    cuda_release(plan, copy);
    if (status != PARTITA_OK) return status;
    return cuda_wait(plan);
}

enum partita_status cuda_spectra_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct cuda_spectra *spectra = filter->state;
    return cuda_keep(filter->plan, bias, shape->out_channels * shape->scalar_bytes, &spectra->bias);
}

void cuda_spectra_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct cuda_spectra *spectra = filter->state;
    if (!spectra) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, spectra->taps);
    cuda_release(plan, spectra->bias);
    mem_release(&plan->allocator, spectra);
}

size_t cuda_input_bytes(const struct shape *shape)
{
    return shape->batch * shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
}

size_t cuda_output_bytes(const struct shape *shape)
{
    return shape->batch * shape->out_channels * shape_outputs(shape) * shape->sample_bytes;
}
