// SPDX-License-Identifier: MIT
// See sweep.h. x(t) = sin(w1 L (exp(t / L) - 1)), L = T / ln(w2 / w1): Farina's equation; each
// octave takes the same time, so energy falls by 3 dB an octave. The template is the sweep rising
// by 6 dB an octave, which makes the product of both spectra flat.
#include "sweep.h"

#include <complex.h>
#include <math.h>

static const double LOWEST_HZ = 20, HIGHEST_SHARE = 0.45, RISE_SECONDS = 0.05, FALL_SECONDS = 0.005;

// Raised cosine from 0 to 1 over `seconds`.
static double fade(double t, double seconds)
{
    return t >= seconds ? 1 : 0.5 - 0.5 * cos(M_PI * t / seconds);
}

// One bin of the spectrum of n samples.
static double magnitude_at(const double *x, size_t n, double cycles_per_sample)
{
    double complex sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * cexp(-2 * M_PI * I * fmod(cycles_per_sample * (double)i, 1));
    return cabs(sum);
}

double sweep_make(double *sweep, double *template, size_t n, double rate)
{
    double ratio = HIGHEST_SHARE * rate / LOWEST_HZ, length = (double)n / rate,
           constant = length / log(ratio);
    double lowest = 2 * M_PI * LOWEST_HZ, middle = LOWEST_HZ * sqrt(ratio) / rate, peak = 0;
    for (size_t i = 0; i < n; i++) {
        double t = (double)i / rate, left = (double)(n - 1 - i) / rate;
        sweep[i] = sin(lowest * constant * expm1(t / constant)) * fade(t, RISE_SECONDS) *
                   fade(left, FALL_SECONDS);
        template[i] = sweep[i] * exp((t - length) / constant);
    }
    double gain = magnitude_at(sweep, n, middle) * magnitude_at(template, n, middle);
    for (size_t i = 0; i < n; i++) {
        template[i] /= gain;
        peak += sweep[i] * template[i];
    }
    return peak;
}
