// SPDX-License-Identifier: MIT
#include "gradient.h"

#include "cuda/kernels/windows.cuh"

namespace {
// What a thread block sums: a job of a path, over a split of the chains. It lies in shared memory,
// because sums need the registers.
struct task {
    int64_t x, gy;               // where the path's rows of the first item begin
    int64_t x_item, gy_item;     // scalars from an item to the next
    int64_t begin;               // where the window of block 0 begins
    int64_t sum;                 // which of all sums
    int first, end;              // chains
    int block, blocks_end, each; // blocks; of a chain
    int in_a_row;                // chains whose products are summed before rounding
    bool both;                   // two sums
};

template <int SUMS> __device__ task gradient_task(const cuda_gradient &of)
{
    int64_t path = blockIdx.x;
    const int64_t split = take(&path, of.splits), job = take(&path, of.jobs),
                  chains = of.batch * of.chains;
    const int64_t in = path % of.group_in, out = path / of.group_in, group = out / of.group_out;
    const int64_t sum =
        (split * of.groups * of.group_out * of.group_in + path) * of.chunks + job * SUMS;
    const int each = (int)ceiling(of.seen[job].end - of.seen[job].first, of.chains);
    const int fitting = CUDA_GRADIENT_TERMS / (each > 0 ? each : 1);
    return {(group * of.group_in + in) * of.x.size,
            out * of.gy.size,
            of.groups * of.group_in * of.x.size,
            of.groups * of.group_out * of.gy.size,
            of.x.first + job * SUMS * of.chunk,
            sum,
            (int)(chains * split / of.splits),
            (int)(chains * (split + 1) / of.splits),
            of.seen[job].first,
            of.seen[job].end,
            each,
            (fitting > 0 ? fitting : 1) * (int)blockDim.y,
            SUMS == 2 && job * SUMS + 1 < of.chunks};
}

// A chain of blocks, of which so many are left; one behind the last chain reads zeros only.
template <typename T> struct chain {
    const T *x, *gy;
    int block, left;
};

template <typename T>
__device__ chain<T> chain_of(const cuda_gradient &of, const task &task, const T *x, const T *gy,
                             int number)
{
    const int chains = (int)of.chains, item = number / chains,
              block = task.block + number % chains * task.each;
    const int left = task.blocks_end - block < task.each ? task.blocks_end - block : task.each;
    return {x + task.x + item * task.x_item, gy + task.gy + item * task.gy_item, block,
            number < task.end ? left : 0};
}

template <typename T>
__device__ void transform_window(const cuda_gradient &of, const T *row, int64_t first,
                                 const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_thread<T> here = fft_recompute(fft);
    window_points(of.x, row, first, here, v);
    fft_block_forward(fft_recompute(here), v);
}

template <typename T>
__device__ void transform_block(const cuda_gradient &of, const T *row, int64_t first,
                                const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_thread<T> here = fft_recompute(fft);
    if (of.gy.step == 1) window_points(of.gy, row, first, here, v);
    else windows_points(of.gy, row, first, here, v);
    fft_block_forward(fft_recompute(here), v);
}

// The products of a block. Where there are two sums, `cache` holds the spectrum of the block's
// window, and afterwards that of the next one.
template <typename T, int SUMS>
__device__ void add_block(const cuda_gradient &of, const task &task, const chain<T> &at,
                          const fft_thread<T> &fft, complex_of<T> *cache, complex_of<T> *second,
                          complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int64_t first = at.block * of.gy.hop;
    complex_of<T> v[CUDA_FFT_POINTS];
    if (SUMS == 1) {
        transform_window(of, at.x, at.left > 0 ? task.begin + first : of.x.size, fft, v);
        spectrum_store(cache, fft, v);
    }
    transform_block(of, at.gy, at.left > 0 ? first : of.gy.size * of.gy.step, fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        complex_of<T> *const bin = cache + fft.thread + (j << (fft.log2_points - 4));
        multiply_add(sum[j], *bin, conjugated(v[j]));
        if (SUMS == 2) *bin = v[j];
    }
    if (SUMS == 1) return;
    transform_window(
        of, at.x, at.left > 0 ? task.begin + at.block * of.gy.hop + of.chunk : of.x.size, fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int bin = fft.thread + (j << (fft.log2_points - 4));
        complex_of<T> of_bin = second[bin];
        multiply_add(of_bin, v[j], conjugated(cache[bin]));
        second[bin] = of_bin;
        cache[bin] = v[j];
    }
}

// Adds the sums of all thread rows in order, into memory or to what is there, and clears them.
template <typename T>
__device__ void flush(const fft_thread<T> &fft, complex_of<T> *to, bool accumulate,
                      complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int points = 1 << fft.log2_points, rows = (int)blockDim.y, apart = points + points / 16;
    const complex_of<T> *const all = (const complex_of<T> *)shared_memory;
    __syncthreads();
    spectrum_store(fft.shared, fft, sum);
    __syncthreads();
    for (int i = (int)(threadIdx.y * blockDim.x + threadIdx.x); i < points;
         i += (int)(blockDim.x * blockDim.y)) {
        complex_of<T> total = all[i];
        for (int row = 1; row < rows; row++) total = total + all[row * apart + i];
        to[i] = accumulate ? to[i] + total : total;
    }
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) sum[j] = {0, 0};
}

// The second sum, which lies in shared memory.
template <typename T>
__device__ void flush_second(const fft_thread<T> &fft, complex_of<T> *to, bool accumulate,
                             complex_of<T> *second)
{
    complex_of<T> sum[CUDA_FFT_POINTS];
    spectrum_load(second, fft, sum);
    flush(fft, to, accumulate, sum);
    spectrum_store(second, fft, sum);
}

// Where there are two sums: caches the window of the first block of a chain. It is the same block
// in all thread rows, because rows are not split then.
template <typename T>
__device__ void cache_window(const cuda_gradient &of, const task &task, const chain<T> &at,
                             const fft_thread<T> &fft, complex_of<T> *cache)
{
    const int64_t first = task.begin + task.block * of.gy.hop;
    complex_of<T> v[CUDA_FFT_POINTS] = {};
    if (first > -of.x.length && first < of.x.size)
        transform_window(of, at.x, at.left > 0 ? first : of.x.size, fft, v);
    spectrum_store(cache, fft, v);
}

// Blocks are [path][job][split]; every split has a chain.
template <typename T, int SUMS>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    gradient_kernel(const __grid_constant__ cuda_gradient of, complex_of<T> *to, const T *x,
                    const T *gy)
{
    fft_thread<T> fft = fft_thread_of<T>(of.form);
    fft.negacyclic = true;
    const int points = 1 << fft.log2_points, rows = (int)blockDim.y;
    complex_of<T> *const spectra = (complex_of<T> *)shared_memory + rows * (points + points / 16);
    complex_of<T> *const cache = spectra + threadIdx.y * points;
    complex_of<T> *const second = cache + rows * points;
    task *const own = (task *)(spectra + SUMS * rows * points);
    complex_of<T> sum[CUDA_FFT_POINTS] = {};
    if (SUMS == 2) spectrum_store(second, fft, sum);
    if (threadIdx.x == 0 && threadIdx.y == 0) *own = gradient_task<SUMS>(of);
    __syncthreads();
    for (int first = own->first; first < own->end; first += rows) {
        chain<T> at = chain_of(of, *own, x, gy, first + (int)threadIdx.y);
        if (SUMS == 2) cache_window(of, *own, at, fft, cache);
        for (int i = own->each; i > 0; i--) {
            add_block<T, SUMS>(of, *own, at, fft, cache, second, sum);
            at.block++;
            at.left--;
        }
        const int done = first + rows - own->first;
        if (done % own->in_a_row && first + rows < own->end) continue;
        complex_of<T> *const to_sum = to + (own->sum << fft.log2_points);
        flush(fft, to_sum, done > own->in_a_row, sum);
        if (own->both) flush_second(fft, to_sum + points, done > own->in_a_row, second);
    }
}

template <typename T>
__device__ void tap_store(const cuda_gradient &of, T *gw, int64_t path, int64_t lag, T value)
{
    if (lag % of.dilation || lag / of.dilation >= of.taps) return;
    const int64_t tap = lag / of.dilation;
    gw[path * of.taps + (of.reversed ? of.taps - 1 - tap : tap)] = value;
}

// Thread rows are [path][chunk].
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    gradient_taps_kernel(const __grid_constant__ cuda_gradient of, int64_t all, T *gw,
                         const complex_of<T> *sums)
{
    const fft_thread<T> fft = fft_thread_of<T>(of.form);
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int points = 1 << fft.log2_points;
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (number < all ? number : all - 1) * points, fft, v);
    fft_block_inverse(fft, v);
    if (number >= all) return;
    const int64_t path = number / of.chunks, lag = number % of.chunks * of.chunk;
    const T scale = 1 / (T)points;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = fft.thread + j * (points / CUDA_FFT_POINTS) - of.lead,
                      upper = at + points;
        if (at >= 0 && at < of.chunk) tap_store(of, gw, path, lag + at, v[j].re * scale);
        if (upper < of.chunk) tap_store(of, gw, path, lag + upper, -v[j].im * scale);
    }
}
} // namespace

cudaError_t cuda_launch_gradient(const cuda_gradient *of, int sums, bool f64, void *spectra,
                                 const void *x, const void *gy)
{
    const int log2_points = of->form.log2_points;
    return with_scalar(f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(sums == 1 ? gradient_kernel<T, 1> : gradient_kernel<T, 2>,
                     of->groups * of->group_out * of->group_in * of->jobs * of->splits,
                     fft_block(log2_points),
                     cuda_gradient_shared((size_t)1 << log2_points, sums, f64), *of,
                     (complex_of<T> *)spectra, (const T *)x, (const T *)gy);
    });
}

cudaError_t cuda_launch_gradient_taps(const cuda_gradient *of, bool f64, void *gw,
                                      const void *spectra)
{
    const int64_t all = of->groups * of->group_out * of->group_in * of->chunks;
    const dim3 threads = fft_block(of->form.log2_points);
    return with_scalar(f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(gradient_taps_kernel<T>, ceiling(all, threads.y), threads,
                     fft_block_shared(of->form.log2_points, f64), *of, all, (T *)gw,
                     (const complex_of<T> *)spectra);
    });
}
