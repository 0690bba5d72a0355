// SPDX-License-Identifier: MIT
// Long rows, each with one long filter, as one kernel (decision 46). Outputs and taps are split
// into blocks of n samples, where n is the number of points of a transform of 2n real samples.
// Block q of a row of outputs is the sum over blocks j of the taps of the products of spectra
// X_(q-j) H_j, of which one inverse transform is made; X_b is the spectrum of the window of the
// signal that ends with block b. A thread block computes one row after another, some neighbouring
// output blocks at a time: samples are read once, while the blocks before are multiplied and
// transformed back, and only outputs are written.
#ifndef PARTITA_CUDA_OVERLAP_LONG_ROWS_H
#define PARTITA_CUDA_OVERLAP_LONG_ROWS_H

#include "filter.h"

enum {
    CUDA_LONG_ROWS_BLOCKS = 4, // output blocks computed at a time, whose windows' spectra are in
                               // shared memory
    CUDA_LONG_ROWS_MAX_PARTS = 64, // products that are added up in a row
};

// Of a struct cuda_filtering with groups of one input and one output each, window b is output block
// b
// - lead; windows are n samples apart, and transforms are negacyclic.

// Thread rows of a thread block: each transforms one window at a time.
static inline int cuda_long_rows_at_once(size_t points, bool f64)
{
    int rows = CUDA_LONG_ROWS_BLOCKS;
    while (rows > 1 && (size_t)rows * points > cuda_fft_max(f64)) rows /= 2;
    return rows;
}

// Groups of windows before the present one whose spectra it needs.
static inline int cuda_long_rows_groups(const struct cuda_filtering *rows)
{
    const int groups = (int)((rows->in.count + CUDA_LONG_ROWS_BLOCKS - 1) / CUDA_LONG_ROWS_BLOCKS),
              needed = (rows->parts + CUDA_LONG_ROWS_BLOCKS - 2) / CUDA_LONG_ROWS_BLOCKS;
    return needed < groups ? needed : groups - 1;
}

// Bytes of shared memory of a thread block, and of memory for the spectra that it keeps.
static inline size_t cuda_long_rows_shared(size_t points, bool f64)
{
    const size_t samples = (CUDA_LONG_ROWS_BLOCKS + 1) * points * (f64 ? 8 : 4);
    return CUDA_LONG_ROWS_BLOCKS * cuda_fft_shared(points, f64) + samples;
}

static inline size_t cuda_long_rows_cache(const struct cuda_filtering *rows, bool f64)
{
    const size_t spectrum = ((size_t)1 << rows->form.log2_points) * (f64 ? 16 : 8);
    return (size_t)cuda_long_rows_groups(rows) * CUDA_LONG_ROWS_BLOCKS * spectrum;
}

// Queues all rows, on `blocks` thread blocks. Taps are spectra [groups][parts][n] of blocks of taps
// that are followed by zeros; the workspace has cuda_long_rows_cache bytes for each thread block.
CUDA_C cudaError_t cuda_launch_long_rows(const struct cuda_filtering *rows, bool f64,
                                         int64_t blocks, const struct cuda_arrays *arrays);

#endif
