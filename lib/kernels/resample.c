// SPDX-License-Identifier: MIT
// Rational resampling: each output is a product of adjacent samples with a row of taps of its own.
// Vectors lie along the taps. A row has zeros behind its last tap, but the samples there are not
// read: an infinite one would become NaN.
#include "vector.h"

enum { SUMS = 4 }; // that do not wait for each other

#define FAR_LANE(l, n, k, j) ((l) + (n)) % LANES

// The sum of x[i] * h[i], i < n. Lanes are added in a tree, down to the first `step` of them: one
// real, or a real and an imaginary part.
INLINE vec resample_sum(const REAL *x, const REAL *h, size_t n, size_t step)
{
    vec sum[SUMS] = {{0}};
    for (; n >= SUMS * LANES; n -= SUMS * LANES, x += SUMS * LANES, h += SUMS * LANES) {
        UNROLL
        for (size_t s = 0; s < SUMS; s++)
            sum[s] = vec_multiply_add(vec_load(x + s * LANES), vec_load(h + s * LANES), sum[s]);
    }
    UNROLL
    for (size_t s = 0; s < SUMS - 1 && n >= LANES; s++, n -= LANES, x += LANES, h += LANES)
        sum[s] = vec_multiply_add(vec_load(x), vec_load(h), sum[s]);
    if (n) sum[SUMS - 1] = vec_multiply_add(vec_load_first(x, n), vec_load(h), sum[SUMS - 1]);
    vec v = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if (LANES > 8) v += __builtin_shufflevector(v, v, EACH_LANE(FAR_LANE, 8, 0, 0));
    if (LANES > 4) v += __builtin_shufflevector(v, v, EACH_LANE(FAR_LANE, 4, 0, 0));
    if (LANES > 2) v += __builtin_shufflevector(v, v, EACH_LANE(FAR_LANE, 2, 0, 0));
    if (step < 2) v += __builtin_shufflevector(v, v, EACH_LANE(FAR_LANE, 1, 0, 0));
    return v;
}

// One part of taps (parts 1), or real and imaginary parts in the halves of a row. Inlined once for
// each kind.
INLINE void resample_run(REAL *y, const REAL *x, const REAL *h, struct resample_position at,
                         size_t n, const size_t kind[2])
{
    const size_t step = kind[0], parts = kind[1];
    x -= step * (at.taps - 1);
    for (size_t i = 0; i < n; i++, y += step) {
        const REAL *row = h + at.branch * at.pitch;
        vec total = resample_sum(x, row, step * at.taps, step);
        if (parts == 2) {
            const vec rotated = resample_sum(x, row + at.pitch / 2, step * at.taps, step);
            total[0] -= rotated[1];
            total[1] += rotated[0];
        }
        UNROLL
        for (size_t k = 0; k < step; k++) y[k] += total[k];
        resample_advance(&at);
        x += step * at.sample;
    }
}

void KERNEL(resample)(void *y, const void *x, const void *h, const struct resample_position *at,
                      size_t n, enum fir_type type)
{
#ifdef FIR_SHORT // faster for rows of up to two vectors (fir.c)
    resample_fn KERNEL_EXPAND(resample, TYPE, FIR_SHORT);
    if (at->taps * (type == FIR_REAL ? 1 : 2) <= 2 * LANES) {
        KERNEL_EXPAND(resample, TYPE, FIR_SHORT)(y, x, h, at, n, type);
        return;
    }
#endif
    if (type == FIR_REAL) resample_run(y, x, h, *at, n, (const size_t[]){1, 1});
    else if (type == FIR_REAL_TAPS) resample_run(y, x, h, *at, n, (const size_t[]){2, 1});
    else resample_run(y, x, h, *at, n, (const size_t[]){2, 2});
}
