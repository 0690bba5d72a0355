// SPDX-License-Identifier: MIT
// Batched matrix products in the device's memory, for engines that transform tiles: for each of
// `batch` matrices
//   C = A B,   C[row][column] = sum over terms t of A[row][t] B[t][column],
// all of one type.
//
// Complex products take four multiplications. With three (Gauss) they are real products of three
// times as many matrices: the products of ar+ai, ar, ai with br, bi-br, br+bi. The first minus the
// third is the real part of C, the first plus the second is the imaginary part. The forward
// transforms write these operands and the inverse transform combines the results.
//
// The layout of an operand is [term][position] or [position][term] (terms_inner); positions are
// rows of A and columns of B. All arrays are aligned to CUDA_PRODUCT_ALIGN bytes, and pitches are
// multiples of that. Memory is read, and C is written, in whole vectors of that size: elements
// after the last position of a row, up to the pitch, become undefined in C and may be undefined in
// A and B. Terms beyond the last count as 0.
#ifndef PARTITA_CUDA_PRODUCT_H
#define PARTITA_CUDA_PRODUCT_H

#include "interface.h"

enum cuda_element { CUDA_F32, CUDA_F64, CUDA_CF32, CUDA_CF64, CUDA_ELEMENTS };

enum {
    CUDA_PRODUCT_ALIGN = 16,    // bytes
    CUDA_PRODUCT_SEGMENT = 256, // terms of a segment; the sums of segments are added in order
};

// The layout of the matrices of one operand: matrix i begins at element i*plane, its line j at
// i*plane + j*pitch.
struct cuda_matrices {
    int64_t pitch, plane;
    bool terms_inner; // a line is one position with all its terms; not for C, whose lines are rows
};

// How elements are multiplied. Tensor cores (compute capability 8.0 and later) multiply numbers of
// TF32, with 11 bits: as sums of two such numbers elements of f32 are multiplied to f32's accuracy,
// in three of the four products, and rounded to one in one (decision 43). f64: CUDA_MULTIPLY_ADD.
enum cuda_arithmetic { CUDA_MULTIPLY_ADD, CUDA_TF32_THREE, CUDA_TF32_ONE };

struct cuda_product {
    enum cuda_element element;
    enum cuda_arithmetic arithmetic;
    // Multiply-adds of TF32 in the time of one of f32, which affects the block size; 0: unknown.
    double tf32_rate;
    int64_t batch, rows, columns, terms;
    struct cuda_matrices a, b, c;
    // The sum over terms is split into that many chunks of whole steps of the kernel, of which some
    // may be empty, each with its own matrices C, chunk_plane elements apart; 1: not split.
    int64_t chunks, chunk_plane;
    bool onto; // add to the contents of C
};

static inline int64_t cuda_element_bytes(enum cuda_element element)
{
    const int64_t real = element == CUDA_F32 || element == CUDA_CF32 ? 4 : 8;
    return element == CUDA_CF32 || element == CUDA_CF64 ? 2 * real : real;
}

// Number of chunks, at most `max`, for a sum of `terms` terms: with few rows and columns, enough
// chunks for several thread blocks on each processor of any device.
CUDA_C int64_t cuda_product_chunks(const struct cuda_product *product, int64_t terms, int64_t max);

// Time that the busiest of `processors` processors spends on a product with the best block size, in
// multiply-adds of all its threads at once (a complex multiply-add counts as four).
CUDA_C double cuda_product_slots(const struct cuda_product *product, int processors);

// Root mean square of the error that an arithmetic adds to those of CUDA_MULTIPLY_ADD, relative to
// the sums of independent terms (decision 43).
CUDA_C double cuda_product_error(enum cuda_arithmetic arithmetic);

// The fastest arithmetic of those that add no more than this error, for a device that does
// tf32_rate multiply-adds of TF32 in the time of one of f32. Neither a product's size nor a
// device's number of processors has an effect, so that how work is split changes no bit.
CUDA_C enum cuda_arithmetic cuda_product_arithmetic(enum cuda_element element, double tf32_rate,
                                                    double error);

// Queues the products, with the best block size for that many processors; the block size changes no
// bit of C.
CUDA_C cudaError_t cuda_launch_product(const struct cuda_product *product, int processors, void *c,
                                       const void *a, const void *b);

#endif
