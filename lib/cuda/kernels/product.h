// SPDX-License-Identifier: MIT
// Batched matrix products in the device's memory, for engines that transform tiles: for each of
// `batch` matrices
//   C = A B,   C[row][column] = sum over terms t of A[row][t] B[t][column],
// all of one type. Nothing but FMA: products of f32 are those of f32, no TF32.
//
// Complex products take four multiplications. With three (Gauss) they are real products of three
// times as many matrices: of ar+ai, ar, ai by br, bi-br, br+bi; the first less the third is the
// real part of C, the first and the second together are the imaginary part. The transforms on both
// sides write and combine these.
//
// An operand lies [term][position] or [position][term] (terms_inner), positions being rows of A and
// columns of B, with a pitch that is a multiple of CUDA_PRODUCT_ALIGN bytes, as all arrays are
// aligned to: memory is read and, of C, written in whole such vectors, so that what follows the
// last position of a row, up to the pitch, is undefined in C and need not be defined in A and B.
// Terms beyond the last count as 0.
#ifndef PARTITA_CUDA_PRODUCT_H
#define PARTITA_CUDA_PRODUCT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_element { CUDA_F32, CUDA_F64, CUDA_CF32, CUDA_CF64, CUDA_ELEMENTS };

enum {
    CUDA_PRODUCT_ALIGN = 16,    // bytes
    CUDA_PRODUCT_SEGMENT = 256, // terms of one chain; the sums of chains are added in order
};

// Where the matrices of one operand are: matrix i begins at i*plane, line j of it at i*plane +
// j*pitch, in elements.
struct cuda_matrices {
    int64_t pitch, plane;
    bool terms_inner; // a line is a position and goes along the terms; not of C, whose lines are
                      // rows
};

struct cuda_product {
    enum cuda_element element;
    int64_t batch, rows, columns, terms;
    struct cuda_matrices a, b, c;
    // The sum over terms in that many chunks, each with matrices C of its own, chunk_plane elements
    // apart; 1: whole.
    int64_t chunks, chunk_plane;
    bool onto; // added to what is in C
};

static inline int64_t cuda_element_bytes(enum cuda_element element)
{
    const int64_t real = element == CUDA_F32 || element == CUDA_CF32 ? 4 : 8;
    return element == CUDA_CF32 || element == CUDA_CF64 ? 2 * real : real;
}

// Numbers that a line of n elements takes with its padding.
static inline int64_t cuda_product_pitch(enum cuda_element element, int64_t n)
{
    const int64_t vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(element);
    return (n + vector - 1) / vector * vector;
}

// The first term of a chunk; all terms for chunk = chunks. Whole steps of the kernel, so that some
// chunks may be empty.
int64_t cuda_product_chunk_begin(const struct cuda_product *product, int64_t chunk);

// In how many chunks to sum so many terms, at most `max`: where there are few rows and columns, so
// many that there are several thread blocks for each processor of any device.
int64_t cuda_product_chunks(const struct cuda_product *product, int64_t terms, int64_t max);

// Times of a multiply-add (of two complex numbers: four) that the busiest of so many processors
// spends on a product with the blocks that are best for it, all its threads being one rate.
double cuda_product_slots(const struct cuda_product *product, int processors);

// Queues the products, on blocks as best for so many processors; they change no bit of C.
cudaError_t cuda_launch_product(const struct cuda_product *product, int processors, void *c,
                                const void *a, const void *b, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
