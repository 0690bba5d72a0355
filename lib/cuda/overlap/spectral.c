// SPDX-License-Identifier: MIT
#include "spectral.h"

#include <assert.h>
#include <math.h>

#include "base/sizes.h"
#include "cuda/device/filter.h"

// Instructions a point, counted in the code of fft.cuh for sm_90 (decision 46), not
// measured: of a pass by 2, 4, 8 and 16, means of both directions, with its exchange through shared
// memory; of loading from and storing to rows.
static const double PASS_SLOTS[] = {0, 18.3, 15.5, 17.8, 19.9}, EDGE_SLOTS = 8;

size_t cuda_spectral_samples(const struct shape *shape, size_t points)
{
    return shape->complex_signal ? points : 2 * points;
}

// Points for `samples` samples, 0 if there is no such transform.
static size_t cuda_spectral_points(const struct shape *shape, size_t samples)
{
    const size_t points = shape->complex_signal ? samples : samples / 2;
    return points && cuda_spectral_samples(shape, points) == samples &&
                   cuda_fft_size(points) == points
               ? points
               : 0;
}

void cuda_spectral_search(const struct request *request, const struct shape *shape,
                          cuda_try_fn *try_size, int count, struct estimate *ret)
{
    const size_t span = shape->axis[0].span, max = cuda_fft_max(shape->f64);
    // One window of this size holds everything.
    const size_t whole = size_add(shape->axis[0].size, 2 * span);
    // Gradients of taps may have them in chunks of half a window.
    const size_t min = ceil_div(span, shape->complex_signal ? 1 : 2);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    size_t first = cuda_fft_size(weight ? size_min(min / 2, max) : min);
    size_t last = cuda_fft_size(whole);
    if (request->transform) first = last = cuda_spectral_points(shape, request->transform);
    if (!last || last > max) last = max;
    struct estimate best = {0};
    const size_t reach = request_max_transform(request);
    while (weight && first > CUDA_FFT_POINTS && cuda_spectral_samples(shape, first) > reach)
        first /= 2;
    for (size_t points = first;
         points && points <= last && cuda_spectral_samples(shape, points) <= reach; points *= 2)
        for (int variant = count ? 0 : ANY_VARIANT; variant < count; variant++) {
            struct estimate estimate = {0};
            if (count && !request_allows(request, variant)) continue;
            if (try_size(request, shape, points, variant, &estimate) &&
                (!best.applicable || estimate.seconds < best.seconds))
                best = estimate;
        }
    if (best.applicable) *ret = best;
    else if (!first || first > max)
        estimate_refuse(ret, "taps span %zu samples; transforms in a thread block have at most %zu",
                        span, cuda_spectral_samples(shape, max));
    else estimate_refuse(ret, "no transform size fits taps, reach and workspace limit");
}

double cuda_transform_slots(size_t points, double n)
{
    const int log2_points = (int)log2((double)points), passes = 1 + (log2_points - 1) / 4;
    const double second = passes > 1 ? PASS_SLOTS[CUDA_FFT_SECOND_RADIX(log2_points)] : 0;
    return n * (double)points *
           (EDGE_SLOTS + PASS_SLOTS[4] * (passes > 1 ? passes - 1 : 1) + second);
}

double cuda_transform_error(const struct shape *shape, size_t points, double terms)
{
    const double samples = (double)cuda_spectral_samples(shape, points);
    return shape_roundoff(shape) * hypot(1.5 * sqrt(log2(samples)), 0.3 * sqrt(terms));
}

struct cuda_fft_form cuda_form_of(const struct shape *shape, size_t points)
{
    struct cuda_fft_form form = {.negacyclic = !shape->complex_signal};
    while ((size_t)1 << form.log2_points < points) form.log2_points++;
    assert((size_t)1 << form.log2_points == points);
    return form;
}
