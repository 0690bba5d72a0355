// SPDX-License-Identifier: MIT
// Products of spectra in blocks of real and imaginary lanes, summed over terms in registers. The four products of a
// complex multiplication have a sum each, so that no addition waits for another of the same term, and the order of
// operations is the same for every bin.
#include "vector.h"

enum {
    VECTORS = SPECTRUM_BLOCK_BYTES / VECTOR_BYTES, // of a block's real or imaginary lanes
    GROUP = CMAC_GROUP,                            // vectors at a time
};

// Vector v of a run of blocks: its real lanes; the imaginary ones are SPECTRUM_LANES further on.
INLINE size_t position(size_t v)
{
    return v / VECTORS * (2 * SPECTRUM_LANES) + v % VECTORS * LANES;
}

INLINE const vec *at(const REAL *x, size_t v, size_t part)
{
    return (const vec *)(x + position(v) + part * SPECTRUM_LANES);
}

// Vectors first .. first+count-1. Strides in reals.
INLINE void sum_products(REAL *y, const REAL *x, size_t x_stride, const REAL *h, size_t h_stride, size_t terms,
                         size_t count)
{
    vec rr[GROUP], ii[GROUP], ri[GROUP], ir[GROUP];
    UNROLL
    for (size_t v = 0; v < count; v++) rr[v] = ii[v] = ri[v] = ir[v] = (vec){0};
    for (size_t t = 0; t < terms; t++, x += x_stride, h += h_stride) {
        UNROLL
        for (size_t v = 0; v < count; v++) {
            const vec xr = held(*at(x, v, 0)), xi = held(*at(x, v, 1));
            const vec hr = held(*at(h, v, 0)), hi = held(*at(h, v, 1));
            rr[v] = multiply_add(xr, hr, rr[v]);
            ii[v] = multiply_add(xi, hi, ii[v]);
            ri[v] = multiply_add(xr, hi, ri[v]);
            ir[v] = multiply_add(xi, hr, ir[v]);
        }
    }
    UNROLL
    for (size_t v = 0; v < count; v++) {
        *(vec *)(y + position(v)) = rr[v] - ii[v];
        *(vec *)(y + position(v) + SPECTRUM_LANES) = ri[v] + ir[v];
    }
}

void KERNEL(cmac)(void *y_, const void *x_, size_t x_stride, const void *h_, size_t h_stride, size_t terms,
                  size_t n_blocks)
{
    REAL *y = y_;
    const REAL *x = x_, *h = h_;
    const size_t block = 2 * SPECTRUM_LANES, end = n_blocks * VECTORS;
    size_t v = 0;
    for (; end - v >= GROUP; v += GROUP)
        sum_products(y + position(v), x + position(v), x_stride * block, h + position(v), h_stride * block, terms,
                     GROUP);
    for (; v < end; v++)
        sum_products(y + position(v), x + position(v), x_stride * block, h + position(v), h_stride * block, terms, 1);
}
