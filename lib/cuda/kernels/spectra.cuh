// SPDX-License-Identifier: MIT
// Results of spectra of parts (spectra.h).
#ifndef PARTITA_CUDA_SPECTRA_CUH
#define PARTITA_CUDA_SPECTRA_CUH

#include "spectra.h"
#include "windows.cuh"

// The inverse transforms of the planes of one spectrum.
template <typename T>
inline __device__ void planes_inverse(const cuda_fft_params &params, const complex_of<T> *spectrum,
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
inline __device__ complex_of<T> planes_sample(const cuda_fft_params &params, complex_of<T> first,
                                              complex_of<T> second, int64_t j)
{
    const complex_of<T> *twist = (const complex_of<T> *)params.twist;
    if (params.planes == 1)
        return scaled(params.in_block ? first : first * conjugated(twist[j]), 1 / (T)params.points);
    return scaled(first + second * conjugated(twist[j]), 1 / (T)(2 * params.points));
}

template <typename T>
inline __device__ void sink_store(const cuda_sink &sink, int64_t row, int64_t position,
                                  complex_of<T> value)
{
    int64_t i = position;
    if (position < 0 || position >= sink.end) return;
    if (sink.stride > 1) {
        i = position / sink.stride;
        if (i * sink.stride != position) return;
    }
    row += sink.row;
    if (sink.bias) value.re += ((const T *)sink.bias)[row % sink.channels];
    if (sink.relu && value.re < 0) value.re = 0;
    if (sink.reversed) i = sink.length - 1 - i;
    T *y = (T *)sink.y + (row * sink.length + i) * (sink.complex_samples ? 2 : 1);
    y[0] = value.re;
    if (sink.complex_samples) y[1] = value.im;
}

#endif
