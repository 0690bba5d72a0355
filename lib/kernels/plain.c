// SPDX-License-Identifier: MIT
// Loops that the compiler vectorises by itself, or that need shuffles alone: reference and vector
// version in one, built for every instruction set.
#include <math.h>
#include <string.h>

#include "names.h"
#include "vector.h"

uint64_t KERNEL(peak)(const void *x_, size_t n)
{
    const BITS *x = x_;
    BITS max = 0;
    for (size_t i = 0; i < n; i++) {
        const BITS magnitude = x[i] & (BITS)-1 >> 1;
        max = magnitude > max ? magnitude : max;
    }
    return max;
}

void KERNEL(add)(void *y_, const void *x_, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void KERNEL(scale)(void *y_, const void *x_, double s, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (size_t i = 0; i < n; i++) y[i] = (REAL)s * x[i];
}

void KERNEL(blend)(void *y_, const void *x_, size_t n, size_t per_frame, double first, double slope)
{
    REAL *y = y_;
    const REAL *x = x_;
    const unsigned shift = per_frame > 1;        // not a division for each sample
    for (uint32_t i = 0; i < (uint32_t)n; i++) { // vectors of int32_t become double at once
        const REAL weight = (REAL)((first + (double)(int32_t)(i >> shift)) * slope);
        y[i] += (x[i] - y[i]) * weight;
    }
}

void KERNEL(split)(void *y_, const void *x_, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (; n >= SPECTRUM_LANES;
         n -= SPECTRUM_LANES, y += 2 * SPECTRUM_LANES, x += 2 * SPECTRUM_LANES)
        for (size_t k = 0; k < SPECTRUM_LANES; k++) {
            y[k] = x[2 * k];
            y[SPECTRUM_LANES + k] = x[2 * k + 1];
        }
    for (size_t k = 0; n && k < SPECTRUM_LANES; k++) {
        y[k] = k < n ? x[2 * k] : 0;
        y[SPECTRUM_LANES + k] = k < n ? x[2 * k + 1] : 0;
    }
}

void KERNEL(join)(void *y_, const void *x_, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    for (; n >= SPECTRUM_LANES;
         n -= SPECTRUM_LANES, y += 2 * SPECTRUM_LANES, x += 2 * SPECTRUM_LANES)
        for (size_t k = 0; k < SPECTRUM_LANES; k++) {
            y[2 * k] = x[k];
            y[2 * k + 1] = x[SPECTRUM_LANES + k];
        }
    for (size_t k = 0; k < n; k++) {
        y[2 * k] = x[k];
        y[2 * k + 1] = x[SPECTRUM_LANES + k];
    }
}

void KERNEL(conv_rows)(void *y_, const void *x_, size_t x_stride, size_t rows, size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    // Whole blocks, because their size is known here: the next row replaces the excess of
    // one.
    for (size_t r = 0; r < rows; r++, y += n, x += x_stride)
        for (size_t i = 0; i < n; i += CONV_LANES) memcpy(y + i, x + i, CONV_BLOCK_BYTES);
}

// y[2*i] = sum[i], i < n. Accesses nothing before the first of these and behind the last one; the
// values between them are read and stored again.
INLINE void store_apart(REAL *y, const REAL *sum, size_t n)
{
    for (size_t i = 0; i < n; i += LANES, y += 2 * LANES) {
        const size_t left = n - i < LANES ? n - i : LANES, all = 2 * left - (left < n - i ? 0 : 1);
        const size_t first = all < LANES ? all : LANES;
        const vec low = vec_load_up_to(y, first), high = vec_load_up_to(y + LANES, all - first);
        const vec between = __builtin_shufflevector(low, high, ODD);
        const vec sums = vec_load_up_to(sum + i, left) + (vec){0}; // never -0, as with other steps
        vec_store_up_to(y, __builtin_shufflevector(sums, between, LOWER), first);
        vec_store_up_to(y + LANES, __builtin_shufflevector(sums, between, UPPER), all - first);
    }
}

// Inlined once for each kind of bias: `each` is a constant.
INLINE void store_finished(REAL *y, size_t step, const REAL *sum, size_t n,
                           struct conv_finish finish)
{
    const REAL *bias = finish.bias;
    const REAL same = bias && !finish.each ? *bias : 0, min = finish.relu ? 0 : -(REAL)INFINITY;
    for (size_t i = 0; i < n; i++) {
        const REAL v = sum[i] + (finish.each ? bias[i] : same);
        y[i * step] = v < min ? min : v;
    }
}

void KERNEL(conv_store)(void *y, size_t y_step, const void *sum, size_t n,
                        const struct conv_finish *finish)
{
    struct conv_finish same = *finish, each = *finish;
    same.each = false;
    each.each = true;
    if (finish->each) store_finished(y, 1, sum, n, each);
    else if (y_step == 2 && !finish->bias && !finish->relu) store_apart(y, sum, n);
    else if (y_step == 1) store_finished(y, 1, sum, n, same);
    else store_finished(y, y_step, sum, n, same);
}

double KERNEL(sum)(const void *x_, size_t n)
{
    enum { PARTS = 8 };
    const REAL *x = x_;
    double part[PARTS] = {0};
    size_t i = 0;
    for (; n - i >= PARTS; i += PARTS)
        for (size_t k = 0; k < PARTS; k++) part[k] += (double)x[i + k];
    for (; i < n; i++) part[i % PARTS] += (double)x[i];
    for (size_t half = PARTS / 2; half; half /= 2)
        for (size_t k = 0; k < half; k++) part[k] += part[half + k];
    return part[0];
}
