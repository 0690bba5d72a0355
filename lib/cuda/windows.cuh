// SPDX-License-Identifier: MIT
// Windows of lines as points of a transform, and back.
#ifndef PARTITA_CUDA_WINDOWS_CUH
#define PARTITA_CUDA_WINDOWS_CUH

#include "fft.cuh"
#include "grid.cuh"
#include "windows.h"

// Threads of a block of transforms: several short ones share a block.
inline dim3 fft_block(int log2_points)
{
    enum { SHARED_BY = 128 }; // threads
    const int threads = 1 << (log2_points - 4);
    return dim3(threads, threads < SHARED_BY ? SHARED_BY / threads : 1);
}

// The element of a line that stands at a position, or -1: there is a zero.
inline __device__ int64_t windows_element(const cuda_windows &windows, int64_t q)
{
    if (windows.step > 1) {
        if (q < 0 || q % windows.step) return -1;
        q /= windows.step;
    }
    if (!inside(q, windows.size)) return -1;
    return windows.reversed ? windows.size - 1 - q : q;
}

inline __device__ int64_t windows_line(const cuda_windows &windows, int64_t line)
{
    const int64_t c = take(&line, windows.columns), r = take(&line, windows.rows);
    return (line * windows.columns + c) * windows.rows + r;
}

template <typename T>
inline __device__ T windows_real(const cuda_windows &windows, const T *line, int64_t first, int64_t i)
{
    const int64_t at = i < windows.length ? windows_element(windows, first + i) : -1;
    return at < 0 ? 0 : line[at] * (T)windows.scale;
}

// The point that holds sample i of the window which begins at position `first`; of a turned form also sample i +
// points.
template <typename T>
inline __device__ complex_of<T> windows_point(const cuda_windows &windows, const T *line, int64_t first, int64_t i,
                                              int64_t points, bool turned)
{
    if (!windows.complex_samples) {
        const T re = windows_real(windows, line, first, i);
        return {re, turned ? -windows_real(windows, line, first, i + points) : 0};
    }
    const int64_t at = i < windows.length ? windows_element(windows, first + i) : -1;
    if (at < 0) return {0, 0};
    const complex_of<T> x = ((const complex_of<T> *)line)[at];
    return {x.re * (T)windows.scale, x.im * (T)(windows.conjugated ? -windows.scale : windows.scale)};
}

// All points of window b of a line, as fft_forward wants them.
template <typename T>
inline __device__ void windows_load(const cuda_windows &windows, const T *x, int64_t line, int64_t b,
                                    const fft_place<T> &place, complex_of<T> v[16])
{
    const int64_t points = (int64_t)1 << place.log2_points, first = windows.first + b * windows.hop;
    const T *samples = x + windows_line(windows, line) * windows.size * (windows.complex_samples ? 2 : 1);
#pragma unroll
    for (int j = 0; j < 16; j++)
        v[j] = windows_point(windows, samples, first, place.thread + j * (points / 16), points, place.turned);
}

// Bins as they are kept, and back.
template <typename T>
inline __device__ void spectrum_store(complex_of<T> *spectrum, const fft_place<T> &place, const complex_of<T> v[16])
{
#pragma unroll
    for (int j = 0; j < 16; j++) spectrum[place.thread + (j << (place.log2_points - 4))] = v[j];
}

template <typename T>
inline __device__ void spectrum_load(const complex_of<T> *spectrum, const fft_place<T> &place, complex_of<T> v[16])
{
#pragma unroll
    for (int j = 0; j < 16; j++) v[j] = spectrum[place.thread + (j << (place.log2_points - 4))];
}

#endif
