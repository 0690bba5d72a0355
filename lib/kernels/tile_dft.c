// SPDX-License-Identifier: MIT
// Small complex transforms in lanes, see tile_kernels.h: no shuffle anywhere, every vector is 4 to
// 16 transforms. Passes of decimation in frequency forward, in time inverse, in place, so that
// nothing is put in order. The inverse is the forward pass mirrored with real and imaginary parts
// exchanged. Source: Gentleman & Sande, Fast Fourier transforms - for fun and profit (1966).
#include "fft_radix.h"

// The elements of a butterfly, `step` reals apart. `factors`, a constant: w holds their twiddles.
struct tile_node {
    REAL *z;
    size_t step;
    const REAL *w;
    bool factors, inverse;
};

INLINE struct cvec tile_factor(const struct tile_node *node, size_t k, struct cvec v)
{
    if (!node->factors || k == 0) return v;
    return cvec_mul(v, vec_broadcast(node->w[2 * k - 2]), vec_broadcast(node->w[2 * k - 1]));
}

INLINE struct cvec tile_take(const struct tile_node *node, size_t k)
{
    const size_t re = node->inverse ? TILE_LANES : 0, im = TILE_LANES - re;
    const REAL *z = node->z + k * node->step;
    const struct cvec v = {vec_load(z + re), vec_load(z + im)};
    return node->inverse ? tile_factor(node, k, v) : v;
}

INLINE void tile_put(const struct tile_node *node, size_t k, struct cvec v)
{
    const size_t re = node->inverse ? TILE_LANES : 0, im = TILE_LANES - re;
    REAL *z = node->z + k * node->step;
    if (!node->inverse) v = tile_factor(node, k, v);
    vec_store(z + re, v.re);
    vec_store(z + im, v.im);
}

// butterfly8, which reads the odd elements when the even ones are done and stores results as soon
// as they are there: compilers keep this order, in which 16 registers almost suffice.
INLINE void tile_butterfly8(const struct tile_node *node)
{
    struct cvec even[4], odd[4];
    UNROLL
    for (size_t k = 0; k < 4; k++) even[k] = tile_take(node, 2 * k);
    butterfly4(even, false);
    UNROLL
    for (size_t k = 0; k < 4; k++) odd[k] = tile_take(node, 2 * k + 1);
    butterfly4(odd, false);
    butterfly8_rotate(odd, false);
    UNROLL
    for (size_t k = 0; k < 4; k++) {
        tile_put(node, k, cvec_add(even[k], odd[k]));
        tile_put(node, k + 4, cvec_sub(even[k], odd[k]));
    }
}

// Results k and 7 - k of seven from the sums and rotated differences of v[j] and v[7 - j].
INLINE void tile_pair7(struct cvec first, const struct cvec sum[4], const struct cvec difference[4],
                       int k, struct cvec ret[2])
{
    static const REAL cosine[] = {1, (REAL)0.62348980185873353053, (REAL)-0.22252093395631440429,
                                  (REAL)-0.90096886790241912624};
    static const REAL sine[] = {0, (REAL)0.78183148246802980871, (REAL)0.97492791218182360702,
                                (REAL)0.43388373911755812048};
    struct cvec side = {{0}, {0}};
    UNROLL
    for (int j = 1; j < 4; j++) {
        const int p = j * k % 7, at = p < 4 ? p : 7 - p;
        const REAL c = cosine[at], s = p < 4 ? sine[at] : -sine[at];
        first.re += c * sum[j].re;
        first.im += c * sum[j].im;
        side.re += s * difference[j].re;
        side.im += s * difference[j].im;
    }
    ret[0] = cvec_add(first, side);
    ret[1] = cvec_sub(first, side);
}

// Seven elements in the same way.
INLINE void tile_butterfly7(const struct tile_node *node)
{
    const struct cvec first = tile_take(node, 0);
    struct cvec sum[4], difference[4], all = first;
    UNROLL
    for (size_t j = 1; j < 4; j++) {
        const struct cvec a = tile_take(node, j), b = tile_take(node, 7 - j);
        sum[j] = cvec_add(a, b);
        difference[j] = cvec_rotate(cvec_sub(a, b), false);
        all = cvec_add(all, sum[j]);
    }
    tile_put(node, 0, all);
    UNROLL
    for (size_t k = 1; k < 4; k++) {
        struct cvec ret[2];
        tile_pair7(first, sum, difference, (int)k, ret);
        tile_put(node, k, ret[0]);
        tile_put(node, 7 - k, ret[1]);
    }
}

INLINE void tile_butterfly(const struct tile_node *node, size_t radix)
{
    if (radix == 7) {
        tile_butterfly7(node);
        return;
    }
    if (radix == 8) {
        tile_butterfly8(node);
        return;
    }
    struct cvec a[MAX_RADIX];
    UNROLL
    for (size_t k = 0; k < radix; k++) a[k] = tile_take(node, k);
    butterfly(a, (int)radix, false);
    UNROLL
    for (size_t k = 0; k < radix; k++) tile_put(node, k, a[k]);
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
        tile_butterfly(&(struct tile_node){z + base * stride, step, w, false, inverse}, radix);
    NO_UNROLL
    for (size_t j = 1; j < quotient; j++, w += 2 * (radix - 1)) {
        NO_UNROLL
        for (size_t base = j; base < n; base += length)
            tile_butterfly(&(struct tile_node){z + base * stride, step, w, true, inverse}, radix);
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
