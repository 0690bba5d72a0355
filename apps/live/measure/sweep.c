// SPDX-License-Identifier: MIT
// See sweep.h. x(t) = sin(w1 L (exp(t / L) - 1)), L = T / ln(w2 / w1): Farina's equation; each
// octave lasts equally long, so the energy spectrum falls by 3 dB per octave. The template is the
// sweep with a slope of 6 dB per octave, so that the product of both spectra is flat.
#include "sweep.h"

#include <complex.h>
#include <math.h>

static const double MIN_HZ = 20, MAX_HZ_PER_RATE = 0.45, RISE_SECONDS = 0.05, FALL_SECONDS = 0.005;

// Rises from 0 to 1 within `seconds`.
static double raised_cosine(double t, double seconds)
{
    return t >= seconds ? 1 : 0.5 - 0.5 * cos(M_PI * t / seconds);
}

// The magnitude of the spectrum at one frequency.
static double magnitude_at(const double *x, size_t n, double cycles_per_sample)
{
    double complex sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * cexp(-2 * M_PI * I * fmod(cycles_per_sample * (double)i, 1));
    return cabs(sum);
}

double sweep_make(double *sweep, double *template, size_t n, double rate)
{
    double ratio = MAX_HZ_PER_RATE * rate / MIN_HZ, length = (double)n / rate,
           constant = length / log(ratio);
    double lowest = 2 * M_PI * MIN_HZ, middle = MIN_HZ * sqrt(ratio) / rate, peak = 0;
    for (size_t i = 0; i < n; i++) {
        double t = (double)i / rate, left = (double)(n - 1 - i) / rate;
        sweep[i] = sin(lowest * constant * expm1(t / constant)) * raised_cosine(t, RISE_SECONDS) *
                   raised_cosine(left, FALL_SECONDS);
        template[i] = sweep[i] * exp((t - length) / constant);
    }
    double gain = magnitude_at(sweep, n, middle) * magnitude_at(template, n, middle);
    for (size_t i = 0; i < n; i++) {
        template[i] /= gain;
        peak += sweep[i] * template[i];
    }
    return peak;
}
