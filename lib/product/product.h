// SPDX-License-Identifier: MIT
// Products of two matrices, by which the engines of the CPU sum layers (kernels->conv):
//   C[row][column] = sum over terms t of A[row][t] B[t][column],   or this added to C.
// Columns lie along the vectors, and rows are broadcast, CONV_CHANNELS at a time. Either may be
// output channels or positions: packed operands lie in blocks of rows or of columns, term after
// term. Terms are summed segment by segment. A strip of the columns of a segment stays in the
// L1 cache while all rows read it. Source: Goto & van de Geijn, Anatomy of high-performance
// matrix multiplication (2008).
#ifndef PARTITA_PRODUCT_H
#define PARTITA_PRODUCT_H

#include "core/plan.h"
#include "kernels/kernels.h"

enum {
    PRODUCT_TERMS = 512,       // terms of a segment at most
    PRODUCT_SHORT_TERMS = 128, // see product_segment
    PRODUCT_STRIP_VECTORS = 3, // vectors of a rectangle of eight rows in kernels->conv
    PRODUCT_STRIP_BYTES = PRODUCT_STRIP_VECTORS * CONV_BLOCK_BYTES,
    PRODUCT_MAX_RANGES = 8,
};

// A or B. Distances are in scalars.
struct product_matrix {
    const char *at;
    size_t block, pitch; // rows of A, a multiple of CONV_CHANNELS, or columns of B in a block; from
                         // one block to the next; block 0: all are one block
    size_t step;         // A: from one row of a block to the next
    size_t term;         // from one term to the next; 0: a block has no gaps, and `step` is 1
    size_t first;        // terms before the first one
    const size_t *offset; // B: of each term, in place of `term`; NULL: none
};

// Rows of lines that are prefetched into the L2 cache while a product is computed, since they
// are needed after it: ranges, one after the other, in equal shares for each call of the kernel.
struct product_prefetch {
    struct conv_prefetch range[PRODUCT_MAX_RANGES];
    size_t lines[PRODUCT_MAX_RANGES]; // of each
    size_t n, all;                    // ranges; lines of all
};

// Adds rows of `row` bytes that are `step` bytes apart. They need not be memory.
void product_prefetch_rows(struct product_prefetch *prefetch, const char *first, size_t row,
                           size_t rows, size_t step);

struct product {
    const struct partita_plan *plan;
    size_t rows, columns, terms; // columns: whole vectors
    struct product_matrix a, b;
    char *c;
    size_t c_step, c_pitch; // from one row of C to the next; from one block of columns to the next,
                            // which has as many columns as a block of B
    bool add;               // to the contents of C
    bool pairs;             // scalars of A and B are pairs of bf16 (kernels->conv_pairs)
    bool past_caches;       // C is written past the caches; without `add`, terms of one segment
    size_t segment;         // terms of a segment at most, at most PRODUCT_TERMS
    // B is not in a near cache: while a strip is summed the next one is prefetched, and during the
    // last one the strip that is read after the product, from here on. NULL: B is near.
    const char *next_b;
    const struct product_prefetch *prefetch; // NULL: none
};

void product_run(const struct product *product);

// Terms of a segment at most where `max` are ready. Rectangles of four rows (AVX2) read a strip
// twice as often, and sums of half as many terms from the L1 cache are faster in spite of adding
// them up twice.
static inline size_t product_segment(const struct partita_plan *plan, size_t max)
{
    return plan->isa == CPU_AVX2 && max > PRODUCT_SHORT_TERMS ? PRODUCT_SHORT_TERMS : max;
}

// Rows of A at `to`, from a matrix in which rows are adjacent and terms from->term apart: packed in
// blocks of CONV_CHANNELS rows, term after term.
struct product_matrix product_pack_rows(const struct partita_plan *plan,
                                        const struct product_matrix *from, size_t terms,
                                        size_t rows, char *to);

// Columns of the next strip, of which `left` are left.
size_t product_strip(const struct partita_plan *plan, size_t left);

#endif
