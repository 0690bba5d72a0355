// SPDX-License-Identifier: MIT
// Spectra of windows of rows, and the inverse transforms.
//
// A window has as many samples as a transform has points, and is followed by zeros. Real samples
// take the negacyclic transform (fft.h), modulo u^points + i; complex ones take two planes, modulo
// u^points - 1 and u^points + 1. So shifting samples by a window is a factor of -i in every bin, or
// of 1 and -1 in the two planes (docs/theory.md, 7).
#ifndef PARTITA_CUDA_SPECTRA_H
#define PARTITA_CUDA_SPECTRA_H

#include "windows.h"

// The parameters of a plan's transform that the kernels need.
struct cuda_fft_params {
    struct cuda_fft_form form;
    int64_t points, planes; // planes: 1 for real samples, 2 for complex samples
    bool f64, in_block;
    const void *twist; // factors of the samples of a long negacyclic transform, or of plane 1
};

// The destination of results: of a row's positions 0 .. end-1, those at multiples of `stride` are
// stored. Blocks of results are consecutive, and the first half of each block's samples is used. If
// they accumulate, they begin `apart` positions apart, have `hop` samples each, and are added to
// the contents of y, without bias and activation and with a stride of 1.
struct cuda_sink {
    void *y;
    int64_t row, rows, length; // first row of y, number of rows, samples of each
    int64_t stride, end;
    const void *bias; // [channels]; NULL: none
    int64_t channels; // channels of consecutive rows
    bool complex_samples, relu, reversed, accumulate;
    int64_t apart, hop;
};

// Queues spectra [rows][windows][planes][points], or for long transforms the points that cuFFT will
// transform.
CUDA_C cudaError_t cuda_launch_windows(const struct cuda_fft_params *params, void *to,
                                       const struct cuda_windows *windows, int64_t rows,
                                       const void *x);

// Queues the results of spectra [rows][blocks][planes][points]; cuFFT has transformed long ones
// back before. Block 0 begins at position `first`.
CUDA_C cudaError_t cuda_launch_results(const struct cuda_fft_params *params,
                                       const struct cuda_sink *sink, const void *from,
                                       int64_t first, int64_t blocks);

// Queues the spectra [blocks][planes][points] of the same blocks in reverse order, with reversed
// samples (complex ones conjugated). Block i is the conjugate of block blocks-1-i, shifted by a
// block, so that none of its samples is before the block. Products with them contribute to output
// block right - left + blocks: convolution with them is correlation with `from`.
CUDA_C cudaError_t cuda_launch_mirrored(const struct cuda_fft_params *params, void *to,
                                        const void *from, int64_t blocks);

#endif
