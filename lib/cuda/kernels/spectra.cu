// SPDX-License-Identifier: MIT
// Samples of parts on their way into spectra and back: with the transform where that fits a thread
// block, else to and from the points that cuFFT transforms.
#include "spectra.cuh"

namespace {
enum { EACH = 4 }; // points of a long transform that one thread moves

// Transforms are [line][part][plane].
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    parts_kernel(const __grid_constant__ cuda_kit kit, const __grid_constant__ cuda_windows windows,
                 complex_of<T> *spectra, const T *x, int64_t transforms)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_place<T> place = fft_place_of<T>(kit.form);
    int64_t line = number < transforms
                       ? number
                       : transforms - 1; // rows beyond the last take the barriers with others
    const int64_t plane = take(&line, kit.planes), part = take(&line, windows.windows);
    complex_of<T> v[CUDA_FFT_POINTS];
    const T *samples = line_at(windows, x, line);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = threadIdx.x + j * blockDim.x;
        v[j] = line_point(windows, samples, windows.first + part * windows.hop, at, (int)kit.points,
                          place.turned);
        if (plane) v[j] = v[j] * ((const complex_of<T> *)kit.twist)[at];
    }
    fft_forward(place, v);
    if (number < transforms) spectrum_store(spectra + number * kit.points, place, v);
}

// The results of one spectrum from those of its planes, at point j. The second plane's are turned
// back.
template <typename T>
__device__ complex_of<T> result_of(const cuda_kit &kit, complex_of<T> first, complex_of<T> second,
                                   int64_t j)
{
    const complex_of<T> *twist = (const complex_of<T> *)kit.twist;
    if (kit.planes == 1)
        return scaled(kit.within ? first : first * conjugated(twist[j]), 1 / (T)kit.points);
    return scaled(first + second * conjugated(twist[j]), 1 / (T)(2 * kit.points));
}

// Spectra are [line][block].
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    results_kernel(const __grid_constant__ cuda_kit kit, const __grid_constant__ cuda_sink sink,
                   const complex_of<T> *from, int64_t first, int64_t blocks, int64_t spectra)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_place<T> place = fft_place_of<T>(kit.form);
    int64_t line = number < spectra ? number : spectra - 1;
    const complex_of<T> *spectrum = from + line * kit.planes * kit.points;
    const int64_t begin = first + take(&line, blocks) * kit.points;
    complex_of<T> v[CUDA_FFT_POINTS], second[CUDA_FFT_POINTS] = {};
    spectrum_load(spectrum, place, v);
    fft_inverse(place, v);
    if (kit.planes == 2) {
        spectrum_load(spectrum + kit.points, place, second);
        fft_inverse(place, second);
    }
    if (number >= spectra) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = threadIdx.x + j * blockDim.x;
        put_at(sink, line, begin + at, result_of(kit, v[j], second[j], at));
    }
}

// Points of long transforms: [line][part][run of points].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_parts_kernel(const __grid_constant__ cuda_kit kit,
                      const __grid_constant__ cuda_windows windows, complex_of<T> *spectra,
                      const T *x)
{
    int64_t line = blockIdx.x;
    const int begin =
        (int)take(&line, kit.points / (EACH * CUDA_THREADS)) * EACH * CUDA_THREADS + threadIdx.x;
    complex_of<T> *to = spectra + line * kit.planes * kit.points;
    const int64_t first = windows.first + take(&line, windows.windows) * windows.hop;
    const T *samples = line_at(windows, x, line);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int j = begin + e * CUDA_THREADS;
        const complex_of<T> point =
            line_point(windows, samples, first, j, (int)kit.points, kit.form.turned);
        const complex_of<T> twisted = point * ((const complex_of<T> *)kit.twist)[j];
        to[j] = kit.planes == 1 ? twisted : point;
        if (kit.planes == 2) to[kit.points + j] = twisted;
    }
}

// [line][block][run of points]
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_results_kernel(const __grid_constant__ cuda_kit kit,
                        const __grid_constant__ cuda_sink sink, const complex_of<T> *from,
                        int64_t first, int64_t blocks)
{
    int64_t line = blockIdx.x;
    const int begin =
        (int)take(&line, kit.points / (EACH * CUDA_THREADS)) * EACH * CUDA_THREADS + threadIdx.x;
    const complex_of<T> *spectrum = from + line * kit.planes * kit.points;
    const int64_t position = first + take(&line, blocks) * kit.points;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int j = begin + e * CUDA_THREADS;
        const complex_of<T> second =
            kit.planes == 2 ? spectrum[kit.points + j] : complex_of<T>{0, 0};
        put_at(sink, line, position + j, result_of(kit, spectrum[j], second, j));
    }
}

// A thread has one bin of one block. Moving on by a part is a factor of -i, or 1 and -1 by planes
// (spectra.h).
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    mirrored_kernel(complex_of<T> *to, const complex_of<T> *from, int64_t points, int64_t planes,
                    int64_t blocks)
{
    const int64_t number = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x, bins = points * planes;
    int64_t block = number;
    const int64_t bin = take(&block, bins);
    if (block >= blocks) return;
    const complex_of<T> value = from[(blocks - 1 - block) * bins + bin];
    if (planes == 1) to[number] = {-value.im, -value.re};
    else to[number] = bin < points ? conjugated(value) : complex_of<T>{-value.re, value.im};
}

template <typename T>
cudaError_t launch_parts(const cuda_kit *kit, void *to, const cuda_windows *windows, int64_t lines,
                         const void *x, cudaStream_t stream)
{
    const int64_t spectra = lines * windows->windows, transforms = spectra * kit->planes;
    if (!kit->within)
        return queue(long_parts_kernel<T>, spectra * (kit->points / (EACH * CUDA_THREADS)),
                     dim3(CUDA_THREADS), 0, stream, *kit, *windows, (complex_of<T> *)to,
                     (const T *)x);
    const dim3 threads = fft_block(kit->form.log2_points);
    return queue(parts_kernel<T>, ceiling(transforms, threads.y), threads,
                 threads.y * cuda_fft_shared((size_t)kit->points, kit->f64), stream, *kit, *windows,
                 (complex_of<T> *)to, (const T *)x, transforms);
}

template <typename T>
cudaError_t launch_results(const cuda_kit *kit, const cuda_sink *sink, const void *from,
                           int64_t first, int64_t blocks, cudaStream_t stream)
{
    const int64_t spectra = sink->lines * blocks;
    if (!kit->within)
        return queue(long_results_kernel<T>, spectra * (kit->points / (EACH * CUDA_THREADS)),
                     dim3(CUDA_THREADS), 0, stream, *kit, *sink, (const complex_of<T> *)from, first,
                     blocks);
    const dim3 threads = fft_block(kit->form.log2_points);
    return queue(results_kernel<T>, ceiling(spectra, threads.y), threads,
                 threads.y * cuda_fft_shared((size_t)kit->points, kit->f64), stream, *kit, *sink,
                 (const complex_of<T> *)from, first, blocks, spectra);
}

template <typename T>
cudaError_t launch_mirrored(const cuda_kit *kit, void *to, const void *from, int64_t blocks,
                            cudaStream_t stream)
{
    return queue(mirrored_kernel<T>, ceiling(blocks * kit->points * kit->planes, CUDA_THREADS),
                 dim3(CUDA_THREADS), 0, stream, (complex_of<T> *)to, (const complex_of<T> *)from,
                 kit->points, kit->planes, blocks);
}
} // namespace

cudaError_t cuda_launch_parts(const cuda_kit *kit, void *to, const cuda_windows *windows,
                              int64_t lines, const void *x, cudaStream_t stream)
{
    return kit->f64 ? launch_parts<double>(kit, to, windows, lines, x, stream)
                    : launch_parts<float>(kit, to, windows, lines, x, stream);
}

cudaError_t cuda_launch_results(const cuda_kit *kit, const cuda_sink *sink, const void *from,
                                int64_t first, int64_t blocks, cudaStream_t stream)
{
    return kit->f64 ? launch_results<double>(kit, sink, from, first, blocks, stream)
                    : launch_results<float>(kit, sink, from, first, blocks, stream);
}

cudaError_t cuda_launch_mirrored(const cuda_kit *kit, void *to, const void *from, int64_t blocks,
                                 cudaStream_t stream)
{
    return kit->f64 ? launch_mirrored<double>(kit, to, from, blocks, stream)
                    : launch_mirrored<float>(kit, to, from, blocks, stream);
}
