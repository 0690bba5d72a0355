// SPDX-License-Identifier: MIT
#include "spectrum.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/frames.h"

enum { MIN_LENGTH = 1 << 12, MAX_LENGTH = 1 << 17, PRESSURE = 94, PRESSURE_MEAN = 40 };
#define FLOOR 1e-5              // of the largest magnitude, for its logarithm
#define MAX_DEGREES 1e9         // 1e-7 degrees are lost when they are rounded
#define MIN_GAIN_OF_TABLE 1e-50 // -1000 dB, the least that a table may have

// Replaces x by the sums of x[j] exp(sign 2 pi i j k / n), where n is a power of 2 (Cooley and
// Tukey 1965).
static void transform(double complex *x, size_t n, double sign)
{
    for (size_t i = 0, reversed = 0; i < n; i++) { // the bits of i
        const double complex moved = x[i];
        if (i < reversed) x[i] = x[reversed], x[reversed] = moved;
        size_t bit = n / 2;
        for (; reversed & bit; bit /= 2) reversed -= bit;
        reversed += bit;
    }
    for (size_t half = 1; half < n; half *= 2)
        for (size_t k = 0; k < half; k++) {
            const double complex factor = cexp(I * sign * M_PI * (double)k / (double)half);
            for (size_t i = k; i < n; i += 2 * half) {
                const double complex product = factor * x[i + half];
                x[i + half] = x[i] - product;
                x[i] += product;
            }
        }
}

// Replaces x by the spectrum of minimum phase with its magnitudes, by its cepstrum.
static void minimum_phase(double complex *x, size_t n)
{
    double max = 0;
    for (size_t k = 0; k < n; k++) max = fmax(max, cabs(x[k]));
    for (size_t k = 0; k < n; k++) x[k] = log(fmax(cabs(x[k]), FLOOR * max)) / (double)n;
    transform(x, n, 1);
    for (size_t k = 0; k < n; k++) x[k] *= k > n / 2 ? 0 : k % (n / 2) ? 2 : 1;
    transform(x, n, -1);
    for (size_t k = 0; k < n; k++) x[k] = cexp(x[k]);
}

size_t spectrum_length(const struct points *points, double rate)
{
    size_t n = MIN_LENGTH;
    const double step =
        points->n > 1 ? points->list[1].frequency - points->list[0].frequency : rate;
    while (n < MAX_LENGTH && (double)n * step < rate) n *= 2;
    return n;
}

// Beyond the first and the last point gain and phase are constant.
static void fill_bins(double complex *x, size_t n, const struct points *p, double step,
                      double level)
{
    size_t i = 0;
    for (size_t k = 0; k <= n / 2; k++) {
        const double first = p->list[0].frequency, last = p->list[p->n - 1].frequency;
        const double f = fmin(fmax((double)k * step, first), last);
        while (i + 2 < p->n && p->list[i + 1].frequency < f) i++;
        const size_t next = i + 1 < p->n ? i + 1 : i;
        const struct partita_design_point *a = &p->list[i], *b = &p->list[next];
        const double share =
            next > i ? log(f / a->frequency) / log(b->frequency / a->frequency) : 0;
        const double decibels = a->decibels + share * (b->decibels - a->decibels) - level;
        const double phase =
            p->degrees ? p->degrees[i] + share * (p->degrees[next] - p->degrees[i]) : 0;
        x[k] = pow(10, decibels / 20) * cexp(I * M_PI / 180 * phase);
        if (k % (n / 2)) x[n - k] = conj(x[k]);
        else x[k] = creal(x[k]);
    }
}

bool spectrum_of_points(struct points *points, double rate, double *ret, size_t n, const char *name,
                        struct fault *fault)
{
    double mean = 0;
    for (size_t i = 0; i < points->n; i++) {
        const struct partita_design_point *p = &points->list[i];
        if (!(p->frequency > 0 && p->frequency < INFINITY) || !(fabs(p->decibels) <= 1000))
            return fault_set(fault,
                             "%s: %g Hz with %g dB: a frequency is above 0 and finite, and "
                             "decibels are within 1000",
                             name, p->frequency, p->decibels);
        if (points->degrees && !(fabs(points->degrees[i]) <= MAX_DEGREES))
            return fault_set(fault, "%s: %g Hz with %g degrees: must be within %g", name,
                             p->frequency, points->degrees[i], MAX_DEGREES);
        mean += p->decibels / (double)points->n;
    }
    double complex *const x = memory_allocate(n * sizeof *x);
    if (!x) return memory_fault(fault, "%s: %zu frames", name, n);
    // Moves whole turns so that the phase changes by at most half a turn from point to point.
    for (size_t i = 1; points->degrees && i < points->n; i++)
        points->degrees[i] += 360 * round((points->degrees[i - 1] - points->degrees[i]) / 360);
    fill_bins(x, n, points, rate / (double)n, mean > PRESSURE_MEAN ? PRESSURE : 0);
    if (!points->degrees) minimum_phase(x, n);
    transform(x, n, 1);
    const size_t lead = points->degrees ? n / 4 : 0;
    for (size_t i = 0; i < n; i++) ret[(i + lead) % n] = creal(x[i]) / (double)n;
    memory_free(x);
    return true;
}

// The spectrum of samples[frames] and zeros, [n]; NULL: no memory.
static double complex *open_spectrum(const double *samples, size_t frames, size_t n)
{
    double complex *const x = memory_allocate_zeros(n * sizeof *x);
    for (size_t i = 0; x && i < frames; i++) x[i] = samples[i];
    if (x) transform(x, n, -1);
    return x;
}

bool spectrum_points(struct points *ret, double rate, const double *x, size_t frames, size_t least,
                     struct fault *fault)
{
    const size_t origin = frames_peak(x, frames);
    size_t n = MIN_LENGTH;
    while (n < frames || n < least) n *= 2;
    double complex *const bins = open_spectrum(x, frames, n);
    *ret = (struct points){malloc(n / 2 * sizeof *ret->list), malloc(n / 2 * sizeof *ret->degrees),
                           bins ? n / 2 : 0};
    if (!ret->list || !ret->degrees) ret->n = 0;
    for (size_t k = 1; k <= ret->n; k++) {
        const double turns = carg(bins[k]) / (2 * M_PI) + (double)(k * origin % n) / (double)n;
        ret->list[k - 1] = (struct partita_design_point){
            (double)k * rate / (double)n, 20 * log10(fmax(cabs(bins[k]), MIN_GAIN_OF_TABLE))};
        ret->degrees[k - 1] = 360 * (turns - rint(turns));
    }
    memory_free(bins);
    return ret->n || memory_fault(fault, "a spectrum of %zu frames", n);
}

bool spectrum_minimum_phase(double *x, size_t frames, struct fault *fault)
{
    size_t n = MIN_LENGTH;
    while (n < 4 * frames) n *= 2; // so that the cepstrum does not wrap
    double complex *const bins = open_spectrum(x, frames, n);
    if (bins) minimum_phase(bins, n);
    if (bins) transform(bins, n, 1);
    for (size_t i = 0; bins && i < frames; i++) x[i] = creal(bins[i]) / (double)n;
    memory_free(bins);
    return bins || memory_fault(fault, "a spectrum of %zu frames", n);
}
