// SPDX-License-Identifier: MIT
#include "parts.h"

#include <math.h>

#include "base/sizes.h"

// e^(-2 pi i j / 2 points), complete when the call returns.
static enum partita_status make_twist(const struct partita_plan *plan, struct cuda_parts *parts)
{
    const size_t points = parts->fft.points, bytes = points * 2 * plan->shape.scalar_bytes;
    char *table = mem_reserve(&plan->allocator, bytes);
    if (!table) return PARTITA_ERR_NOMEM;
    for (size_t j = 0; j < points; j++) {
        const double angle = -3.14159265358979323846 * (double)j / (double)points;
        const double of[2] = {cos(angle), sin(angle)};
        for (size_t i = 0; i < 2; i++) {
            if (plan->shape.f64) ((double *)table)[2 * j + i] = of[i];
            else ((float *)table)[2 * j + i] = (float)of[i];
        }
    }
    enum partita_status status = cuda_allocate(plan, bytes, &parts->twist);
    if (status == PARTITA_OK) status = cuda_copy(plan, parts->twist, table, bytes);
    const enum partita_status waited = cuda_wait(plan);
    mem_release(&plan->allocator, table);
    return status == PARTITA_OK ? waited : status;
}

enum partita_status cuda_parts_create(const struct partita_plan *plan, size_t points,
                                      size_t transforms, bool paired, struct cuda_parts *ret)
{
    const bool complex = plan->shape.complex_signal;
    *ret = (struct cuda_parts){.planes = complex ? 2 : 1};
    const enum partita_status status =
        cuda_fft_create(plan, points, !complex, transforms, &ret->fft);
    return status == PARTITA_OK && complex && paired ? make_twist(plan, ret) : status;
}

void cuda_parts_destroy(const struct partita_plan *plan, struct cuda_parts *parts)
{
    cuda_fft_destroy(plan, &parts->fft);
    cuda_release(plan, parts->twist);
}

struct cuda_kit cuda_parts_kit(const struct cuda_parts *parts)
{
    return (struct cuda_kit){.form = parts->fft.form,
                             .points = (int64_t)parts->fft.points,
                             .planes = parts->planes,
                             .f64 = parts->fft.f64,
                             .within = parts->fft.within,
                             .twist = parts->twist ? parts->twist : parts->fft.factors};
}

size_t cuda_parts_transforms(size_t points, bool f64, size_t most)
{
    enum { LONG_POINTS = 1 << 20 }; // of one call, about: less does not fill a large device
    if (points <= cuda_fft_most(f64)) return 1;
    size_t transforms = points < LONG_POINTS ? LONG_POINTS / points : 1;
    while (transforms > 1 && transforms > most) transforms /= 2;
    return transforms;
}

size_t cuda_parts_bytes(size_t spectra, size_t planes, size_t points, size_t transforms, bool f64)
{
    const size_t arrays = size_mul(spectra, planes), calls = ceil_div(arrays, transforms);
    return arrays == SIZE_MAX ? SIZE_MAX
                              : size_mul(size_mul(calls, transforms), points * (f64 ? 16 : 8));
}

size_t cuda_parts_of_thread(size_t bins, size_t lines, size_t blocks)
{
    enum { ENOUGH_THREADS = 1 << 18, LEAST = 15 };
    const size_t runs = ceil_div(ENOUGH_THREADS, bins * lines), each = ceil_div(blocks, runs);
    return each < LEAST ? LEAST : each;
}

enum partita_status cuda_transforms_begin(const struct partita_plan *plan,
                                          const struct cuda_parts *parts, void *area,
                                          struct cuda_transforms *ret)
{
    *ret = (struct cuda_transforms){plan, parts, cuda_parts_kit(parts), NULL};
    return parts->fft.within ? PARTITA_OK : cuda_fft_borrow(plan, &parts->fft, area, &ret->lease);
}

enum partita_status cuda_transforms_end(struct cuda_transforms *transforms,
                                        enum partita_status status)
{
    if (!transforms->lease) return status;
    const enum partita_status waited =
        cuda_wait(transforms->plan); // the lease is another call's from here on
    cuda_fft_give_back(&transforms->parts->fft, transforms->lease);
    return status == PARTITA_OK ? waited : status;
}

// Transforms `count` arrays of points, in place; what they are rounded up to lies behind them.
static enum partita_status run_long(const struct cuda_transforms *transforms, char *arrays,
                                    size_t count, bool back)
{
    const struct cuda_fft *fft = &transforms->parts->fft;
    const size_t bytes = fft->points * (fft->f64 ? 16 : 8);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0; at < count && status == PARTITA_OK; at += cuda_fft_batch(fft))
        status = cuda_fft_run(transforms->plan, fft, transforms->lease, arrays + at * bytes, back);
    return status;
}

enum partita_status cuda_transforms_forward(const struct cuda_transforms *transforms, void *to,
                                            const struct cuda_windows *windows, size_t lines,
                                            const void *x)
{
    const struct cuda_kit *kit = &transforms->kit;
    const enum partita_status status =
        CU(transforms->plan,
           cuda_launch_parts(kit, to, windows, (int64_t)lines, x, cudaStreamPerThread));
    if (status != PARTITA_OK || !transforms->lease) return status;
    return run_long(transforms, to, lines * (size_t)(windows->windows * kit->planes), false);
}

enum partita_status cuda_transforms_long(const struct cuda_transforms *transforms, void *spectra,
                                         size_t count)
{
    return transforms->lease
               ? run_long(transforms, spectra, count * (size_t)transforms->kit.planes, true)
               : PARTITA_OK;
}

enum partita_status cuda_transforms_back(const struct cuda_transforms *transforms,
                                         const struct cuda_sink *sink, void *from,
                                         ptrdiff_t position, size_t blocks)
{
    const enum partita_status status =
        cuda_transforms_long(transforms, from, (size_t)sink->lines * blocks);
    if (status != PARTITA_OK) return status;
    return CU(transforms->plan, cuda_launch_results(&transforms->kit, sink, from, position,
                                                    (int64_t)blocks, cudaStreamPerThread));
}
