// SPDX-License-Identifier: MIT
// Sums of pairs of parts of two sizes, an interval of outputs each, and their way into the outputs.
// Intervals of one division do not overlap, and divisions are launches one after the other: nothing
// is added by two threads at once.
#include "cuda/kernels/spectra.cuh"
#include "intervals.h"

namespace {
enum {
    SUM_THREADS = 128,
    EACH = 4,        // points of a long transform that one thread moves
    MOST_TERMS = 64, // products summed in a row before they are rounded into a sum of sums
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

// A thread has one bin of one interval; blocks are [line][interval][bins of all planes].
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS, 8)
    intervals_kernel(const __grid_constant__ cuda_intervals intervals, int64_t bins)
{
    const cuda_pairs &pairs = intervals.pairs;
    int64_t line = blockIdx.x;
    const int64_t bin = take(&line, ceiling(bins, SUM_THREADS)) * SUM_THREADS + threadIdx.x;
    const int64_t interval = take(&line, pairs.count);
    if (bin >= bins) return;
    const chain chain = chain_of(intervals, pairs.first + interval);
    complex_of<T> total = {0, 0}, sum = {0, 0};
    int row = 0;
    for (int64_t term = 0; term < pairs.terms; term++) {
        const int64_t left_line =
            line_of(pairs.left_lines, pairs.left_first + line) + term * pairs.left_term;
        const int64_t right_line = line_of(pairs.right_lines, line) + term * pairs.right_term;
        const int64_t first = left_line * pairs.left_count + chain.taps,
                      last = right_line * pairs.right_count + chain.signal - pairs.right_first;
        const complex_of<T> *left = (const complex_of<T> *)pairs.left + first * bins + bin;
        const complex_of<T> *right = (const complex_of<T> *)pairs.right + last * bins + bin;
        for (int64_t i = 0; i < chain.count; i++) {
            multiply_add(sum, *left, *right);
            left += intervals.signal_units * bins;
            right -= intervals.taps_units * bins;
            if (++row < MOST_TERMS) continue;
            total = total + sum;
            sum = {0, 0};
            row = 0;
        }
    }
    ((complex_of<T> *)pairs.out)[(line * pairs.count + interval) * bins + bin] = total + sum;
}

template <typename T>
__device__ void add_at(const cuda_intervals &intervals, const cuda_sink &sink, int64_t line,
                       int64_t interval, int64_t at, complex_of<T> value)
{
    const int64_t position = intervals.position + interval * intervals.apart + at;
    if (at >= intervals.hop || !in_range(position, sink.end)) return;
    T *y = (T *)sink.y + ((sink.line + line) * sink.length + position) * (sink.complex ? 2 : 1);
    y[0] += value.re;
    if (sink.complex) y[1] += value.im;
}

// Both halves of the samples of one spectrum, from those of its planes at point j.
template <typename T>
__device__ void add_point(const cuda_kit &kit, const cuda_intervals &intervals,
                          const cuda_sink &sink, int64_t line, int64_t interval,
                          complex_of<T> first, complex_of<T> second, int64_t j)
{
    const complex_of<T> *twist = (const complex_of<T> *)kit.twist;
    complex_of<T> low, high;
    if (kit.planes == 1) {
        low = scaled(kit.within ? first : first * conjugated(twist[j]), 1 / (T)kit.points);
        high = {-low.im, 0};
    } else {
        const complex_of<T> turned = second * conjugated(twist[j]);
        low = scaled(first + turned, 1 / (T)(2 * kit.points));
        high = scaled(first - turned, 1 / (T)(2 * kit.points));
    }
    add_at(intervals, sink, line, interval, j, low);
    add_at(intervals, sink, line, interval, j + kit.points, high);
}

// Spectra are [line][interval].
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    add_intervals_kernel(const __grid_constant__ cuda_kit kit,
                         const __grid_constant__ cuda_intervals intervals,
                         const __grid_constant__ cuda_sink sink, int64_t spectra)
{
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const fft_place<T> place = fft_place_of<T>(kit.form);
    int64_t line = number < spectra
                       ? number
                       : spectra - 1; // rows beyond the last take the barriers with others
    const complex_of<T> *spectrum =
        (const complex_of<T> *)intervals.pairs.out + line * kit.planes * kit.points;
    const int64_t interval = take(&line, intervals.pairs.count);
    complex_of<T> v[CUDA_FFT_POINTS], second[CUDA_FFT_POINTS] = {};
    spectrum_load(spectrum, place, v);
    fft_inverse(place, v);
    if (kit.planes == 2) {
        spectrum_load(spectrum + kit.points, place, second);
        fft_inverse(place, second);
    }
    if (number >= spectra) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++)
        add_point(kit, intervals, sink, line, interval, v[j], second[j],
                  threadIdx.x + j * blockDim.x);
}

// [line][interval][run of points]
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    long_add_intervals_kernel(const __grid_constant__ cuda_kit kit,
                              const __grid_constant__ cuda_intervals intervals,
                              const __grid_constant__ cuda_sink sink)
{
    int64_t line = blockIdx.x;
    const int begin =
        (int)take(&line, kit.points / (EACH * CUDA_THREADS)) * EACH * CUDA_THREADS + threadIdx.x;
    const complex_of<T> *spectrum =
        (const complex_of<T> *)intervals.pairs.out + line * kit.planes * kit.points;
    const int64_t interval = take(&line, intervals.pairs.count);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int j = begin + e * CUDA_THREADS;
        const complex_of<T> second =
            kit.planes == 2 ? spectrum[kit.points + j] : complex_of<T>{0, 0};
        add_point(kit, intervals, sink, line, interval, spectrum[j], second, j);
    }
}

template <typename T>
cudaError_t launch_intervals(const cuda_kit *kit, const cuda_intervals *intervals,
                             cudaStream_t stream)
{
    const int64_t bins = kit->points * kit->planes,
                  spectra = intervals->pairs.lines * intervals->pairs.count;
    return queue(intervals_kernel<T>, ceiling(bins, SUM_THREADS) * spectra, dim3(SUM_THREADS), 0,
                 stream, *intervals, bins);
}

template <typename T>
cudaError_t launch_add_intervals(const cuda_kit *kit, const cuda_intervals *intervals,
                                 const cuda_sink *sink, cudaStream_t stream)
{
    const int64_t spectra = intervals->pairs.lines * intervals->pairs.count;
    if (!kit->within)
        return queue(long_add_intervals_kernel<T>, spectra * (kit->points / (EACH * CUDA_THREADS)),
                     dim3(CUDA_THREADS), 0, stream, *kit, *intervals, *sink);
    const dim3 threads = fft_block(kit->form.log2_points);
    return queue(add_intervals_kernel<T>, ceiling(spectra, threads.y), threads,
                 threads.y * cuda_fft_shared((size_t)kit->points, kit->f64), stream, *kit,
                 *intervals, *sink, spectra);
}
} // namespace

cudaError_t cuda_launch_intervals(const cuda_kit *kit, const cuda_intervals *intervals,
                                  cudaStream_t stream)
{
    return kit->f64 ? launch_intervals<double>(kit, intervals, stream)
                    : launch_intervals<float>(kit, intervals, stream);
}

cudaError_t cuda_launch_add_intervals(const cuda_kit *kit, const cuda_intervals *intervals,
                                      const cuda_sink *sink, cudaStream_t stream)
{
    return kit->f64 ? launch_add_intervals<double>(kit, intervals, sink, stream)
                    : launch_add_intervals<float>(kit, intervals, sink, stream);
}
