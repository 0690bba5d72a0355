// SPDX-License-Identifier: MIT
// Scalars of arrays of double or float, and the power of two that scales an array.
#ifndef PARTITA_SCALAR_H
#define PARTITA_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static inline double scalar_get(bool f64, const void *array, size_t i)
{
    return f64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static inline void scalar_put(bool f64, void *array, size_t i, double value)
{
    if (f64) ((double *)array)[i] = value;
    else ((float *)array)[i] = (float)value;
}

// The power of two that scales the largest finite magnitude to less than 1, so that neither squares
// nor their sums overflow or vanish: rounding errors are those of any other level.
static inline double scale_to_one(const double *x, size_t n)
{
    enum { MIN_EXPONENT = -1000 }; // 2^1000 is finite
    double peak = 0;
    int exponent;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) peak = fmax(peak, fabs(x[i]));
    frexp(peak, &exponent);
    return ldexp(1, exponent < MIN_EXPONENT ? -MIN_EXPONENT : -exponent);
}

#endif
