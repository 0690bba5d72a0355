// SPDX-License-Identifier: MIT
// Transforms of planes side by side: the passes of fft_passes.c, but one transform in each lane, so
// that every element is an aligned pair of vectors, nothing is shuffled, and any length that the
// radices make up will do.
#include "fft_radix.h"

// Lanes first .. first+LANES-1 of a row.
INLINE struct lanes_row lanes_of(const struct lanes_row *row, size_t first)
{
    return (struct lanes_row){(REAL *)row->re + first, row->im * CONV_LANES,
                              row->stride * CONV_LANES};
}

// A pass over all n elements in nodes of `length`, from a row to a row. factors NULL: all are 1.
struct lanes_pass {
    struct lanes_row to, from; // im and stride in reals
    size_t n, length;
    const REAL *factors;
};

// The butterfly of every columns-th element from j on.
INLINE void lanes_butterfly(const struct lanes_pass *pass, size_t j, const REAL *factors, int radix,
                            bool inverse)
{
    const struct lanes_row from = pass->from, to = pass->to;
    const size_t columns = pass->length / (size_t)radix;
    const REAL *in = (const REAL *)from.re + j * from.stride;
    REAL *out = (REAL *)to.re + j * to.stride;
    struct cvec v[MAX_RADIX];
    UNROLL
    for (int k = 0; k < radix; k++) {
        const REAL *at = in + (size_t)k * columns * from.stride;
        v[k] = (struct cvec){vec_load(at), vec_load(at + from.im)};
    }
    if (factors && !inverse) butterfly_apply_factors(v, radix, factors, false);
    butterfly(v, radix, inverse);
    if (factors && inverse) butterfly_apply_factors(v, radix, factors, true);
    UNROLL
    for (int k = 0; k < radix; k++) {
        REAL *at = out + (size_t)k * columns * to.stride;
        vec_store(at, v[k].re);
        vec_store(at + to.im, v[k].im);
    }
}

INLINE void lanes_pass(const struct lanes_pass *pass, int radix, bool inverse)
{
    const size_t columns = pass->length / (size_t)radix;
    const REAL *factors = pass->factors;
    for (size_t node = 0; node < pass->n && factors; node += pass->length) {
        NO_UNROLL
        for (size_t j = node; j < node + columns; j++)
            lanes_butterfly(pass, j, factors, radix, inverse);
        factors += 2 * (radix - 1);
    }
    NO_UNROLL
    for (size_t j = 0; j < columns && !factors; j++) lanes_butterfly(pass, j, NULL, radix, inverse);
}

// Makes the radix a constant.
INLINE void lanes_run_pass(const struct lanes_pass *pass, int radix, bool inverse)
{
#define LANES_PASS(radix) lanes_pass(pass, radix, inverse)
    WITH_CONSTANT8(radix, LANES_PASS, 2, 3, 4, 5, 6, 8, 10, 12)
}

void KERNEL(lanes_dft)(const struct lanes_row *to, const struct lanes_row *from,
                       const struct lanes_dft *dft)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        struct lanes_pass pass = {.to = lanes_of(to, first),
                                  .from = lanes_of(from, first),
                                  .n = dft->n,
                                  .length = dft->n};
        for (int i = 0; i < dft->passes; i++) {
            pass.factors = dft->factors[i];
            lanes_run_pass(&pass, dft->radix[i], false);
            pass.from = pass.to;
            pass.length /= dft->radix[i];
        }
    }
}

void KERNEL(lanes_dft_inverse)(const struct lanes_row *to, const struct lanes_row *from,
                               const struct lanes_dft *dft)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const struct lanes_row own = lanes_of(from, first), last = lanes_of(to, first);
        struct lanes_pass pass = {.to = own, .from = own, .n = dft->n, .length = 1};
        for (int i = dft->passes - 1; i >= 0; i--) {
            pass.factors = dft->factors[i];
            pass.length *= dft->radix[i];
            if (!i) pass.to = last;
            lanes_run_pass(&pass, dft->radix[i], true);
        }
    }
}

void KERNEL(lanes_product)(const struct lanes_row *y, const struct lanes_row *x,
                           const struct lanes_row *h, size_t n, bool conjugate, bool add)
{
    const size_t step_y = y->stride * CONV_LANES, step_x = x->stride * CONV_LANES,
                 step_h = h->stride * CONV_LANES;
    for (size_t first = 0; first < CONV_LANES; first += LANES)
        for (size_t k = 0; k < n; k++) {
            REAL *to = (REAL *)y->re + first + k * step_y, *to_im = to + y->im * CONV_LANES;
            const REAL *a = (const REAL *)x->re + first + k * step_x,
                       *b = (const REAL *)h->re + first + k * step_h;
            const vec hi = vec_load(b + h->im * CONV_LANES);
            const struct cvec in = {vec_load(a), vec_load(a + x->im * CONV_LANES)};
            struct cvec product = cvec_mul(in, vec_load(b), conjugate ? -hi : hi);
            if (add) product = cvec_add((struct cvec){vec_load(to), vec_load(to_im)}, product);
            vec_store(to, product.re);
            vec_store(to_im, product.im);
        }
}
