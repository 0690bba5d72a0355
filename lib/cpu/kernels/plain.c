// SPDX-License-Identifier: MIT
// Loops that the compiler makes vectors of by itself: reference and vector version in one, built for every level.
#include "names.h"

uint64_t KERNEL(peak)(const void *x_, size_t n)
{
    const BITS *x = x_;
    BITS most = 0;
    for (size_t i = 0; i < n; i++) {
        const BITS magnitude = x[i] & (BITS)-1 >> 1;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

void KERNEL(blend)(void *y_, const void *x_, size_t n, size_t per_frame, double first, double slope)
{
    REAL *y = y_;
    const REAL *x = x_;
    const unsigned shift = per_frame > 1; // not a division for each sample
    for (size_t i = 0; i < n; i++) {
        const REAL weight = (REAL)((first + (double)(i >> shift)) * slope);
        y[i] += (x[i] - y[i]) * weight;
    }
}
