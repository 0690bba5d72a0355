// SPDX-License-Identifier: MIT
// What the kernels of cuda/blocks share: lines found by digits, results put in their place, thread blocks of several
// transforms.
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
inline __device__ void put_at(const cuda_sink &sink, int64_t line, int64_t position, complex_of<T> value)
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

template <typename T> inline __device__ complex_of<T> scaled(complex_of<T> a, T factor)
{
    return {a.re * factor, a.im * factor};
}

// Threads of a block at most.
template <typename T>
constexpr int MOST_THREADS = (sizeof(T) == 8 ? CUDA_FFT_MOST_F64 : CUDA_FFT_MOST_F32) / CUDA_FFT_POINTS;

// The transform of this thread's row.
template <typename T> inline __device__ fft_place<T> place_of_row(const cuda_kit &kit)
{
    complex_of<T> *shared = (complex_of<T> *)shared_memory + threadIdx.y * (kit.points + kit.points / 16);
    return fft_locate<T>(kit.form, shared, (int)threadIdx.x);
}

// Launches with more shared memory than there is without asking.
template <typename... Parameters, typename... Arguments>
inline cudaError_t queue_large(void (*kernel)(Parameters...), int64_t blocks, dim3 threads, size_t shared_bytes,
                               cudaStream_t stream, Arguments... arguments)
{
    const cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    return error == cudaSuccess ? queue(kernel, blocks, threads, shared_bytes, stream, arguments...) : error;
}

#endif
