// SPDX-License-Identifier: MIT
// Jobs (save.h) in pieces, for windows that no thread block holds and for gradients of taps: points
// of windows into memory, products of spectra, points into outputs. Queued one after the other; all
// arrays are in the device's memory.
#ifndef PARTITA_CUDA_JOBS_H
#define PARTITA_CUDA_JOBS_H

#include "save.h"

#ifdef __cplusplus
extern "C" {
#endif

// Points [n][points] of a range of windows, those of a turned form times e^(-pi i j / 2 points)
// (form.factors): what cuFFT makes spectra of.
cudaError_t cuda_launch_points(const struct cuda_fft_form *form, bool f64,
                               const struct cuda_windows *windows, const struct cuda_range *range,
                               void *points, const void *x, cudaStream_t stream);

// y [n] = sum over inputs c < group_in of x [c][n] times the spectrum of output k and input c of
// the job's group. Arrays have `room` jobs for each input.
struct cuda_products {
    struct cuda_range jobs;
    int64_t room, of_group; // jobs of a group
    int64_t group_in, group_out, k, points;
};
cudaError_t cuda_launch_products(const struct cuda_products *products, bool f64, void *y,
                                 const void *x, const void *spectra, cudaStream_t stream);

// Outputs k of a range of jobs, from what cuFFT made of their products.
cudaError_t cuda_launch_outputs(const struct cuda_filtering *filtering, bool f64,
                                const struct cuda_range *jobs, int64_t k, void *y,
                                const void *points, const void *bias, cudaStream_t stream);

// sums [runs][groups][group_out][group_in][points] += x [group_in][room] times conjugated gy
// [group_out][room], over the jobs of a range; a group's jobs are cut into `runs` equal runs, each
// with sums of its own, in order. Sums begin with their first job.
struct cuda_correlations {
    struct cuda_range jobs;
    int64_t room, of_group, runs, groups;
    int64_t group_in, group_out, points;
};
cudaError_t cuda_launch_correlations(const struct cuda_correlations *correlations, bool f64,
                                     void *sums, const void *x, const void *gy,
                                     cudaStream_t stream);

// sums[0][n] becomes the sum over runs of sums [runs][n], in order; reals.
cudaError_t cuda_launch_add_runs(bool f64, void *sums, int64_t n, int64_t runs,
                                 cudaStream_t stream);

// y [lines][length]: cuda_launch_lines for what cuFFT made of spectra.
cudaError_t cuda_launch_points_lines(const struct cuda_fft_form *form, bool f64,
                                     const struct cuda_lines *lines, void *y, const void *points,
                                     cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
