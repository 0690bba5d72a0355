// SPDX-License-Identifier: MIT
// Sums over all pairs of blocks that contribute to an output block, or for blocks of two sizes to
// an interval of outputs, bin by bin. For output blocks, a thread has one bin of consecutive ones
// and sums SUMS of them at a time: one bin of a left block is read for all of them, and right
// blocks go round a ring of registers, so that SUMS products take two loads.
#include "kernels.h"

#include <math.h>

#include "cuda/kernels/outputs.cuh"

namespace {
enum { PAIRS_THREADS = 128 };

constexpr int MAX_TERMS = 64; // products summed in a row before they are rounded into a sum of sums

// Sums that a thread makes at once: a divisor of MAX_TERMS.
template <typename T> constexpr int SUMS_AT_ONCE = sizeof(T) == 8 ? 4 : 8;

// Explicit fused operations: the compiler sees this in several places, and a sum's bits must be the
// same in all of them.
template <typename T>
inline __device__ void add_product(complex_of<T> &sum, complex_of<T> a, complex_of<T> b)
{
    sum.re = fma(-a.im, b.im, fma(a.re, b.re, sum.re));
    sum.im = fma(a.im, b.re, fma(a.re, b.im, sum.im));
}

// One bin of the blocks of one row, `pitch` apart.
template <typename T> struct bin_blocks {
    const complex_of<T> *bin;
    int64_t pitch;
    int first, count;

    __device__ bool has(int block) const
    {
        return (unsigned)(block - first) < (unsigned)count;
    }

    // Zero where there is none; without CHECK there is one.
    template <bool CHECK> __device__ complex_of<T> at(int block) const
    {
        return !CHECK || has(block) ? bin[(block - first) * pitch] : complex_of<T>{0, 0};
    }
};

// SUMS left blocks from i on and the right ones that they meet in output blocks q .. q + SUMS - 1.
// ring[k] is the right block for sum k and left block i; the newest replaces the oldest one.
template <typename T, int SUMS, bool CHECK>
__device__ void add_blocks(const bin_blocks<T> &left, const bin_blocks<T> &right, int q, int i,
                           complex_of<T> ring[SUMS], complex_of<T> sum[SUMS])
{
#pragma unroll
    for (int u = 0; u < SUMS; u++) {
        const complex_of<T> a = left.template at<CHECK>(i + u);
        ring[(SUMS - u) % SUMS] = right.template at<CHECK>(q - i - u);
#pragma unroll
        for (int k = 0; k < SUMS; k++) add_product(sum[k], a, ring[(SUMS + k - u) % SUMS]);
    }
}

// total[k] += the sum for output block q + k. Runs of MAX_TERMS begin where they do for every
// output block, so its bits do not depend on sums beside it.
template <typename T, int SUMS>
__device__ void add_row(const bin_blocks<T> &left, const bin_blocks<T> &right, int q,
                        complex_of<T> total[SUMS])
{
    const int behind = right.first + right.count, last = q + SUMS - right.first;
    const int from = q - behind + 1 > 0 ? (q - behind + 1) / SUMS * SUMS : 0,
              end = last < left.count ? last : left.count;
    complex_of<T> sum[SUMS] = {}, ring[SUMS];
#pragma unroll
    for (int k = 1; k < SUMS; k++) ring[k] = right.template at<true>(q + k - from);
    for (int i = from; i < end; i += SUMS) {
        if (i + SUMS <= left.count && right.has(q - i) && right.has(q - i - SUMS + 1))
            add_blocks<T, SUMS, false>(left, right, q, i, ring, sum);
        else add_blocks<T, SUMS, true>(left, right, q, i, ring, sum);
        if ((i + SUMS) % MAX_TERMS && i + SUMS < end) continue;
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            total[k] = total[k] + sum[k];
            sum[k] = {0, 0};
        }
    }
}

// The half of a sum that belongs to the next block, moved to that block's start: times u^-points,
// where u^points is -i, 1 or -1.
template <typename T>
inline __device__ complex_of<T> moved(complex_of<T> sum, int64_t planes, int64_t plane)
{
    if (planes == 1) return {-sum.im, sum.re};
    return plane ? complex_of<T>{-sum.re, -sum.im} : sum;
}

// Blocks are [row][per_thread blocks][bins of all planes].
template <typename T>
__global__ void __launch_bounds__(PAIRS_THREADS, sizeof(T) == 8 ? 4 : 3)
    pairs_kernel(const __grid_constant__ cuda_pairs pairs, int64_t points, int64_t planes)
{
    constexpr int SUMS = SUMS_AT_ONCE<T>;
    const int64_t bins = points * planes;
    int64_t block = blockIdx.x;
    const int64_t bin = take(&block, ceiling(bins, PAIRS_THREADS)) * PAIRS_THREADS + threadIdx.x;
    const int64_t begin = take(&block, ceiling(pairs.count, pairs.per_thread)) * pairs.per_thread,
                  row = block;
    if (bin >= bins) return;
    const int64_t end =
        begin + pairs.per_thread < pairs.count ? begin + pairs.per_thread : pairs.count;
    bin_blocks<T> left = {nullptr, bins, 0, (int)pairs.left_count};
    bin_blocks<T> right = {nullptr, bins, (int)pairs.right_first, (int)pairs.right_count};
    complex_of<T> *out = (complex_of<T> *)pairs.out + row * pairs.count * bins + bin,
                  before = {0, 0};
    // The first sum is that of the block before.
    for (int64_t i = begin - 1; i < end; i += SUMS) {
        complex_of<T> total[SUMS] = {};
        for (int64_t t = 0; t < pairs.terms; t++) {
            const int64_t left_row =
                row_of(pairs.left_rows, pairs.left_first + row) + t * pairs.left_term;
            const int64_t right_row = row_of(pairs.right_rows, row) + t * pairs.right_term;
            left.bin = (const complex_of<T> *)pairs.left + left_row * pairs.left_count * bins + bin;
            right.bin =
                (const complex_of<T> *)pairs.right + right_row * pairs.right_count * bins + bin;
            add_row<T, SUMS>(left, right, (int)(pairs.first + i), total);
        }
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            complex_of<T> *at = out + (i + k) * bins;
            const complex_of<T> block = total[k] + moved(before, planes, bin / points);
            if (i + k >= begin && i + k < end) *at = pairs.accumulate ? *at + block : block;
            before = total[k];
        }
    }
}

// A thread has one bin of one interval; blocks are [row][interval][bins of all planes].
template <typename T>
__global__ void __launch_bounds__(PAIRS_THREADS, 8)
    intervals_kernel(const __grid_constant__ cuda_intervals intervals, int64_t bins)
{
    const cuda_pairs &pairs = intervals.pairs;
    int64_t row = blockIdx.x;
    const int64_t bin = take(&row, ceiling(bins, PAIRS_THREADS)) * PAIRS_THREADS + threadIdx.x;
    const int64_t interval = take(&row, pairs.count);
    if (bin >= bins) return;
    const auto &chain = intervals.chain[interval];
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
            left += intervals.taps_step * bins;
            right -= intervals.signal_step * bins;
            if (++summed < MAX_TERMS) continue;
            total = total + sum;
            sum = {0, 0};
            summed = 0;
        }
    }
    ((complex_of<T> *)pairs.out)[(row * pairs.count + interval) * bins + bin] = total + sum;
}
} // namespace

cudaError_t cuda_launch_pairs(const cuda_fft_params *params, const cuda_pairs *pairs)
{
    const int64_t blocks = ceiling(params->points * params->planes, PAIRS_THREADS) *
                           ceiling(pairs->count, pairs->per_thread) * pairs->rows;
    return queue_real(params->f64, pairs_kernel<float>, pairs_kernel<double>, blocks,
                      dim3(PAIRS_THREADS), 0, *pairs, params->points, params->planes);
}

cudaError_t cuda_launch_intervals(const cuda_fft_params *params, const cuda_intervals *intervals)
{
    const int64_t bins = params->points * params->planes,
                  spectra = intervals->pairs.rows * intervals->pairs.count;
    return queue_real(params->f64, intervals_kernel<float>, intervals_kernel<double>,
                      ceiling(bins, PAIRS_THREADS) * spectra, dim3(PAIRS_THREADS), 0, *intervals,
                      bins);
}
