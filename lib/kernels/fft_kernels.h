// SPDX-License-Identifier: MIT
// Kernels of the native transform (fft/native.c): passes over spectra, which consist of lines
// (kernels.h).
//
// A node of length L holds a polynomial in u modulo u^L - e^(-2 pi i phi). A pass of radix r splits
// it into r nodes of length L/r, one after the other in the same memory: node q has phase (phi + q)
// / r. The factors of a node are constant over the node: s^1 .. s^(r-1) with s = e^(-2 pi i phi /
// r), (r - 1) complex scalars, real part first. Leaves are nodes of length 4 * lanes: they are
// split by 4, the four vectors are twisted to phase 0, and `lanes` points within each vector are
// transformed; the results are not sorted. The inverse functions compute the inverse times the
// length. Source: Fiduccia 1972 and Bernstein, Multidigit multiplication for mathematicians (2001):
// transforms as reductions modulo factors; u^L + i for real samples is the "right-angle"
// convolution of Crandall & Fagin (1994).
#ifndef PARTITA_FFT_KERNELS_H
#define PARTITA_FFT_KERNELS_H

#include "kernels.h"

// Columns first .. end-1 of a node's length/radix columns; both are multiples of lanes. Different
// columns have no data in common. Radices are 1 (samples are only read), 2, 3, 4, 5 and 8; the
// length is a multiple of radix * lanes.
struct fft_node {
    size_t length, first, end;
    int radix;
    const void *factors;
};

// The same columns of `nodes` nodes of one length, whose data and factors are stored one after the
// other.
typedef void fft_pass_fn(void *data, const struct fft_node *node, size_t nodes, bool inverse);

// The first pass reads its only node from samples, and the last inverse pass writes samples:
// complex ones are x[length] interleaved; real ones are x[2 * length], whose first half is the real
// parts and whose second half is the negated imaginary parts; FFT_REAL_HALF: only the first half
// exists.
enum fft_samples { FFT_COMPLEX, FFT_REAL, FFT_REAL_HALF };
typedef void fft_read_fn(void *data, const void *x, const struct fft_node *node,
                         enum fft_samples samples);
// upper: samples before the middle need not be written; not with FFT_REAL_HALF.
typedef void fft_write_fn(void *x, const void *data, const struct fft_node *node,
                          enum fft_samples samples, bool upper);

struct fft_leaves {
    size_t count;
    const void *factors; // 3 complex scalars per leaf
    const void *twists;  // 4 * lanes complex numbers per leaf, each vector's real parts first
    const void *common;  // lanes complex numbers, a further factor of all vectors' twists, or NULL
};

// The results are written to lines `stride` bytes apart, either in place of the data or to memory
// that does not overlap them.
typedef void fft_leaves_fn(void *to, size_t stride, const void *data,
                           const struct fft_leaves *leaves);
typedef void fft_leaves_inverse_fn(void *data, const struct fft_leaves *leaves);

struct fft_kernels {
    size_t lanes; // complex numbers in a vector
    fft_read_fn *read;
    fft_write_fn *write;
    fft_pass_fn *pass;
    fft_leaves_fn *leaves;
    fft_leaves_inverse_fn *leaves_inverse;
};

#endif
