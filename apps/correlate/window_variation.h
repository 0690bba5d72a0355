// SPDX-License-Identifier: MIT
// The variation under a sliding window of several real signals: sum_i (x[i] - mean)^2, where `mean`
// is that of the window's samples.
//
// It depends only on the samples of the window and on their positions. The relative error is at
// most 9 (n + 1) 2^-53 for windows of n samples, whatever their mean, and 0 for equal samples.
#ifndef PARTITA_APPS_WINDOW_VARIATION_H
#define PARTITA_APPS_WINDOW_VARIATION_H

#include <stdbool.h>
#include <stddef.h>

struct window_variation;

// What a window of one signal adds to a variation, and to the energy of the means.
struct window_spread {
    double variation, mean_energy;
};

// NULL: out of memory. All samples before the first are zeros.
struct window_variation *window_variation_open(size_t length, size_t signals);

// Adds the sample of a signal that is at position `at` of its block; blocks have the length of the
// window. Returns the spread of the window that ends there.
struct window_spread window_variation_slide(struct window_variation *variation, size_t signal,
                                            size_t at, double x);
void window_variation_close(struct window_variation *variation); // NULL is allowed

// Subtracts the mean of n samples that are `step` apart, and then the mean that rounding left:
// beside an offset of both operands it would not be small. Equal samples become 0.
void samples_subtract_mean(double *samples, size_t n, size_t step);

#endif
