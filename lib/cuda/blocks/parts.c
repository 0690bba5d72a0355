// SPDX-License-Identifier: MIT
#include "parts.h"

#include "base/sizes.h"

enum partita_status cuda_parts_create(const struct partita_plan *plan, size_t points,
                                      size_t transforms, bool planes, struct cuda_parts *ret)
{
    const bool complex = plan->shape.complex_signal;
    *ret = (struct cuda_parts){.planes = complex ? 2 : 1};
    const enum partita_status status =
        cuda_fft_create(plan, points, !complex, transforms, &ret->fft);
    return status == PARTITA_OK && complex && planes
               ? cuda_fft_roots(plan, points, 2 * points, &ret->twist)
               : status;
}

void cuda_parts_destroy(const struct partita_plan *plan, struct cuda_parts *parts)
{
    cuda_fft_destroy(plan, &parts->fft);
    cuda_release(plan, parts->twist);
}

struct cuda_fft_params cuda_parts_params(const struct cuda_parts *parts)
{
    return (struct cuda_fft_params){.form = parts->fft.form,
                                    .points = (int64_t)parts->fft.points,
                                    .planes = parts->planes,
                                    .f64 = parts->fft.f64,
                                    .in_block = parts->fft.in_block,
                                    .twist = parts->twist ? parts->twist : parts->fft.twiddles};
}

size_t cuda_parts_transforms(size_t points, bool f64, size_t max)
{
    enum { TARGET_POINTS = 1 << 20 }; // of one call: fewer do not fill a large device
    if (points <= cuda_fft_max(f64)) return 1;
    size_t transforms = points < TARGET_POINTS ? TARGET_POINTS / points : 1;
    while (transforms > 1 && transforms > max) transforms /= 2;
    return transforms;
}

size_t cuda_parts_bytes(size_t spectra, size_t planes, size_t points, size_t transforms, bool f64)
{
    const size_t arrays = size_mul(spectra, planes), calls = ceil_div(arrays, transforms);
    return arrays == SIZE_MAX ? SIZE_MAX
                              : size_mul(size_mul(calls, transforms), points * (f64 ? 16 : 8));
}

size_t cuda_parts_per_thread(size_t bins, size_t rows, size_t blocks)
{
    enum { TARGET_THREADS = 1 << 18, MIN_BLOCKS = 15 };
    const size_t threads = ceil_div(TARGET_THREADS, bins * rows);
    return size_max(ceil_div(blocks, threads), MIN_BLOCKS);
}

enum partita_status cuda_fft_call_begin(const struct partita_plan *plan,
                                        const struct cuda_parts *parts, void *area,
                                        struct cuda_fft_call *ret)
{
    *ret = (struct cuda_fft_call){plan, parts, cuda_parts_params(parts), NULL};
    return parts->fft.in_block ? PARTITA_OK
                               : cuda_fft_acquire(plan, &parts->fft, area, &ret->cufft_plan);
}

enum partita_status cuda_fft_call_end(struct cuda_fft_call *call, enum partita_status status)
{
    if (!call->cufft_plan) return status;
    const enum partita_status waited = cuda_wait(call->plan); // before others may use it
    cuda_fft_return(&call->parts->fft, call->cufft_plan);
    return status == PARTITA_OK ? waited : status;
}

// Transforms `count` arrays of points, in place; whole calls of cuFFT reach beyond them.
static enum partita_status run_long(const struct cuda_fft_call *call, char *arrays, size_t count,
                                    bool back)
{
    const struct cuda_fft *fft = &call->parts->fft;
    const size_t bytes = fft->points * (fft->f64 ? 16 : 8);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0; at < count && status == PARTITA_OK; at += cuda_fft_batch(fft))
        status = cuda_fft_run(call->plan, fft, call->cufft_plan, arrays + at * bytes, back);
    return status;
}

enum partita_status cuda_fft_call_forward(const struct cuda_fft_call *call, void *to,
                                          const struct cuda_windows *windows, size_t rows,
                                          const void *x)
{
    const struct cuda_fft_params *params = &call->params;
    const enum partita_status status = CU(
        call->plan, cuda_launch_parts(params, to, windows, (int64_t)rows, x, cudaStreamPerThread));
    if (status != PARTITA_OK || !call->cufft_plan) return status;
    return run_long(call, to, rows * (size_t)(windows->count * params->planes), false);
}

enum partita_status cuda_fft_call_long(const struct cuda_fft_call *call, void *spectra,
                                       size_t count)
{
    return call->cufft_plan ? run_long(call, spectra, count * (size_t)call->params.planes, true)
                            : PARTITA_OK;
}

enum partita_status cuda_fft_call_back(const struct cuda_fft_call *call,
                                       const struct cuda_sink *sink, void *from, ptrdiff_t position,
                                       size_t blocks)
{
    const enum partita_status status = cuda_fft_call_long(call, from, (size_t)sink->rows * blocks);
    if (status != PARTITA_OK) return status;
    return CU(call->plan, cuda_launch_results(&call->params, sink, from, position, (int64_t)blocks,
                                              cudaStreamPerThread));
}
