// SPDX-License-Identifier: MIT
// Sums over all pairs of blocks that meet in an output block, bin by bin. A thread has one bin and
// makes a run of output blocks, SUMS of them at a time: one bin of a left block is read for all of
// them, and right blocks go through the registers as through a ring, so that every product of SUMS
// takes two loads.
#include "cuda/kernels/spectra.cuh"

#include <math.h>

namespace {
enum {
    PAIRS_THREADS = 128,
    MOST_TERMS = 64, // products summed in a row before they are rounded into a sum of sums
};

// Sums that a thread makes at once: a divisor of MOST_TERMS.
template <typename T> constexpr int SUMS_AT_ONCE = sizeof(T) == 8 ? 4 : 8;

// Which products are rounded is said here, not left to the compiler, which sees this in several
// places: a sum's bits must be the same in all of them.
template <typename T>
inline __device__ void add_product(complex_of<T> &sum, complex_of<T> a, complex_of<T> b)
{
    sum.re = fma(-a.im, b.im, fma(a.re, b.re, sum.re));
    sum.im = fma(a.im, b.re, fma(a.re, b.im, sum.im));
}

// One bin of the blocks of one line, `pitch` apart.
template <typename T> struct bin_blocks {
    const complex_of<T> *bin;
    int64_t pitch;
    int first, count;

    __device__ bool has(int block) const
    {
        return (unsigned)(block - first) < (unsigned)count;
    }

    // Zero where there is none, which need not be asked if none is missing.
    template <bool ASK> __device__ complex_of<T> at(int block) const
    {
        return !ASK || has(block) ? bin[(block - first) * pitch] : complex_of<T>{0, 0};
    }
};

// SUMS left blocks from i on and the right ones that they meet in output blocks q .. q + SUMS - 1.
// ring[k] is the right block for sum k and left block i; the newest takes the oldest one's place,
// so that nothing moves.
template <typename T, int SUMS, bool ASK>
__device__ void add_blocks(const bin_blocks<T> &left, const bin_blocks<T> &right, int q, int i,
                           complex_of<T> ring[SUMS], complex_of<T> sum[SUMS])
{
#pragma unroll
    for (int u = 0; u < SUMS; u++) {
        const complex_of<T> a = left.template at<ASK>(i + u);
        ring[(SUMS - u) % SUMS] = right.template at<ASK>(q - i - u);
#pragma unroll
        for (int k = 0; k < SUMS; k++) add_product(sum[k], a, ring[(SUMS + k - u) % SUMS]);
    }
}

// total[k] += the sum for output block q + k. Segments of MOST_TERMS begin where they do for every
// output block, so its bits do not depend on what is summed beside it.
template <typename T, int SUMS>
__device__ void add_line(const bin_blocks<T> &left, const bin_blocks<T> &right, int q,
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
        if ((i + SUMS) % MOST_TERMS && i + SUMS < end) continue;
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            total[k] = total[k] + sum[k];
            sum[k] = {0, 0};
        }
    }
}

// What a sum holds for the block behind its own, moved to the start: times u^-points, where
// u^points is -i, 1 or -1.
template <typename T>
inline __device__ complex_of<T> moved(complex_of<T> sum, int64_t planes, int64_t plane)
{
    if (planes == 1) return {-sum.im, sum.re};
    return plane ? complex_of<T>{-sum.re, -sum.im} : sum;
}

// Blocks are [line][run][bins of all planes].
template <typename T>
__global__ void __launch_bounds__(PAIRS_THREADS, sizeof(T) == 8 ? 4 : 3)
    pairs_kernel(const __grid_constant__ cuda_pairs pairs, int64_t points, int64_t planes)
{
    constexpr int SUMS = SUMS_AT_ONCE<T>;
    const int64_t bins = points * planes;
    int64_t block = blockIdx.x;
    const int64_t bin = take(&block, ceiling(bins, PAIRS_THREADS)) * PAIRS_THREADS + threadIdx.x;
    const int64_t begin = take(&block, ceiling(pairs.count, pairs.run)) * pairs.run, line = block;
    if (bin >= bins) return;
    const int64_t end = begin + pairs.run < pairs.count ? begin + pairs.run : pairs.count;
    bin_blocks<T> left = {nullptr, bins, 0, (int)pairs.left_count};
    bin_blocks<T> right = {nullptr, bins, (int)pairs.right_first, (int)pairs.right_count};
    complex_of<T> *out = (complex_of<T> *)pairs.out + line * pairs.count * bins + bin,
                  before = {0, 0};
    // The first sum is that of the block before.
    for (int64_t i = begin - 1; i < end; i += SUMS) {
        complex_of<T> total[SUMS] = {};
        for (int64_t t = 0; t < pairs.terms; t++) {
            const int64_t left_line =
                line_of(pairs.left_lines, pairs.left_first + line) + t * pairs.left_term;
            const int64_t right_line = line_of(pairs.right_lines, line) + t * pairs.right_term;
            left.bin =
                (const complex_of<T> *)pairs.left + left_line * pairs.left_count * bins + bin;
            right.bin =
                (const complex_of<T> *)pairs.right + right_line * pairs.right_count * bins + bin;
            add_line<T, SUMS>(left, right, (int)(pairs.first + i), total);
        }
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            complex_of<T> *at = out + (i + k) * bins;
            const complex_of<T> block = total[k] + moved(before, planes, bin / points);
            if (i + k >= begin && i + k < end) *at = pairs.add ? *at + block : block;
            before = total[k];
        }
    }
}

template <typename T>
cudaError_t launch_pairs(const cuda_kit *kit, const cuda_pairs *pairs, cudaStream_t stream)
{
    const int64_t bins = kit->points * kit->planes;
    const int64_t blocks =
        ceiling(bins, PAIRS_THREADS) * ceiling(pairs->count, pairs->run) * pairs->lines;
    return queue(pairs_kernel<T>, blocks, dim3(PAIRS_THREADS), 0, stream, *pairs, kit->points,
                 kit->planes);
}
} // namespace

cudaError_t cuda_launch_pairs(const cuda_kit *kit, const cuda_pairs *pairs, cudaStream_t stream)
{
    return kit->f64 ? launch_pairs<double>(kit, pairs, stream)
                    : launch_pairs<float>(kit, pairs, stream);
}
