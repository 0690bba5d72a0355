// SPDX-License-Identifier: MIT
// Minimum phase by the homomorphic method. |response|^2 + floor^2 is a polynomial of the degree of
// the taps' autocorrelation without zeros on the unit circle, so it has a factor with n taps and
// all zeros inside. The logarithm of that factor's magnitude is the real part of a spectrum whose
// samples before 0 are 0: the even part of the cepstrum, doubled after 0.
//
// Zeros of the taps on the unit circle, where the response has a slope s, move by floor / s radians
// inwards. If the floor is 1/8 of ripples of n taps, whose slope is n/2 times their height, that is
// 1 / (4 n). The cepstrum then falls as exp(-i / (4 n)): 256 n points alias e^-64 / 2, one half of
// them e^-32, 1e-14.
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "bins.h"
#include "design.h"

enum { POINTS_PER_TAP = 256 };

void design_bins_minimum_phase(struct design_bins *bins)
{
    double *cepstrum = bins->samples, *bin[2];
    design_bins_inverse(bins);
    for (size_t i = 0; i < bins->n; i++) {
        if (i > 0 && i < bins->n / 2) cepstrum[2 * i] *= 2;
        if (i > bins->n / 2) cepstrum[2 * i] = 0;
        cepstrum[2 * i + 1] = 0; // rounding errors
    }
    design_bins_forward(bins);
    for (size_t i = 0; i < bins->n; i++) {
        design_bin(bins, i, bin);
        const double magnitude = exp(*bin[0]);
        *bin[0] = magnitude * cos(*bin[1]);
        *bin[1] = magnitude * sin(*bin[1]);
    }
}

enum partita_status design_minimum_phase(double *taps, size_t n, double floor,
                                         const struct partita_allocator *allocator)
{
    struct design_bins bins;
    double *bin[2];
    const enum partita_status status =
        design_bins_open(&bins, size_mul(POINTS_PER_TAP, n), allocator);
    if (status) return status;
    for (size_t i = 0; i < n; i++) bins.samples[2 * i] = taps[i];
    design_bins_forward(&bins);
    for (size_t i = 0; i < bins.n; i++) {
        design_bin(&bins, i, bin);
        *bin[0] = 0.5 * log(*bin[0] * *bin[0] + *bin[1] * *bin[1] + floor * floor);
        *bin[1] = 0;
    }
    design_bins_minimum_phase(&bins);
    design_bins_inverse(&bins);
    for (size_t i = 0; i < n; i++) taps[i] = bins.samples[2 * i];
    design_bins_close(&bins);
    return PARTITA_OK;
}
