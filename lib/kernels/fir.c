// SPDX-License-Identifier: MIT
// Direct FIR filters, vectors along the outputs. A vector holds ROW taps' worth of shift (LANES
// reals, or half as many complex numbers). Write tap j = ROW*a + s: then the vector of x that
// starts s taps before output vector p serves tap (a, s) of output vector p + a. So one load,
// mostly unaligned, feeds up to DEPTH multiplications (all a of one s), and WIDTH output vectors
// stay in registers. Rows with one tap fewer run in a loop of their own: there are no zero taps,
// which would waste time and turn infinities into NaNs.
#include "vector.h"

enum {
    MAX_DEPTH = 4,     // multiplications fed by one load
    WIDTH = FIR_WIDTH, // sums in registers
    TILE = 4096,       // reals of y that stay in the L1 cache while the segments pass
};

// What is constant in one instance of the loops: reals from a sample to the next (2: interleaved
// complex), reals in a tap (2: complex), taps fed by one load.
struct kind {
    size_t step, parts, depth;
};
static const struct kind real_signal = {.step = 1, .parts = 1, .depth = MAX_DEPTH};
static const struct kind complex_signal = {.step = 2, .parts = 1, .depth = MAX_DEPTH};
static const struct kind complex_taps = {.step = 2, .parts = 2, .depth = MAX_DEPTH / 2};

// Adds taps (a, s), a < depth, first <= s < last, to width output vectors; part c of vector p is
// sum[p*parts + c]. From x[0] on, `newest` reals may be read: fewer than LANES only for the last,
// partial vector, with width 1.
INLINE void add_rows(vec *sum, const REAL *x, size_t newest, const REAL *h, size_t first,
                     size_t last, size_t width, size_t depth, const struct kind *kind)
{
    const size_t row = LANES / kind->step, parts = kind->parts;
    NO_UNROLL
    for (size_t s = first; s < last; s++) {
        vec tap[MAX_DEPTH];
        UNROLL
        for (size_t k = 0; k < depth * parts; k++)
            tap[k] = vec_broadcast(h[(k / parts * row + s) * parts + k % parts]);
        UNROLL
        for (size_t q = 0; q < width + depth - 1; q++) {
            const REAL *in = x - (s * kind->step + (depth - 1) * LANES) + q * LANES;
            const size_t readable = q == depth - 1 && width == 1 ? newest + s * kind->step : LANES;
            const vec v =
                keep_in_register(readable < LANES ? vec_load_first(in, readable) : vec_load(in));
            UNROLL
            for (size_t k = 0; k < depth * parts; k++) {
                const size_t p = q + k / parts + 1 -
                                 depth; // wraps, and so exceeds width, before the first output
                const size_t part = p * parts + k % parts;
                if (p < width) sum[part] = vec_multiply_add(tap[k], v, sum[part]);
            }
        }
    }
}

// The last taps of a segment if they fill full rows and some more.
INLINE void add_last(vec *sum, const REAL *x, size_t newest, const REAL *h, size_t taps,
                     size_t full, size_t width, const struct kind *kind)
{
    const size_t row = LANES / kind->step;
    if (full >= kind->depth || taps / row != full) return;
    add_rows(sum, x, newest, h, 0, taps % row, width, full + 1, kind);
    if (full) add_rows(sum, x, newest, h, taps % row, row, width, full, kind);
}

// All taps of a segment for width output vectors. The order of the sum is the same for every width.
INLINE void add_taps(vec *sum, const REAL *x, size_t newest, const REAL *h, size_t taps,
                     size_t width, const struct kind *kind)
{
    const size_t row = LANES / kind->step, chunk = kind->depth * row;
    for (; taps >= chunk; taps -= chunk, h += chunk * kind->parts) {
        add_rows(sum, x, newest, h, 0, row, width, kind->depth, kind);
        x -= kind->depth * LANES;
        newest = LANES;
    }
    add_last(sum, x, newest, h, taps, 0, width, kind);
    add_last(sum, x, newest, h, taps, 1, width, kind);
    add_last(sum, x, newest, h, taps, 2, width, kind);
    add_last(sum, x, newest, h, taps, 3, width, kind);
}

// (a + ib) x for interleaved x, from the sums a x and b x.
INLINE vec combine(vec a, vec b)
{
    static const REAL sign[] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    return a + vec_load(sign) * __builtin_shufflevector(b, b, SWAPPED);
}

INLINE void filter(vec *ret, const REAL *x, size_t newest, const REAL *h, size_t taps, size_t width,
                   const struct kind *kind)
{
    vec sum[WIDTH];
    UNROLL
    for (size_t p = 0; p < width * kind->parts; p++) sum[p] = (vec){0};
    add_taps(sum, x, newest, h, taps, width, kind);
    UNROLL
    for (size_t p = 0; p < width; p++)
        ret[p] = kind->parts == 2 ? combine(sum[2 * p], sum[2 * p + 1]) : sum[p];
}

INLINE void whole_vectors(REAL *y, const REAL *x, const REAL *h, size_t taps, size_t width,
                          const struct kind *kind)
{
    vec sum[WIDTH];
    filter(sum, x, LANES, h, taps, width, kind);
    UNROLL
    for (size_t p = 0; p < width; p++) vec_store(y + p * LANES, vec_load(y + p * LANES) + sum[p]);
}

// The last n < LANES reals.
INLINE void part_of_vector(REAL *y, const REAL *x, const REAL *h, size_t n, size_t taps,
                           const struct kind *kind)
{
    REAL out[LANES];
    vec sum;
    filter(&sum, x, n, h, taps, 1, kind);
    vec_store(out, sum);
    for (size_t i = 0; i < n; i++) y[i] += out[i];
}

// As many groups of width vectors as fit from output i on; returns the first output left.
INLINE size_t groups(REAL *y, const REAL *x, const REAL *h, size_t i, size_t n, size_t taps,
                     size_t width, const struct kind *kind)
{
    for (; width && n - i >= width * LANES; i += width * LANES)
        whole_vectors(y + i, x + i, h, taps, width, kind);
    return i;
}

INLINE void segment(REAL *y, const REAL *x, const REAL *h, size_t n, size_t taps,
                    const struct kind *kind)
{
    const size_t width = WIDTH / kind->parts;
    size_t i = groups(y, x, h, 0, n, taps, width, kind);
    i = groups(y, x, h, i, n, taps, width / 2, kind);
    i = groups(y, x, h, i, n, taps, width / 4, kind);
    i = groups(y, x, h, i, n, taps, width / 8, kind);
    i = groups(y, x, h, i, n, taps, width / 16, kind);
    if (i < n) part_of_vector(y + i, x + i, h, n - i, taps, kind);
}

// n counts reals. Inlined once for each kind.
INLINE void fir(REAL *y, const REAL *x, const REAL *h, size_t n, size_t taps,
                const struct kind *kind)
{
    for (size_t i = 0; i < n; i += TILE)
        for (size_t j = 0; j < taps; j += FIR_SEGMENT)
            segment(y + i, x + i - j * kind->step, h + j * kind->parts, n - i < TILE ? n - i : TILE,
                    taps - j < FIR_SEGMENT ? taps - j : FIR_SEGMENT, kind);
}

// Filters too short to use most loads twice run up to half as fast again in vectors half as wide
// (FIR_SHORT names that instruction set): fewer of the loads cross a cache line. Measured on Zen 4,
// from 6 taps to one and a half rows.
#ifdef FIR_SHORT
fir_fn KERNEL_EXPAND(fir, TYPE, FIR_SHORT);
#endif

void KERNEL(fir)(void *y, const void *x, const void *h, size_t n, size_t taps, size_t step)
{
#ifdef FIR_SHORT
    if (2 * taps * step < 3 * LANES) {
        KERNEL_EXPAND(fir, TYPE, FIR_SHORT)(y, x, h, n, taps, step);
        return;
    }
#endif
    if (step == 1) fir(y, x, h, n, taps, &real_signal);
    else fir(y, x, h, n, taps, &complex_signal);
}

void KERNEL(fir_complex)(void *y, const void *x, const void *h, size_t n, size_t taps)
{
    fir(y, x, h, 2 * n, taps, &complex_taps);
}
