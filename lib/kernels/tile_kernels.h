// SPDX-License-Identifier: MIT
// Kernels of cpu/tiles: small complex transforms, a line of independent ones at a time. A line is
// TILE_LINE_BYTES of reals, lane l of every line belonging to transform l; an element is a line of
// real parts and one of imaginary parts. Lines are aligned to 64 bytes. Versions as in
// kernels.h; tests/layers/test_tiles.c compares them with the definition of the transform in
// double.
#ifndef PARTITA_TILE_KERNELS_H
#define PARTITA_TILE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_LINE_BYTES = 64, TILE_MAX_LANES = 16, TILE_MAX_PASSES = 20 };

// A transform along one axis as passes of decimation in frequency: radices 2, 3, 4, 6 and 8, whose
// product is n. twiddle[p] are those of a pass over blocks of `length`: exp(-2 pi i j k / length)
// as (cos, -sin), for 0 < j < length/ radix and within it 0 < k < radix.
struct tile_dft {
    size_t n;
    int passes;
    unsigned char radix[TILE_MAX_PASSES];
    const void *twiddle[TILE_MAX_PASSES];
};

// In place, `count` transforms of elements `stride` apart, `distance` apart themselves, both in
// elements: forward from natural order to the passes' own, inverse (without 1/n) from there to
// natural order.
typedef void tile_dft_fn(void *z, const struct tile_dft *dft, size_t stride, size_t count,
                         size_t distance);

// z[i*stride][lane] = row[lane][i], i < n, z of reals' lines `stride` lines apart: a transposition.
// Rows are aligned to their scalar.
typedef void tile_gather_fn(void *z, size_t stride, const void *const *row, size_t n);

// z[i*stride][lane] = 0 for first <= i < end unless begin[lane] <= i < behind[lane]; begin and
// behind are lines of reals.
typedef void tile_clip_fn(void *z, size_t stride, const void *begin, const void *behind,
                          size_t first, size_t end);

// Where the samples of a row go, lane by lane: row[lane][i] for begin <= i < end.
struct tile_rows {
    void *row[TILE_MAX_LANES];
    size_t begin[TILE_MAX_LANES], end[TILE_MAX_LANES];
};

// row[lane][i] = the finished z[i*stride][lane]; struct conv_finish says how, but that its bias is
// a line, one real for each lane. end <= n.
struct conv_finish;
typedef void tile_scatter_fn(const struct tile_rows *rows, const void *z, size_t stride, size_t n,
                             const struct conv_finish *finish);

// A spectrum, bin by bin a line of real parts at re + bin*stride and one of imaginary parts `im`
// behind it, in reals.
struct tile_spectrum {
    void *re;
    size_t stride, im;
};

// The transforms of a and b, of real signals, from z = that of a + i b; twice both. pair[2 bin] and
// pair[2 bin + 1] are the elements of a frequency and of its negative. b->re NULL: a alone.
typedef void tile_split_fn(const struct tile_spectrum *a, const struct tile_spectrum *b,
                           const void *z, const uint32_t *pair, size_t n_bins);

// The reverse: scale times (a + i b) into z.
typedef void tile_join_fn(void *z, const uint32_t *pair, size_t n_bins,
                          const struct tile_spectrum *a, const struct tile_spectrum *b,
                          double scale);

// Factors of a product from a line of a spectrum, conjugated, n lanes of them (re and im aligned to
// their scalar): to w[0] re and to w[step] -im; or for Gauss's product re, im - re and -re - im to
// w[0], w[step] and w[2*step]. In this order they meet re + im, im and re of the other factor.
typedef void tile_factors_fn(void *w, size_t step, const void *re, const void *im, size_t n,
                             bool gauss);

// Scalars of rows and terms of a transposed product: real parts, imaginary ones `im` reals behind
// them; from one row and term to the next, in reals.
struct tile_scalars {
    const void *re;
    size_t im, row, term;
};

// w[term][0 .. 3][row] = re, im, -im, re; conjugate: re, im, im, -re. Of rows <= CONV_CHANNELS / 2.
// The
// first two multiply a factor's real part for the real and imaginary part of a sum, the others its
// imaginary part.
typedef void tile_scalars_fn(void *w, const struct tile_scalars *from, size_t rows, size_t terms,
                             bool conjugate);

struct tile_kernels {
    tile_dft_fn *forward, *inverse;
    tile_gather_fn *gather;
    tile_clip_fn *clip;
    tile_scatter_fn *scatter;
    tile_split_fn *split;
    tile_join_fn *join;
    tile_factors_fn *factors;
    tile_scalars_fn *scalars;
};

#endif
