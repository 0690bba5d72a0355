// SPDX-License-Identifier: MIT
// The least cost of every other engine for a lone signal, by any rates: below it the planner asks
// none of them. The constants of other engines are rounded down; tests/plan/test_choice.c compares
// the bound with their estimates for random problems and rates.
#include <math.h>

#include "base/sizes.h"
#include "direct.h"
#include "geometry/signal_blocks.h"
#include "kernels/kernels.h"

// Seconds a sample of the cheapest transform, forward and inverse. The model interpolates between
// measured sizes, and beyond them it is linear in the octave, so the ends are the extremes.
static double least_transform(const struct request *request, size_t samples)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const size_t longest = size_max(64 * samples, (size_t)1 << (COST_FFT_LAST + 1));
    double rate = cost_model_fft(request->model, shape->f64, shape->complex_signal, longest) /
                  (double)longest;
    for (int i = 0; i < COST_FFT_SIZES; i++)
        rate = fmin(rate, costs->fft[shape->complex_signal][i]);
    return rate;
}

// Engines that transform the signal, whose blocks together have outputs + taps - 1 samples or more.
// cpu/overlap-* transforms each block forward and back, multiplies its bins once, and spends 0.3 us
// more on it. cpu/blocks either does so with windows of lags and transforms their taps too, or it
// splits outputs and taps into blocks of half a transform, each of which is transformed and moved
// twice.
static double transforms_lower_bound(const struct request *request, size_t outputs, size_t taps)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double reals = shape->complex_signal ? 2 : 1;
    const double fft = least_transform(request, size_add(shape->axis[0].size, 2 * taps));
    const double overlap = fft + reals / 2 * fmin(costs->cmac_cached, costs->cmac_far);
    const double lags = 1.5 * fft + reals / 2 * costs->product[COST_NEAR][0];
    const double pairs = fft + 4 * reals * fmin(costs->copy, costs->copy_far);
    const double samples = (double)(outputs + size_max(taps, 1) - 1);
    return fmin(3e-7 + overlap * samples, fmin(lags, pairs) * samples);
}

// Engines of layers, which take real signals:
// - cpu/gemm has one row of sums, which takes 4/3 of a multiply-add for each product, and counts
//   four copies of every sum; it reads the samples of one tap where they are;
// - cpu/depthwise fills one lane of its vectors. An output and an input take 9 products each to
//   transpose, and a product of direct sums takes 1.05; transforms take as much at least;
// - cpu/winograd has at least one product of 1.1 multiply-adds for each output, and moves samples
//   three times in both of its transforms;
// - cpu/tiles fills whole lines of positions with tiles, whose tasks take 1 us in all at least. A
//   tile's samples are moved in and out at 4 copies, and a bin has three products for two samples.
static double layers_lower_bound(const struct request *request, size_t outputs)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double lanes = (double)CONV_BLOCK_BYTES / (double)shape->scalar_bytes;
    const double taps = (double)shape->axis[0].kernel, n = (double)outputs;
    const double gemm = (4.0 / 3 * taps * costs->fma + 4 * costs->copy) * n;
    const double depthwise = (18 + fmin(1.05 * taps, 9)) * lanes * costs->fma * n;
    const double winograd = (1.1 * costs->fma + 6 * costs->copy) * n;
    const double tiles = 1e-6 + (1.6 * costs->fma + 8 * costs->copy) * n;
    const double least = fmin(gemm, fmin(depthwise, tiles));
    return taps < 8 ? fmin(least, winograd) : least;
}

double direct_lower_bound(const struct request *request)
{
    const struct shape *shape = request->shape;
    const struct trimmed trimmed = shape_trim(shape);
    const size_t outputs = shape->axis[0].out;
    // Few outputs of long operands need no inverse transform; with a workspace limit engines that
    // sum directly may have longer tiles than this one.
    if (trimmed.taps > outputs || request->workspace_limit < SIZE_MAX) return 0;
    const double bound = transforms_lower_bound(request, outputs, trimmed.taps);
    return (shape->complex_signal ? bound : fmin(bound, layers_lower_bound(request, outputs))) *
           (1 - 1e-9);
}
