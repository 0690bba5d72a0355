// SPDX-License-Identifier: MIT
// Small complex transforms in lanes, see tile_kernels.h: no shuffle anywhere, every vector is 4 to 16 transforms.
// Passes of decimation in frequency forward, in time inverse, in place, so that nothing is put in order. The inverse is
// the forward pass mirrored with real and imaginary parts exchanged. Source: Gentleman & Sande, Fast Fourier transforms
// - for fun and profit (1966).
#include "fft_lanes.h"

enum { TILE_LANES = TILE_LINE_BYTES / sizeof(REAL), ELEMENT = 2 * TILE_LANES };

static const REAL ROOT_HALF = (REAL)0.70710678118654752440, ROOT_THREE_QUARTERS = (REAL)0.86602540378443864676;

// -i a.
INLINE struct cvec turned(struct cvec a)
{
    return (struct cvec){a.im, -a.re};
}

INLINE void dft2(struct cvec *a)
{
    const struct cvec sum = plus(a[0], a[1]);
    a[1] = minus(a[0], a[1]);
    a[0] = sum;
}

INLINE void dft3(struct cvec *a)
{
    const struct cvec sum = plus(a[1], a[2]), off = minus(a[1], a[2]);
    const struct cvec middle = {a[0].re - (REAL)0.5 * sum.re, a[0].im - (REAL)0.5 * sum.im};
    a[0] = plus(a[0], sum);
    a[1] = (struct cvec){middle.re + ROOT_THREE_QUARTERS * off.im, middle.im - ROOT_THREE_QUARTERS * off.re};
    a[2] = (struct cvec){middle.re - ROOT_THREE_QUARTERS * off.im, middle.im + ROOT_THREE_QUARTERS * off.re};
}

INLINE void dft4(struct cvec *a)
{
    const struct cvec s = plus(a[0], a[2]), d = minus(a[0], a[2]), t = plus(a[1], a[3]), u = turned(minus(a[1], a[3]));
    a[0] = plus(s, t);
    a[1] = plus(d, u);
    a[2] = minus(s, t);
    a[3] = minus(d, u);
}

// By primes: 3 x 2 without twiddles.
INLINE void dft6(struct cvec *a)
{
    struct cvec even[3] = {a[0], a[2], a[4]}, odd[3] = {a[3], a[5], a[1]};
    dft3(even);
    dft3(odd);
    a[0] = plus(even[0], odd[0]);
    a[3] = minus(even[0], odd[0]);
    a[4] = plus(even[1], odd[1]);
    a[1] = minus(even[1], odd[1]);
    a[2] = plus(even[2], odd[2]);
    a[5] = minus(even[2], odd[2]);
}

INLINE void dft8(struct cvec *a)
{
    struct cvec even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    dft4(even);
    dft4(odd);
    odd[1] = (struct cvec){ROOT_HALF * (odd[1].re + odd[1].im), ROOT_HALF * (odd[1].im - odd[1].re)};
    odd[2] = turned(odd[2]);
    odd[3] = (struct cvec){ROOT_HALF * (odd[3].im - odd[3].re), -ROOT_HALF * (odd[3].re + odd[3].im)};
    UNROLL
    for (size_t k = 0; k < 4; k++) {
        a[k] = plus(even[k], odd[k]);
        a[k + 4] = minus(even[k], odd[k]);
    }
}

INLINE void dft(struct cvec *a, size_t radix)
{
    if (radix == 2) dft2(a);
    else if (radix == 3) dft3(a);
    else if (radix == 4) dft4(a);
    else if (radix == 6) dft6(a);
    else dft8(a);
}

INLINE void twist(struct cvec *a, const REAL *w, size_t radix)
{
    UNROLL
    for (size_t k = 1; k < radix; k++) a[k] = times(a[k], broadcast(w[2 * k - 2]), broadcast(w[2 * k - 1]));
}

// One butterfly, its elements `step` reals apart; w NULL: all twiddles are 1.
INLINE void butterfly(REAL *z, size_t step, const REAL *w, size_t radix, bool inverse)
{
    const size_t re = inverse ? TILE_LANES : 0, im = TILE_LANES - re;
    struct cvec a[8];
    UNROLL
    for (size_t k = 0; k < radix; k++) a[k] = (struct cvec){load(z + k * step + re), load(z + k * step + im)};
    if (inverse && w) twist(a, w, radix);
    dft(a, radix);
    if (!inverse && w) twist(a, w, radix);
    UNROLL
    for (size_t k = 0; k < radix; k++) {
        store(z + k * step + re, a[k].re);
        store(z + k * step + im, a[k].im);
    }
}

// One pass over blocks of `length` of n elements.
INLINE void pass(REAL *z, size_t stride, size_t n, size_t length, const REAL *w, size_t radix, bool inverse)
{
    const size_t quotient = length / radix, step = quotient * stride;
    NO_UNROLL
    for (size_t base = 0; base < n; base += length) butterfly(z + base * stride, step, NULL, radix, inverse);
    NO_UNROLL
    for (size_t j = 1; j < quotient; j++, w += 2 * (radix - 1)) {
        NO_UNROLL
        for (size_t base = j; base < n; base += length) butterfly(z + base * stride, step, w, radix, inverse);
    }
}

INLINE void pass_of(REAL *z, size_t stride, const struct tile_dft *plan, int p, size_t length, bool inverse)
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

void KERNEL(tile_forward)(void *z, const struct tile_dft *plan, size_t stride, size_t count, size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            size_t length = plan->n;
            for (int p = 0; p < plan->passes; p++) {
                pass_of((REAL *)z + i * distance * ELEMENT + lane, stride * ELEMENT, plan, p, length, false);
                length /= plan->radix[p];
            }
        }
}

void KERNEL(tile_inverse)(void *z, const struct tile_dft *plan, size_t stride, size_t count, size_t distance)
{
    for (size_t i = 0; i < count; i++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            size_t length = 1;
            for (int p = plan->passes - 1; p >= 0; p--) {
                length *= plan->radix[p];
                pass_of((REAL *)z + i * distance * ELEMENT + lane, stride * ELEMENT, plan, p, length, true);
            }
        }
}
