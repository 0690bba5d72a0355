// SPDX-License-Identifier: MIT
// Sums of pairs of parts of two sizes, an interval of outputs each, and adding them to the outputs.
// Intervals of one division do not overlap, and divisions are launches one after the other: no two
// threads add to one output at once.
#include "kernels.cuh"

namespace {
enum {
    SUM_THREADS = 128,
    POINTS_OF_THREAD = 4, // of a long transform
    LONG_STEP = POINTS_OF_THREAD * CUDA_THREADS,
};

// Pairs that begin at one output: the first one; from each to the next it is signal_units up in the
// taps and taps_units down in the signal.
struct chain {
    int64_t taps, signal, count;
};

__device__ chain chain_of(const cuda_intervals &intervals, int64_t interval)
{
    const int64_t t = intervals.taps_units, s = intervals.signal_units;
    const int64_t at = intervals.begin + interval * (t + s), reach = at / t;
    const int64_t top = reach < intervals.pairs.left_count ? reach : intervals.pairs.left_count - 1;
    int64_t back = (top - intervals.residue - interval) % s;
    if (back < 0) back += s;
    const int64_t i = top - back, j = (at - i * t) / s;
    if (i < 0 || j >= intervals.signals) return {0, 0, 0};
    const int64_t down = i / s, up = (intervals.signals - 1 - j) / t, more = down < up ? down : up;
    return {i - more * s, j + more * t, more + 1};
}

// A thread has one bin of one interval; blocks are [row][interval][bins of all planes].
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS, 8)
    intervals_kernel(const __grid_constant__ cuda_intervals intervals, int64_t bins)
{
    const cuda_pairs &pairs = intervals.pairs;
    int64_t row = blockIdx.x;
    const int64_t bin = take(&row, ceiling(bins, SUM_THREADS)) * SUM_THREADS + threadIdx.x;
    const int64_t interval = take(&row, pairs.count);
    if (bin >= bins) return;
    const chain chain = chain_of(intervals, pairs.first + interval);
    complex_of<T> total = {0, 0}, sum = {0, 0};
    int summed = 0;
    for (int64_t term = 0; term < pairs.terms; term++) {
        const int64_t left_row =
            row_of(pairs.left_rows, pairs.left_first + row) + term * pairs.left_term;
        const int64_t right_row = row_of(pairs.right_rows, row) + term * pairs.right_term;
        const int64_t first = left_row * pairs.left_count + chain.taps,
                      last = right_row * pairs.right_count + chain.signal - pairs.right_first;
        const complex_of<T> *left = (const complex_of<T> *)pairs.left + first * bins + bin;
        const complex_of<T> *right = (const complex_of<T> *)pairs.right + last * bins + bin;
        for (int64_t i = 0; i < chain.count; i++) {
            multiply_add(sum, *left, *right);
            left += intervals.signal_units * bins;
            right -= intervals.taps_units * bins;
            if (++summed < MAX_TERMS) continue;
            total = total + sum;
            sum = {0, 0};
            summed = 0;
        }
    }
    ((complex_of<T> *)pairs.out)[(row * pairs.count + interval) * bins + bin] = total + sum;
}

template <typename T>
__device__ void add_at(const cuda_intervals &intervals, const cuda_sink &sink, int64_t row,
                       int64_t interval, int64_t at, complex_of<T> value)
{
    const int64_t position = intervals.position + interval * intervals.apart + at;
    if (at >= intervals.hop || !in_bounds(position, sink.end)) return;
    T *y =
        (T *)sink.y + ((sink.row + row) * sink.length + position) * (sink.complex_samples ? 2 : 1);
    y[0] += value.re;
    if (sink.complex_samples) y[1] += value.im;
}

// Both halves of the samples of one spectrum, from the points j of its planes.
template <typename T>
__device__ void add_point(const cuda_fft_params &params, const cuda_intervals &intervals,
                          const cuda_sink &sink, int64_t row, int64_t interval, complex_of<T> first,
                          complex_of<T> second, int64_t j)
{
    const complex_of<T> low = planes_sample(params, first, second, j);
    complex_of<T> high = {-low.im, 0};
    if (params.planes == 2)
        high = scaled(first - second * conjugated(((const complex_of<T> *)params.twist)[j]),
                      1 / (T)(2 * params.points));
    add_at(intervals, sink, row, interval, j, low);
    add_at(intervals, sink, row, interval, j + params.points, high);
}

// Spectra are [row][interval].
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    add_intervals_kernel(const __grid_constant__ cuda_fft_params params,
                         const __grid_constant__ cuda_intervals intervals,
                         const __grid_constant__ cuda_sink sink, int64_t spectra)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_thread<T> fft = fft_thread_of<T>(params.form);
    // Thread rows beyond the last spectrum take part in its barriers.
    int64_t row = number < spectra ? number : spectra - 1;
    const complex_of<T> *spectrum =
        (const complex_of<T> *)intervals.pairs.out + row * params.planes * params.points;
    const int64_t interval = take(&row, intervals.pairs.count);
    complex_of<T> v[CUDA_FFT_POINTS], second[CUDA_FFT_POINTS] = {};
    planes_inverse(params, spectrum, fft, v, second);
    if (number >= spectra) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++)
        add_point(params, intervals, sink, row, interval, v[j], second[j],
                  threadIdx.x + j * blockDim.x);
}

// [row][interval][LONG_STEP points]
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_add_intervals_kernel(const __grid_constant__ cuda_fft_params params,
                              const __grid_constant__ cuda_intervals intervals,
                              const __grid_constant__ cuda_sink sink)
{
    int64_t row = blockIdx.x;
    const int begin = (int)take(&row, params.points / LONG_STEP) * LONG_STEP + threadIdx.x;
    const complex_of<T> *spectrum =
        (const complex_of<T> *)intervals.pairs.out + row * params.planes * params.points;
    const int64_t interval = take(&row, intervals.pairs.count);
#pragma unroll
    for (int e = 0; e < POINTS_OF_THREAD; e++) {
        const int j = begin + e * CUDA_THREADS;
        const complex_of<T> second =
            params.planes == 2 ? spectrum[params.points + j] : complex_of<T>{0, 0};
        add_point(params, intervals, sink, row, interval, spectrum[j], second, j);
    }
}
} // namespace

cudaError_t cuda_launch_intervals(const cuda_fft_params *params, const cuda_intervals *intervals,
                                  cudaStream_t stream)
{
    const int64_t bins = params->points * params->planes,
                  spectra = intervals->pairs.rows * intervals->pairs.count;
    return with_scalar(params->f64, [=](auto scalar) {
        return queue(intervals_kernel<decltype(scalar)>, ceiling(bins, SUM_THREADS) * spectra,
                     dim3(SUM_THREADS), 0, stream, *intervals, bins);
    });
}

cudaError_t cuda_launch_add_intervals(const cuda_fft_params *params,
                                      const cuda_intervals *intervals, const cuda_sink *sink,
                                      cudaStream_t stream)
{
    const int64_t spectra = intervals->pairs.rows * intervals->pairs.count;
    const int log2_points = params->form.log2_points;
    const dim3 threads = fft_block(log2_points);
    return with_scalar(params->f64, [=](auto scalar) {
        using T = decltype(scalar);
        if (!params->in_block)
            return queue(long_add_intervals_kernel<T>, spectra * (params->points / LONG_STEP),
                         dim3(CUDA_THREADS), 0, stream, *params, *intervals, *sink);
        return queue(add_intervals_kernel<T>, ceiling(spectra, threads.y), threads,
                     fft_block_shared(log2_points, params->f64), stream, *params, *intervals, *sink,
                     spectra);
    });
}
