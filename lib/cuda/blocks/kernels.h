// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/blocks: sums of products of spectra of
// parts (cuda/kernels/spectra.h).
#ifndef PARTITA_CUDA_BLOCKS_KERNELS_H
#define PARTITA_CUDA_BLOCKS_KERNELS_H

#include "cuda/kernels/spectra.h"

// Block l of a left row and block r of a right row contribute to output block l + r. Blocks first
// .. first + count - 1 of every output row are computed; each includes the second half of the
// previous block's sum.
struct cuda_pairs {
    int64_t rows;                              // output rows
    struct cuda_row_map left_rows, right_rows; // rows of the first term of each output row, to the
                                               // left one of which left_first is added
    int64_t left_first;                        // see left_rows
    int64_t terms, left_term, right_term;      // number of rows that are summed; distance from one
                                               // to the next
    int64_t left_count, right_count;           // blocks of a row
    int64_t right_first;                       // index of the right rows' first block
    int64_t first, count, per_thread;          // per_thread: blocks that one thread sums
    bool accumulate;                           // add to the contents of `out`
    const void *left, *right;                  // [rows][blocks][planes][points]
    void *out;                                 // [output rows][count][planes][points]
};
CUDA_C cudaError_t cuda_launch_pairs(const struct cuda_fft_params *params,
                                     const struct cuda_pairs *pairs);

// Intervals of one division of blocks of two sizes (geometry/part_schedule.h). Rows and arrays are
// those of `pairs`: left blocks are those of the taps, right ones those of the signal that are in
// memory. `count` is of intervals; first, per_thread and accumulate are not used.
enum { CUDA_MAX_INTERVALS = 256 }; // of a launch, whose parameters have 4096 bytes
struct cuda_intervals {
    struct cuda_pairs pairs;
    int64_t taps_step, signal_step; // from a pair to the next: up in the taps, down in the signal
    struct {
        int taps, signal, count; // the first pair; how many
    } chain[CUDA_MAX_INTERVALS];
};

// Queue the sums [rows][count][planes][points] of all pairs of each interval.
CUDA_C cudaError_t cuda_launch_intervals(const struct cuda_fft_params *params,
                                         const struct cuda_intervals *intervals);

#endif
