// SPDX-License-Identifier: MIT
// See bins.h.
#include "bins.h"

#include <math.h>
#include <string.h>

#include "design.h"
#include "kernels/kernels.h"

enum { LANES = SPECTRUM_LANES_BYTES / sizeof(double) };

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
    if (bins->samples && bins->spectrum && bins->scratch) return PARTITA_OK;
    design_bins_close(bins);
    return PARTITA_ERR_NOMEM;
}

void design_bins_close(struct design_bins *bins)
{
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

void design_bins_frequencies(struct design_bins *bins)
{
    memset(bins->samples, 0, 2 * bins->n * sizeof *bins->samples);
    bins->samples[2] = 1;
    design_bins_forward(bins);
}

void design_bin(const struct design_bins *bins, size_t i, double *ret[2])
{
    ret[0] = bins->spectrum + i / LANES * 2 * LANES + i % LANES;
    ret[1] = ret[0] + LANES;
}

double design_bin_frequency(double re, double im)
{
    return -atan2(im, re) / (2 * DESIGN_PI);
}

enum partita_status design_bins_gains(const double *taps, size_t n, size_t points,
                                      const struct partita_allocator *allocator,
                                      design_visit *visit, void *context)
{
    struct design_bins bins, late; // the bins of a late sample say which frequency they have
    enum partita_status status = design_bins_open(&bins, points, allocator);
    if (status) return status;
    status = design_bins_open(&late, bins.n, allocator);
    if (status == PARTITA_OK) design_bins_frequencies(&late);
    for (size_t i = 0; i < n; i++) bins.samples[2 * i] = taps[i];
    design_bins_forward(&bins);
    for (size_t i = 0; i < bins.n && status == PARTITA_OK; i++) {
        double *bin[2], *phase[2];
        design_bin(&bins, i, bin);
        design_bin(&late, i, phase);
        const double frequency = design_bin_frequency(*phase[0], *phase[1]);
        if (frequency >= 0) visit(context, fabs(frequency), hypot(*bin[0], *bin[1]));
    }
    if (status == PARTITA_OK) design_bins_close(&late);
    design_bins_close(&bins);
    return status;
}

enum partita_status design_bins_symmetric(double *half, size_t n, size_t points, design_gain *gain,
                                          const void *context,
                                          const struct partita_allocator *allocator)
{
    struct design_bins bins;
    const enum partita_status status = design_bins_open(&bins, points, allocator);
    if (status) return status;
    design_bins_frequencies(&bins);
    for (size_t i = 0; i < bins.n; i++) {
        double *bin[2];
        design_bin(&bins, i, bin);
        *bin[0] = gain(context, fabs(design_bin_frequency(*bin[0], *bin[1])));
        *bin[1] = 0;
    }
    design_bins_inverse(&bins);
    for (size_t i = 0; i < n; i++) half[i] = bins.samples[2 * i];
    design_bins_close(&bins);
    return PARTITA_OK;
}
