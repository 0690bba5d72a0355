// SPDX-License-Identifier: MIT
// Small complex transforms in lanes, see tile_kernels.h: no shuffle anywhere, every vector is 4 to
// 16 transforms. Passes of decimation in frequency forward, in time inverse, in place, so that
// nothing is put in order. The inverse is the forward pass mirrored with real and imaginary parts
// exchanged. Source: Gentleman & Sande, Fast Fourier transforms - for fun and profit (1966).
#include "fft_radix.h"

// One butterfly, its elements `step` reals apart; w NULL: all twiddles are 1.
INLINE void tile_butterfly(REAL *z, size_t step, const REAL *w, size_t radix, bool inverse)
{
    const size_t re = inverse ? TILE_LANES : 0, im = TILE_LANES - re;
    struct cvec a[8];
    UNROLL
    for (size_t k = 0; k < radix; k++)
        a[k] = (struct cvec){vec_load(z + k * step + re), vec_load(z + k * step + im)};
    if (inverse && w) butterfly_apply_factors(a, (int)radix, w, false);
    butterfly(a, (int)radix, false);
    if (!inverse && w) butterfly_apply_factors(a, (int)radix, w, false);
    UNROLL
    for (size_t k = 0; k < radix; k++) {
        vec_store(z + k * step + re, a[k].re);
        vec_store(z + k * step + im, a[k].im);
    }
}

// A pass over n elements, `stride` reals apart, in groups of `length`.
struct tile_pass {
    REAL *z;
    size_t stride, n, length;
    const REAL *twiddle;
};

INLINE void tile_pass(const struct tile_pass *pass, size_t radix, bool inverse)
{
    const size_t stride = pass->stride, n = pass->n, length = pass->length;
    const size_t quotient = length / radix, step = quotient * stride;
    const REAL *w = pass->twiddle;
    REAL *z = pass->z;
    NO_UNROLL
    for (size_t base = 0; base < n; base += length)
        tile_butterfly(z + base * stride, step, NULL, radix, inverse);
    NO_UNROLL
    for (size_t j = 1; j < quotient; j++, w += 2 * (radix - 1)) {
        NO_UNROLL
        for (size_t base = j; base < n; base += length)
            tile_butterfly(z + base * stride, step, w, radix, inverse);
    }
}

#define TILE_PASS(radix) tile_pass(pass, radix, inverse)

INLINE void tile_run_pass(const struct tile_pass *pass, int radix, bool inverse)
{
    if (radix == 5) TILE_PASS(5);
    else if (radix == 7) TILE_PASS(7);
    else WITH_CONSTANT5(radix, TILE_PASS, 2, 3, 4, 6, 8);
}

INLINE void tile_transform(REAL *z, const struct tile_dft *dft, size_t stride, bool inverse)
{
    struct tile_pass pass = {z, stride * ELEMENT, dft->n, inverse ? 1 : dft->n, NULL};
    for (int i = 0; i < dft->passes; i++) {
        const int p = inverse ? dft->passes - 1 - i : i;
        pass.twiddle = dft->twiddle[p];
        if (inverse) pass.length *= dft->radix[p];
        tile_run_pass(&pass, dft->radix[p], inverse);
        if (!inverse) pass.length /= dft->radix[p];
    }
}

void KERNEL(tile_forward)(void *z, const struct tile_dft *dft, size_t stride, size_t count,
                          size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES)
            tile_transform((REAL *)z + i * distance * ELEMENT + lane, dft, stride, false);
}

void KERNEL(tile_inverse)(void *z, const struct tile_dft *dft, size_t stride, size_t count,
                          size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES)
            tile_transform((REAL *)z + i * distance * ELEMENT + lane, dft, stride, true);
}
