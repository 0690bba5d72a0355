// SPDX-License-Identifier: MIT
// Spectra of responses, and responses from tables of frequencies.
#ifndef PARTITA_APPS_SPECTRUM_H
#define PARTITA_APPS_SPECTRUM_H

#include "io/points.h"

// The frames of a response that resolves the points: a power of 2.
size_t spectrum_length(const struct points *points, double rate);

// The response with the gains and phases of the points, between which decibels and phases are
// interpolated over the logarithm of the frequency. Decibels of sound pressure, which a mean above
// 40 dB tells, are relative to 94 dB, 1 pascal. With phases, time 0 lies at a quarter of the n
// frames; without, the response has minimum phase. Changes the phases of the points.
bool spectrum_of_points(struct points *points, double rate, double *ret, size_t n, const char *name,
                        struct fault *fault);

// The points of a response at multiples of rate / n, with n a power of 2 above its frames and above
// `least`; time 0 is its peak.
bool spectrum_points(struct points *ret, double rate, const double *x, size_t frames, size_t least,
                     struct fault *fault);

// Replaces a response by that of minimum phase with its magnitudes.
bool spectrum_minimum_phase(double *x, size_t frames, struct fault *fault);

#endif
