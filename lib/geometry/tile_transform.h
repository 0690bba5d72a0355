// SPDX-License-Identifier: MIT
// Transforms of whole tiles of up to three axes, a line of tiles at a time, two of them as the real
// and the imaginary part of one complex transform. A bin is kept for every pair of a frequency and
// its negative, in an order of its own that all arrays of one transform share; bins of a pair that
// is one frequency have an imaginary part of 0.
#ifndef PARTITA_TILE_TRANSFORM_H
#define PARTITA_TILE_TRANSFORM_H

#include <stdbool.h>

#include "base/mem.h"
#include "kernels/kernels.h"

enum {
    TILE_TRANSFORM_MOST = 1 << 16, // samples along one axis
    TILE_MOST_RADIX = 8,
};

struct tile_transform {
    size_t n[3];    // samples along each axis, the last the fastest
    size_t step[3]; // elements from one to the next
    size_t elements, bins;
    struct tile_dft dft[3];
    uint32_t *pair; // [bins][2], elements
};

// Whether an axis of n samples is a product of the radices; the next such size from n on.
bool tile_transform_has(size_t n);
size_t tile_transform_size(size_t n);

// Multiplications and additions of the transforms along all axes of one pair of tiles, forward or
// inverse, with `rows` of the rows along the last axis.
double tile_transform_flops(const size_t n[3], size_t rows);

// The same where a butterfly, with its factors, costs what the table says of its radix.
double tile_transform_cost(const size_t n[3], size_t rows, const double cost[TILE_MOST_RADIX + 1]);

// Samples of a tile and bins of its spectrum.
size_t tile_transform_bins(const size_t n[3]);

// Bytes of the elements of one pair of lines of tiles.
size_t tile_transform_bytes(const size_t n[3]);

// Cuts tables from the arena, or counts them; n as tile_transform_has.
void tile_transform_make(const size_t n[3], bool f64, struct arena *arena,
                         struct tile_transform *ret);

// Rows are transformed along the last axis by the caller, as they come (tile_row); then all other
// axes at once.
void tile_row(const struct tile_transform *transform, const struct kernels *kernels, void *row);
void tile_columns(const struct tile_transform *transform, const struct kernels *kernels, void *z);

// The inverse: all axes but the last, then the rows that are wanted.
void tile_columns_inverse(const struct tile_transform *transform, const struct kernels *kernels,
                          void *z);
void tile_row_inverse(const struct tile_transform *transform, const struct kernels *kernels,
                      void *row);

#endif
