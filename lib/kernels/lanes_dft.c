// SPDX-License-Identifier: MIT
// Transforms of planes side by side: the passes of fft_passes.c, but one transform in each lane, so
// that every element is an aligned pair of vectors, nothing is shuffled, and any length that the
// radices make up will do.
#include "fft_radix.h"

// All nodes of `length` elements: reads from, writes to.
INLINE void pass_of(struct lanes_row to, struct lanes_row from, size_t n, size_t length,
                    const REAL *factors, int radix, bool back)
{
    const size_t columns = length / (size_t)radix;
    const size_t from_step = from.stride * CONV_LANES, from_im = from.im * CONV_LANES;
    const size_t to_step = to.stride * CONV_LANES, to_im = to.im * CONV_LANES;
    const REAL *in = from.re;
    REAL *out = to.re;
    NO_UNROLL
    for (size_t node = 0; node < n; node += length, factors += 2 * (radix - 1)) {
        NO_UNROLL
        for (size_t j = node; j < node + columns; j++) {
            struct cvec v[8];
            UNROLL
            for (int k = 0; k < radix; k++) {
                const REAL *at = in + (j + (size_t)k * columns) * from_step;
                v[k] = (struct cvec){vec_load(at), vec_load(at + from_im)};
            }
            if (!back) butterfly_apply_factors(v, radix, factors, false);
            dft(v, radix, back);
            if (back) butterfly_apply_factors(v, radix, factors, true);
            UNROLL
            for (int k = 0; k < radix; k++) {
                REAL *at = out + (j + (size_t)k * columns) * to_step;
                vec_store(at, v[k].re);
                vec_store(at + to_im, v[k].im);
            }
        }
    }
}

INLINE void pass(const struct lanes_row *to, const struct lanes_row *from,
                 const struct lanes_dft *dft_of, int i, size_t length, bool back)
{
    const REAL *factors = dft_of->factors[i];
    switch (dft_of->radix[i]) {
    case 2:
        pass_of(*to, *from, dft_of->n, length, factors, 2, back);
        break;
    case 3:
        pass_of(*to, *from, dft_of->n, length, factors, 3, back);
        break;
    case 4:
        pass_of(*to, *from, dft_of->n, length, factors, 4, back);
        break;
    case 5:
        pass_of(*to, *from, dft_of->n, length, factors, 5, back);
        break;
    default:
        pass_of(*to, *from, dft_of->n, length, factors, 8, back);
        break;
    }
}

INLINE struct lanes_row from_lane(const struct lanes_row *line, size_t first)
{
    return (struct lanes_row){(REAL *)line->re + first, line->im, line->stride};
}

void KERNEL(lanes_dft)(const struct lanes_row *to, const struct lanes_row *from,
                       const struct lanes_dft *dft_of)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const struct lanes_row source = from_lane(from, first), own = from_lane(to, first);
        size_t length = dft_of->n;
        for (int i = 0; i < dft_of->passes; length /= dft_of->radix[i++])
            pass(&own, i ? &own : &source, dft_of, i, length, false);
    }
}

void KERNEL(lanes_dft_inverse)(const struct lanes_row *to, const struct lanes_row *from,
                               const struct lanes_dft *dft_of)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const struct lanes_row own = from_lane(from, first), last = from_lane(to, first);
        size_t length = 1;
        for (int i = dft_of->passes - 1; i >= 0; i--) {
            length *= dft_of->radix[i];
            pass(i ? &own : &last, &own, dft_of, i, length, true);
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
