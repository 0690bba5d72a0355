// SPDX-License-Identifier: MIT
// Exponential sine sweeps, and the template whose correlation with a recorded sweep is the impulse
// response. After A. Farina, "Simultaneous measurement of impulse response and distortion with a
// swept-sine technique", AES 108, 2000: harmonic distortion appears at negative lags, separate from
// the response.
#ifndef PARTITA_APPS_LIVE_SWEEP_H
#define PARTITA_APPS_LIVE_SWEEP_H

#include <stddef.h>

// Computes n samples of a sweep from 20 Hz to 0.45 times the rate, of amplitude 1, faded in and
// out; and of the template, scaled so that a path of gain 1 has gain 1 within the band. Returns the
// peak of the response of such a path, which is below 1 because of the limited band.
double sweep_make(double *sweep, double *template, size_t n, double rate);

#endif
