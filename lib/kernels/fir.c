// SPDX-License-Identifier: MIT
// Direct FIR filters, vectors along the outputs. A vector holds ROW taps' worth of shift (LANES
// reals, or half as many complex numbers). Write tap j = ROW*a + s: then the vector of x that
// starts s taps before output vector p serves tap (a, s) of output vector p + a. So one load,
// mostly unaligned, feeds up to DEPTH multiplications (all a of one s), and WIDTH output vectors
// stay in registers. Rows with one tap fewer run in a loop of their own: there are no zero taps,
// which would waste time and turn infinities into NaNs. Few output vectors would wait for their
// sums, one multiply-add after the other: then several segments are summed at once.
#include "vector.h"

enum {
    MAX_DEPTH = 4,     // multiplications fed by one load; of complex taps half
    WIDTH = FIR_WIDTH, // sums in registers: a power of two, see meson.build
    BUSY = 8, // sums for which no multiply-add waits: two a cycle, each of which takes four cycles
    TAPS = 8 * FIR_SEGMENT, // that pass over a group of output vectors before the next group
    TILE = 4096,            // reals of y that stay in the L1 cache while all taps pass
};

// Constants of one instance of the loops.
struct fir_kind {
    size_t step;     // reals from a sample to the next (2: interleaved complex)
    size_t parts;    // reals in a tap (2: complex)
    size_t depth;    // taps fed by one load
    size_t width;    // output vectors
    size_t segments; // summed at once
};
static const struct fir_kind real_signal = {1, 1, MAX_DEPTH, WIDTH, 1};
static const struct fir_kind complex_signal = {2, 1, MAX_DEPTH, WIDTH, 1};
static const struct fir_kind complex_taps = {2, 2, MAX_DEPTH / 2, WIDTH / 2, 1};

// Taps, and samples for the first of them. From x[0] on, `readable` reals may be read: fewer than
// LANES only for the last, partial vector, with width 1.
struct fir_operands {
    const REAL *x, *h;
    size_t readable;
};

// Adds taps (a, s), a < depth, of a segment to the output vectors; part c of vector p is
// sum[p*parts + c].
INLINE void fir_add_row(vec *sum, struct fir_operands at, size_t s, size_t depth,
                        struct fir_kind kind)
{
    const size_t row = LANES / kind.step, parts = kind.parts;
    vec tap[MAX_DEPTH];
    UNROLL
    for (size_t k = 0; k < depth * parts; k++)
        tap[k] = vec_broadcast(at.h[(k / parts * row + s) * parts + k % parts]);
    UNROLL
    for (size_t q = 0; q < kind.width + depth - 1; q++) {
        const REAL *in = at.x - (s * kind.step + (depth - 1) * LANES) + q * LANES;
        const bool newest = q == depth - 1 && kind.width == 1;
        const size_t readable = newest ? at.readable + s * kind.step : LANES;
        const vec v = keep_in_register(vec_load_up_to(in, readable));
        UNROLL
        for (size_t k = 0; k < depth * parts; k++) {
            // Wraps, and so exceeds width, before the first output.
            const size_t p = q + k / parts + 1 - depth, part = p * parts + k % parts;
            if (p >= kind.width) continue;
            sum[part] = keep_in_own_register(vec_multiply_add(tap[k], v, sum[part]), v);
        }
    }
}

// The operands `taps` taps later.
INLINE struct fir_operands fir_after(struct fir_operands at, size_t taps, struct fir_kind kind)
{
    if (taps == 0) return at;
    return (struct fir_operands){at.x - taps * kind.step, at.h + taps * kind.parts, LANES};
}

// Adds taps (a, s), a < depth, first <= s < last, of each segment to its output vectors.
INLINE void fir_add_rows(vec *sum, struct fir_operands at, size_t first, size_t last, size_t depth,
                         struct fir_kind kind)
{
    const size_t sums = kind.width * kind.parts;
    NO_UNROLL
    for (size_t s = first; s < last; s++) {
        UNROLL
        for (size_t k = 0; k < kind.segments; k++)
            fir_add_row(sum + k * sums, fir_after(at, k * FIR_SEGMENT, kind), s, depth, kind);
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

// The sums of so many taps of each segment: vector p of segment k is ret[k*width + p].
INLINE void fir_filter(vec *ret, struct fir_operands at, size_t taps, struct fir_kind kind)
{
    vec sum[WIDTH];
    const size_t n = kind.width * kind.segments;
    UNROLL
    for (size_t p = 0; p < n * kind.parts; p++) sum[p] = (vec){0};
    fir_add_taps(sum, at, taps, kind);
    UNROLL
    for (size_t p = 0; p < n; p++)
        ret[p] = kind.parts == 2 ? fir_combine(sum[2 * p], sum[2 * p + 1]) : sum[p];
}

// Taps over n reals of y.
struct fir_pass {
    REAL *y;
    const REAL *x, *h;
    size_t n, taps;
};

// Adds so many taps of each segment to the vectors at y.
INLINE void fir_add_segments(REAL *y, struct fir_operands at, size_t taps, struct fir_kind kind)
{
    vec sum[WIDTH];
    fir_filter(sum, at, taps, kind);
    UNROLL
    for (size_t p = 0; p < kind.width; p++) {
        vec out = vec_load(y + p * LANES);
        UNROLL
        for (size_t k = 0; k < kind.segments; k++) out += sum[k * kind.width + p];
        vec_store(y + p * LANES, out);
    }
}

// Adds whole segments from tap j on, so many at once, as long as that many are left; returns the
// first tap left.
INLINE size_t fir_whole_segments(REAL *y, const struct fir_pass *pass, struct fir_operands at,
                                 size_t j, struct fir_kind kind)
{
    const size_t unrolled = kind.segments * FIR_SEGMENT;
    if (kind.segments * kind.width * kind.parts > BUSY) return j; // fewer are enough
    for (; pass->taps - j >= unrolled; j += unrolled)
        fir_add_segments(y, fir_after(at, j, kind), FIR_SEGMENT, kind);
    return j;
}

// Adds all taps to the vectors at y.
INLINE void fir_add_pass(REAL *y, const struct fir_pass *pass, struct fir_operands at,
                         struct fir_kind kind)
{
    size_t j = 0;
    kind.segments = 4;
    j = fir_whole_segments(y, pass, at, j, kind);
    kind.segments = 2;
    j = fir_whole_segments(y, pass, at, j, kind);
    kind.segments = 1;
    for (; j < pass->taps; j += FIR_SEGMENT) {
        const size_t left = pass->taps - j;
        fir_add_segments(y, fir_after(at, j, kind), left < FIR_SEGMENT ? left : FIR_SEGMENT, kind);
    }
}

// As many groups of width vectors as fit from output i on; returns the first output left.
INLINE size_t fir_groups(const struct fir_pass *pass, size_t i, size_t width, struct fir_kind kind)
{
    kind.width = width;
    for (; width && pass->n - i >= width * LANES; i += width * LANES)
        fir_add_pass(pass->y + i, pass, (struct fir_operands){pass->x + i, pass->h, LANES}, kind);
    return i;
}

// The last reals, fewer than LANES, from i on.
INLINE void fir_partial_vector(const struct fir_pass *pass, size_t i, struct fir_kind kind)
{
    const size_t left = pass->n - i;
    REAL out[LANES];
    kind.width = 1;
    vec_store(out, vec_load_first(pass->y + i, left));
    fir_add_pass(out, pass, (struct fir_operands){pass->x + i, pass->h, left}, kind);
    vec_store_first(pass->y + i, vec_load(out), left);
}

INLINE void fir_run_pass(const struct fir_pass *pass, struct fir_kind kind)
{
    size_t i = fir_groups(pass, 0, kind.width, kind);
    i = fir_groups(pass, i, kind.width / 2, kind);
    i = fir_groups(pass, i, kind.width / 4, kind);
    i = fir_groups(pass, i, kind.width / 8, kind);
    i = fir_groups(pass, i, kind.width / 16, kind);
    if (i < pass->n) fir_partial_vector(pass, i, kind);
}

// n counts reals. Inlined once for each type.
INLINE void fir_run(REAL *y, const REAL *x, const REAL *h, size_t n, size_t taps,
                    struct fir_kind kind)
{
    for (size_t i = 0; i < n; i += TILE)
        for (size_t j = 0; j < taps; j += TAPS) {
            const struct fir_pass pass = {.y = y + i,
                                          .x = x + i - j * kind.step,
                                          .h = h + j * kind.parts,
                                          .n = n - i < TILE ? n - i : TILE,
                                          .taps = taps - j < TAPS ? taps - j : TAPS};
            fir_run_pass(&pass, kind);
        }
}

// Filters too short to use most loads twice run up to half as fast again in vectors half as wide
// (FIR_SHORT names that instruction set): fewer of the loads cross a cache line. Measured on Zen 4,
// from 6 taps to one and a half rows.
#ifdef FIR_SHORT
fir_fn KERNEL_EXPAND(fir, TYPE, FIR_SHORT);
#endif

void KERNEL(fir)(void *y, const void *x, const void *h, size_t n, size_t taps, enum fir_type type)
{
#ifdef FIR_SHORT
    if (type != FIR_COMPLEX && 2 * taps * (type == FIR_REAL ? 1 : 2) < 3 * LANES) {
        KERNEL_EXPAND(fir, TYPE, FIR_SHORT)(y, x, h, n, taps, type);
        return;
    }
#endif
    if (type == FIR_REAL) fir_run(y, x, h, n, taps, real_signal);
    else if (type == FIR_REAL_TAPS) fir_run(y, x, h, 2 * n, taps, complex_signal);
    else fir_run(y, x, h, 2 * n, taps, complex_taps);
}
