// SPDX-License-Identifier: MIT
// Where impulse responses start.
#ifndef PARTITA_APPS_ROWS_H
#define PARTITA_APPS_ROWS_H

#include <stddef.h>

// Responses of equal length, one after the other.
struct rows {
    const float *samples; // [n][length]
    size_t n, length;
};

float rows_peak(const struct rows *rows);

// The first frame before `end` in which any row reaches the level; `end` if none does.
size_t rows_first_above(const struct rows *rows, float level, size_t end);

// How many frames to omit from the start of resampled responses: their lead, `lead` frames long,
// consists of interpolation pulses and would add latency. Its frames below 1 % of the peak are
// omitted.
size_t rows_omitted_lead(const struct rows *rows, size_t lead);

#endif
