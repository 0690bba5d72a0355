// SPDX-License-Identifier: MIT
// Kernels of the native transform (fft/native.c): passes over spectra in the lines of kernels.h.
//
// A node of length L holds a polynomial in u modulo u^L - e^(-2 pi i phi). A pass of radix r splits
// it into r nodes of length L/r, one after the other in the same memory: node q has phase (phi + q)
// / r. Its factors are the same all over the node, s^1 .. s^(r-1) with s = e^(-2 pi i phi / r): (r
// - 1) complex scalars, real part first. Leaves are nodes of length 4 * lanes: one split by 4, a
// twist of the four vectors to phase 0, and transforms of `lanes` points within the vectors, whose
// results stay in the order in which they fall. The inverse functions undo, times length. Source:
// Fiduccia 1972 and Bernstein, Multidigit multiplication for mathematicians (2001): transforms as
// reductions modulo factors; u^L + i for real samples is the "right-angle" convolution of Crandall
// & Fagin (1994).
#ifndef PARTITA_FFT_KERNELS_H
#define PARTITA_FFT_KERNELS_H

#include "kernels.h"

// Columns first .. end-1 of a node's length/radix, multiples of lanes. Columns do not touch each
// other's data. Radices are 1 (samples are read, nothing is split), 2, 3, 4, 5 and 8; the length is
// a multiple of radix * lanes.
struct fft_node {
    size_t length, first, end;
    int radix;
    const void *factors;
};

// The same columns of `nodes` nodes of one length, whose data and factors follow each other.
typedef void fft_pass_fn(void *data, struct fft_node node, size_t nodes);

// The first pass reads its one node from samples instead, and the last one writes them: complex
// ones are x[length] interleaved; real ones are x[2 * length], whose first half gives the real and
// whose second half the negated imaginary parts; of halves there is the first one alone.
enum fft_samples { FFT_COMPLEX, FFT_REAL, FFT_REAL_HALF };
typedef void fft_read_fn(void *data, const void *x, struct fft_node node, enum fft_samples samples);
// Writing may leave out samples before the middle (`upper`, not of halves).
typedef void fft_write_fn(void *x, const void *data, struct fft_node node, enum fft_samples samples,
                          bool upper);

struct fft_leaves {
    size_t count;
    const void *factors; // 3 complex scalars a leaf
    const void *twists;  // 4 * lanes complex numbers a leaf, each vector's real parts first
    const void *common;  // lanes complex numbers by which all vectors are twisted besides, or NULL
};

// The results go to lines `stride` bytes apart; that may be where the data are, or none of it.
typedef void fft_leaves_fn(void *to, size_t stride, const void *data, struct fft_leaves leaves);
typedef void fft_leaves_inverse_fn(void *data, struct fft_leaves leaves);

struct fft_kernels {
    size_t lanes; // complex numbers in a vector
    fft_read_fn *read;
    fft_write_fn *write;
    fft_pass_fn *pass, *pass_inverse;
    fft_leaves_fn *leaves;
    fft_leaves_inverse_fn *leaves_inverse;
};

#endif
