// SPDX-License-Identifier: MIT
// The passes of fft_kernels.h. Radix, source and direction are constants wherever they are used, so
// each combination becomes a straight loop.
#include "fft_kernels.h"
#include "fft_lanes.h"

enum { LEAF_LINES = 4 * LANES / SPECTRUM_LANES, LEAVES_AHEAD = 4 };

// Where complex numbers j .. j+LANES-1 of a spectrum lie: j is a multiple of LANES, which the
// compiler cannot know.
INLINE size_t fft_position(size_t j)
{
    return (int)LANES == (int)SPECTRUM_LANES ? 2 * j : j + j / SPECTRUM_LANES * SPECTRUM_LANES;
}

INLINE struct cvec fft_load(const REAL *at)
{
    return (struct cvec){keep_in_register(*(const vec *)at),
                         keep_in_register(*(const vec *)(at + SPECTRUM_LANES))};
}

INLINE void fft_store(REAL *at, struct cvec a)
{
    *(vec *)at = a.re;
    *(vec *)(at + SPECTRUM_LANES) = a.im;
}

// Multiplies v[1..] by a node's factors: numbers without imaginary parts, forward.
INLINE void fft_apply_factors_real(struct cvec *v, int radix, const REAL *factors)
{
    UNROLL
    for (int p = 1; p < radix; p++)
        v[p] = (struct cvec){v[p].re * vec_broadcast(factors[2 * p - 2]),
                             v[p].re * vec_broadcast(factors[2 * p - 1])};
}

// The arrays that a pass reads or writes besides spectra.
enum source { COMPLEX = FFT_COMPLEX, REAL_PAIRS = FFT_REAL, REAL_HALF = FFT_REAL_HALF, SPECTRUM };

// Complex numbers j .. j+LANES-1 of a node of `length` that lies in memory in one of these formats.
INLINE struct cvec fft_load_from(const REAL *x, size_t j, size_t length, enum source source)
{
    if (source == SPECTRUM) return fft_load(x + fft_position(j));
    if (source == REAL_PAIRS) return (struct cvec){vec_load(x + j), -vec_load(x + length + j)};
    if (source == REAL_HALF) return (struct cvec){vec_load(x + j), (vec){0}};
    const vec a = vec_load(x + 2 * j), b = vec_load(x + 2 * j + LANES);
    return (struct cvec){__builtin_shufflevector(a, b, EVEN), __builtin_shufflevector(a, b, ODD)};
}

INLINE void fft_store_to(REAL *x, size_t j, size_t length, struct cvec a, enum source source,
                         bool upper)
{
    if (source == SPECTRUM) {
        fft_store(x + fft_position(j), a);
    } else if (source == REAL_PAIRS) {
        if (!upper) vec_store(x + j, a.re);
        vec_store(x + length + j, -a.im);
    } else if (source == REAL_HALF) {
        vec_store(x + j, a.re);
    } else {
        vec_store(x + 2 * j, __builtin_shufflevector(a.re, a.im, LOWER));
        vec_store(x + 2 * j + LANES, __builtin_shufflevector(a.re, a.im, UPPER));
    }
}

// Columns of one node, of which `radix` is a constant; y and x are the same for a spectrum.
INLINE void fft_split(REAL *y, const REAL *x, const struct fft_node *node, int radix,
                      enum source source)
{
    const size_t length = node->length, part = length / (size_t)radix, end = node->end;
    const REAL *factors = node->factors;
    for (size_t j = node->first; j < end; j += LANES) {
        struct cvec v[8];
        UNROLL
        for (int p = 0; p < radix; p++)
            v[p] = fft_load_from(x, (size_t)p * part + j, length, source);
        if (source == REAL_HALF) fft_apply_factors_real(v, radix, factors);
        else butterfly_apply_factors(v, radix, factors, false);
        butterfly(v, radix, false);
        UNROLL
        for (int q = 0; q < radix; q++) fft_store(y + fft_position((size_t)q * part + j), v[q]);
    }
}

INLINE void fft_merge(REAL *y, const REAL *x, const struct fft_node *node, int radix,
                      enum source source, bool upper)
{
    const size_t length = node->length, part = length / (size_t)radix, end = node->end;
    const REAL *factors = node->factors;
    for (size_t j = node->first; j < end; j += LANES) {
        struct cvec v[8];
        UNROLL
        for (int q = 0; q < radix; q++) v[q] = fft_load(x + fft_position((size_t)q * part + j));
        butterfly(v, radix, true);
        butterfly_apply_factors(v, radix, factors, true);
        UNROLL
        for (int p = source == COMPLEX && upper ? radix / 2 : 0; p < radix; p++)
            fft_store_to(y, (size_t)p * part + j, length, v[p], source, upper);
    }
}

enum direction { SPLIT, MERGE, MERGE_UPPER };

INLINE void fft_split_or_merge(REAL *y, const REAL *x, const struct fft_node *node, int radix,
                               enum source source, enum direction direction)
{
    if (direction == SPLIT) fft_split(y, x, node, radix, source);
    else fft_merge(y, x, node, radix, source, direction == MERGE_UPPER);
}

// Makes the radix a constant.
INLINE void fft_columns(REAL *y, const REAL *x, const struct fft_node *node, enum source source,
                        enum direction direction)
{
#define SPLIT_OR_MERGE(radix) fft_split_or_merge(y, x, node, radix, source, direction)
    WITH_CONSTANT6(node->radix, SPLIT_OR_MERGE, 1, 2, 3, 4, 5, 8)
}

static void fft_read(void *data, const void *x, const struct fft_node *node,
                     enum fft_samples samples)
{
    if (samples == FFT_COMPLEX) fft_columns(data, x, node, COMPLEX, SPLIT);
    else if (samples == FFT_REAL) fft_columns(data, x, node, REAL_PAIRS, SPLIT);
    else fft_columns(data, x, node, REAL_HALF, SPLIT);
}

static void fft_write(void *x, const void *data, const struct fft_node *node,
                      enum fft_samples samples, bool upper)
{
    if (samples == FFT_COMPLEX && upper) fft_columns(x, data, node, COMPLEX, MERGE_UPPER);
    else if (samples == FFT_COMPLEX) fft_columns(x, data, node, COMPLEX, MERGE);
    else if (samples == FFT_REAL && upper) fft_columns(x, data, node, REAL_PAIRS, MERGE_UPPER);
    else if (samples == FFT_REAL) fft_columns(x, data, node, REAL_PAIRS, MERGE);
    else fft_columns(x, data, node, REAL_HALF, MERGE);
}

INLINE void fft_nodes(REAL *data, const struct fft_node *node, size_t nodes,
                      enum direction direction)
{
    struct fft_node one = *node;
    const REAL *factors = node->factors;
    for (size_t i = 0; i < nodes; i++, data += 2 * node->length, factors += 2 * (node->radix - 1)) {
        one.factors = factors;
        fft_columns(data, data, &one, SPECTRUM, direction);
    }
}

static void fft_pass(void *data, const struct fft_node *node, size_t nodes, bool inverse)
{
    if (inverse) fft_nodes(data, node, nodes, MERGE);
    else fft_nodes(data, node, nodes, SPLIT);
}

// The twist of vector q of a leaf. grouped: times the factor that all leaves have in common.
INLINE struct cvec fft_twist(const REAL *twists, size_t q, struct cvec common, bool grouped)
{
    const struct cvec twist = {vec_load(twists + 2 * q * LANES),
                               vec_load(twists + (2 * q + 1) * LANES)};
    return grouped ? cvec_mul(twist, common.re, common.im) : twist;
}

INLINE struct cvec fft_common(const struct fft_leaves *leaves, bool grouped)
{
    const REAL *common = leaves->common;
    if (!grouped) return (struct cvec){{0}, {0}};
    return (struct cvec){vec_load(common), vec_load(common + LANES)};
}

// Results that lie far apart are in no cache: the lines of those to come are prefetched.
INLINE void fft_prefetch_results(const REAL *to, size_t stride)
{
    for (size_t line = 0; line < LEAF_LINES; line++) {
        const uintptr_t later =
            (uintptr_t)(to) + (LEAVES_AHEAD * LEAF_LINES + line) * stride * sizeof *to;
        __builtin_prefetch((const void *)later, 1);
        __builtin_prefetch((const void *)(later + SPECTRUM_LANES_BYTES), 1);
    }
}

INLINE void fft_split_leaves(REAL *to, size_t stride, const REAL *data,
                             const struct fft_leaves *leaves, bool grouped)
{
    const REAL *factors = leaves->factors, *twists = leaves->twists;
    const struct cvec common = fft_common(leaves, grouped);
    for (size_t i = 0; i < leaves->count;
         i++, to += LEAF_LINES * stride, data += 8 * LANES, factors += 6, twists += 8 * LANES) {
        if (to != data) fft_prefetch_results(to, stride);
        struct cvec v[4];
        UNROLL
        for (size_t p = 0; p < 4; p++) v[p] = fft_load(data + fft_position(p * LANES));
        butterfly_apply_factors(v, 4, factors, false);
        butterfly4(v, false);
        UNROLL
        for (size_t q = 0; q < 4; q++) {
            const struct cvec w = fft_twist(twists, q, common, grouped);
            v[q] = cvec_mul(v[q], w.re, w.im);
        }
        fft_lanes_forward(v);
        UNROLL
        for (size_t q = 0; q < 4; q++)
            fft_store(to + q * LANES / SPECTRUM_LANES * stride + q * LANES % SPECTRUM_LANES, v[q]);
    }
}

INLINE void fft_merge_leaves(REAL *data, const struct fft_leaves *leaves, bool grouped)
{
    const REAL *factors = leaves->factors, *twists = leaves->twists;
    const struct cvec common = fft_common(leaves, grouped);
    for (size_t i = 0; i < leaves->count;
         i++, data += 8 * LANES, factors += 6, twists += 8 * LANES) {
        struct cvec v[4];
        UNROLL
        for (size_t q = 0; q < 4; q++) v[q] = fft_load(data + fft_position(q * LANES));
        fft_lanes_inverse(v);
        UNROLL
        for (size_t q = 0; q < 4; q++) {
            const struct cvec w = fft_twist(twists, q, common, grouped);
            v[q] = cvec_mul(v[q], w.re, -w.im);
        }
        butterfly4(v, true);
        butterfly_apply_factors(v, 4, factors, true);
        UNROLL
        for (size_t p = 0; p < 4; p++) fft_store(data + fft_position(p * LANES), v[p]);
    }
}

static void fft_leaves(void *to, size_t stride, const void *data, const struct fft_leaves *leaves)
{
    if (leaves->common) fft_split_leaves(to, stride / sizeof(REAL), data, leaves, true);
    else fft_split_leaves(to, stride / sizeof(REAL), data, leaves, false);
}

static void fft_leaves_inverse(void *data, const struct fft_leaves *leaves)
{
    if (leaves->common) fft_merge_leaves(data, leaves, true);
    else fft_merge_leaves(data, leaves, false);
}

const struct fft_kernels KERNEL(fft) = {
    .lanes = LANES,
    .read = fft_read,
    .write = fft_write,
    .pass = fft_pass,
    .leaves = fft_leaves,
    .leaves_inverse = fft_leaves_inverse,
};
