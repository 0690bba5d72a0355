// SPDX-License-Identifier: MIT
// Kernels of cpu/tiles: small complex transforms in place, as many independent ones at a time as a
// line has lanes. A line is TILE_LINE_BYTES of reals; lane l of every line belongs to transform l;
// an element is a line of real parts and one of imaginary parts. Lines are aligned to 64 bytes.
// tests/layers/test_tiles.c compares transforms with their definition in double.
#ifndef PARTITA_TILE_KERNELS_H
#define PARTITA_TILE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILE_LINE_BYTES = 64, TILE_MAX_LANES = 16 };

// A transform of n elements, modulo u^n - e^(-2 pi i phase) as fft_kernels.h says. Radices are 2 to
// 8, 10 and 12, their product is n. factors[p] holds (radix - 1) complex scalars for each node of
// pass p. factors[0] is NULL if the transform's phase is 0: then those of the first node of every
// pass are 1.
enum { LANES_PASSES = 12 };
struct lanes_dft {
    size_t n;
    int passes;
    unsigned char radix[LANES_PASSES];
    const void *factors[LANES_PASSES];
};

// `count` transforms in place, of phase 0. The elements of a transform are `stride` apart and the
// transforms `distance` apart, both in elements. forward: from natural order to the order of the
// passes; inverse (without 1/n): from that order to natural order.
typedef void tile_dft_fn(void *z, const struct lanes_dft *dft, size_t stride, size_t count,
                         size_t distance);

// z[i*stride][lane] = 0 for first <= i < end unless begin[lane] <= i < behind[lane]; begin and
// behind hold one real for each lane.
typedef void tile_clip_fn(void *z, size_t stride, const void *begin, const void *behind,
                          size_t first, size_t end);

// The destination of each lane's samples: row[lane][i] for begin <= i < end.
struct tile_rows {
    void *row[TILE_MAX_LANES];
    size_t begin[TILE_MAX_LANES], end[TILE_MAX_LANES];
};

// row[lane][i] = the finished z[i*stride][lane]; struct conv_finish says how, but its bias is a
// line: one real for each lane. end <= n.
struct conv_finish;
typedef void tile_scatter_fn(const struct tile_rows *rows, const void *z, size_t stride, size_t n,
                             const struct conv_finish *finish);

// A spectrum. Each bin is a line of real parts at re + bin*stride and a line of imaginary parts
// `im` after that, in reals.
struct tile_spectrum {
    void *re;
    size_t stride, im;
};

// The transforms of the real signals a and b from z, the transform of a + i b. Both results are
// twice the transforms. pair[2 bin] and pair[2 bin + 1] are the elements of a frequency and of its
// negative. b->re NULL: only a.
typedef void tile_split_fn(const struct tile_spectrum *a, const struct tile_spectrum *b,
                           const void *z, const uint32_t *pair, size_t n_bins);

// The reverse: z = scale * (a + i b).
typedef void tile_join_fn(void *z, const uint32_t *pair, size_t n_bins,
                          const struct tile_spectrum *a, const struct tile_spectrum *b,
                          double scale);

// Factors of a product from a line of a spectrum, conjugated, n lanes of them (re and im aligned to
// their scalar): to w[0] re and to w[step] -im; or for Gauss's product re, im - re and -re - im to
// w[0], w[step] and w[2*step]. In this order they are multiplied by re + im, im and re of the other
// factor.
typedef void tile_factors_fn(void *w, size_t step, const void *re, const void *im, size_t n,
                             bool gauss);

enum { TILE_ROWS = 4 }; // complex rows of a transposed product in one kernel call

// Scalars of rows and terms of a transposed product: w[term][0 .. 3][row] = re, im, -im, re of
// from[term][row], imaginary parts `im` reals after the real ones. rows <= TILE_ROWS. The first two
// are multiplied by the real part of the other factor and added to the real and the imaginary part
// of a sum, the last two likewise by its imaginary part.
typedef void tile_scalars_fn(void *w, const void *from, size_t im, size_t rows, size_t terms);

// Spectra of the gradient of taps, of a line of output channels and up to TILE_ROWS input channels:
// sums over positions of x conj(gy). x has groups of TILE_ROWS positions, of which the last may be
// smaller: [bin][re, im][group][channel][position]; gy [bin][position][re, im][lane].
struct tile_gradient {
    const void *x, *gy;          // at the first bin
    size_t x_bin, x_im, x_group; // reals from one bin, part or group to the next
    size_t first, channels, positions, bins;
    const uint32_t *pair; // as in tile_split_fn, of the first bin
    size_t back;          // elements from the row of frequencies to that of their negatives
    double scale;
    void *rows[TILE_ROWS / 2];
};

// As tile_join_fn, for each pair of channels: rows[i] begins with the element pair[0], and `back`
// elements after that is the element pair[1].
typedef void tile_gradient_fn(const struct tile_gradient *gradient);

#endif
