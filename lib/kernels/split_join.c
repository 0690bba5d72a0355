// SPDX-License-Identifier: MIT
// Between interleaved complex numbers and lines of a spectrum.
#include "vector.h"

void KERNEL(split)(void *y_, const void *x_, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    size_t i = 0;
    for (; n - i >= SPECTRUM_LANES;
         i += SPECTRUM_LANES, y += 2 * SPECTRUM_LANES, x += 2 * SPECTRUM_LANES) {
        UNROLL
        for (size_t k = 0; k < SPECTRUM_LANES; k += LANES) {
            const vec a = vec_load(x + 2 * k), b = vec_load(x + 2 * k + LANES);
            *(vec *)(y + k) = __builtin_shufflevector(a, b, EVEN);
            *(vec *)(y + SPECTRUM_LANES + k) = __builtin_shufflevector(a, b, ODD);
        }
    }
    if (i == n) return;
    for (size_t k = 0; k < SPECTRUM_LANES; k++) {
        y[k] = i + k < n ? x[2 * k] : 0;
        y[SPECTRUM_LANES + k] = i + k < n ? x[2 * k + 1] : 0;
    }
}

void KERNEL(join)(void *y_, const void *x_, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    size_t i = 0;
    for (; n - i >= SPECTRUM_LANES;
         i += SPECTRUM_LANES, y += 2 * SPECTRUM_LANES, x += 2 * SPECTRUM_LANES) {
        UNROLL
        for (size_t k = 0; k < SPECTRUM_LANES; k += LANES) {
            const vec re = *(const vec *)(x + k), im = *(const vec *)(x + SPECTRUM_LANES + k);
            vec_store(y + 2 * k, __builtin_shufflevector(re, im, LOWER));
            vec_store(y + 2 * k + LANES, __builtin_shufflevector(re, im, UPPER));
        }
    }
    for (size_t k = 0; i + k < n; k++) {
        y[2 * k] = x[k];
        y[2 * k + 1] = x[SPECTRUM_LANES + k];
    }
}
