// SPDX-License-Identifier: MIT
// See bins.h.
#include "bins.h"

#include <math.h>

#include "base/sizes.h"
#include "design.h"
#include "kernels/kernels.h"

enum { LANES = SPECTRUM_LANES_BYTES / sizeof(double) };

// The order of bins is private to the provider; the transform of a sample that is one frame late
// says which frequency a bin has.
static void find_bins(struct design_bins *bins)
{
    const double n = (double)bins->n;
    bins->samples[2] = 1;
    design_bins_forward(bins);
    bins->samples[2] = 0;
    for (size_t i = 0; i < bins->n; i++) {
        const double *re = bins->spectrum + i / LANES * 2 * LANES + i % LANES;
        const double k = round(-atan2(re[LANES], *re) / (2 * DESIGN_PI) * n);
        bins->index[(size_t)(k + n) % bins->n] = i;
    }
}

enum partita_status design_bins_open(struct design_bins *bins, size_t n,
                                     const struct partita_allocator *allocator)
{
    const size_t size = fft_good_size(n);
    const struct fft_request request = {
        .n = size, .f64 = true, .complex = true, .isa = cpu_detect()};
    *bins = (struct design_bins){.n = size, .allocator = *allocator};
    if (!size) return PARTITA_ERR_NOMEM;
    const enum partita_status status = fft_create(&request, allocator, &bins->fft);
    if (status) return status;
    bins->samples = mem_allocate(allocator, size_mul(2 * size, sizeof *bins->samples));
    bins->spectrum = mem_allocate(allocator, bins->fft->spectrum_bytes);
    bins->scratch = mem_reserve(allocator, bins->fft->scratch_bytes);
    bins->index = mem_reserve(allocator, size_mul(size, sizeof *bins->index));
    if (bins->samples && bins->spectrum && bins->scratch && bins->index) {
        find_bins(bins);
        return PARTITA_OK;
    }
    design_bins_close(bins);
    return PARTITA_ERR_NOMEM;
}

void design_bins_close(struct design_bins *bins)
{
    mem_release(&bins->allocator, bins->index);
    mem_release(&bins->allocator, bins->scratch);
    mem_release(&bins->allocator, bins->spectrum);
    mem_release(&bins->allocator, bins->samples);
    fft_destroy(bins->fft);
}

void design_bins_forward(struct design_bins *bins)
{
    fft_forward(bins->fft, bins->spectrum, bins->samples, bins->scratch);
}

void design_bins_inverse(struct design_bins *bins)
{
    fft_inverse(bins->fft, bins->samples, bins->spectrum, bins->scratch);
    for (size_t i = 0; i < 2 * bins->n; i++) bins->samples[i] /= bins->fft->gain;
}

void design_bin(const struct design_bins *bins, size_t k, double *ret[2])
{
    const size_t i = bins->index[k];
    ret[0] = bins->spectrum + i / LANES * 2 * LANES + i % LANES;
    ret[1] = ret[0] + LANES;
}

enum partita_status design_bins_gains(const double *taps, size_t n, size_t points,
                                      const struct partita_allocator *allocator,
                                      design_visit *visit, void *context)
{
    struct design_bins bins;
    const enum partita_status status = design_bins_open(&bins, points, allocator);
    if (status) return status;
    for (size_t i = 0; i < n; i++) bins.samples[2 * i] = taps[i];
    design_bins_forward(&bins);
    for (size_t k = 0; k <= bins.n / 2; k++) {
        double *bin[2];
        design_bin(&bins, k, bin);
        visit(context, (double)k / (double)bins.n, hypot(*bin[0], *bin[1]));
    }
    design_bins_close(&bins);
    return PARTITA_OK;
}

enum partita_status design_bins_symmetric(double *half, size_t n, size_t points, design_gain *gain,
                                          const void *context,
                                          const struct partita_allocator *allocator)
{
    struct design_bins bins;
    const enum partita_status status = design_bins_open(&bins, points, allocator);
    if (status) return status;
    for (size_t k = 0; k < bins.n; k++) {
        double *bin[2];
        design_bin(&bins, k, bin);
        *bin[0] = gain(context, (double)size_min(k, bins.n - k) / (double)bins.n);
        *bin[1] = 0;
    }
    design_bins_inverse(&bins);
    for (size_t i = 0; i < n; i++) half[i] = bins.samples[2 * i];
    design_bins_close(&bins);
    return PARTITA_OK;
}
