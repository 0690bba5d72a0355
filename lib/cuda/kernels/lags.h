// SPDX-License-Identifier: MIT
// Sums over lags as one kernel: the gradient of the taps of one axis (decision 23), and a few
// outputs of long operands (decision 10). A thread block transforms windows of x and blocks of
// another operand w and sums their products in registers, so that only sums are written.
//
// Lag l of a path is the sum over terms (rows of x and w) and positions n of conj(w[n]) x[n + l],
// where x is counted from x.first on and w from w.first on. Sum p of a path has lags
// p*chunk .. p*chunk + chunk-1: the spectra of blocks of w, hop positions and zeros, conjugated,
// times those of the windows of x that begin at x.first + b*hop + p*chunk. The product's sample
// lead + i, i < chunk, is lag p*chunk + i; the other samples have wrapped.
#ifndef PARTITA_CUDA_LAGS_H
#define PARTITA_CUDA_LAGS_H

#include "spectra.h"

enum { CUDA_LAGS_TERMS = 64 }; // products summed before their sum is rounded into the total

// A job is one sum of a path, or two adjacent sums that a thread block computes together: the
// window of block b and sum p + 1 is also that of block b + 1 and sum p, and is transformed once;
// this requires chunk = hop, and real samples in order.
//
// A row's blocks are split into `chains`. The chains of all terms, [term][chain], are split into
// `splits`. A thread block computes one split; each of its thread rows computes one chain at a
// time.
struct cuda_lags {
    struct cuda_fft_form form;
    struct cuda_windows x, w;           // x: samples in order
    struct cuda_row_map x_rows, w_rows; // rows of the first term of each path
    int64_t terms, x_term, w_term;      // rows from a term to the next
    int64_t chunk, chunks, lead;
    int64_t jobs, chains, splits; // jobs of a path
    int64_t first, tasks;         // jobs [path][job] that are computed, from `first` on
};

// Bytes of shared memory of a thread block that computes `sums` sums.
static inline size_t cuda_lags_shared(size_t points, int sums, bool f64)
{
    enum { TASK = 128 }; // bytes of the thread block's task
    const size_t spectrum = points * 2 * (f64 ? 8 : 4);
    return (size_t)cuda_fft_rows(points) *
               (cuda_fft_shared(points, f64) + (size_t)sums * spectrum) +
           TASK;
}

// cuda_launch_lags queues spectra [path][chunk][points] of all tasks, by jobs of `sums` sums, 1 or
// 2; `spectra` has room for those of every split. cuda_launch_lags_results queues the lags of
// spectra [tasks][points] of one sum each.
CUDA_C cudaError_t cuda_launch_lags(const struct cuda_lags *lags, int sums, bool f64, void *spectra,
                                    const void *x, const void *w);
CUDA_C cudaError_t cuda_launch_lags_results(const struct cuda_lags *lags,
                                            const struct cuda_sink *sink, bool f64,
                                            const void *spectra);

#endif
