// SPDX-License-Identifier: MIT
// Products of spectra in blocks of real and imaginary lanes, summed over terms in registers. The four products of a
// complex multiplication have a sum each, so that no addition waits for another of the same term, and the order of
// operations is the same for every bin.
#include "vector.h"

enum {
    VECTORS = SPECTRUM_BLOCK_BYTES / VECTOR_BYTES, // of a block's real or imaginary lanes
    GROUP = CMAC_GROUP,                            // vectors at a time
    PAIR_GROUP = GROUP / 2,                        // likewise, where two sums are made of them
};

// Vector v of a run of blocks: its real lanes; the imaginary ones are SPECTRUM_LANES further on.
INLINE size_t position(size_t v)
{
    return v / VECTORS * (2 * SPECTRUM_LANES) + v % VECTORS * LANES;
}

INLINE const vec *at_vector(const REAL *x, size_t v, size_t part)
{
    return (const vec *)(x + position(v) + part * SPECTRUM_LANES);
}

// The four sums of each vector.
struct sums {
    vec rr[GROUP], ii[GROUP], ri[GROUP], ir[GROUP];
};

INLINE void add_products(struct sums *s, const REAL *x, const REAL *h, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const vec xr = held(*at_vector(x, v, 0)), xi = held(*at_vector(x, v, 1));
        const vec hr = held(*at_vector(h, v, 0)), hi = held(*at_vector(h, v, 1));
        s->rr[v] = multiply_add(xr, hr, s->rr[v]);
        s->ii[v] = multiply_add(xi, hi, s->ii[v]);
        s->ri[v] = multiply_add(xr, hi, s->ri[v]);
        s->ir[v] = multiply_add(xi, hr, s->ir[v]);
    }
}

INLINE void put_sums(REAL *y, const struct sums *s, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        *(vec *)(y + position(v)) = s->rr[v] - s->ii[v];
        *(vec *)(y + position(v) + SPECTRUM_LANES) = s->ri[v] + s->ir[v];
    }
}

// Vectors first .. first+count-1. Strides in reals.
INLINE void sum_products(REAL *y, const REAL *x, size_t x_stride, const REAL *h, size_t h_stride, size_t terms,
                         size_t count)
{
    struct sums sums = {0};
    for (size_t t = 0; t < terms; t++, x += x_stride, h += h_stride) add_products(&sums, x, h, count);
    put_sums(y, &sums, count);
}

void KERNEL(cmac)(void *y_, const void *x_, size_t x_stride, const void *h_, size_t h_stride, size_t terms,
                  size_t n_blocks)
{
    REAL *y = y_;
    const REAL *x = x_, *h = h_;
    const size_t block = 2 * SPECTRUM_LANES, end = n_blocks * VECTORS;
    size_t v = 0;
    for (; end - v >= GROUP; v += GROUP)
        sum_products(y + position(v), x + position(v), x_stride * block, h + position(v), h_stride * block, terms,
                     GROUP);
    for (; v < end; v++)
        sum_products(y + position(v), x + position(v), x_stride * block, h + position(v), h_stride * block, terms, 1);
}

// Vectors of one tile from `at` on, over all lines.
INLINE void sum_lines(REAL *y, const struct cmac_line *lines, size_t n_lines, size_t tile, size_t at)
{
    const size_t reals = SPECTRUM_TILE * 2 * SPECTRUM_LANES;
    struct sums sums = {0};
    for (const struct cmac_line *line = lines; line < lines + n_lines; line++) {
        const REAL *x = (const REAL *)line->x + tile * line->x_tile * reals + position(at);
        const REAL *h = (const REAL *)line->h + tile * line->h_tile * reals + position(at);
        const ptrdiff_t x_step = line->x_step * (ptrdiff_t)reals;
        for (size_t t = 0; t < line->terms; t++, x += x_step, h += reals) add_products(&sums, x, h, GROUP);
    }
    put_sums(y + tile * reals + position(at), &sums, GROUP);
}

void KERNEL(cmac_lines)(void *y, const struct cmac_line *lines, size_t n_lines, size_t first, size_t end)
{
    for (size_t tile = first; tile < end; tile++)
        for (size_t at = 0; at < SPECTRUM_TILE * VECTORS; at += GROUP) sum_lines(y, lines, n_lines, tile, at);
}

INLINE void sum_pairs(REAL *y, REAL *y_next, const struct cmac_line *lines, size_t n_lines, size_t tile, size_t at)
{
    const size_t reals = SPECTRUM_TILE * 2 * SPECTRUM_LANES;
    struct sums sums = {0}, next = {0};
    for (const struct cmac_line *line = lines; line < lines + n_lines; line++) {
        const REAL *x = (const REAL *)line->x + tile * line->x_tile * reals + position(at);
        const REAL *h = (const REAL *)line->h + tile * line->h_tile * reals + position(at);
        const REAL *x_next =
            (const REAL *)line->x_next + (line->still ? 0 : tile * line->x_tile * reals) + position(at);
        const ptrdiff_t x_step = line->x_step * (ptrdiff_t)reals, next_step = line->still ? 0 : x_step;
        for (size_t t = 0; t < line->terms; t++, x += x_step, x_next += next_step, h += reals) {
            add_products(&sums, x, h, PAIR_GROUP);
            add_products(&next, x_next, h, PAIR_GROUP);
        }
    }
    put_sums(y + tile * reals + position(at), &sums, PAIR_GROUP);
    put_sums(y_next + tile * reals + position(at), &next, PAIR_GROUP);
}

void KERNEL(cmac_pairs)(void *y, void *y_next, const struct cmac_line *lines, size_t n_lines, size_t first, size_t end)
{
    for (size_t tile = first; tile < end; tile++)
        for (size_t at = 0; at < SPECTRUM_TILE * VECTORS; at += PAIR_GROUP)
            sum_pairs(y, y_next, lines, n_lines, tile, at);
}
