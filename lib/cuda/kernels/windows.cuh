// SPDX-License-Identifier: MIT
// Windows of lines as points of a transform, and back.
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

inline __device__ int64_t windows_line(const cuda_windows &windows, int64_t line)
{
    const int64_t c = take(&line, windows.columns), r = take(&line, windows.rows);
    return ((line * windows.columns + c) * windows.rows + r) * windows.pitch;
}

// Where the line of a window lies, a window being one of all of them; samples of S.
template <typename S>
inline __device__ const S *windows_samples(const cuda_windows &windows, const S *x, int64_t window)
{
    return x + windows_line(windows, window / windows.windows) * windows.size;
}

inline __device__ int64_t windows_first(const cuda_windows &windows, int64_t window)
{
    return windows.first + window % windows.windows * windows.hop;
}

// A window of a line whose samples stand at every position: sample from + i is at[i], i < n; others
// are zeros.
template <typename S> struct window {
    const S *at;
    int from, n;
};

template <typename S>
inline __device__ window<S> window_of(const cuda_windows &windows, const S *line, int64_t first)
{
    const int64_t from = first < 0 ? -first : 0, rest = windows.size - first;
    const int64_t to = rest < windows.length ? rest : windows.length;
    return {line + first + from, (int)from, to > from ? (int)(to - from) : 0};
}

// Samples begin + thread + j*n/16 of it, j < 16; those of all threads are begin .. begin+n-1, of
// which most often all or none are there: then nobody asks sample by sample.
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

// Any window: zeros between samples, scaled, from the end on.
template <typename S>
inline __device__ S windows_sample(const cuda_windows &windows, const S *line, int64_t first,
                                   int64_t i)
{
    int64_t q = first + i;
    if (i >= windows.length || q < 0 || (windows.step > 1 && q % windows.step)) return S{};
    if (windows.step > 1) q /= windows.step;
    if (q >= windows.size) return S{};
    return line[windows.reversed ? windows.size - 1 - q : q];
}

// Point i of a window: of a turned form sample i and sample i + points of a real line, else one of
// a line of either kind.
template <typename T>
inline __device__ complex_of<T> windows_point(const cuda_windows &windows, const T *x,
                                              int64_t window, int i, int points, bool turned)
{
    const int64_t first = windows_first(windows, window);
    const T scale = (T)windows.scale;
    if (windows.complex_samples) {
        const complex_of<T> *line = windows_samples(windows, (const complex_of<T> *)x, window);
        const complex_of<T> sample = windows_sample(windows, line, first, i);
        return {sample.re * scale, windows.conjugated ? -sample.im * scale : sample.im * scale};
    }
    const T *line = windows_samples(windows, x, window);
    return {windows_sample(windows, line, first, i) * scale,
            turned ? -windows_sample(windows, line, first, i + points) * scale : 0};
}

// Sample i of a line's inverse transform.
template <typename S>
inline __device__ void line_store(const cuda_lines &lines, S *y, int64_t line, int64_t i, S value)
{
    int64_t at = i - lines.first;
    if (at < 0 || at % lines.step || at / lines.step >= lines.length) return;
    at /= lines.step;
    y[line * lines.length + (lines.reversed ? lines.length - 1 - at : at)] = value;
}

// Point i of it.
template <typename T>
inline __device__ void lines_store(const cuda_lines &lines, T *y, int64_t line, int i, int points,
                                   bool turned, complex_of<T> value)
{
    if (turned) {
        line_store(lines, y, line, i, value.re);
        line_store(lines, y, line, i + points, -value.im);
    } else line_store(lines, (complex_of<T> *)y, line, i, value);
}

// The place of this thread's transform, one of threadIdx.y, at the start of the block's shared
// memory.
template <typename T> inline __device__ fft_place<T> fft_place_of(const cuda_fft_form &form)
{
    const int64_t points = (int64_t)1 << form.log2_points;
    complex_of<T> *shared = (complex_of<T> *)shared_memory + threadIdx.y * (points + points / 16);
    return fft_locate<T>(form, shared, threadIdx.x);
}

template <typename T> constexpr int fft_most_threads()
{
    return (sizeof(T) == 8 ? CUDA_FFT_MOST_F64 : CUDA_FFT_MOST_F32) / CUDA_FFT_POINTS;
}

// Bins as they are kept, and back.
template <typename T>
inline __device__ void spectrum_store(complex_of<T> *spectrum, const fft_place<T> &place,
                                      const complex_of<T> v[16])
{
    const int apart = 1 << (place.log2_points - 4);
    spectrum += place.thread;
#pragma unroll
    for (int j = 0; j < 16; j++, spectrum += apart) *spectrum = v[j];
}

template <typename T>
inline __device__ void spectrum_load(const complex_of<T> *spectrum, const fft_place<T> &place,
                                     complex_of<T> v[16])
{
    const int apart = 1 << (place.log2_points - 4);
    spectrum += place.thread;
#pragma unroll
    for (int j = 0; j < 16; j++, spectrum += apart) v[j] = *spectrum;
}

#endif
