// SPDX-License-Identifier: MIT
// Direct FIR filters, vectors along the outputs. A vector holds ROW taps' worth of shift (LANES
// reals, or half as many complex numbers). Write tap j = ROW*a + s: then the vector of x that
// starts s taps before output vector p serves tap (a, s) of output vector p + a. So one load,
// mostly unaligned, feeds up to DEPTH multiplications (all a of one s), and WIDTH output vectors
// stay in registers. Rows with one tap fewer run in a loop of their own: there are no zero taps,
// which would waste time and turn infinities into NaNs.
#include "vector.h"

enum {
    MAX_DEPTH = FIR_DEPTH, // multiplications fed by one load
    WIDTH = FIR_WIDTH,     // sums in registers: a power of two, see meson.build
    TILE = 4096,           // reals of y that stay in the L1 cache while the segments pass
};

// What is constant in one instance of the loops.
struct fir_kind {
    size_t step;  // reals from a sample to the next (2: interleaved complex)
    size_t parts; // reals in a tap (2: complex)
    size_t depth; // taps fed by one load
    size_t width; // output vectors
};
static const struct fir_kind real_signal = {1, 1, MAX_DEPTH, WIDTH};
static const struct fir_kind complex_signal = {2, 1, MAX_DEPTH, WIDTH};
static const struct fir_kind complex_taps = {2, 2, MAX_DEPTH / 2, WIDTH / 2};

// Taps, and samples for the first of them. From x[0] on, `readable` reals may be read: fewer than
// LANES only for the last, partial vector, with width 1.
struct fir_operands {
    const REAL *x, *h;
    size_t readable;
};

// Adds taps (a, s), a < depth, first <= s < last, to the output vectors; part c of vector p is
// sum[p*parts + c].
INLINE void fir_add_rows(vec *sum, struct fir_operands at, size_t first, size_t last, size_t depth,
                         struct fir_kind kind)
{
    const size_t row = LANES / kind.step, parts = kind.parts;
    NO_UNROLL
    for (size_t s = first; s < last; s++) {
        vec tap[MAX_DEPTH];
        UNROLL
        for (size_t k = 0; k < depth * parts; k++)
            tap[k] = vec_broadcast(at.h[(k / parts * row + s) * parts + k % parts]);
        UNROLL
        for (size_t q = 0; q < kind.width + depth - 1; q++) {
            const REAL *in = at.x - (s * kind.step + (depth - 1) * LANES) + q * LANES;
            const bool newest = q == depth - 1 && kind.width == 1;
            const size_t readable = newest ? at.readable + s * kind.step : LANES;
            const vec v =
                keep_in_register(readable < LANES ? vec_load_first(in, readable) : vec_load(in));
            UNROLL
            for (size_t k = 0; k < depth * parts; k++) {
                // Wraps, and so exceeds width, before the first output.
                const size_t p = q + k / parts + 1 - depth, part = p * parts + k % parts;
                if (p >= kind.width) continue;
                sum[part] = keep_in_own_register(vec_multiply_add(tap[k], v, sum[part]), v);
            }
        }
    }
}

// The last taps of a segment if they fill full rows and some more.
INLINE void fir_add_last(vec *sum, struct fir_operands at, size_t taps, size_t full,
                         struct fir_kind kind)
{
    const size_t row = LANES / kind.step;
    if (full >= kind.depth || taps / row != full) return;
    fir_add_rows(sum, at, 0, taps % row, full + 1, kind);
    if (full) fir_add_rows(sum, at, taps % row, row, full, kind);
}

// All taps of a segment. The order of the sum is the same for every width.
INLINE void fir_add_taps(vec *sum, struct fir_operands at, size_t taps, struct fir_kind kind)
{
    const size_t row = LANES / kind.step, chunk = kind.depth * row;
    for (; taps >= chunk; taps -= chunk, at.h += chunk * kind.parts) {
        fir_add_rows(sum, at, 0, row, kind.depth, kind);
        at.x -= kind.depth * LANES;
        at.readable = LANES;
    }
    fir_add_last(sum, at, taps, 0, kind);
    fir_add_last(sum, at, taps, 1, kind);
    fir_add_last(sum, at, taps, 2, kind);
    fir_add_last(sum, at, taps, 3, kind);
}

// (a + ib) x for interleaved x, from the sums a x and b x.
INLINE vec fir_combine(vec a, vec b)
{
    static const REAL sign[] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    return a + vec_load(sign) * __builtin_shufflevector(b, b, SWAPPED);
}

INLINE void fir_filter(vec *ret, struct fir_operands at, size_t taps, struct fir_kind kind)
{
    vec sum[WIDTH];
    UNROLL
    for (size_t p = 0; p < kind.width * kind.parts; p++) sum[p] = (vec){0};
    fir_add_taps(sum, at, taps, kind);
    UNROLL
    for (size_t p = 0; p < kind.width; p++)
        ret[p] = kind.parts == 2 ? fir_combine(sum[2 * p], sum[2 * p + 1]) : sum[p];
}

// A segment of taps over n reals of y.
struct fir_segment {
    REAL *y;
    const REAL *x, *h;
    size_t n, taps;
};

// As many groups of width vectors as fit from output i on; returns the first output left.
INLINE size_t fir_groups(const struct fir_segment *segment, size_t i, size_t width,
                         struct fir_kind kind)
{
    kind.width = width;
    for (; width && segment->n - i >= width * LANES; i += width * LANES) {
        const struct fir_operands at = {segment->x + i, segment->h, LANES};
        REAL *y = segment->y + i;
        vec sum[WIDTH];
        fir_filter(sum, at, segment->taps, kind);
        UNROLL
        for (size_t p = 0; p < width; p++)
            vec_store(y + p * LANES, vec_load(y + p * LANES) + sum[p]);
    }
    return i;
}

// The last reals, fewer than LANES, from i on.
INLINE void fir_partial_vector(const struct fir_segment *segment, size_t i, struct fir_kind kind)
{
    const struct fir_operands at = {segment->x + i, segment->h, segment->n - i};
    REAL out[LANES], *y = segment->y + i;
    vec sum;
    kind.width = 1;
    fir_filter(&sum, at, segment->taps, kind);
    vec_store(out, sum);
    for (size_t k = 0; k < at.readable; k++) y[k] += out[k];
}

INLINE void fir_run_segment(const struct fir_segment *segment, struct fir_kind kind)
{
    size_t i = fir_groups(segment, 0, kind.width, kind);
    i = fir_groups(segment, i, kind.width / 2, kind);
    i = fir_groups(segment, i, kind.width / 4, kind);
    i = fir_groups(segment, i, kind.width / 8, kind);
    i = fir_groups(segment, i, kind.width / 16, kind);
    if (i < segment->n) fir_partial_vector(segment, i, kind);
}

// n counts reals. Inlined once for each kind.
INLINE void fir_run(REAL *y, const REAL *x, const REAL *h, size_t n, size_t taps,
                    struct fir_kind kind)
{
    for (size_t i = 0; i < n; i += TILE)
        for (size_t j = 0; j < taps; j += FIR_SEGMENT) {
            const struct fir_segment segment = {.y = y + i,
                                                .x = x + i - j * kind.step,
                                                .h = h + j * kind.parts,
                                                .n = n - i < TILE ? n - i : TILE,
                                                .taps = taps - j < FIR_SEGMENT ? taps - j
                                                                               : FIR_SEGMENT};
            fir_run_segment(&segment, kind);
        }
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
    if (step == 1) fir_run(y, x, h, n, taps, real_signal);
    else fir_run(y, x, h, n, taps, complex_signal);
}

void KERNEL(fir_complex)(void *y, const void *x, const void *h, size_t n, size_t taps)
{
    fir_run(y, x, h, 2 * n, taps, complex_taps);
}
