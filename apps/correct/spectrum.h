// SPDX-License-Identifier: MIT
// Transforms of any length, and responses from tables of frequencies.
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

#endif
