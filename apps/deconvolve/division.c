// SPDX-License-Identifier: MIT
// See division.h.
#include "division.h"

#include <complex.h>
#include <fftw3.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double REGULARISATION_DB = -60; // an exponential sweep of ten octaves falls by 30 dB

struct division {
    size_t n, n_recording; // of the transform, and of a recording
    double unit_peak;
    double *samples;
    double complex *bins, *inverse; // n / 2 + 1
    fftw_plan forward, backward;
};

// The smallest 2^i or 3 * 2^i from n on.
static size_t transform_size(size_t n)
{
    size_t size = 4;
    while (size < n) size *= 2;
    return size / 4 * 3 >= n ? size / 4 * 3 : size;
}

// From the transform of the signal: conj(S) p / (p^2 + t^2).
static void invert(struct division *d)
{
    const size_t n_bins = d->n / 2 + 1;
    double largest = 0, sum = 0;
    for (size_t i = 0; i < n_bins; i++)
        largest = fmax(largest, creal(d->bins[i] * conj(d->bins[i])));
    const double t = largest * pow(10, REGULARISATION_DB / 10);
    for (size_t i = 0; i < n_bins; i++) {
        const double p = creal(d->bins[i] * conj(d->bins[i]));
        d->inverse[i] = largest > 0 ? conj(d->bins[i]) * p / (p * p + t * t) : 0;
        const double passed = creal(d->inverse[i] * d->bins[i]);
        sum += i == 0 || 2 * i == d->n ? passed : 2 * passed; // the other half is its conjugate
    }
    d->unit_peak = sum / (double)d->n;
}

bool division_open(struct division **ret, const double *signal, size_t n_signal, size_t n_recording,
                   struct fault *fault)
{
    struct division *d = calloc(1, sizeof *d);
    if (!d) return fault_set(fault, "out of memory");
    // So long that negative lags do not wrap around to positive ones.
    d->n = transform_size(n_signal + n_recording);
    d->n_recording = n_recording;
    d->samples = fftw_alloc_real(d->n);
    d->bins = fftw_alloc_complex(d->n / 2 + 1);
    d->inverse = fftw_alloc_complex(d->n / 2 + 1);
    const bool allocated = d->samples && d->bins && d->inverse && d->n <= INT_MAX;
    if (allocated) {
        d->forward = fftw_plan_dft_r2c_1d((int)d->n, d->samples, d->bins, FFTW_ESTIMATE);
        d->backward = fftw_plan_dft_c2r_1d((int)d->n, d->bins, d->samples, FFTW_ESTIMATE);
    }
    if (!d->forward || !d->backward) {
        division_close(d);
        return fault_set(fault, "out of memory for transforms of %zu samples",
                         n_signal + n_recording);
    }
    memset(d->samples, 0, d->n * sizeof *d->samples);
    memcpy(d->samples, signal, n_signal * sizeof *signal);
    fftw_execute(d->forward);
    invert(d);
    *ret = d;
    return true;
}

double division_unit_peak(const struct division *division)
{
    return division->unit_peak;
}

const double *division_run(struct division *division, const double *recording, size_t step)
{
    struct division *d = division;
    memset(d->samples, 0, d->n * sizeof *d->samples);
    for (size_t i = 0; i < d->n_recording; i++) d->samples[i] = recording[i * step];
    fftw_execute(d->forward);
    for (size_t i = 0; i <= d->n / 2; i++) d->bins[i] *= d->inverse[i] / (double)d->n;
    fftw_execute(d->backward);
    return d->samples;
}

void division_close(struct division *division)
{
    if (!division) return;
    if (division->forward) fftw_destroy_plan(division->forward);
    if (division->backward) fftw_destroy_plan(division->backward);
    fftw_free(division->samples);
    fftw_free(division->bins);
    fftw_free(division->inverse);
    free(division);
}
