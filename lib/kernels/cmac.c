// SPDX-License-Identifier: MIT
// Products of spectra in blocks of real and imaginary lanes, summed over terms in registers. The
// four products of a complex multiplication have a sum each, so that no addition waits for another
// of the same term, and the order of operations is the same for every bin.
#include "vector.h"

enum {
    VECTORS = SPECTRUM_LANES_BYTES / VECTOR_BYTES, // of a block's real or imaginary lanes
    GROUP = CMAC_GROUP,                            // vectors at a time, of all sums together
    BLOCK = 2 * SPECTRUM_LANES,                    // reals
};

// Vector v of a spectrum whose blocks are `stride` reals apart: its real lanes; the imaginary ones
// are SPECTRUM_LANES further on.
INLINE size_t position(size_t v, size_t stride)
{
    return v / VECTORS * stride + v % VECTORS * LANES;
}

// The four sums of each vector.
struct sums {
    vec rr[GROUP], ii[GROUP], ri[GROUP], ir[GROUP];
};

INLINE vec real_lanes(const REAL *x)
{
    return keep_in_register(*(const vec *)x);
}

INLINE vec imaginary_lanes(const REAL *x)
{
    return keep_in_register(*(const vec *)(x + SPECTRUM_LANES));
}

// `count` vectors of h by those of each of n spectra, a block of x apart.
INLINE void add_products(struct sums *s, const REAL *x, size_t x_stride, const REAL *h,
                         size_t h_stride, size_t n, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const vec hr = real_lanes(h + position(v, h_stride)),
                  hi = imaginary_lanes(h + position(v, h_stride));
        UNROLL
        for (size_t k = 0; k < n; k++) {
            const size_t i = k * count + v;
            const REAL *own = x + k * BLOCK + position(v, x_stride);
            const vec xr = real_lanes(own), xi = imaginary_lanes(own);
            s->rr[i] = vec_multiply_add(xr, hr, s->rr[i]);
            s->ii[i] = vec_multiply_add(xi, hi, s->ii[i]);
            s->ri[i] = vec_multiply_add(xr, hi, s->ri[i]);
            s->ir[i] = vec_multiply_add(xi, hr, s->ir[i]);
        }
    }
}

// `count` vectors of sum k of those.
INLINE void put_sums(REAL *y, const struct sums *s, size_t k, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        *(vec *)(y + position(v, BLOCK)) = s->rr[k * count + v] - s->ii[k * count + v];
        *(vec *)(y + position(v, BLOCK) + SPECTRUM_LANES) =
            s->ri[k * count + v] + s->ir[k * count + v];
    }
}

INLINE void get_sums(const REAL *y, struct sums *s, size_t k, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        s->rr[k * count + v] = real_lanes(y + position(v, BLOCK));
        s->ri[k * count + v] = imaginary_lanes(y + position(v, BLOCK));
    }
}

// Vectors first .. first+count-1. Strides in reals.
INLINE void sum_products(REAL *y, const REAL *x, size_t x_stride, const REAL *h, size_t h_stride,
                         size_t terms, size_t count)
{
    struct sums sums = {0};
    for (size_t t = 0; t < terms; t++, x += x_stride, h += h_stride)
        add_products(&sums, x, BLOCK, h, BLOCK, 1, count);
    put_sums(y, &sums, 0, count);
}

void KERNEL(cmac)(void *y, const void *x, size_t x_stride, const void *h, size_t h_stride,
                  size_t terms, size_t n_blocks)
{
    const size_t end = n_blocks * VECTORS;
    size_t v = 0;
    for (size_t at; (at = position(v, BLOCK)), end - v >= GROUP; v += GROUP)
        sum_products((REAL *)y + at, (const REAL *)x + at, x_stride * BLOCK, (const REAL *)h + at,
                     h_stride * BLOCK, terms, GROUP);
    for (size_t at; (at = position(v, BLOCK)), v < end; v++)
        sum_products((REAL *)y + at, (const REAL *)x + at, x_stride * BLOCK, (const REAL *)h + at,
                     h_stride * BLOCK, terms, 1);
}

// Fetches what lies some reals further on, which may be nothing, into the second cache: it will be
// a while.
INLINE void fetch(const REAL *x, size_t distance, size_t stride, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const uintptr_t later = (uintptr_t)x + (distance + position(v, stride)) * sizeof *x;
        __builtin_prefetch((const void *)later, 0, 2);
        __builtin_prefetch((const void *)(later + SPECTRUM_LANES_BYTES), 0, 2);
    }
}

// The products of one line for sums k .. k+n-1 with `count` vectors from `at` on.
INLINE void add_line(struct sums *sums, const struct cmac_terms *terms,
                     const struct cmac_path *line, size_t at, size_t k, size_t n, size_t count,
                     bool ahead)
{
    const size_t multiple = terms->multiple, slots = terms->slots, back = line->first * multiple;
    const size_t x_stride = line->x_pitch * BLOCK, h_stride = line->h_pitch * BLOCK;
    const REAL *ring = (const REAL *)line->x + position(at, x_stride) + k * BLOCK;
    const REAL *h = (const REAL *)line->h + position(at, h_stride);
    size_t slot = terms->newest >= back ? terms->newest - back : terms->newest + slots - back;
    for (size_t p = 0; p < line->count; p++, h += BLOCK) {
        const REAL *x = ring + slot * BLOCK;
        add_products(sums, x, x_stride, h, h_stride, n, count);
        if (ahead && at % VECTORS == 0) { // once a tile, where it takes several turns
            fetch(x, (count < VECTORS ? 1 : count / VECTORS) * x_stride, x_stride, count);
            fetch(h, terms->ahead * BLOCK, h_stride, count);
        }
        slot = slot >= multiple ? slot - multiple : slot + slots - multiple;
    }
}

// Vectors at .. at+count-1 of sums k .. k+n-1.
INLINE void sum_lines(void *const *y, const struct cmac_terms *terms, const struct cmac_path *lines,
                      size_t n_lines, size_t at, size_t k, size_t n, size_t count, bool ahead)
{
    struct sums sums = {0};
    UNROLL
    for (size_t i = 0; i < n; i++)
        if (!terms->fresh[k + i])
            get_sums((const REAL *)y[k + i] + position(at, BLOCK), &sums, i, count);
    UNROLL
    for (size_t i = 0; ahead && i < n; i++)
        fetch((const REAL *)y[k + i] + position(at, BLOCK), 8 * BLOCK, BLOCK, count);
    for (const struct cmac_path *line = lines; line < lines + n_lines; line++)
        add_line(&sums, terms, line, at, k, n, count, ahead);
    UNROLL
    for (size_t i = 0; i < n; i++)
        put_sums((REAL *)y[k + i] + position(at, BLOCK), &sums, i, count);
}

// All tiles of sums k .. k+n-1: as many vectors at a time as there are registers for, then one by
// one.
INLINE void sum_tiles(void *const *y, const struct cmac_terms *terms, const struct cmac_path *lines,
                      size_t n_lines, size_t first, size_t end, size_t k, size_t n, bool ahead)
{
    const size_t count = GROUP / n;
    size_t at = first * VECTORS;
    for (; end * VECTORS - at >= count; at += count)
        sum_lines(y, terms, lines, n_lines, at, k, n, count, ahead);
    for (; at < end * VECTORS; at++) sum_lines(y, terms, lines, n_lines, at, k, n, 1, ahead);
}

INLINE void sum_all(void *const *y, const struct cmac_terms *terms, const struct cmac_path *lines,
                    size_t n_lines, size_t first, size_t end, bool ahead)
{
    const size_t group = GROUP, most = group < CMAC_SUMS ? group : CMAC_SUMS; // sums at a time
    if (terms->sums == 1) sum_tiles(y, terms, lines, n_lines, first, end, 0, 1, ahead);
    else if (terms->sums == 2) sum_tiles(y, terms, lines, n_lines, first, end, 0, 2, ahead);
    else
        for (size_t k = 0; k < terms->sums; k += most)
            sum_tiles(y, terms, lines, n_lines, first, end, k, most, ahead);
}

void KERNEL(cmac_partitions)(void *const *y, const struct cmac_terms *terms,
                             const struct cmac_path *lines, size_t n_lines, size_t first,
                             size_t end)
{
    if (terms->ahead) sum_all(y, terms, lines, n_lines, first, end, true);
    else sum_all(y, terms, lines, n_lines, first, end, false);
}
