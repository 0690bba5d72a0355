// SPDX-License-Identifier: MIT
// Exponential sweeps and what to correlate with to get an impulse response from their echo. After
// A. Farina, "Simultaneous measurement of impulse response and distortion with a swept-sine
// technique", AES 108, 2000: harmonics of the sweep come out at negative lags, apart from the
// response.
#ifndef PARTITA_APPS_LIVE_SWEEP_H
#define PARTITA_APPS_LIVE_SWEEP_H

#include <stddef.h>

// Fills n samples with the sweep from 20 Hz to 0.45 times the rate, of amplitude 1, faded in and
// out; and the template that turns its flat-sloped spectrum into a white one, scaled so that a path
// of gain 1 measures as gain 1 within the band. Returns the peak of that path's response, which is
// below 1 since what lies outside the band is missing.
double sweep_make(double *sweep, double *template, size_t n, double rate);

#endif
