// SPDX-License-Identifier: MIT
// Responses that are summed or computed in the tests of equalizers and crossovers.
#ifndef PARTITA_TEST_RESPONSES_H
#define PARTITA_TEST_RESPONSES_H

#include "support/test.h"

#include <complex.h>
#include <math.h>

#define PI 3.14159265358979323846
#define PIL 3.14159265358979323846264338327950288L

enum { MAX_TAPS = 1 << 17, POINTS = 97, N_RATES = 3 };

static const double rates[N_RATES] = {44100, 48000, 96000};

// The response of a polynomial in z, and its delay times the response.
static inline double complex polynomial(const double *c, size_t n, double frequency,
                                        double complex *ret_delay)
{
    const double complex z = cexp(-2 * PI * I * frequency);
    double complex sum = 0, delay = 0;
    for (size_t i = n; i-- > 0;) {
        delay = delay * z + (double)i * c[i];
        sum = sum * z + c[i];
    }
    if (ret_delay) *ret_delay = delay;
    return sum;
}

static inline double decibels(double gain)
{
    return 20 * log10(gain);
}

// From 20 Hz to 20 kHz, evenly on a logarithmic scale.
static inline double point_of(size_t i, double rate)
{
    return 20 * pow(1000, (double)i / (POINTS - 1)) / rate;
}

// The analogue response of a low pass at s = i w, where its frequency is 1.
static inline long double complex family_response(enum partita_section_family family, int order,
                                                  long double w)
{
    long double complex sum = 0;
    if (family != PARTITA_FAMILY_BESSEL) {
        const int n = family == PARTITA_FAMILY_LINKWITZ_RILEY ? order / 2 : order;
        sum = 1;
        for (int k = 0; k < n; k++) // poles on the left half of the unit circle
            sum *= I * w - cexpl(I * PIL * (2 * k + n + 1) / (2 * n));
        return family == PARTITA_FAMILY_LINKWITZ_RILEY ? 1 / (sum * sum) : 1 / sum;
    }
    // The reverse Bessel polynomial, whose frequency of -3 dB is found by halving.
    long double c[16], scale = 1;
    for (int k = 0; k <= order; k++)
        c[k] = tgammal(2 * order - k + 1) /
               (powl(2, order - k) * tgammal(k + 1) * tgammal(order - k + 1));
    for (long double low = 0.1L, high = 10, step = 0; step < 100; step++) {
        scale = (low + high) / 2;
        sum = 0;
        for (int k = order; k >= 0; k--) sum = sum * I * scale + c[k];
        if (cabsl(sum) < sqrtl(2) * c[0]) low = scale;
        else high = scale;
    }
    sum = 0;
    for (int k = order; k >= 0; k--) sum = sum * I * scale * w + c[k];
    return c[0] / sum;
}

#endif
