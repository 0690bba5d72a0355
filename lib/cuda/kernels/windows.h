// SPDX-License-Identifier: MIT
// What transforms of lines are asked to do, in words that C and CUDA share: which samples a window
// of a line holds, and the functions that queue its transform and the way back. All arrays are in
// the device's memory.
#ifndef PARTITA_CUDA_WINDOWS_H
#define PARTITA_CUDA_WINDOWS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "fft.h"

#ifdef __cplusplus
extern "C" {
#endif

// Sample i < length of window b of a line stands at position q = first + b*hop + i of it. There is
// sample q/step of the line where that is whole and inside, counted from the line's end if
// `reversed`; everywhere else are zeros. Line l of those that are asked for lies as number
// pitch*(g*rows*columns + c*rows + r) of the array, l being (g*rows + r)*columns + c: with rows =
// columns = pitch = 1 in order.
struct cuda_windows {
    int64_t size, step;
    int64_t windows, first, hop, length; // windows of a line
    int64_t rows, columns, pitch;
    bool complex_samples, reversed, conjugated;
    double scale; // every sample is multiplied by it
};

// Windows `first` .. first+n-1 of all windows of all lines, line by line.
struct cuda_range {
    int64_t first, n;
};

// Queues the spectra [n][points] of a range of windows, by transforms within thread blocks: of real
// samples with a turned form, of real or complex ones with a cyclic form.
cudaError_t cuda_launch_spectra(const struct cuda_fft_form *form, bool f64,
                                const struct cuda_windows *windows, const struct cuda_range *range,
                                void *spectra, const void *x, cudaStream_t stream);

// Queues the samples [lines][length] from sample `first` on of the inverses of spectra
// [lines][points]: reals of a turned form, complex numbers of a cyclic one, times the number of
// points. Every step-th is stored, from the last one if `reversed`: length counts those stored.
struct cuda_lines {
    int64_t lines, first, step, length;
    bool reversed;
};

cudaError_t cuda_launch_lines(const struct cuda_fft_form *form, bool f64,
                              const struct cuda_lines *lines, void *y, const void *spectra,
                              cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
