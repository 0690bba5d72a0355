// SPDX-License-Identifier: MIT
// Samples of windows on their way into spectra and back: fused with the transform where that fits a
// thread block, else to and from the points that cuFFT transforms.
#include "outputs.cuh"

namespace {
enum { POINTS_OF_THREAD = 4, LONG_STEP = POINTS_OF_THREAD * CUDA_THREADS };

// Transforms are [row][window][plane].
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    windows_kernel(const __grid_constant__ cuda_fft_params params,
                   const __grid_constant__ cuda_windows windows, complex_of<T> *spectra, const T *x,
                   int64_t transforms)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_thread<T> fft = fft_thread_of<T>(params.form);
    // Thread rows beyond the last transform take part in its barriers.
    int64_t row = number < transforms ? number : transforms - 1;
    const int64_t plane = take(&row, params.planes), index = take(&row, windows.count);
    complex_of<T> v[CUDA_FFT_POINTS];
    const T *samples = windows_row_at(windows, x, row);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = threadIdx.x + j * blockDim.x;
        v[j] = windows_point(windows, samples, windows.first + index * windows.hop, at,
                             (int)params.points, fft.negacyclic);
        if (windows.scale != 1) v[j] = scaled(v[j], (T)windows.scale);
        if (plane) v[j] = v[j] * ((const complex_of<T> *)params.twist)[at];
    }
    fft_block_forward(fft, v);
    if (number < transforms) spectrum_store(spectra + number * params.points, fft, v);
}

// The inverse transforms of the planes of one spectrum.
template <typename T>
__device__ void planes_inverse(const cuda_fft_params &params, const complex_of<T> *spectrum,
                               const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS],
                               complex_of<T> second[CUDA_FFT_POINTS])
{
    spectrum_load(spectrum, fft, v);
    fft_block_inverse(fft, v);
    if (params.planes == 1) return;
    spectrum_load(spectrum + params.points, fft, second);
    fft_block_inverse(fft, second);
}

// Sample j of a result, from the points of its planes; of real samples the imaginary part is minus
// sample j + points.
template <typename T>
__device__ complex_of<T> planes_sample(const cuda_fft_params &params, complex_of<T> first,
                                       complex_of<T> second, int64_t j)
{
    const complex_of<T> *twist = (const complex_of<T> *)params.twist;
    if (params.planes == 1)
        return scaled(params.in_block ? first : first * conjugated(twist[j]), 1 / (T)params.points);
    return scaled(first + second * conjugated(twist[j]), 1 / (T)(2 * params.points));
}

template <typename T>
__device__ void sink_add(const cuda_sink &sink, int64_t row, int64_t begin, int64_t at,
                         complex_of<T> value)
{
    const int64_t position = begin + at;
    if (at >= sink.hop || position < 0 || position >= sink.end) return;
    T *y =
        (T *)sink.y + ((sink.row + row) * sink.length + position) * (sink.complex_samples ? 2 : 1);
    y[0] += value.re;
    if (sink.complex_samples) y[1] += value.im;
}

// Sample j of the block of results that begins at a position, from the points of its planes; both
// halves where they accumulate.
template <bool ACCUMULATE, typename T>
__device__ void result_store(const cuda_fft_params &params, const cuda_sink &sink, int64_t row,
                             int64_t begin, int j, complex_of<T> first, complex_of<T> second)
{
    const complex_of<T> low = planes_sample(params, first, second, j);
    if (!ACCUMULATE) return sink_store(sink, row, begin + j, low);
    complex_of<T> high = {-low.im, 0};
    if (params.planes == 2)
        high = scaled(first - second * conjugated(((const complex_of<T> *)params.twist)[j]),
                      1 / (T)(2 * params.points));
    sink_add(sink, row, begin, j, low);
    sink_add(sink, row, begin, j + params.points, high);
}

// Spectra are [row][block].
template <typename T, bool ACCUMULATE>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    results_kernel(const __grid_constant__ cuda_fft_params params,
                   const __grid_constant__ cuda_sink sink, const complex_of<T> *from, int64_t first,
                   int64_t blocks, int64_t spectra)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_thread<T> fft = fft_thread_of<T>(params.form);
    int64_t row = number < spectra ? number : spectra - 1;
    complex_of<T> v[CUDA_FFT_POINTS], second[CUDA_FFT_POINTS] = {};
    planes_inverse(params, from + row * params.planes * params.points, fft, v, second);
    const int64_t begin = first + take(&row, blocks) * (ACCUMULATE ? sink.apart : params.points);
    if (number >= spectra) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++)
        result_store<ACCUMULATE>(params, sink, row, begin, threadIdx.x + j * blockDim.x, v[j],
                                 second[j]);
}

// Points of long transforms: [row][window][LONG_STEP points].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_windows_kernel(const __grid_constant__ cuda_fft_params params,
                        const __grid_constant__ cuda_windows windows, complex_of<T> *spectra,
                        const T *x)
{
    int64_t row = blockIdx.x;
    const int begin = (int)take(&row, params.points / LONG_STEP) * LONG_STEP + threadIdx.x;
    complex_of<T> *to = spectra + row * params.planes * params.points;
    const int64_t first = windows.first + take(&row, windows.count) * windows.hop;
    const T *samples = windows_row_at(windows, x, row);
#pragma unroll
    for (int e = 0; e < POINTS_OF_THREAD; e++) {
        const int j = begin + e * CUDA_THREADS;
        const complex_of<T> point =
            windows_point(windows, samples, first, j, (int)params.points, params.form.negacyclic);
        const complex_of<T> twisted = point * ((const complex_of<T> *)params.twist)[j];
        to[j] = params.planes == 1 ? twisted : point;
        if (params.planes == 2) to[params.points + j] = twisted;
    }
}

// [row][block][LONG_STEP points]
template <typename T, bool ACCUMULATE>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_results_kernel(const __grid_constant__ cuda_fft_params params,
                        const __grid_constant__ cuda_sink sink, const complex_of<T> *from,
                        int64_t first, int64_t blocks)
{
    int64_t row = blockIdx.x;
    const int at = (int)take(&row, params.points / LONG_STEP) * LONG_STEP + threadIdx.x;
    const complex_of<T> *spectrum = from + row * params.planes * params.points;
    const int64_t begin = first + take(&row, blocks) * (ACCUMULATE ? sink.apart : params.points);
#pragma unroll
    for (int e = 0; e < POINTS_OF_THREAD; e++) {
        const int j = at + e * CUDA_THREADS;
        const complex_of<T> second =
            params.planes == 2 ? spectrum[params.points + j] : complex_of<T>{0, 0};
        result_store<ACCUMULATE>(params, sink, row, begin, j, spectrum[j], second);
    }
}

// A thread has one bin of one block.
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
} // namespace

cudaError_t cuda_launch_windows(const cuda_fft_params *params, void *to,
                                const cuda_windows *windows, int64_t rows, const void *x)
{
    const int64_t n = rows * windows->count, transforms = n * params->planes;
    const int log2_points = params->form.log2_points;
    const dim3 threads = fft_block(log2_points);
    if (!params->in_block)
        return queue_real(params->f64, long_windows_kernel<float>, long_windows_kernel<double>,
                          n * (params->points / LONG_STEP), dim3(CUDA_THREADS), 0, *params,
                          *windows, to, x);
    return queue_real(
        params->f64, windows_kernel<float>, windows_kernel<double>, ceiling(transforms, threads.y),
        threads, fft_block_shared(log2_points, params->f64), *params, *windows, to, x, transforms);
}

cudaError_t cuda_launch_results(const cuda_fft_params *params, const cuda_sink *sink,
                                const void *from, int64_t first, int64_t blocks)
{
    const int64_t n = sink->rows * blocks;
    const int log2_points = params->form.log2_points;
    const dim3 threads = fft_block(log2_points);
    return with_scalar(params->f64, [=](auto scalar) {
        using T = decltype(scalar);
        const auto kernel = sink->accumulate ? results_kernel<T, true> : results_kernel<T, false>;
        const auto long_kernel =
            sink->accumulate ? long_results_kernel<T, true> : long_results_kernel<T, false>;
        if (!params->in_block)
            return queue(long_kernel, n * (params->points / LONG_STEP), dim3(CUDA_THREADS), 0,
                         *params, *sink, from, first, blocks);
        return queue(kernel, ceiling(n, threads.y), threads,
                     fft_block_shared(log2_points, params->f64), *params, *sink, from, first,
                     blocks, n);
    });
}

cudaError_t cuda_launch_mirrored(const cuda_fft_params *params, void *to, const void *from,
                                 int64_t blocks)
{
    return queue_real(params->f64, mirrored_kernel<float>, mirrored_kernel<double>,
                      ceiling(blocks * params->points * params->planes, CUDA_THREADS),
                      dim3(CUDA_THREADS), 0, to, from, params->points, params->planes, blocks);
}
