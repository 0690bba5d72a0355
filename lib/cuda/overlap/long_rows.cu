// SPDX-License-Identifier: MIT
#include "long_rows.h"

#include <math.h>

#include "cuda/kernels/outputs.cuh"

namespace {
constexpr int BLOCKS = CUDA_LONG_ROWS_BLOCKS;

// Samples of a window on their way to shared memory, a share of them for each thread of the block:
// between begin() and wait() nothing may read or write them, and other threads need a barrier after
// wait(). The stand-in copies when it waits.
template <typename T> struct async_window {
    T *to;
    window<T> from;
    int n;

    inline __device__ bool holds(int i) const
    {
        return (unsigned)(i - from.from) < (unsigned)from.n;
    }

    inline __device__ void begin()
    {
        for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y) {
#ifdef __CUDACC__
            const T *sample = from.at + (holds(i) ? i - from.from : 0);
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                             (unsigned)__cvta_generic_to_shared(to + i)),
                         "l"(sample), "n"(sizeof(T)), "r"(holds(i) ? (int)sizeof(T) : 0)
                         : "memory");
#else
            to[i] = NAN;
#endif
        }
    }

    inline __device__ void wait() const
    {
#ifdef __CUDACC__
        asm volatile("cp.async.wait_all;" ::: "memory");
#else
        for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y)
            to[i] = holds(i) ? from.at[i - from.from] : 0;
#endif
    }
};

// Memory that the threads of a block share. A window's spectrum replaces the values that its
// transform exchanged.
template <typename T> struct row_block {
    const cuda_filtering &rows;
    complex_of<T> *shared; // [BLOCKS][pitch]
    T *samples;            // [BLOCKS + 1][points], of a group of windows
    complex_of<T> *cache;  // [groups][BLOCKS][points]
    int points, pitch, groups;
};

// A group of windows: those from `first` on of a row. Rows are counted [channel][item], so that
// those that read the same filter follow each other.
struct group_index {
    int64_t number, first, channel, row;
};

inline __device__ group_index group_at(const cuda_filtering &rows, int64_t number, int64_t first)
{
    int64_t channel = number;
    const int64_t item = take(&channel, rows.batch);
    return {number, first, channel, item * rows.groups + channel};
}

// The next one that this thread block computes; its number may be behind the last.
inline __device__ group_index group_after(const cuda_filtering &rows, const group_index &group)
{
    if (group.first + BLOCKS < rows.in.count)
        return {group.number, group.first + BLOCKS, group.channel, group.row};
    return group_at(rows, group.number + gridDim.x, 0);
}

template <typename T>
__device__ async_window<T> begin_samples(const row_block<T> &block, const T *x,
                                         const group_index &group)
{
    cuda_windows all = block.rows.in;
    all.length = (BLOCKS + 1) * block.points;
    async_window<T> ret = {
        block.samples,
        window_from(all, x + group.row * all.size, all.first + group.first * all.hop),
        (BLOCKS + 1) * block.points};
    ret.begin();
    return ret;
}

template <typename T>
inline __device__ fft_thread<T> transform_of(const row_block<T> &block, int window)
{
    fft_thread<T> ret =
        fft_thread_at<T>(block.rows.form, block.shared + window * block.pitch, threadIdx.x);
    ret.negacyclic = true;
    return fft_recompute(ret);
}

// The spectra of a group's windows.
template <typename T>
__device__ void transform_windows(const row_block<T> &block, const group_index &group)
{
    for (int window = threadIdx.y; window < BLOCKS; window += blockDim.y) {
        if (group.first + window - threadIdx.y >= block.rows.in.count) break; // in all thread rows
        const fft_thread<T> fft = transform_of(block, window);
        const T *sample = block.samples + window * block.points + fft.thread;
        complex_of<T> v[CUDA_FFT_POINTS];
#pragma unroll
        for (int j = 0; j < CUDA_FFT_POINTS; j++, sample += block.points / CUDA_FFT_POINTS)
            v[j] = {sample[0], -sample[block.points]};
        fft_block_forward(fft, v);
        __syncthreads();
        spectrum_store(fft.shared, fft, v);
    }
}

// sum[a] += the products of windows x[b] with taps h[a - b + BLOCKS - 1]. SAME: the windows are
// those of the sums themselves, none of which has to do with later ones.
template <bool SAME, typename T>
inline __device__ void long_rows_add_products(complex_of<T> sum[BLOCKS],
                                              const complex_of<T> x[BLOCKS],
                                              const complex_of<T> h[2 * BLOCKS - 1])
{
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
#pragma unroll
        for (int a = SAME ? b : 0; a < BLOCKS; a++)
            multiply_add(sum[a], x[b], h[a - b + BLOCKS - 1]);
}

// A group among those of its row, and where its spectra are kept if later ones need them.
struct kept_group {
    int before, index;
    bool keep;
};

// One bin of the sums of a group takes the place of its spectra. `h` is that bin of the channel's
// filter.
template <typename T>
__device__ void multiply_bin(const row_block<T> &block, const complex_of<T> *h, int bin,
                             const kept_group &group)
{
    const int points = block.points;
    complex_of<T> sum[BLOCKS] = {}, x[BLOCKS], taps[2 * BLOCKS - 1];
    complex_of<T> *const group_bins = block.shared + bin, *const cache = block.cache + bin;
    int parts = block.rows.parts, index = group.index;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        x[i] = group_bins[i * block.pitch];
        taps[BLOCKS - 1 + i] = i < parts ? h[i * points] : complex_of<T>{0, 0};
    }
    long_rows_add_products<true>(sum, x, taps);
    for (int back = 0; back < group.before; back++) {
        complex_of<T> before[BLOCKS];
        index = (index > 0 ? index : block.groups) - 1;
        h += BLOCKS * points;
        parts -= BLOCKS;
#pragma unroll
        for (int i = 0; i < BLOCKS - 1; i++) taps[i] = taps[BLOCKS + i];
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) {
            before[i] = cache[(index * BLOCKS + i) * points];
            taps[BLOCKS - 1 + i] = i < parts ? h[i * points] : complex_of<T>{0, 0};
        }
        long_rows_add_products<false>(sum, before, taps);
    }
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        if (group.keep) cache[(group.index * BLOCKS + i) * points] = x[i];
        group_bins[i * block.pitch] = sum[i];
    }
}

template <typename T>
__device__ void long_rows_multiply(const row_block<T> &block, const complex_of<T> *spectra,
                                   const group_index &group)
{
    const cuda_filtering &rows = block.rows;
    const int number = (int)(group.first / BLOCKS), groups = block.groups;
    const kept_group kept = {number < groups ? number : groups, groups > 0 ? number % groups : 0,
                             groups > 0 && group.first + BLOCKS < rows.in.count};
    spectra += group.channel * rows.parts * block.points;
    for (int bin = threadIdx.y * blockDim.x + threadIdx.x; bin < block.points;
         bin += blockDim.x * blockDim.y)
        multiply_bin(block, spectra + bin, bin, kept);
}

// The outputs of a group's windows.
template <typename T>
__device__ void long_rows_store(const row_block<T> &block, T *y, const T *bias,
                                const group_index &group)
{
    const cuda_filtering &rows = block.rows;
    for (int window = threadIdx.y; window < BLOCKS; window += blockDim.y) {
        const int64_t begin = group.first + window - threadIdx.y; // of the first thread row
        const int64_t b = group.first + window - rows.lead;
        if (begin >= rows.in.count) break;
        if (begin + blockDim.y <= rows.lead) continue;
        const fft_thread<T> fft = transform_of(block, window);
        complex_of<T> v[CUDA_FFT_POINTS];
        spectrum_load(fft.shared, fft, v);
        fft_block_inverse(fft, v);
        if (b >= 0)
            outputs_store<false>(outputs_of(rows.out, y, group.row, b, true), fft_recompute(fft), v,
                                 finish_of(rows.out.relu, bias, group.channel));
    }
}

template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    long_rows_kernel(const __grid_constant__ cuda_filtering rows, int groups, T *y, const T *x,
                     const complex_of<T> *spectra, const T *bias, complex_of<T> *memory)
{
    const int points = 1 << rows.form.log2_points, pitch = points + points / 16;
    complex_of<T> *const shared = (complex_of<T> *)shared_memory;
    const row_block<T> block = {rows,
                                shared,
                                (T *)(shared + BLOCKS * pitch),
                                memory + (int64_t)blockIdx.x * groups * BLOCKS * points,
                                points,
                                pitch,
                                groups};
    group_index group = group_at(rows, blockIdx.x, 0);
    if (group.number >= rows.batch * rows.groups) return;
    async_window<T> samples = begin_samples(block, x, group);
    for (;;) {
        samples.wait();
        __syncthreads();
        transform_windows(block, group);
        __syncthreads();
        const group_index next = group_after(rows, group);
        const bool more = next.number < rows.batch * rows.groups;
        if (more) samples = begin_samples(block, x, next);
        long_rows_multiply(block, spectra, group);
        __syncthreads();
        long_rows_store(block, y, bias, group);
        if (!more) break;
        group = next;
    }
}
} // namespace

cudaError_t cuda_launch_long_rows(const cuda_filtering *rows, bool f64, int64_t blocks,
                                  const cuda_arrays *arrays)
{
    const size_t points = (size_t)1 << rows->form.log2_points;
    const dim3 threads(cuda_fft_threads(points), cuda_long_rows_at_once(points, f64));
    return queue_real(f64, long_rows_kernel<float>, long_rows_kernel<double>, blocks, threads,
                      cuda_long_rows_shared(points, f64), *rows, cuda_long_rows_groups(rows),
                      arrays->to, arrays->from, arrays->taps, arrays->bias, arrays->workspace);
}
