// SPDX-License-Identifier: MIT
// Interference of symbols, of pulses: what the other symbols add to the sample of one.
#ifndef PARTITA_APPS_INTERFERENCE_H
#define PARTITA_APPS_INTERFERENCE_H

#include <stddef.h>

#include "base/fault.h"

// In relation to the symbol's own sample.
struct interference {
    double rms;   // of independent symbols of the same power
    double worst; // of symbols of magnitude 1 with the worst signs
};

// Of taps[n], or of their convolution with themselves, at multiples of `period` frames around the
// middle, between which the band-limited pulse is interpolated. False if there is no memory.
bool interference_measure(struct interference *ret, const double *taps, size_t n, double period,
                          bool pair);

#endif
