// SPDX-License-Identifier: MIT
// Transforms of whole tiles of up to three axes, on any device: the possible sizes, their costs,
// and their tables. Two real tiles are the real and the imaginary part of one complex transform.
// One bin is stored for every pair of a frequency and its negative, in an order that all arrays of
// one transform share. If both are the same frequency the bin's imaginary part is 0.
#ifndef PARTITA_TILE_TABLES_H
#define PARTITA_TILE_TABLES_H

#include <stdbool.h>

#include "base/mem.h"
#include "kernels/tile_kernels.h"

enum {
    TILE_MAX_SIZE = 1 << 16, // samples along one axis
    TILE_MAX_RADIX = 8,
};

struct tile_tables {
    size_t n[3];    // samples along each axis; the last axis is contiguous
    size_t step[3]; // elements from one sample to the next
    size_t elements, bins;
    struct lanes_dft dft[3];
    uint32_t *pair; // [bins][2]: elements of a frequency and of its negative
};

// The smallest number of samples >= n that a transform may have along an axis: 2^a 3^b, and with
// `sevens` also 5 or 7 times that.
size_t tile_tables_next_size(size_t n, bool sevens);

// Multiplications and additions of one transform along each axis.
struct tile_costs {
    double axis[3];
};
struct tile_costs tile_tables_costs(const size_t n[3]);

// Multiplications and additions of the transforms along all axes of one pair of tiles, forward or
// inverse, with `rows` rows along the last axis. `costs` are those of n.
double tile_tables_flops(const size_t n[3], size_t rows, const struct tile_costs *costs);

// The same with cost[radix] for each butterfly, twiddle factors included.
double tile_tables_cost(const size_t n[3], size_t rows, const double cost[TILE_MAX_RADIX + 1]);

// The factors of a transform whose passes are known, modulo u^n - e^(-2 pi i phase), in the arena,
// or counts their bytes.
void tile_tables_factors(struct lanes_dft *dft, double phase, bool f64, struct arena *arena);

// Bins of a tile's spectrum; elements of a transform, including gaps.
size_t tile_tables_bins(const size_t n[3]);
size_t tile_tables_elements(const size_t n[3]);

// Makes the tables in the arena, or counts their bytes. Each n is a size by tile_tables_next_size.
void tile_tables_make(const size_t n[3], bool f64, struct arena *arena, struct tile_tables *ret);

#endif
