// SPDX-License-Identifier: MIT
// The gradient of the taps of one axis as one kernel: a thread block transforms windows of x and
// blocks of gy and sums their products in registers, so that only sums are written (decision 23).
//
// Lag l of a path is the sum over positions n of gy[n] x[n + l], counted from the sample that the
// first tap of output 0 reads; every `dilation`-th lag is the gradient of a tap. Sum p of a path
// has lags p*chunk .. p*chunk + chunk-1: the spectra of blocks of gy, hop positions and zeros,
// conjugated, times those of the windows of x that begin at x.first + b*hop + p*chunk. The
// product's sample lead + i, i < chunk, is lag p*chunk + i; the other samples have wrapped.
#ifndef PARTITA_CUDA_GRADIENT_H
#define PARTITA_CUDA_GRADIENT_H

#include "cuda/kernels/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_GRADIENT_TERMS = 64, // products summed before their sum is rounded into the total
    CUDA_GRADIENT_JOBS = 64,  // jobs of a path, at most
};

// A job is one sum of a path, or two adjacent sums that a thread block computes together: the
// window of block b and sum p + 1 is also that of block b + 1 and sum p, and is transformed once;
// this requires chunk = hop.
//
// A row's blocks are split into `chains`. The chains of all items, [item][chain], are split into
// `splits`. A thread block computes one split; each of its thread rows computes one chain at a
// time.
struct cuda_gradient {
    struct cuda_fft_form form; // negacyclic
    struct cuda_windows x, gy; // windows of one row; those of gy begin at position 0
    int64_t batch, groups, group_in, group_out;
    int64_t chunk, chunks, lead;
    int64_t jobs, chains, splits; // jobs of a path
    int64_t taps, dilation;
    bool reversed; // taps are stored from the last one on
    struct {
        int first, end; // blocks whose windows hold samples of x
    } seen[CUDA_GRADIENT_JOBS];
};

// Bytes of shared memory of a thread block that computes `sums` sums.
static inline size_t cuda_gradient_shared(size_t points, int sums, bool f64)
{
    enum { TASK = 128 }; // bytes of the thread block's task
    const size_t spectrum = points * 2 * (f64 ? 8 : 4);
    return (size_t)cuda_fft_rows(points) *
               (cuda_fft_shared(points, f64) + (size_t)sums * spectrum) +
           TASK;
}

// cuda_launch_gradient queues spectra [splits][paths][chunks][points], by jobs of `sums` sums, 1 or
// 2; paths are [groups][group_out][group_in]. cuda_launch_gradient_taps queues gw [paths][taps]
// from spectra [paths][chunks][points].
cudaError_t cuda_launch_gradient(const struct cuda_gradient *gradient, int sums, bool f64,
                                 void *spectra, const void *x, const void *gy);
cudaError_t cuda_launch_gradient_taps(const struct cuda_gradient *gradient, bool f64, void *gw,
                                      const void *spectra);

#ifdef __cplusplus
}
#endif

#endif
