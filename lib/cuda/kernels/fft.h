// SPDX-License-Identifier: MIT
// The interface of the device's transforms, of n complex points (decision 23). The order of bins is
// private to the transform: spectra may only be multiplied, conjugated and added.
//   cyclic        complex samples x[n]; products wrap cyclically after n samples.
//   negacyclic    2n real samples as the points x[j] - i x[j+n] modulo u^n + i; products wrap
//                 negacyclically after 2n samples (decision 2). No bin is special, no bin needs its
//                 mirror image.
// Transforms of up to cuda_fft_max points run in a thread block, fused with loading and storing
// (fft.cuh). Longer ones are passes over memory by cuFFT, which is opened on first use
// (cuda/device/fft.h).
#ifndef PARTITA_CUDA_FFT_H
#define PARTITA_CUDA_FFT_H

#include "interface.h"

enum {
    CUDA_FFT_POINTS = 16,         // points that one thread of a transform holds
    CUDA_FFT_MAX_F32 = 8192,      // points of a transform in a thread block: 512 threads,
    CUDA_FFT_MAX_F64 = 4096,      // and 256
    CUDA_FFT_MAX_CUFFT = 1 << 26, // points of one by cuFFT
};

static inline size_t cuda_fft_max(bool f64)
{
    return f64 ? CUDA_FFT_MAX_F64 : CUDA_FFT_MAX_F32;
}

// The parameters of a transform that a kernel needs.
struct cuda_fft_form {
    const void *twiddles; // in device memory: of every pass, longest nodes first (fft.cuh)
    int log2_points;
    int last; // where the twiddles of the last pass begin
    bool negacyclic;
};

// Passes divide by 16, then by the remainder, then by 16 down to single points: log2 of the second
// pass's divisor.
#define CUDA_FFT_SECOND_RADIX(log2_points) (((log2_points)-1) % 4 + 1)

// Pairs of twiddle factors that a pass has for each node and direction.
#define CUDA_FFT_PAIRS(log2_radix) (1 << ((log2_radix) > 2 ? (log2_radix)-2 : 0))

// Threads and bytes of shared memory of one transform in a thread block.
static inline int cuda_fft_threads(size_t points)
{
    return (int)(points / CUDA_FFT_POINTS);
}

// Number of transforms that share a thread block: several short ones fill it.
static inline int cuda_fft_rows(size_t points)
{
    enum { FULL = 128 }; // threads
    return cuda_fft_threads(points) < FULL ? FULL / cuda_fft_threads(points) : 1;
}

static inline size_t cuda_fft_shared(size_t points, bool f64)
{
    return (points + points / 16) * 2 * (f64 ? 8 : 4);
}

#endif
