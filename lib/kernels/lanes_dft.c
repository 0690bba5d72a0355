// SPDX-License-Identifier: MIT
// Transforms of planes or tiles side by side: the passes of fft_passes.c, but one transform in each
// lane, so that every element is an aligned pair of vectors, nothing is shuffled, and any length
// that the radices make up will do.
#include "fft_radix.h"

// A pass over all n elements in nodes of `length`, from a row to a row. Node 0 of every pass of a
// transform without a phase has factors that are all 1: it is `plain`.
struct lanes_pass {
    struct lanes_row to, from; // im and stride in reals
    size_t n, length;
    const REAL *factors;
    bool plain;
};

// The elements of a butterfly, their distances in reals, and their factors. Constants: multiply,
// the factors are not all 1; inverse, results are multiplied by conjugate factors.
struct lanes_node {
    REAL *to;
    const REAL *from, *factors;
    size_t to_step, from_step, to_im, from_im;
    bool multiply, inverse;
};

INLINE struct cvec lanes_take(const struct lanes_node *node, int k)
{
    const REAL *at = node->from + (size_t)k * node->from_step;
    const struct cvec v = {vec_load(at), vec_load(at + node->from_im)};
    if (node->inverse || !node->multiply || k == 0) return v;
    return cvec_apply_factor(v, k, node->factors, false);
}

INLINE void lanes_put(const struct lanes_node *node, int k, struct cvec v)
{
    REAL *at = node->to + (size_t)k * node->to_step;
    if (node->inverse && node->multiply && k > 0) v = cvec_apply_factor(v, k, node->factors, true);
    vec_store(at, v.re);
    vec_store(at + node->to_im, v.im);
}

// butterfly8, which reads the odd elements when the even ones are done and stores results as soon
// as they are there: compilers keep this order, in which 16 registers almost suffice.
INLINE void lanes_butterfly8(const struct lanes_node *node)
{
    struct cvec even[4], odd[4];
    UNROLL
    for (int k = 0; k < 4; k++) even[k] = lanes_take(node, 2 * k);
    butterfly4(even, node->inverse);
    UNROLL
    for (int k = 0; k < 4; k++) odd[k] = lanes_take(node, 2 * k + 1);
    butterfly4(odd, node->inverse);
    butterfly8_rotate(odd, node->inverse);
    UNROLL
    for (int k = 0; k < 4; k++) {
        lanes_put(node, k, cvec_add(even[k], odd[k]));
        lanes_put(node, k + 4, cvec_sub(even[k], odd[k]));
    }
}

INLINE void lanes_butterfly(const struct lanes_node *node, int radix)
{
    struct cvec v[MAX_RADIX];
    if (radix == 8) {
        lanes_butterfly8(node);
        return;
    }
    UNROLL
    for (int k = 0; k < radix; k++) v[k] = lanes_take(node, k);
    butterfly(v, radix, node->inverse);
    UNROLL
    for (int k = 0; k < radix; k++) lanes_put(node, k, v[k]);
}

// The node that begins with element j.
INLINE void lanes_columns(const struct lanes_pass *pass, size_t j, const REAL *factors,
                          bool multiply, int radix, bool inverse)
{
    const struct lanes_row from = pass->from, to = pass->to;
    const size_t columns = pass->length / (size_t)radix;
    struct lanes_node node = {.to = (REAL *)to.re + j * to.stride,
                              .from = (const REAL *)from.re + j * from.stride,
                              .factors = factors,
                              .to_step = columns * to.stride,
                              .from_step = columns * from.stride,
                              .to_im = to.im,
                              .from_im = from.im,
                              .multiply = multiply,
                              .inverse = inverse};
    NO_UNROLL
    for (size_t i = 0; i < columns; i++, node.to += to.stride, node.from += from.stride)
        lanes_butterfly(&node, radix);
}

INLINE void lanes_pass(const struct lanes_pass *pass, int radix, bool inverse)
{
    const size_t count = 2 * ((size_t)radix - 1), first = pass->plain ? 1 : 0;
    if (pass->plain) lanes_columns(pass, 0, NULL, false, radix, inverse);
    NO_UNROLL
    for (size_t node = first; node * pass->length < pass->n; node++)
        lanes_columns(pass, node * pass->length, pass->factors + node * count, true, radix,
                      inverse);
}

// Makes the radix a constant.
INLINE void lanes_run_pass(const struct lanes_pass *pass, int radix, bool inverse){
#define LANES_PASS(radix) lanes_pass(pass, radix, inverse)
    WITH_CONSTANT9(radix, LANES_PASS, 2, 3, 4, 5, 6, 7, 8, 10, 12)}

// The first passes of a transform, of rows with distances in reals.
INLINE void lanes_forward(struct lanes_row to, struct lanes_row from, const struct lanes_dft *dft,
                          int passes)
{
    struct lanes_pass pass = {
        .to = to, .from = from, .n = dft->n, .length = dft->n, .plain = !dft->factors[0]};
    for (int i = 0; i < passes; i++) {
        pass.factors = dft->factors[i];
        lanes_run_pass(&pass, dft->radix[i], false);
        pass.from = to;
        pass.length /= dft->radix[i];
    }
}

// Their inverse, last to first; length: of the nodes that they left.
INLINE void lanes_inverse(struct lanes_row to, struct lanes_row from, const struct lanes_dft *dft,
                          int passes, size_t length)
{
    struct lanes_pass pass = {
        .to = from, .from = from, .n = dft->n, .length = length, .plain = !dft->factors[0]};
    for (int i = passes - 1; i >= 0; i--) {
        pass.factors = dft->factors[i];
        pass.length *= dft->radix[i];
        if (i == 0) pass.to = to;
        lanes_run_pass(&pass, dft->radix[i], true);
    }
}

// Lanes first .. first+LANES-1 of a row.
INLINE struct lanes_row lanes_of(const struct lanes_row *row, size_t first)
{
    return (struct lanes_row){(REAL *)row->re + first, row->im * CONV_LANES,
                              row->stride * CONV_LANES};
}

void KERNEL(lanes_dft)(const struct lanes_row *to, const struct lanes_row *from,
                       const struct lanes_dft *dft)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES)
        lanes_forward(lanes_of(to, first), lanes_of(from, first), dft, dft->passes);
}

void KERNEL(lanes_dft_inverse)(const struct lanes_row *to, const struct lanes_row *from,
                               const struct lanes_dft *dft)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES)
        lanes_inverse(lanes_of(to, first), lanes_of(from, first), dft, dft->passes, 1);
}

// Transforms in place, one after the other; the distance of the imaginary part is a constant.
INLINE void lanes_tiles(void *z, const struct lanes_dft *dft, size_t stride, size_t count,
                        size_t distance, bool inverse)
{
    for (size_t i = 0; i < count; i++)
        for (size_t first = 0; first < CONV_LANES; first += LANES) {
            const struct lanes_row row = {(REAL *)z + i * distance * ELEMENT + first, CONV_LANES,
                                          stride * ELEMENT};
            if (inverse) lanes_inverse(row, row, dft, dft->passes, 1);
            else lanes_forward(row, row, dft, dft->passes);
        }
}

void KERNEL(tile_forward)(void *z, const struct lanes_dft *dft, size_t stride, size_t count,
                          size_t distance)
{
    lanes_tiles(z, dft, stride, count, distance, false);
}

void KERNEL(tile_inverse)(void *z, const struct lanes_dft *dft, size_t stride, size_t count,
                          size_t distance)
{
    lanes_tiles(z, dft, stride, count, distance, true);
}

// Elements as they lie one after the other, im after re.
INLINE struct lanes_row lanes_contiguous(const void *elements, size_t first)
{
    return (struct lanes_row){(REAL *)elements + first, CONV_LANES, 2 * CONV_LANES};
}

// The last pass of a transform, the product with h and the first pass of the inverse: each reads
// and writes the same elements, those of a node, which stay in registers.
INLINE void lanes_filter_node(struct lanes_row to, struct lanes_row from, struct lanes_row h,
                              const REAL *factors, bool multiply, int radix)
{
    const struct lanes_node source = {.from = from.re,
                                      .factors = factors,
                                      .from_step = from.stride,
                                      .from_im = from.im,
                                      .multiply = multiply};
    const struct lanes_node target = {.to = to.re,
                                      .factors = factors,
                                      .to_step = to.stride,
                                      .to_im = to.im,
                                      .multiply = multiply,
                                      .inverse = true};
    struct cvec v[MAX_RADIX];
    UNROLL
    for (int k = 0; k < radix; k++) v[k] = lanes_take(&source, k);
    butterfly(v, radix, false);
    UNROLL
    for (int k = 0; k < radix; k++) {
        const REAL *at = (const REAL *)h.re + (size_t)k * h.stride;
        v[k] = cvec_mul(v[k], vec_load(at), vec_load(at + h.im));
    }
    butterfly(v, radix, true);
    UNROLL
    for (int k = 0; k < radix; k++) lanes_put(&target, k, v[k]);
}

// All nodes of `work`, or the only one of x and y if there is one pass.
INLINE void lanes_filter_pass(const struct lanes_pass *pass, struct lanes_row work,
                              struct lanes_row h, int radix)
{
    const REAL *factors = pass->factors;
    if (pass->n == (size_t)radix) {
        if (factors) lanes_filter_node(pass->to, pass->from, h, factors, true, radix);
        else lanes_filter_node(pass->to, pass->from, h, NULL, false, radix);
        return;
    }
    NO_UNROLL
    for (size_t node = 0; node < pass->n; node += (size_t)radix, factors += 2 * (radix - 1)) {
        lanes_filter_node(work, work, h, factors, true, radix);
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
        const struct lanes_pass pass = {
            .to = to, .from = lanes_of(x, first), .n = dft->n, .factors = dft->factors[last]};
        lanes_forward(between, pass.from, dft, last);
#define LANES_FILTER_PASS(radix)                                                                   \
    lanes_filter_pass(&pass, between, lanes_contiguous(h, first), radix)
        WITH_CONSTANT9(dft->radix[last], LANES_FILTER_PASS, 2, 3, 4, 5, 6, 7, 8, 10, 12)
        lanes_inverse(to, between, dft, last, dft->radix[last]);
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
