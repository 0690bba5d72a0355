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
        const struct lanes_row begin = lanes_of(from, first), last = lanes_of(to, first);
        struct lanes_pass pass = {.to = begin, .from = begin, .n = dft->n, .length = 1};
        for (int i = dft->passes - 1; i >= 0; i--) {
            pass.factors = dft->factors[i];
            pass.length *= dft->radix[i];
            if (!i) pass.to = last;
            lanes_run_pass(&pass, dft->radix[i], true);
        }
    }
}

// Elements as they lie one after the other, im after re.
INLINE struct lanes_row lanes_contiguous(const void *elements, size_t first)
{
    return (struct lanes_row){(REAL *)elements + first, CONV_LANES, 2 * CONV_LANES};
}

// The last pass of a transform, the product with h and the first pass of the inverse: each reads
// and writes the same elements, those of a node, which stay in registers.
INLINE void lanes_filter_node(struct lanes_row to, struct lanes_row from, struct lanes_row h,
                              const REAL *factors, int radix)
{
    struct cvec v[MAX_RADIX];
    UNROLL
    for (int k = 0; k < radix; k++) {
        const REAL *at = (const REAL *)from.re + (size_t)k * from.stride;
        v[k] = (struct cvec){vec_load(at), vec_load(at + from.im)};
    }
    if (factors) butterfly_apply_factors(v, radix, factors, false);
    butterfly(v, radix, false);
    UNROLL
    for (int k = 0; k < radix; k++) {
        const REAL *at = (const REAL *)h.re + (size_t)k * h.stride;
        v[k] = cvec_mul(v[k], vec_load(at), vec_load(at + h.im));
    }
    butterfly(v, radix, true);
    if (factors) butterfly_apply_factors(v, radix, factors, true);
    UNROLL
    for (int k = 0; k < radix; k++) {
        REAL *at = (REAL *)to.re + (size_t)k * to.stride;
        vec_store(at, v[k].re);
        vec_store(at + to.im, v[k].im);
    }
}

// All nodes of `work`, or the only one of x and y if there is one pass.
INLINE void lanes_filter_pass(const struct lanes_pass *pass, struct lanes_row work,
                              struct lanes_row h, int radix)
{
    const REAL *factors = pass->factors;
    if (pass->n == (size_t)radix) {
        lanes_filter_node(pass->to, pass->from, h, factors, radix);
        return;
    }
    NO_UNROLL
    for (size_t node = 0; node < pass->n; node += (size_t)radix, factors += 2 * (radix - 1)) {
        lanes_filter_node(work, work, h, factors, radix);
        work.re = (REAL *)work.re + (size_t)radix * work.stride;
        h.re = (REAL *)h.re + (size_t)radix * h.stride;
    }
}

void KERNEL(lanes_filter)(const struct lanes_row *y, const struct lanes_row *x, const void *h,
                          void *work, const struct lanes_dft *dft)
{
    const int last = dft->passes - 1;
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const struct lanes_row between = lanes_contiguous(work, first), to = lanes_of(y, first);
        struct lanes_pass pass = {
            .to = between, .from = lanes_of(x, first), .n = dft->n, .length = dft->n};
        for (int i = 0; i < last; i++) {
            pass.factors = dft->factors[i];
            lanes_run_pass(&pass, dft->radix[i], false);
            pass.from = between;
            pass.length /= dft->radix[i];
        }
        pass.factors = dft->factors[last];
        if (last == 0) pass.to = to;
#define LANES_FILTER_PASS(radix)                                                                   \
    lanes_filter_pass(&pass, lanes_contiguous(work, first), lanes_contiguous(h, first), radix)
        WITH_CONSTANT8(dft->radix[last], LANES_FILTER_PASS, 2, 3, 4, 5, 6, 8, 10, 12)
        for (int i = last - 1; i >= 0; i--) {
            pass.factors = dft->factors[i];
            pass.length *= dft->radix[i];
            if (i == 0) pass.to = to;
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
