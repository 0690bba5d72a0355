// SPDX-License-Identifier: MIT
// Kernels of the native transform (fft_native.c): passes over complex numbers in the blocked layout
// of kernels.h.
//
// A node of length L holds a polynomial in u modulo u^L - e^(-2 pi i phi). A pass of radix r splits
// it into r nodes of length L/r, one after the other in the same memory: node q has phase (phi + q)
// / r. Its factors are the same all over the node, s^1 .. s^(r-1) with s = e^(-2 pi i phi / r): (r
// - 1) complex scalars, real part first. Leaves are nodes of length 4 * lanes: one split by 4, a
// twist of the four vectors to phase 0, and transforms of `lanes` points within the vectors, whose
// results stay in the order in which they fall. The back functions undo, times length. Source:
// Fiduccia 1972 and Bernstein, Multidigit multiplication for mathematicians (2001): transforms as
// reductions modulo factors; u^L + i for real samples is the "right-angle" convolution of Crandall
// & Fagin (1994).
#ifndef PARTITA_FFT_KERNELS_H
#define PARTITA_FFT_KERNELS_H

#include "kernels.h"

// The columns first .. end-1 of a node's length/radix; multiples of lanes. Columns do not touch
// each other's data.
struct fft_node {
    size_t length, first, end;
};

// `nodes` nodes of one length, the same columns of each. Radices are 1 (just moved), 2, 3, 4, 5 and
// 8; the length is a multiple of radix * lanes.
typedef void fft_pass_fn(void *data, struct fft_node node, size_t nodes, int radix,
                         const void *factors);

// The first pass reads its one node from samples instead: complex ones are x[length] interleaved;
// real ones are x[2 * length], whose first half gives the real and whose second half the negated
// imaginary parts. Of halves there is the first one alone.
typedef void fft_read_fn(void *data, const void *x, struct fft_node node, int radix,
                         const void *factors);
// Writing may leave out samples before the middle (`upper`).
typedef void fft_write_fn(void *x, const void *data, struct fft_node node, int radix,
                          const void *factors, bool upper);
typedef void fft_write_half_fn(void *x, const void *data, struct fft_node node, int radix,
                               const void *factors);

// factors: 3 complex scalars a leaf. twists: 4 * lanes complex numbers a leaf, each vector's real
// parts then imaginary. common: lanes complex numbers by which all vectors are twisted besides;
// NULL if there is no such part. The results go to blocks `stride` bytes apart; that may be where
// the data are, or none of it.
typedef void fft_leaves_fn(void *to, size_t stride, const void *data, size_t leaves,
                           const void *factors, const void *twists, const void *common);
typedef void fft_leaves_inverse_fn(void *data, size_t leaves, const void *factors,
                                   const void *twists, const void *common);

struct fft_kernels {
    size_t lanes; // complex numbers in a vector
    fft_read_fn *read_real, *read_half, *read_complex;
    fft_pass_fn *pass, *pass_inverse;
    fft_leaves_fn *leaves;
    fft_leaves_inverse_fn *leaves_inverse;
    fft_write_fn *write_real, *write_complex;
    fft_write_half_fn *write_half;
};

#endif
