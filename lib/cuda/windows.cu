// SPDX-License-Identifier: MIT
// Spectra of the windows of many lines, and lines from spectra, one transform a row of threads.
#include "windows.cuh"

namespace {
template <typename T> constexpr int most_threads()
{
    return (sizeof(T) == 8 ? CUDA_FFT_MOST_F64 : CUDA_FFT_MOST_F32) / CUDA_FFT_POINTS;
}

// The place of this thread's transform, one of threadIdx.y.
template <typename T> __device__ fft_place<T> locate(const cuda_fft_form &form)
{
    const int64_t points = (int64_t)1 << form.log2_points;
    complex_of<T> *shared = (complex_of<T> *)shared_memory + threadIdx.y * (points + points / 16);
    return fft_locate<T>(form, shared, threadIdx.x);
}

template <typename T>
__global__ void __launch_bounds__(most_threads<T>(), 1)
    spectra_kernel(const __grid_constant__ cuda_fft_form form, const __grid_constant__ cuda_windows windows,
                   complex_of<T> *spectra, const T *x)
{
    const fft_place<T> place = locate<T>(form);
    const int64_t n = windows.lines * windows.windows, i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    complex_of<T> v[16];
    // Rows of threads beyond the last window take the barriers with the others.
    const int64_t window = i < n ? i : n - 1;
    windows_load(windows, x, window / windows.windows, window % windows.windows, place, v);
    fft_forward(place, v);
    if (i < n) spectrum_store(spectra + (i << form.log2_points), place, v);
}

template <typename T> __device__ void store_lines(const cuda_lines &lines, int64_t line, int64_t i, T value, T *y)
{
    int64_t at = i - lines.first;
    if (at < 0 || at % lines.step || at / lines.step >= lines.length) return;
    at /= lines.step;
    if (lines.reversed) at = lines.length - 1 - at;
    y[line * lines.length + at] = value;
}

template <typename T>
__global__ void __launch_bounds__(most_threads<T>(), 1)
    lines_kernel(const __grid_constant__ cuda_fft_form form, const __grid_constant__ cuda_lines lines, T *y,
                 const complex_of<T> *spectra)
{
    const fft_place<T> place = locate<T>(form);
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y, line = i < lines.lines ? i : lines.lines - 1;
    const int64_t points = (int64_t)1 << form.log2_points;
    complex_of<T> v[16];
    spectrum_load(spectra + (line << form.log2_points), place, v);
    fft_inverse(place, v);
    if (i >= lines.lines) return;
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int64_t point = place.thread + j * (points / 16);
        if (form.turned) {
            store_lines(lines, line, point, v[j].re, y);
            store_lines(lines, line, point + points, -v[j].im, y);
        } else store_lines(lines, line, point, v[j], (complex_of<T> *)y);
    }
}

template <typename Kernel> cudaError_t allow(Kernel kernel, size_t shared_bytes)
{
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
}

template <typename T>
cudaError_t launch_spectra(const cuda_fft_form *form, const cuda_windows *windows, void *spectra, const void *x,
                           cudaStream_t stream)
{
    void (*const kernel)(cuda_fft_form, cuda_windows, complex_of<T> *, const T *) = spectra_kernel<T>;
    const dim3 threads = fft_block(form->log2_points);
    const size_t shared_bytes = threads.y * cuda_fft_shared((size_t)1 << form->log2_points, sizeof(T) == 8);
    const cudaError_t error = allow(kernel, shared_bytes);
    if (error != cudaSuccess) return error;
    return queue(kernel, ceiling(windows->lines * windows->windows, threads.y), threads, shared_bytes, stream, *form,
                 *windows, (complex_of<T> *)spectra, (const T *)x);
}

template <typename T>
cudaError_t launch_lines(const cuda_fft_form *form, const cuda_lines *lines, void *y, const void *spectra,
                         cudaStream_t stream)
{
    void (*const kernel)(cuda_fft_form, cuda_lines, T *, const complex_of<T> *) = lines_kernel<T>;
    const dim3 threads = fft_block(form->log2_points);
    const size_t shared_bytes = threads.y * cuda_fft_shared((size_t)1 << form->log2_points, sizeof(T) == 8);
    const cudaError_t error = allow(kernel, shared_bytes);
    if (error != cudaSuccess) return error;
    return queue(kernel, ceiling(lines->lines, threads.y), threads, shared_bytes, stream, *form, *lines, (T *)y,
                 (const complex_of<T> *)spectra);
}
} // namespace

cudaError_t cuda_launch_spectra(const cuda_fft_form *form, bool f64, const cuda_windows *windows, void *spectra,
                                const void *x, cudaStream_t stream)
{
    return f64 ? launch_spectra<double>(form, windows, spectra, x, stream)
               : launch_spectra<float>(form, windows, spectra, x, stream);
}

cudaError_t cuda_launch_lines(const cuda_fft_form *form, bool f64, const cuda_lines *lines, void *y,
                              const void *spectra, cudaStream_t stream)
{
    return f64 ? launch_lines<double>(form, lines, y, spectra, stream)
               : launch_lines<float>(form, lines, y, spectra, stream);
}
