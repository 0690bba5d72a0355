// SPDX-License-Identifier: MIT
// Spectra of the windows of many lines, and lines from spectra, one transform a row of threads.
#include "windows.cuh"

namespace {
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    spectra_kernel(const __grid_constant__ cuda_fft_form form,
                   const __grid_constant__ cuda_windows windows,
                   const __grid_constant__ cuda_range range, complex_of<T> *spectra, const T *x)
{
    const fft_place<T> place = fft_place_of<T>(form);
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    complex_of<T> v[16];
    // Rows of threads beyond the last window take the barriers with the others.
    const int64_t window = range.first + (i < range.n ? i : range.n - 1);
    const int points = 1 << place.log2_points;
#pragma unroll
    for (int j = 0; j < 16; j++)
        v[j] = windows_point(windows, x, window, place.thread + j * (points / 16), points,
                             place.turned);
    fft_forward(place, v);
    if (i < range.n) spectrum_store(spectra + (i << form.log2_points), place, v);
}

template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    lines_kernel(const __grid_constant__ cuda_fft_form form,
                 const __grid_constant__ cuda_lines lines, T *y, const complex_of<T> *spectra)
{
    const fft_place<T> place = fft_place_of<T>(form);
    const int64_t i = (int64_t)blockIdx.x * blockDim.y + threadIdx.y,
                  line = i < lines.lines ? i : lines.lines - 1;
    const int points = 1 << form.log2_points;
    complex_of<T> v[16];
    spectrum_load(spectra + (line << form.log2_points), place, v);
    fft_inverse(place, v);
    if (i >= lines.lines) return;
#pragma unroll
    for (int j = 0; j < 16; j++)
        lines_store(lines, y, line, place.thread + j * (points / 16), points, form.turned, v[j]);
}

template <typename T>
cudaError_t launch_spectra(const cuda_fft_form *form, const cuda_windows *windows,
                           const cuda_range *range, void *spectra, const void *x,
                           cudaStream_t stream)
{
    void (*const kernel)(cuda_fft_form, cuda_windows, cuda_range, complex_of<T> *, const T *) =
        spectra_kernel<T>;
    const dim3 threads = fft_block(form->log2_points);
    const size_t shared_bytes =
        threads.y * cuda_fft_shared((size_t)1 << form->log2_points, sizeof(T) == 8);
    return queue(kernel, ceiling(range->n, threads.y), threads, shared_bytes, stream, *form,
                 *windows, *range, (complex_of<T> *)spectra, (const T *)x);
}

template <typename T>
cudaError_t launch_lines(const cuda_fft_form *form, const cuda_lines *lines, void *y,
                         const void *spectra, cudaStream_t stream)
{
    void (*const kernel)(cuda_fft_form, cuda_lines, T *, const complex_of<T> *) = lines_kernel<T>;
    const dim3 threads = fft_block(form->log2_points);
    const size_t shared_bytes =
        threads.y * cuda_fft_shared((size_t)1 << form->log2_points, sizeof(T) == 8);
    return queue(kernel, ceiling(lines->lines, threads.y), threads, shared_bytes, stream, *form,
                 *lines, (T *)y, (const complex_of<T> *)spectra);
}
} // namespace

cudaError_t cuda_launch_spectra(const cuda_fft_form *form, bool f64, const cuda_windows *windows,
                                const cuda_range *range, void *spectra, const void *x,
                                cudaStream_t stream)
{
    return f64 ? launch_spectra<double>(form, windows, range, spectra, x, stream)
               : launch_spectra<float>(form, windows, range, spectra, x, stream);
}

cudaError_t cuda_launch_lines(const cuda_fft_form *form, bool f64, const cuda_lines *lines, void *y,
                              const void *spectra, cudaStream_t stream)
{
    return f64 ? launch_lines<double>(form, lines, y, spectra, stream)
               : launch_lines<float>(form, lines, y, spectra, stream);
}
