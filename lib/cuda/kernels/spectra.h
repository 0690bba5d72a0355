// SPDX-License-Identifier: MIT
// Spectra of parts of rows, and the way back.
//
// A part has as many samples as a transform has points, and zeros behind it: of real samples the
// negacyclic transform (fft.h), modulo u^points + i; of complex ones two planes, modulo
// u^points - 1 and u^points + 1. So moving samples by a part is a factor of -i, or 1 and -1, in
// every bin (docs/theory.md, 7).
#ifndef PARTITA_CUDA_SPECTRA_H
#define PARTITA_CUDA_SPECTRA_H

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the kernels know of a plan's transform.
struct cuda_fft_params {
    struct cuda_fft_form form;
    int64_t points, planes; // planes: of real samples 1, of parts of complex samples 2
    bool f64, in_block;
    const void *twist; // factors of the samples of a long negacyclic transform, or of plane 1
};

// Where results go: of a row's positions 0 .. end-1 those at multiples of `stride`. Blocks of
// results follow each other, each with the first half of its samples; where they accumulate, they
// begin `apart` positions apart, each with `hop` samples, and are added to what is there, without
// bias and activation and at a stride of 1.
struct cuda_sink {
    void *y;
    int64_t row, rows, length; // the first row of y, how many, samples of each
    int64_t stride, end;
    const void *bias; // [channels]; NULL: none
    int64_t channels; // of consecutive rows
    bool complex_samples, relu, reversed, accumulate;
    int64_t apart, hop;
};

// Queue spectra [rows][windows][planes][points], or for long transforms the points that cuFFT is to
// transform.
cudaError_t cuda_launch_parts(const struct cuda_fft_params *params, void *to,
                              const struct cuda_windows *windows, int64_t rows, const void *x,
                              cudaStream_t stream);

// Queue the results of spectra [rows][blocks][planes][points], long ones transformed back; block 0
// begins at position `first`.
cudaError_t cuda_launch_results(const struct cuda_fft_params *params, const struct cuda_sink *sink,
                                const void *from, int64_t first, int64_t blocks,
                                cudaStream_t stream);

// Queue the spectra [blocks][planes][points] of the same blocks reversed, complex samples
// conjugated: block i is the conjugate of block blocks-1-i, moved on by a part, so that none of its
// samples stands before the block. Pairs with them meet in output block right - left + blocks:
// their convolution is the correlation with `from`.
cudaError_t cuda_launch_mirrored(const struct cuda_fft_params *params, void *to, const void *from,
                                 int64_t blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
