// SPDX-License-Identifier: MIT
// Samples of windows into the caller's outputs.
#ifndef PARTITA_CUDA_OUTPUTS_CUH
#define PARTITA_CUDA_OUTPUTS_CUH

#include "save.h"
#include "windows.cuh"

// What becomes of the sums of one output channel.
template <typename T> struct finish {
    T bias;
    bool relu;
};

template <typename T> inline __device__ finish<T> finish_of(bool relu, const T *bias, int64_t channel)
{
    return {bias ? bias[channel] : 0, relu};
}

// A NaN stays one. Layers are real.
template <typename T> inline __device__ T finished(T sum, const finish<T> &finish)
{
    sum += finish.bias;
    return finish.relu && sum < 0 ? 0 : sum;
}

template <typename T> inline __device__ complex_of<T> finished(complex_of<T> sum, const finish<T> &)
{
    return sum;
}

// Outputs of one window: y[j] is its sample first + step*j, j < n.
template <typename S> struct outputs {
    S *y;
    int first, n, step;
};

template <typename S> inline __device__ outputs<S> outputs_of(const cuda_outputs &out, S *line, int64_t b)
{
    // Positions begin .. end-1 of the line, of which every stride-th is kept.
    const int64_t begin = b * out.hop, j = ceiling(begin, out.stride), end = ceiling(begin + out.hop, out.stride);
    const int64_t n = (end < out.size ? end : out.size) - j;
    const int step = out.stride < out.hop ? (int)out.stride : (int)out.hop; // a longer one comes once at most
    return {line + j, (int)(out.skip + j * out.stride - begin), n > 0 ? (int)n : 0, step};
}

template <typename S, typename T>
inline __device__ void output_store(const outputs<S> &to, int i, S sum, const finish<T> &finish)
{
    unsigned at = (unsigned)(i - to.first);
    if (to.step > 1) {
        if (i < to.first || at % to.step) return;
        at /= to.step;
    }
    if (at < (unsigned)to.n) to.y[at] = finished(sum, finish);
}

// One point of a window, in memory (jobs.h).
template <typename T>
inline __device__ void outputs_store_point(const cuda_outputs &out, T *y, int64_t line, int64_t b, int i, int points,
                                           bool turned, complex_of<T> value, const finish<T> &finish)
{
    if (turned) {
        const outputs<T> to = outputs_of(out, y + line * out.size, b);
        output_store(to, i, value.re, finish);
        output_store(to, i + points, -value.im, finish);
    } else output_store(outputs_of(out, (complex_of<T> *)y + line * out.size, b), i, value, finish);
}

// Points of an inverse, held as fft_inverse leaves them, into window b of a line.
template <typename T>
inline __device__ void outputs_store(const cuda_outputs &out, T *y, int64_t line, int64_t b, const fft_place<T> &place,
                                     const complex_of<T> v[16], const finish<T> &finish)
{
    const int points = 1 << place.log2_points;
    if (place.turned) {
        const outputs<T> to = outputs_of(out, y + line * out.size, b);
#pragma unroll
        for (int j = 0; j < 16; j++) {
            output_store(to, place.thread + j * (points / 16), v[j].re, finish);
            output_store(to, place.thread + j * (points / 16) + points, -v[j].im, finish);
        }
    } else {
        const outputs<complex_of<T>> to = outputs_of(out, (complex_of<T> *)y + line * out.size, b);
#pragma unroll
        for (int j = 0; j < 16; j++) output_store(to, place.thread + j * (points / 16), v[j], finish);
    }
}

// Points of window b of a line of x as fft_forward wants them.
template <typename T>
inline __device__ void inputs_load(const cuda_windows &in, const T *x, int64_t line, int64_t first,
                                   const fft_place<T> &place, complex_of<T> v[16])
{
    const int points = 1 << place.log2_points;
    if (place.turned) {
        const window<T> from = window_of(in, x + line * in.size, first);
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const int i = place.thread + j * (points / 16);
            v[j] = {window_sample(from, i), -window_sample(from, i + points)};
        }
    } else {
        const window<complex_of<T>> from = window_of(in, (const complex_of<T> *)x + line * in.size, first);
#pragma unroll
        for (int j = 0; j < 16; j++) v[j] = window_sample(from, place.thread + j * (points / 16));
    }
}

#endif
