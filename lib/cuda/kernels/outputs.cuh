// SPDX-License-Identifier: MIT
// Samples of windows into the caller's outputs.
#ifndef PARTITA_CUDA_OUTPUTS_CUH
#define PARTITA_CUDA_OUTPUTS_CUH

#include "spectra.h"
#include "windows.cuh"

// The finish of the sums of one output channel.
template <typename T> struct finish {
    T bias;
    bool relu;
};

template <typename T>
inline __device__ finish<T> finish_of(bool relu, const T *bias, int64_t channel)
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

// Outputs of one window: output y[j], j < n, is its sample first + step*j; two reals each where
// samples are complex.
template <typename T> struct outputs {
    T *y;
    int first, n, step;
};

// Outputs at positions begin .. end-1 of a row, of which every stride-th is stored; sample i of the
// window is at `begin`.
template <typename T>
inline __device__ outputs<T> outputs_between(const cuda_outputs &out, T *y, int64_t row,
                                             int64_t begin, int64_t end, int64_t i, bool negacyclic)
{
    if (begin < 0) {
        i -= begin;
        begin = 0;
    }
    const int64_t j = out.stride > 1 ? ceiling(begin, out.stride) : begin;
    const int64_t last = out.stride > 1 ? ceiling(end, out.stride) : end,
                  n = (last < out.size ? last : out.size) - j;
    const int step =
        out.stride < 1 << 30 ? (int)out.stride : 1 << 30; // a longer one comes once at most
    return {y + (row * out.size + j) * (negacyclic ? 1 : 2), (int)(i + j * out.stride - begin),
            n > 0 ? (int)n : 0, step};
}

// The own outputs of window b.
template <typename T>
inline __device__ outputs<T> outputs_of(const cuda_outputs &out, T *y, int64_t row, int64_t b,
                                        bool negacyclic)
{
    return outputs_between(out, y, row, b * out.hop, (b + 1) * out.hop, out.skip, negacyclic);
}

// Stored, finished; or added to the contents.
template <bool ADD, typename T, typename S>
inline __device__ void output_store(const outputs<T> &to, int i, S sum, const finish<T> &finish)
{
    unsigned at = (unsigned)(i - to.first);
    if (to.step > 1) {
        if (i < to.first || at % to.step) return;
        at /= to.step;
    }
    if (at >= (unsigned)to.n) return;
    S *y = (S *)to.y + at;
    *y = ADD ? *y + sum : finished(sum, finish);
}

// Samples begin + thread + j*n/16, j < 16, where every one is an output: real parts of points, or
// imaginary ones.
template <bool ADD, bool IMAGINARY, typename T>
inline __device__ void outputs_store_consecutive(const outputs<T> &to, int begin, int n, int thread,
                                                 const complex_of<T> v[16], const finish<T> &finish)
{
    unsigned at = (unsigned)(begin + thread - to.first);
    T *y = to.y + (int)at;
    if (begin + n <= to.first || begin - to.first >= to.n) return;
#pragma unroll
    for (int j = 0; j < 16; j++, at += (unsigned)(n / 16), y += n / 16) {
        if (at >= (unsigned)to.n) continue;
        const T sum = IMAGINARY ? -v[j].im : v[j].re;
        *y = ADD ? *y + sum : finished(sum, finish);
    }
}

// All of a thread's points, as fft_block_inverse leaves them.
template <bool ADD, typename T>
inline __device__ void outputs_store(const outputs<T> &to, const fft_thread<T> &fft,
                                     const complex_of<T> v[16], const finish<T> &finish)
{
    const int points = 1 << fft.log2_points;
    if (to.step == 1 && fft.negacyclic) {
        outputs_store_consecutive<ADD, false>(to, 0, points, fft.thread, v, finish);
        outputs_store_consecutive<ADD, true>(to, points, points, fft.thread, v, finish);
        return;
    }
#pragma unroll
    for (int j = 0; j < 16; j++) {
        const int i = fft.thread + j * (points / 16);
        if (fft.negacyclic) {
            output_store<ADD>(to, i, v[j].re, finish);
            output_store<ADD>(to, i + points, -v[j].im, finish);
        } else output_store<ADD>(to, i, v[j], finish);
    }
}

// A result at a position of a row.
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
