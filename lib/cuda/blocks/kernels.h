// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/blocks: sums of products of spectra of
// parts (cuda/kernels/spectra.h).
#ifndef PARTITA_CUDA_BLOCKS_KERNELS_H
#define PARTITA_CUDA_BLOCKS_KERNELS_H

#include "cuda/kernels/spectra.h"

#ifdef __cplusplus
extern "C" {
#endif

// Maps row i of one array to a row of another. i is written in mixed radix n, the last digit being
// the least significant; the other array's row is the sum of digit[d]*step[d].
enum { CUDA_ROW_DIGITS = 3 };
struct cuda_row_map {
    int64_t n[CUDA_ROW_DIGITS], step[CUDA_ROW_DIGITS];
};

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
cudaError_t cuda_launch_pairs(const struct cuda_fft_params *params, const struct cuda_pairs *pairs);

// Windows of outputs, each of which depends on all of both operands (decision 10). Window w of an
// output row is the sum over channels and blocks of the taps; block i, of L taps, is multiplied by
// the window of x from x.first + w*hop - i*L on.
struct cuda_lags {
    struct cuda_windows taps, x; // a window of `taps` is a block
    const void *taps_samples, *x_samples;
    struct cuda_row_map taps_rows, x_rows; // rows of the first channel of each output row
    int64_t channels, taps_term, x_term;
    int64_t hop;
    int64_t first, tasks, windows; // tasks [row][window], from `first` on
    int64_t chunks;                // chunks into which the terms [channel][block] of a task are
                                   // split
};

// Bytes of shared memory of a thread block that computes sums: a transform and a spectrum.
static inline size_t cuda_lags_shared(size_t points, bool f64)
{
    return cuda_fft_shared(points, f64) + points * 2 * (f64 ? 8 : 4);
}

// cuda_launch_lags queues sums [tasks][chunks][points] of chunks of terms. cuda_launch_lags_add
// queues the sums of groups of CUDA_LAGS_GROUP of a task's `chunks` sums. cuda_launch_lags_results
// queues the outputs of tasks from their sums [tasks][points].
enum { CUDA_LAGS_GROUP = 32 };
cudaError_t cuda_launch_lags(const struct cuda_fft_params *params, const struct cuda_lags *lags,
                             void *sums);
cudaError_t cuda_launch_lags_add(const struct cuda_fft_params *params, void *to, const void *from,
                                 int64_t tasks, int64_t chunks);
cudaError_t cuda_launch_lags_results(const struct cuda_fft_params *params,
                                     const struct cuda_sink *sink, const struct cuda_lags *lags,
                                     const void *sums);

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
cudaError_t cuda_launch_intervals(const struct cuda_fft_params *params,
                                  const struct cuda_intervals *intervals);

#ifdef __cplusplus
}
#endif

#endif
