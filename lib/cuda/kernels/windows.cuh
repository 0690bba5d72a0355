// SPDX-License-Identifier: MIT
// Windows of rows as points of a transform, and spectra in memory.
#ifndef PARTITA_CUDA_WINDOWS_CUH
#define PARTITA_CUDA_WINDOWS_CUH

#include "fft.cuh"
#include "launch.cuh"
#include "windows.h"

// Threads of a block of transforms.
inline dim3 fft_block(int log2_points)
{
    const size_t points = (size_t)1 << log2_points;
    return dim3(cuda_fft_threads(points), cuda_fft_rows(points));
}

inline size_t fft_block_shared(int log2_points, bool f64)
{
    const size_t points = (size_t)1 << log2_points;
    return cuda_fft_rows(points) * cuda_fft_shared(points, f64);
}

template <typename T> constexpr int fft_max_threads()
{
    return (sizeof(T) == 8 ? CUDA_FFT_MAX_F64 : CUDA_FFT_MAX_F32) / CUDA_FFT_POINTS;
}

// This thread in its transform, number threadIdx.y of the block, at the start of shared memory.
template <typename T> inline __device__ fft_thread<T> fft_thread_of(const cuda_fft_form &form)
{
    const int64_t points = (int64_t)1 << form.log2_points;
    complex_of<T> *shared = (complex_of<T> *)shared_memory + threadIdx.y * (points + points / 16);
    return fft_thread_at<T>(form, shared, threadIdx.x);
}

// Where a row of an array begins, in samples.
inline __device__ int64_t windows_row(const cuda_windows &windows, int64_t row)
{
    const int64_t i = take(&row, windows.inner), o = take(&row, windows.outer);
    return ((row * windows.inner + i) * windows.outer + o) * windows.pitch * windows.size;
}

template <typename T>
inline __device__ const T *windows_row_at(const cuda_windows &windows, const T *x, int64_t row)
{
    return x + windows_row(windows, row) * (windows.complex_samples ? 2 : 1);
}

inline __device__ int64_t row_of(const cuda_row_map &map, int64_t i)
{
    int64_t row = 0;
#pragma unroll
    for (int d = CUDA_ROW_DIGITS - 1; d >= 0; d--) row += take(&i, map.n[d]) * map.step[d];
    return row;
}

// A window of consecutive samples: sample from + i is at[i], i < n; others are zeros.
template <typename S> struct window {
    const S *at;
    int from, n;
};

template <typename S>
inline __device__ window<S> window_from(const cuda_windows &windows, const S *row, int64_t first)
{
    const int64_t from = first < 0 ? -first : 0, rest = windows.size - first;
    const int64_t to = rest < windows.length ? rest : windows.length;
    return {row + first + from, (int)from, to > from ? (int)(to - from) : 0};
}

// Samples begin + thread + j*n/16, j < 16. Those of all threads are begin .. begin+n-1: mostly all
// or none are inside, and then no sample is asked for by itself.
template <typename S>
inline __device__ void window_load(const window<S> &window, int begin, int n, int thread, S s[16])
{
    const int apart = n / 16, first = begin - window.from;
    unsigned at = (unsigned)(first + thread);
    const S *from = window.at + (int)at;
    if (first >= 0 && first + n <= window.n) {
#pragma unroll
        for (int j = 0; j < 16; j++, from += apart) s[j] = *from;
    } else if (first + n <= 0 || first >= window.n) {
#pragma unroll
        for (int j = 0; j < 16; j++) s[j] = S{};
    } else {
#pragma unroll
        for (int j = 0; j < 16; j++, at += (unsigned)apart, from += apart)
            s[j] = at < (unsigned)window.n ? *from : S{};
    }
}

// Points of the window of consecutive samples that begins at position `first` of a row.
template <typename T>
inline __device__ void window_points(const cuda_windows &in, const T *row, int64_t first,
                                     const fft_thread<T> &fft, complex_of<T> v[16])
{
    const int points = 1 << fft.log2_points;
    if (fft.negacyclic) {
        const window<T> from = window_from(in, row, first);
        T lower[16], upper[16];
        window_load(from, 0, points, fft.thread, lower);
        window_load(from, points, points, fft.thread, upper);
#pragma unroll
        for (int j = 0; j < 16; j++) v[j] = {lower[j], -upper[j]};
    } else {
        const window<complex_of<T>> from = window_from(in, (const complex_of<T> *)row, first);
        window_load(from, 0, points, fft.thread, v);
    }
}

// Sample i of any window: with zeros between samples, reversed.
template <typename S>
inline __device__ S windows_sample(const cuda_windows &windows, const S *row, int64_t first,
                                   int64_t i)
{
    int64_t q = first + i;
    if (i >= windows.length || q < 0 || (windows.step > 1 && q % windows.step)) return S{};
    if (windows.step > 1) q /= windows.step;
    if (q >= windows.size) return S{};
    return row[windows.reversed ? windows.size - 1 - q : q];
}

// Point i of any window: of a negacyclic transform samples i and i + points of a real row, else one
// sample of either type.
template <typename T>
inline __device__ complex_of<T> windows_point(const cuda_windows &windows, const T *row,
                                              int64_t first, int i, int points, bool negacyclic)
{
    if (!windows.complex_samples)
        return {windows_sample(windows, row, first, i),
                negacyclic ? -windows_sample(windows, row, first, i + points) : 0};
    const complex_of<T> sample = windows_sample(windows, (const complex_of<T> *)row, first, i);
    return windows.conjugated ? conjugated(sample) : sample;
}

// All points of any window, through shared memory one at a time, so that few registers are spent on
// addresses. All threads of the block come here together.
template <typename T>
inline __device__ void windows_points(const cuda_windows &windows, const T *row, int64_t first,
                                      const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = 1 << fft.log2_points;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < points; i += blockDim.x)
        fft.shared[i] = windows_point(windows, row, first, i, points, fft.negacyclic);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) v[j] = fft.shared[threadIdx.x + j * blockDim.x];
}

// Bins in memory.
template <typename T>
inline __device__ void spectrum_store(complex_of<T> *spectrum, const fft_thread<T> &fft,
                                      const complex_of<T> v[16])
{
    const int apart = 1 << (fft.log2_points - 4);
    spectrum += fft.thread;
#pragma unroll
    for (int j = 0; j < 16; j++, spectrum += apart) *spectrum = v[j];
}

template <typename T>
inline __device__ void spectrum_load(const complex_of<T> *spectrum, const fft_thread<T> &fft,
                                     complex_of<T> v[16])
{
    const int apart = 1 << (fft.log2_points - 4);
    spectrum += fft.thread;
#pragma unroll
    for (int j = 0; j < 16; j++, spectrum += apart) v[j] = *spectrum;
}

#endif
