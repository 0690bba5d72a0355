// SPDX-License-Identifier: MIT
// The spectra of filters as products read them: as transforms store them, or in 16 bits (decision
// 30). In 16 bits a bin is a word with the mantissa of its real part in the lower half and that of
// its imaginary part in the upper half; CUDA_I16_BINS bins have a scale together, which is in an
// array of its own.
#ifndef PARTITA_CUDA_SPECTRA_I16_CUH
#define PARTITA_CUDA_SPECTRA_I16_CUH

#include <math.h>

#include "cuda/kernels/complex.cuh"
#include "cuda/kernels/launch.cuh"
#include "kernels.h"

// Values that a thread reads at once, and its sums.
template <typename T> using bin_vector = vector_of<complex_of<T>>;

// Reads 16 bytes with one instruction, which the compiler does not do for complex numbers.
template <typename T> inline __device__ bin_vector<T> load_bins(const bin_vector<T> *at)
{
    const vector_of<T> reals = *(const vector_of<T> *)at;
    bin_vector<T> v;
#pragma unroll
    for (int i = 0; i < bin_vector<T>::N; i++) v.at[i] = {reals.at[2 * i], reals.at[2 * i + 1]};
    return v;
}

// A thread's place in the spectra of a path: vector `first` of them.
template <typename T> struct tap_bins {
    const bin_vector<T> *at;

    __device__ tap_bins(const cuda_path &path, int64_t first)
        : at((const bin_vector<T> *)path.spectra + first)
    {
    }

    __device__ bin_vector<T> load() const
    {
        return load_bins(at);
    }

    __device__ void advance(int64_t vectors)
    {
        at += vectors;
    }
};

// The same in 16 bits: vectors are as wide, and have half of the bytes.
struct tap_bins_i16 {
    static constexpr int N = bin_vector<float>::N, LINE = CUDA_I16_BINS / N; // vectors
    struct __align__(8) words
    {
        uint32_t at[N];
    };
    const words *at;
    const float *scale;

    __device__ tap_bins_i16(const cuda_path &path, int64_t first)
        : at((const words *)path.spectra + first), scale(path.scales + first / LINE)
    {
    }

    __device__ bin_vector<float> load() const
    {
        const words now = *at;
        const float step = *scale;
        bin_vector<float> v;
#pragma unroll
        for (int i = 0; i < N; i++)
            v.at[i] = {(float)(int16_t)now.at[i] * step, (float)(int16_t)(now.at[i] >> 16) * step};
        return v;
    }

    // Whole shares, and so whole lines.
    __device__ void advance(int64_t vectors)
    {
        at += vectors;
        scale += vectors / LINE;
    }
};

// Rounds a line to 16 bits and returns its scale. A line with values that are not finite has the
// scale NaN. The smallest scale is a normal number.
inline __device__ float round_line(uint32_t words[CUDA_I16_BINS],
                                   const complex_of<float> line[CUDA_I16_BINS])
{
    float peak = 0;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < CUDA_I16_BINS; i++) {
        peak = fmaxf(peak, fmaxf(fabsf(line[i].re), fabsf(line[i].im)));
        finite = finite && isfinite(line[i].re) && isfinite(line[i].im);
    }
    const float step = fmaxf(peak / 32767, 0x1p-126f);
#pragma unroll
    for (int i = 0; i < CUDA_I16_BINS; i++)
        words[i] = finite ? (uint16_t)(int)rintf(line[i].re / step) |
                                (uint32_t)(int)rintf(line[i].im / step) << 16
                          : 0;
    return finite ? step : NAN;
}

// All threads of the thread block must call this. A thread gives bins thread + j * threads of its
// transform and gets bins CUDA_I16_BINS * thread + j, a line. shared: room for the transform and a
// sixteenth more (cuda_fft_shared).
inline __device__ void gather_line(complex_of<float> v[CUDA_I16_BINS], complex_of<float> *shared,
                                   int thread, int threads)
{
    // A gap follows every 16 bins, so that threads of a warp use different banks of shared memory.
    __syncthreads();
#pragma unroll
    for (int j = 0; j < CUDA_I16_BINS; j++) {
        const int at = thread + j * threads;
        shared[at + at / 16] = v[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < CUDA_I16_BINS; j++) v[j] = shared[thread * 17 + j];
}

#endif
