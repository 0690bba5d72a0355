// SPDX-License-Identifier: MIT
// What the kernels of cuda/blocks share: lines found by digits, results put in their place, thread
// blocks of several transforms.
#ifndef PARTITA_CUDA_SPECTRA_CUH
#define PARTITA_CUDA_SPECTRA_CUH

#include "spectra.h"
#include "windows.cuh"

inline __device__ int64_t line_of(const cuda_digits &digits, int64_t i)
{
    int64_t line = 0;
#pragma unroll
    for (int d = CUDA_DIGITS - 1; d >= 0; d--) line += take(&i, digits.n[d]) * digits.step[d];
    return line;
}

template <typename T>
inline __device__ void put_at(const cuda_sink &sink, int64_t line, int64_t position,
                              complex_of<T> value)
{
    int64_t i = position;
    if (position < 0 || position >= sink.end) return;
    if (sink.stride > 1) {
        i = position / sink.stride;
        if (i * sink.stride != position) return;
    }
    line += sink.line;
    if (sink.bias) value.re += ((const T *)sink.bias)[line % sink.channels];
    if (sink.relu && value.re < 0) value.re = 0;
    if (sink.reversed) i = sink.length - 1 - i;
    T *y = (T *)sink.y + (line * sink.length + i) * (sink.complex ? 2 : 1);
    y[0] = value.re;
    if (sink.complex) y[1] = value.im;
}

// Point i of the window that begins at position `first` of a line; see windows_point.
template <typename T>
inline __device__ complex_of<T> line_point(const cuda_windows &windows, const T *line,
                                           int64_t first, int i, int points, bool turned)
{
    if (!windows.complex_samples)
        return {windows_sample(windows, line, first, i),
                turned ? -windows_sample(windows, line, first, i + points) : 0};
    const complex_of<T> sample = windows_sample(windows, (const complex_of<T> *)line, first, i);
    return windows.conjugated ? conjugated(sample) : sample;
}

// The points of any window, through shared memory one at a time: few registers are then spent on
// addresses. All threads of the block come here together.
template <typename T>
inline __device__ void load_points(const cuda_windows &windows, const T *line, int64_t first,
                                   const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = 1 << place.log2_points;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < points; i += blockDim.x)
        place.shared[i] = line_point(windows, line, first, i, points, place.turned);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) v[j] = place.shared[threadIdx.x + j * blockDim.x];
}

// Where line i of an array begins.
template <typename T>
inline __device__ const T *line_at(const cuda_windows &windows, const T *x, int64_t i)
{
    return x + windows_line(windows, i) * windows.size * (windows.complex_samples ? 2 : 1);
}

#endif
