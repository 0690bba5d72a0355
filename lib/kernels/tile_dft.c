// SPDX-License-Identifier: MIT
// Small complex transforms in lanes, see tile_kernels.h: no shuffle anywhere, every vector is 4 to
// 16 transforms. Passes of decimation in frequency forward, in time inverse, in place, so that
// nothing is put in order. The inverse is the forward pass mirrored with real and imaginary parts
// exchanged. Source: Gentleman & Sande, Fast Fourier transforms - for fun and profit (1966).
#include "fft_radix.h"

enum { TILE_LANES = TILE_LINE_BYTES / sizeof(REAL), ELEMENT = 2 * TILE_LANES };

// By primes: 3 x 2 without twiddles.
INLINE void butterfly6(struct cvec *a)
{
    struct cvec even[3] = {a[0], a[2], a[4]}, odd[3] = {a[3], a[5], a[1]};
    butterfly3(even, false);
    butterfly3(odd, false);
    a[0] = cvec_add(even[0], odd[0]);
    a[3] = cvec_sub(even[0], odd[0]);
    a[4] = cvec_add(even[1], odd[1]);
    a[1] = cvec_sub(even[1], odd[1]);
    a[2] = cvec_add(even[2], odd[2]);
    a[5] = cvec_sub(even[2], odd[2]);
}

// One butterfly, its elements `step` reals apart; w NULL: all twiddles are 1.
INLINE void butterfly(REAL *z, size_t step, const REAL *w, size_t radix, bool inverse)
{
    const size_t re = inverse ? TILE_LANES : 0, im = TILE_LANES - re;
    struct cvec a[8];
    UNROLL
    for (size_t k = 0; k < radix; k++)
        a[k] = (struct cvec){vec_load(z + k * step + re), vec_load(z + k * step + im)};
    if (inverse && w) butterfly_apply_factors(a, (int)radix, w, false);
    if (radix == 6) butterfly6(a);
    else dft(a, (int)radix, false);
    if (!inverse && w) butterfly_apply_factors(a, (int)radix, w, false);
    UNROLL
    for (size_t k = 0; k < radix; k++) {
        vec_store(z + k * step + re, a[k].re);
        vec_store(z + k * step + im, a[k].im);
    }
}

// One pass over blocks of `length` of n elements.
INLINE void pass(REAL *z, size_t stride, size_t n, size_t length, const REAL *w, size_t radix,
                 bool inverse)
{
    const size_t quotient = length / radix, step = quotient * stride;
    NO_UNROLL
    for (size_t base = 0; base < n; base += length)
        butterfly(z + base * stride, step, NULL, radix, inverse);
    NO_UNROLL
    for (size_t j = 1; j < quotient; j++, w += 2 * (radix - 1)) {
        NO_UNROLL
        for (size_t base = j; base < n; base += length)
            butterfly(z + base * stride, step, w, radix, inverse);
    }
}

INLINE void pass_of(REAL *z, size_t stride, const struct tile_dft *plan, int p, size_t length,
                    bool inverse)
{
    const REAL *w = plan->twiddle[p];
    switch (plan->radix[p]) {
    case 2:
        pass(z, stride, plan->n, length, w, 2, inverse);
        break;
    case 3:
        pass(z, stride, plan->n, length, w, 3, inverse);
        break;
    case 4:
        pass(z, stride, plan->n, length, w, 4, inverse);
        break;
    case 6:
        pass(z, stride, plan->n, length, w, 6, inverse);
        break;
    default:
        pass(z, stride, plan->n, length, w, 8, inverse);
    }
}

void KERNEL(tile_forward)(void *z, const struct tile_dft *plan, size_t stride, size_t count,
                          size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            size_t length = plan->n;
            for (int p = 0; p < plan->passes; p++) {
                pass_of((REAL *)z + i * distance * ELEMENT + lane, stride * ELEMENT, plan, p,
                        length, false);
                length /= plan->radix[p];
            }
        }
}

void KERNEL(tile_inverse)(void *z, const struct tile_dft *plan, size_t stride, size_t count,
                          size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            size_t length = 1;
            for (int p = plan->passes - 1; p >= 0; p--) {
                length *= plan->radix[p];
                pass_of((REAL *)z + i * distance * ELEMENT + lane, stride * ELEMENT, plan, p,
                        length, true);
            }
        }
}
