// SPDX-License-Identifier: MIT
// The passes of fft_kernels.h. `back` and `radix` are constants wherever they are used, so each
// combination becomes a straight loop.
#include "fft_kernels.h"
#include "fft_lanes.h"

enum { LEAF_BLOCKS = 4 * LANES / SPECTRUM_LANES, LEAVES_AHEAD = 4 };

// Real parts of complex numbers j .. j+LANES-1 of blocked data; the imaginary ones are
// SPECTRUM_LANES further on.
INLINE size_t position(size_t j)
{
    return j / SPECTRUM_LANES * (2 * SPECTRUM_LANES) + j % SPECTRUM_LANES;
}

INLINE struct cvec get(const REAL *data, size_t j)
{
    const REAL *at = data + position(j);
    return (struct cvec){keep_in_register(*(const vec *)at),
                         keep_in_register(*(const vec *)(at + SPECTRUM_LANES))};
}

INLINE void put(REAL *data, size_t j, struct cvec a)
{
    REAL *at = data + position(j);
    *(vec *)at = a.re;
    *(vec *)(at + SPECTRUM_LANES) = a.im;
}

// Multiplies v[1..] by a node's factors: of numbers without imaginary parts, on the way there.
INLINE void fft_apply_factors_real(struct cvec *v, int radix, const REAL *factors)
{
    UNROLL
    for (int p = 1; p < radix; p++)
        v[p] = (struct cvec){v[p].re * vec_broadcast(factors[2 * p - 2]),
                             v[p].re * vec_broadcast(factors[2 * p - 1])};
}

enum source { BLOCKED, COMPLEX, REAL_PAIRS, REAL_HALF };

// Complex numbers j .. j+LANES-1 of a node of `length` that lies in memory in one of these ways.
INLINE struct cvec get_from(const REAL *x, size_t j, size_t length, enum source source)
{
    if (source == BLOCKED) return get(x, j);
    if (source == REAL_PAIRS) return (struct cvec){vec_load(x + j), -vec_load(x + length + j)};
    if (source == REAL_HALF) return (struct cvec){vec_load(x + j), (vec){0}};
    const vec a = vec_load(x + 2 * j), b = vec_load(x + 2 * j + LANES);
    return (struct cvec){__builtin_shufflevector(a, b, EVEN), __builtin_shufflevector(a, b, ODD)};
}

INLINE void put_to(REAL *x, size_t j, size_t length, struct cvec a, enum source source, bool upper)
{
    if (source == BLOCKED) {
        put(x, j, a);
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

// Columns of one node: y and x are the same when blocked.
INLINE void split(REAL *y, const REAL *x, struct fft_node node, int radix, const REAL *factors,
                  enum source source)
{
    const size_t part = node.length / (size_t)radix;
    for (size_t j = node.first; j < node.end; j += LANES) {
        struct cvec v[8];
        UNROLL
        for (int p = 0; p < radix; p++)
            v[p] = get_from(x, (size_t)p * part + j, node.length, source);
        if (source == REAL_HALF) fft_apply_factors_real(v, radix, factors);
        else butterfly_apply_factors(v, radix, factors, false);
        dft(v, radix, false);
        UNROLL
        for (int q = 0; q < radix; q++) put(y, (size_t)q * part + j, v[q]);
    }
}

INLINE void merge(REAL *y, const REAL *x, struct fft_node node, int radix, const REAL *factors,
                  enum source source, bool upper)
{
    const size_t part = node.length / (size_t)radix;
    for (size_t j = node.first; j < node.end; j += LANES) {
        struct cvec v[8];
        UNROLL
        for (int q = 0; q < radix; q++) v[q] = get(x, (size_t)q * part + j);
        dft(v, radix, true);
        butterfly_apply_factors(v, radix, factors, true);
        UNROLL
        for (int p = source == COMPLEX && upper ? radix / 2 : 0; p < radix; p++)
            put_to(y, (size_t)p * part + j, node.length, v[p], source, upper);
    }
}

// Which way a pass goes, and how much of it.
enum way { SPLIT, MERGE, MERGE_UPPER };

INLINE void split_or_merge(REAL *y, const REAL *x, struct fft_node node, int radix,
                           const REAL *factors, enum source source, enum way way)
{
    if (way == SPLIT) split(y, x, node, radix, factors, source);
    else merge(y, x, node, radix, factors, source, way == MERGE_UPPER);
}

// Makes the radix a constant.
INLINE void run_pass(REAL *y, const REAL *x, struct fft_node node, int radix, const REAL *factors,
                     enum source source, enum way way)
{
    switch (radix) {
    case 1:
        split_or_merge(y, x, node, 1, factors, source, way);
        break;
    case 2:
        split_or_merge(y, x, node, 2, factors, source, way);
        break;
    case 3:
        split_or_merge(y, x, node, 3, factors, source, way);
        break;
    case 4:
        split_or_merge(y, x, node, 4, factors, source, way);
        break;
    case 5:
        split_or_merge(y, x, node, 5, factors, source, way);
        break;
    default:
        split_or_merge(y, x, node, 8, factors, source, way);
        break;
    }
}

static void fft_read_real(void *data, const void *x, struct fft_node node, int radix,
                          const void *factors)
{
    run_pass(data, x, node, radix, factors, REAL_PAIRS, SPLIT);
}

static void fft_read_half(void *data, const void *x, struct fft_node node, int radix,
                          const void *factors)
{
    run_pass(data, x, node, radix, factors, REAL_HALF, SPLIT);
}

static void fft_read_complex(void *data, const void *x, struct fft_node node, int radix,
                             const void *factors)
{
    run_pass(data, x, node, radix, factors, COMPLEX, SPLIT);
}

static void fft_write_real(void *x, const void *data, struct fft_node node, int radix,
                           const void *factors, bool upper)
{
    if (upper) run_pass(x, data, node, radix, factors, REAL_PAIRS, MERGE_UPPER);
    else run_pass(x, data, node, radix, factors, REAL_PAIRS, MERGE);
}

static void fft_write_half(void *x, const void *data, struct fft_node node, int radix,
                           const void *factors)
{
    run_pass(x, data, node, radix, factors, REAL_HALF, MERGE);
}

static void fft_write_complex(void *x, const void *data, struct fft_node node, int radix,
                              const void *factors, bool upper)
{
    if (upper) run_pass(x, data, node, radix, factors, COMPLEX, MERGE_UPPER);
    else run_pass(x, data, node, radix, factors, COMPLEX, MERGE);
}

static void fft_pass(void *data, struct fft_node node, size_t nodes, int radix, const void *factors)
{
    REAL *at = data;
    const REAL *w = factors;
    for (size_t i = 0; i < nodes; i++, at += 2 * node.length, w += 2 * (radix - 1))
        run_pass(at, at, node, radix, w, BLOCKED, SPLIT);
}

static void fft_pass_inverse(void *data, struct fft_node node, size_t nodes, int radix,
                             const void *factors)
{
    REAL *at = data;
    const REAL *w = factors;
    for (size_t i = 0; i < nodes; i++, at += 2 * node.length, w += 2 * (radix - 1))
        run_pass(at, at, node, radix, w, BLOCKED, MERGE);
}

// Of every leaf: the twist of its vector q. `common` holds for all of them, or is NULL.
INLINE struct cvec twist_of(const REAL *twists, size_t q, const struct cvec *common)
{
    const struct cvec own = {vec_load(twists + 2 * q * LANES),
                             vec_load(twists + (2 * q + 1) * LANES)};
    return common ? cvec_mul(own, common->re, common->im) : own;
}

// Blocks of the results, `stride` reals apart.
INLINE void put_apart(REAL *to, size_t stride, size_t j, struct cvec a)
{
    REAL *at = to + j / SPECTRUM_LANES * stride + j % SPECTRUM_LANES;
    *(vec *)at = a.re;
    *(vec *)(at + SPECTRUM_LANES) = a.im;
}

// Results that lie far apart are in no cache: the lines of those to come are fetched.
INLINE void fetch_results(const REAL *to, size_t stride)
{
    for (size_t block = 0; block < LEAF_BLOCKS; block++) {
        const uintptr_t later =
            (uintptr_t)(to) + (LEAVES_AHEAD * LEAF_BLOCKS + block) * stride * sizeof *to;
        __builtin_prefetch((const void *)later, 1);
        __builtin_prefetch((const void *)(later + SPECTRUM_LANES_BYTES), 1);
    }
}

INLINE void split_leaves(REAL *to, size_t stride, const REAL *data, size_t leaves,
                         const REAL *factors, const REAL *twists, const struct cvec *common)
{
    for (size_t i = 0; i < leaves;
         i++, to += LEAF_BLOCKS * stride, data += 8 * LANES, factors += 6, twists += 8 * LANES) {
        if (to != data) fetch_results(to, stride);
        struct cvec v[4];
        UNROLL
        for (size_t p = 0; p < 4; p++) v[p] = get(data, p * LANES);
        butterfly_apply_factors(v, 4, factors, false);
        butterfly4(v, false);
        UNROLL
        for (size_t q = 0; q < 4; q++) {
            const struct cvec w = twist_of(twists, q, common);
            v[q] = cvec_mul(v[q], w.re, w.im);
        }
        lanes_forward(&v[0], &v[1]);
        lanes_forward(&v[2], &v[3]);
        UNROLL
        for (size_t q = 0; q < 4; q++) put_apart(to, stride, q * LANES, v[q]);
    }
}

INLINE void merge_leaves(REAL *data, size_t leaves, const REAL *factors, const REAL *twists,
                         const struct cvec *common)
{
    for (size_t i = 0; i < leaves; i++, data += 8 * LANES, factors += 6, twists += 8 * LANES) {
        struct cvec v[4];
        UNROLL
        for (size_t q = 0; q < 4; q++) v[q] = get(data, q * LANES);
        lanes_inverse(&v[0], &v[1]);
        lanes_inverse(&v[2], &v[3]);
        UNROLL
        for (size_t q = 0; q < 4; q++) {
            const struct cvec w = twist_of(twists, q, common);
            v[q] = cvec_mul(v[q], w.re, -w.im);
        }
        butterfly4(v, true);
        butterfly_apply_factors(v, 4, factors, true);
        UNROLL
        for (size_t p = 0; p < 4; p++) put(data, p * LANES, v[p]);
    }
}

static void fft_leaves(void *to, size_t stride, const void *data, size_t leaves,
                       const void *factors, const void *twists, const void *common)
{
    if (common) {
        const struct cvec shared = {vec_load(common), vec_load((const REAL *)common + LANES)};
        split_leaves(to, stride / sizeof(REAL), data, leaves, factors, twists, &shared);
    } else {
        split_leaves(to, stride / sizeof(REAL), data, leaves, factors, twists, NULL);
    }
}

static void fft_leaves_inverse(void *data, size_t leaves, const void *factors, const void *twists,
                               const void *common)
{
    if (common) {
        const struct cvec shared = {vec_load(common), vec_load((const REAL *)common + LANES)};
        merge_leaves(data, leaves, factors, twists, &shared);
    } else {
        merge_leaves(data, leaves, factors, twists, NULL);
    }
}

const struct fft_kernels KERNEL(fft) = {
    .lanes = LANES,
    .read_real = fft_read_real,
    .read_half = fft_read_half,
    .read_complex = fft_read_complex,
    .pass = fft_pass,
    .pass_inverse = fft_pass_inverse,
    .leaves = fft_leaves,
    .leaves_inverse = fft_leaves_inverse,
    .write_real = fft_write_real,
    .write_half = fft_write_half,
    .write_complex = fft_write_complex,
};
