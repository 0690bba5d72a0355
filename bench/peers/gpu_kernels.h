// SPDX-License-Identifier: MIT
// Kernels of the peers that bench_gpu brings along: what lies around cuFFT's transforms, and a separable filter in two
// passes. All queue their work on the thread's own stream and return whether that went well; rows are lines of samples
// or of bins behind each other.
#ifndef BENCH_GPU_KERNELS_H
#define BENCH_GPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TWO_PASSES_RADIUS = 8 };

struct bin {
    float re, im;
};

struct line {
    size_t rows, length, padded; // samples of a row, and of a row with its zeros
};

// Rows of reals, zeros behind them, as reals (with room for in-place transforms: line_reals apart) or as complex
// numbers; `reversed`: from their last sample on.
static inline size_t line_reals(struct line line)
{
    return line.padded + 2;
}
bool pad_to_real(float *to, const float *from, struct line line, bool reversed);
bool pad_to_complex(struct bin *to, const float *from, struct line line, bool reversed);
bool pad_complex(struct bin *to, const struct bin *from, struct line line);

// The first samples of each row; real parts of complex numbers.
bool crop_real(float *to, const float *from, struct line line);
bool crop_complex(float *to, const struct bin *from, struct line line);

// spectra[row][bin] *= filters[row % n_filters][bin] / points
bool multiply_rows(struct bin *spectra, const struct bin *filters, size_t rows, size_t bins, size_t n_filters,
                   size_t points);

// Overlap-save with blocks of `hop` new samples in transforms of `points`: windows of a signal that begin points - hop
// samples before their block, zero outside of it; the products of all windows with all filters, over points; the end of
// each result, to its place in y [n_filters][n_out].
struct windows {
    size_t n, n_out, points, hop, count, n_filters;
};
bool gather_windows(struct bin *to, const struct bin *x, struct windows windows);
bool multiply_windows(struct bin *to, const struct bin *spectra, const struct bin *filters, struct windows windows);
bool scatter_windows(struct bin *y, const struct bin *from, struct windows windows);

// A plane filtered along its rows, then along its columns, zero outside. Both taps have 2 * TWO_PASSES_RADIUS + 1.
struct two_passes {
    float row[2 * TWO_PASSES_RADIUS + 1], column[2 * TWO_PASSES_RADIUS + 1];
    int width, height;
};
bool filter_rows(float *to, const float *from, const struct two_passes *filter);
bool filter_columns(float *to, const float *from, const struct two_passes *filter);

#ifdef __cplusplus
}
#endif

#endif
