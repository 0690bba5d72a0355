// SPDX-License-Identifier: MIT
// What the kernels of cuda/blocks are asked to do, in words that C and CUDA share: sums of products
// of spectra of parts (cuda/kernels/spectra.h).
#ifndef PARTITA_CUDA_BLOCKS_KERNELS_H
#define PARTITA_CUDA_BLOCKS_KERNELS_H

#include "cuda/kernels/spectra.h"

#ifdef __cplusplus
extern "C" {
#endif

// Which of an array's rows goes with row i of others: i has digits below n, the last the least, and
// the row is the sum of digit[d]*step[d].
enum { CUDA_ROW_DIGITS = 3 };
struct cuda_row_map {
    int64_t n[CUDA_ROW_DIGITS], step[CUDA_ROW_DIGITS];
};

// Blocks `left` of some rows and blocks `right` of others meet in output block left + right. Of
// every output row blocks first .. first + count - 1 are summed, each with what the sum of the
// block before it reaches into it.
struct cuda_pairs {
    int64_t rows;                              // of outputs
    struct cuda_row_map left_rows, right_rows; // of each the first term's; left_first is added to
    int64_t left_first;                        // its number on the left
    int64_t terms, left_term, right_term;      // rows that are summed, and from one to the next
    int64_t left_count, right_count;           // blocks of a row
    int64_t right_first;                       // number of the right rows' first block
    int64_t first, count, per_thread;          // per_thread: blocks that one thread sums
    bool accumulate;                           // onto what is there
    const void *left, *right;                  // [rows][blocks][planes][points]
    void *out;                                 // [output rows][count][planes][points]
};
cudaError_t cuda_launch_pairs(const struct cuda_fft_params *params, const struct cuda_pairs *pairs,
                              cudaStream_t stream);

// Windows of outputs, each of which sees all of both operands (decision 10): window w of an output
// row is the sum over channels and parts of the taps; part i meets the window of x from
// x.first + w*hop - i*part on.
struct cuda_lags {
    struct cuda_windows taps, x; // taps: a window a part
    const void *taps_samples, *x_samples;
    struct cuda_row_map taps_rows, x_rows; // of each output row the first channel's
    int64_t channels, taps_term, x_term;
    int64_t hop;
    int64_t first, tasks, windows; // tasks [row][window], from `first` on
    int64_t chunks;                // that the terms [channel][part] of a task are split into
};

// Bytes of shared memory of a thread block that sums: of a transform and a spectrum.
static inline size_t cuda_lags_shared(size_t points, bool f64)
{
    return cuda_fft_shared(points, f64) + points * 2 * (f64 ? 8 : 4);
}

// Queue sums [tasks][chunks][points] of chunks of terms; the sums of groups of CUDA_LAGS_GROUP of
// `chunks` such sums each; the outputs of tasks whose sums are [tasks][points].
enum { CUDA_LAGS_GROUP = 32 };
cudaError_t cuda_launch_lags(const struct cuda_fft_params *params, const struct cuda_lags *lags,
                             void *sums, cudaStream_t stream);
cudaError_t cuda_launch_lags_add(const struct cuda_fft_params *params, void *to, const void *from,
                                 int64_t tasks, int64_t chunks, cudaStream_t stream);
cudaError_t cuda_launch_lags_results(const struct cuda_fft_params *params,
                                     const struct cuda_sink *sink, const struct cuda_lags *lags,
                                     const void *sums, cudaStream_t stream);

// Intervals of one division of parts of two sizes (geometry/part_schedule.h). Rows and arrays are
// those of `pairs`, whose blocks are parts here: left those of the taps, right those of the signal
// that are held; first and count are intervals; per_thread and accumulate mean nothing. Interval r
// begins at unit begin + r*(taps_units + signal_units); the parts i of the taps that have pairs
// there are those with i = residue + r modulo signal_units.
struct cuda_intervals {
    struct cuda_pairs pairs;
    int64_t taps_units, signal_units; // sizes of parts over their greatest common divisor
    int64_t signals;                  // parts of the signal, held or not
    int64_t begin, residue;
};

// Queue the sums [rows][count][planes][points] of all pairs of each interval.
cudaError_t cuda_launch_intervals(const struct cuda_fft_params *params,
                                  const struct cuda_intervals *intervals, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
