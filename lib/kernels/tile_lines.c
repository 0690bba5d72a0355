// SPDX-License-Identifier: MIT
// Samples out of lines, two real spectra out of a complex one and back: the edges of the
// transforms of lanes_dft.c. Contracts in tile_kernels.h.
#include "fft_radix.h"

void KERNEL(tile_clip)(void *z_, size_t stride, const void *begin, const void *behind, size_t first,
                       size_t end)
{
    for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
        const vec from = vec_load((const REAL *)begin + lane),
                  to = vec_load((const REAL *)behind + lane);
        for (size_t i = first; i < end; i++) {
            REAL *z = (REAL *)z_ + i * stride * TILE_LANES + lane;
            const vec at = vec_broadcast((REAL)i);
            vec_store(z,
                      (vec)((bits_vec)vec_load(z) & (bits_vec)(from <= at) & (bits_vec)(at < to)));
        }
    }
}

// v finished.
INLINE vec tile_finish(vec v, const struct conv_finish *finish, vec bias)
{
    if (finish->bias) v += bias;
    if (finish->relu) v = vec_positive(v);
    return v;
}

// Samples from .. to-1 of a vector, one by one.
NOINLINE void tile_store_samples(REAL *y, vec v, size_t from, size_t to,
                                 const struct conv_finish *finish, vec bias)
{
    REAL part[LANES];
    vec_store(part, v);
    NO_UNROLL
    for (size_t k = from; k < to; k++) y[k] = tile_finish(vec_broadcast(part[k]), finish, bias)[0];
}

// Samples i .. i+LANES-1 of one row, as far as they are wanted.
INLINE void tile_store_row(REAL *y, vec v, size_t i, size_t begin, size_t end,
                           const struct conv_finish *finish, vec bias)
{
    const size_t from = begin > i ? begin : i, to = end < i + LANES ? end : i + LANES;
    if (begin <= i && end >= i + LANES) vec_store(y + i, tile_finish(v, finish, bias));
    else if (begin <= i && i < to) vec_store_first(y + i, tile_finish(v, finish, bias), to - i);
    else if (from < to) tile_store_samples(y + i, v, from - i, to - i, finish, bias);
}

void KERNEL(tile_scatter)(const struct tile_rows *rows, const void *z_, size_t stride, size_t n,
                          const struct conv_finish *finish)
{
    const REAL *bias = finish->bias;
    for (size_t lane = 0; lane < TILE_LANES; lane += LANES)
        for (size_t first = 0; first < n; first += LANES) {
            // The last samples again rather than part of a vector.
            const bool again = n - first < LANES && first;
            const size_t i = again ? n - LANES : first;
            const REAL *z = (const REAL *)z_ + i * stride * TILE_LANES + lane;
            vec v[LANES];
            UNROLL
            for (size_t k = 0; k < LANES; k++) {
                v[k] = (vec){0};
                if (i + k < n) v[k] = vec_load(z + k * stride * TILE_LANES);
            }
            vec_transpose(v, LANES);
            // The rows after the next one: often adjacent, in as many pages as there are lanes.
            UNROLL
            for (size_t l = 0; l < LANES; l++) {
                const uintptr_t row = (uintptr_t)rows->row[lane + l];
                __builtin_prefetch((const void *)(row + (i + 2 * n) * sizeof(REAL)), 1);
            }
            UNROLL
            for (size_t l = 0; l < LANES; l++)
                tile_store_row(rows->row[lane + l], v[l], i, rows->begin[lane + l],
                               rows->end[lane + l], finish,
                               vec_broadcast(bias ? bias[lane + l] : 0));
        }
}

void KERNEL(tile_split)(const struct tile_spectrum *a, const struct tile_spectrum *b, const void *z,
                        const uint32_t *pair, size_t n_bins)
{
    for (size_t bin = 0; bin < n_bins; bin++) {
        const REAL *u = (const REAL *)z + (size_t)pair[2 * bin] * ELEMENT,
                   *v = (const REAL *)z + (size_t)pair[2 * bin + 1] * ELEMENT;
        REAL *to = (REAL *)a->re + bin * a->stride;
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            vec_store(to + lane, vec_load(u + lane) + vec_load(v + lane));
            vec_store(to + a->im + lane,
                      vec_load(u + TILE_LANES + lane) - vec_load(v + TILE_LANES + lane));
        }
        if (!b->re) continue;
        to = (REAL *)b->re + bin * b->stride;
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            vec_store(to + lane, vec_load(u + TILE_LANES + lane) + vec_load(v + TILE_LANES + lane));
            vec_store(to + b->im + lane, vec_load(v + lane) - vec_load(u + lane));
        }
    }
}

// Elements u and v, a frequency and its negative, of the transform of a + i b, whose bins are p and
// q.
INLINE void tile_put_pair(REAL *u, REAL *v, struct cvec p, struct cvec q)
{
    vec_store(u, p.re - q.im);
    vec_store(u + TILE_LANES, p.im + q.re);
    vec_store(v, p.re + q.im);
    vec_store(v + TILE_LANES, q.re - p.im);
}

void KERNEL(tile_join)(void *z, const uint32_t *pair, size_t n_bins, const struct tile_spectrum *a,
                       const struct tile_spectrum *b, double scale)
{
    const vec factor = vec_broadcast((REAL)scale);
    for (size_t bin = 0; bin < n_bins; bin++) {
        REAL *u = (REAL *)z + (size_t)pair[2 * bin] * ELEMENT,
             *v = (REAL *)z + (size_t)pair[2 * bin + 1] * ELEMENT;
        const REAL *p = (const REAL *)a->re + bin * a->stride,
                   *q = (const REAL *)b->re + bin * b->stride;
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES) {
            const struct cvec first = {vec_load(p + lane) * factor,
                                       vec_load(p + a->im + lane) * factor};
            struct cvec second = {{0}, {0}};
            if (b->re)
                second =
                    (struct cvec){vec_load(q + lane) * factor, vec_load(q + b->im + lane) * factor};
            tile_put_pair(u + lane, v + lane, first, second);
        }
    }
}

void KERNEL(tile_factors)(void *w_, size_t step, const void *re_, const void *im_, size_t n,
                          bool gauss)
{
    REAL *w = w_;
    const REAL *re = re_, *im = im_;
    for (size_t l = 0; l < n; l++) w[l] = re[l];
    if (!gauss) {
        for (size_t l = 0; l < n; l++) w[step + l] = -im[l];
        return;
    }
    for (size_t l = 0; l < n; l++) w[step + l] = im[l] - re[l];
    for (size_t l = 0; l < n; l++) w[2 * step + l] = -re[l] - im[l];
}

INLINE void tile_put_scalars(REAL *w, const REAL *re, const REAL *im, size_t rows, size_t terms)
{
    for (size_t t = 0; t < terms; t++, w += 4 * rows, re += rows, im += rows) {
        REAL a[TILE_ROWS], b[TILE_ROWS];
        for (size_t r = 0; r < rows; r++) a[r] = re[r], b[r] = im[r];
        for (size_t r = 0; r < rows; r++) w[r] = a[r];
        for (size_t r = 0; r < rows; r++) w[rows + r] = b[r];
        for (size_t r = 0; r < rows; r++) w[2 * rows + r] = -b[r];
        for (size_t r = 0; r < rows; r++) w[3 * rows + r] = a[r];
    }
}

void KERNEL(tile_scalars)(void *w, const void *from, size_t im, size_t rows, size_t terms)
{
    const REAL *re = from;
    // The usual case by a constant, of which the compiler makes vectors.
    if (rows == TILE_ROWS) tile_put_scalars(w, re, re + im, TILE_ROWS, terms);
    else tile_put_scalars(w, re, re + im, rows, terms);
}

// Sums of some channels.
struct tile_sums {
    vec re[TILE_ROWS], im[TILE_ROWS];
};

// Adds n positions of one group.
INLINE void tile_add_positions(struct tile_sums *sums, const REAL *x, size_t x_im, const REAL *gy,
                               size_t channels, size_t n)
{
    UNROLL
    for (size_t t = 0; t < n; t++) {
        const vec re_y = keep_in_register(vec_load(gy + t * ELEMENT));
        const vec im_y = keep_in_register(vec_load(gy + t * ELEMENT + TILE_LANES));
        UNROLL
        for (size_t c = 0; c < channels; c++) {
            const vec re_x = keep_in_register(vec_broadcast(x[c * n + t]));
            const vec im_x = keep_in_register(vec_broadcast(x[x_im + c * n + t]));
            sums->re[c] += re_x * re_y;
            sums->im[c] += im_x * re_y;
            sums->re[c] += im_x * im_y;
            sums->im[c] -= re_x * im_y;
        }
    }
}

INLINE void tile_gradient_bin(const struct tile_gradient *g, size_t bin, size_t lane,
                              size_t channels)
{
    enum { AHEAD = 4 }; // bins
    const size_t positions = g->positions;
    const REAL *x = (const REAL *)g->x + bin * g->x_bin;
    const REAL *gy = (const REAL *)g->gy + bin * positions * ELEMENT + lane;
    struct tile_sums sums = {{{0}}, {{0}}};
    for (size_t i = 0; i < positions; i += TILE_ROWS, x += g->x_group) {
        const size_t n = positions - i < TILE_ROWS ? positions - i : TILE_ROWS;
        const REAL *first = x + g->first * n, *y = gy + i * ELEMENT;
        // Numbers, for the lines need not be of the array.
        const uintptr_t ahead = (uintptr_t)(first) + AHEAD * g->x_bin * sizeof(REAL);
        __builtin_prefetch((const void *)ahead);
        __builtin_prefetch((const void *)(ahead + g->x_im * sizeof(REAL)));
#define ADD_POSITIONS(n) tile_add_positions(&sums, first, g->x_im, y, channels, n)
        WITH_CONSTANT4(n, ADD_POSITIONS, 1, 2, 3, TILE_ROWS)
    }
    const uint32_t *pair = g->pair + 2 * bin;
    const vec scale = vec_broadcast((REAL)g->scale);
    UNROLL
    for (size_t c = 0; c < channels; c += 2) {
        REAL *u = (REAL *)g->rows[c / 2] + (pair[0] - g->pair[0]) * ELEMENT + lane;
        REAL *v = (REAL *)g->rows[c / 2] + (pair[1] - g->pair[1] + g->back) * ELEMENT + lane;
        const struct cvec p = {sums.re[c] * scale, sums.im[c] * scale};
        struct cvec q = {{0}, {0}};
        if (c + 1 < channels) q = (struct cvec){sums.re[c + 1] * scale, sums.im[c + 1] * scale};
        tile_put_pair(u, v, p, q);
    }
}

INLINE void tile_gradient_bins(const struct tile_gradient *g, size_t channels)
{
    for (size_t bin = 0; bin < g->bins; bin++)
        for (size_t lane = 0; lane < TILE_LANES; lane += LANES)
            tile_gradient_bin(g, bin, lane, channels);
}

void KERNEL(tile_gradient)(const struct tile_gradient *g)
{
#define GRADIENT_BINS(channels) tile_gradient_bins(g, channels)
    WITH_CONSTANT4(g->channels, GRADIENT_BINS, 1, 2, 3, TILE_ROWS)
}
