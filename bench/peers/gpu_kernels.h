// SPDX-License-Identifier: MIT
// Kernels of the peers that bench_gpu brings along: what lies around cuFFT's transforms, and a separable filter in two
// passes. All queue their work on the default stream; rows are lines of samples or of bins behind each other.
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TWO_PASSES_RADIUS = 8 };

struct line {
    size_t rows, length, padded; // samples of a row, and of a row with its zeros
};

// Rows of reals, zeros behind them, as reals or as complex numbers; `reversed`: from their last sample on.
void pad_to_real(float *to, const float *from, struct line line, bool reversed);
void pad_to_complex(float2 *to, const float *from, struct line line, bool reversed);

// The first samples of each row.
void crop_real(float *to, const float *from, struct line line);
void crop_complex(float *to, const float2 *from, struct line line);

// spectra[row][bin] *= filters[row % n_filters][bin] * scale
void multiply_rows(float2 *spectra, const float2 *filters, size_t rows, size_t bins, size_t n_filters, float scale);

// Overlap-save with blocks of `hop` new samples in transforms of `points`: windows of a signal that begin points - hop
// samples before their block, zero outside of it; the products of all windows with all filters, scaled; the end of each
// result, to its place in y [n_filters][n_out].
struct windows {
    size_t n, n_out, points, hop, count, n_filters;
};
void gather_windows(float2 *to, const float2 *x, struct windows w);
void multiply_windows(float2 *to, const float2 *spectra, const float2 *filters, struct windows w);
void scatter_windows(float2 *y, const float2 *from, struct windows w);

// A plane filtered along its rows, then along its columns, zero outside. Both taps have 2 * TWO_PASSES_RADIUS + 1.
struct two_passes {
    float row[2 * TWO_PASSES_RADIUS + 1], column[2 * TWO_PASSES_RADIUS + 1];
    int width, height;
};
void filter_rows(float *to, const float *from, const struct two_passes *filter);
void filter_columns(float *to, const float *from, const struct two_passes *filter);

#ifdef __cplusplus
}
#endif

#endif
