// SPDX-License-Identifier: MIT
// Spectra of real samples in the order of their frequencies.
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "correction.h"

enum partita_status correction_open(struct correction *c, bool filter)
{
    const struct partita_correction *given = &c->given;
    // Bins are at most 1/8 of `low` apart: taps are two of its periods or more.
    const size_t taps = filter ? given->taps : (size_t)ceil(2 * given->rate / given->low);
    const size_t n = size_max(4 * taps, 2 * given->frames + taps);
    const enum partita_status status = design_bins_open(&c->bins, n, &given->allocator);
    if (status) return status;
    c->n = c->bins.n;
    c->count = c->n / 2 + 1;
    c->step = given->rate / (double)c->n;
    c->first = (size_t)ceil(given->low / c->step);
    c->last = size_min((size_t)(given->high / c->step), c->count - 1);
    c->power = mem_reserve(&given->allocator, 6 * (c->count + 1) * sizeof *c->power);
    if (!c->power) return design_bins_close(&c->bins), PARTITA_ERR_NOMEM;
    c->vector = c->power + c->count;
    c->filter = c->vector + c->count;
    c->scratch = c->filter + c->count;
    c->sums = c->scratch + c->count;
    c->gain = (double *)(c->sums + c->count + 1);
    return PARTITA_OK;
}

void correction_close(struct correction *c)
{
    mem_release(&c->given.allocator, c->power);
    design_bins_close(&c->bins);
}

static void read_spectrum(const struct correction *c, double complex *x)
{
    double *bin[2];
    for (size_t k = 0; k < c->count; k++) {
        design_bin(&c->bins, k, bin);
        x[k] = *bin[0] + I * *bin[1];
    }
}

static void write_spectrum(const struct correction *c, const double complex *x)
{
    double *bin[2];
    for (size_t k = 0; k < c->n; k++) {
        const double complex value = k < c->count ? x[k] : conj(x[c->n - k]);
        design_bin(&c->bins, k, bin);
        *bin[0] = creal(value);
        *bin[1] = cimag(value);
    }
}

void correction_transform(struct correction *c, double complex *x)
{
    design_bins_forward(&c->bins);
    read_spectrum(c, x);
}

void correction_forward(struct correction *c, double complex *x, const double *samples,
                        size_t frames, size_t origin)
{
    memset(c->bins.samples, 0, 2 * c->n * sizeof *samples);
    for (size_t i = 0; i < frames; i++)
        c->bins.samples[2 * ((i + c->n - origin) % c->n)] = samples[i];
    correction_transform(c, x);
}

void correction_inverse(struct correction *c, const double complex *x, double *ret, size_t frames,
                        size_t origin)
{
    write_spectrum(c, x);
    design_bins_inverse(&c->bins);
    for (size_t i = 0; ret && i < frames; i++)
        ret[i] = c->bins.samples[2 * ((i + c->n - origin) % c->n)];
}

void correction_minimum_phase(struct correction *c, double complex *x)
{
    double max = 0;
    for (size_t k = 0; k < c->count; k++) max = fmax(max, cabs(x[k]));
    for (size_t k = 0; k < c->count; k++) x[k] = log(fmax(cabs(x[k]), 1e-5 * max));
    write_spectrum(c, x);
    design_bins_minimum_phase(&c->bins);
    read_spectrum(c, x);
}

size_t correction_peak(const double *taps, size_t n)
{
    size_t peak = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(taps[i]) > fabs(taps[peak])) peak = i;
    return peak;
}

double correction_range_mean(const struct correction *c, const double complex *x)
{
    double sum = 0, weights = 0;
    for (size_t k = c->first; k <= c->last; k++) {
        sum += creal(x[k]) / (double)k;
        weights += 1 / (double)k;
    }
    return sum / weights;
}

// Replaces x[k] by the mean of the bins from a k to b k, a <= 1 <= b.
static void replace_by_means(struct correction *c, double complex *x, double a, double b)
{
    c->sums[0] = 0;
    for (size_t k = 0; k < c->count; k++) c->sums[k + 1] = c->sums[k] + x[k];
    for (size_t k = 0; k < c->count; k++) {
        const size_t begin = (size_t)((double)k * a + 0.5);
        const size_t end = size_min((size_t)((double)k * b + 0.5) + 1, c->count);
        if (end - begin > 1) x[k] = (c->sums[end] - c->sums[begin]) / (double)(end - begin);
    }
}

void correction_smooth(struct correction *c, double complex *x, double fraction)
{
    const double factor = exp2(0.5 / fraction);
    replace_by_means(c, x, 1 / factor, factor);
}

void correction_window(struct correction *c, double complex *x, double cycles)
{
    // A mean from f - d to f + d weights by sinc(2 d t); three with d = f / (2 cycles).
    for (int i = 0; i < 3; i++) replace_by_means(c, x, 1 - 0.5 / cycles, 1 + 0.5 / cycles);
}
