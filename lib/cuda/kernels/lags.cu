// SPDX-License-Identifier: MIT
#include "lags.h"

#include "outputs.cuh"
#include "sums.h"

namespace {
// The sums of a thread block: a job of a path, over a split of the chains. It lies in shared
// memory, because sums need the registers.
struct task {
    int64_t x, w;                // where the path's rows of the first term begin, in scalars
    int64_t x_term, w_term;      // scalars from a term to the next
    int64_t begin;               // where the window of block 0 begins
    int64_t sum;                 // which of all sums
    int first, end;              // chains
    int block, blocks_end, each; // blocks; of a chain
    int in_a_row;                // chains whose products are summed before rounding
    bool both;                   // two sums
};

// The blocks first .. end-1 whose windows hold samples of x for any sum of a job.
struct blocks_seen {
    int first, end;
};

template <int SUMS> __device__ blocks_seen blocks_of_job(const cuda_lags &lags, int64_t begin)
{
    const int64_t before = -lags.x.length - (SUMS - 1) * lags.chunk - begin,
                  last = lags.x.size - 1 - begin;
    const int64_t behind = last < 0 ? 0 : last / lags.w.hop + 1;
    const int end = min_int(behind, (int)lags.w.count);
    return {before < 0 ? 0 : min_int(before / lags.w.hop + 1, end), end};
}

// Scalars from the beginning of an array to a row.
inline __device__ int64_t row_begin(const cuda_windows &windows, int64_t row)
{
    return windows_row(windows, row) * (windows.complex_samples ? 2 : 1);
}

template <int SUMS> __device__ task task_of(const cuda_lags &lags)
{
    int64_t path = blockIdx.x;
    const int64_t split = take(&path, lags.splits), chains = lags.terms * lags.chains;
    path += lags.first;
    const int64_t job = take(&path, lags.jobs), begin = lags.x.first + job * SUMS * lags.chunk;
    const int64_t x = row_of(lags.x_rows, path), w = row_of(lags.w_rows, path);
    const int64_t x_begin = row_begin(lags.x, x), w_begin = row_begin(lags.w, w);
    const int64_t sums = SUMS == 1 ? lags.tasks : lags.tasks / lags.jobs * lags.chunks;
    const blocks_seen seen = blocks_of_job<SUMS>(lags, begin);
    const int each = (int)ceiling(seen.end - seen.first, lags.chains);
    const int fitting = CUDA_LAGS_TERMS / (each > 0 ? each : 1);
    return {x_begin,
            w_begin,
            row_begin(lags.x, x + lags.x_term) - x_begin,
            row_begin(lags.w, w + lags.w_term) - w_begin,
            begin,
            split * sums + path * lags.chunks + job * SUMS - lags.first,
            (int)(chains * split / lags.splits),
            (int)(chains * (split + 1) / lags.splits),
            seen.first,
            seen.end,
            each,
            (fitting > 0 ? fitting : 1) * (int)blockDim.y,
            SUMS == 2 && job * SUMS + 1 < lags.chunks};
}

// A chain of blocks, of which so many are left; one behind the last chain reads zeros only.
template <typename T> struct chain {
    const T *x, *w;
    int block, left;
};

template <typename T>
__device__ chain<T> chain_of(const cuda_lags &lags, const task &task, const T *x, const T *w,
                             int number)
{
    const int chains = (int)lags.chains, term = number / chains,
              block = task.block + number % chains * task.each;
    const int left = task.blocks_end - block < task.each ? task.blocks_end - block : task.each;
    return {x + task.x + term * task.x_term, w + task.w + term * task.w_term, block,
            number < task.end ? left : 0};
}

// Points of a window of consecutive samples in either order, real or complex.
template <typename T>
__device__ void consecutive_points(const cuda_windows &windows, const T *row, int64_t first,
                                   const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = 1 << fft.log2_points, apart = points / CUDA_FFT_POINTS,
              scalars = windows.complex_samples ? 2 : 1,
              step = windows.reversed ? -scalars : scalars;
    const window<T> inside = window_from(windows, row, first);
    unsigned at = (unsigned)(fft.thread - inside.from);
    row += (windows.reversed ? windows.size - 1 - first : first) * scalars + fft.thread * step;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++, at += (unsigned)apart, row += apart * step) {
        const bool within = at < (unsigned)inside.n;
        v[j] = {within ? *row : 0, 0};
        if (fft.negacyclic)
            v[j].im = at + (unsigned)points < (unsigned)inside.n ? -row[points * step] : 0;
        else if (windows.complex_samples && within) v[j].im = windows.conjugated ? -row[1] : row[1];
    }
}

template <typename T>
__device__ void transform_window(const cuda_lags &lags, const T *row, int64_t first,
                                 const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_thread<T> here = fft_recompute(fft);
    window_points(lags.x, row, first, here, v);
    fft_block_forward(fft_recompute(here), v);
}

// ORDERED: real samples in the order of the array.
template <bool ORDERED, typename T>
__device__ void transform_block(const cuda_lags &lags, const T *row, int64_t first,
                                const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const fft_thread<T> here = fft_recompute(fft);
    if (lags.w.step > 1) windows_points(lags.w, row, first, here, v);
    else if (ORDERED) window_points(lags.w, row, first, here, v);
    else consecutive_points(lags.w, row, first, here, v);
    fft_block_forward(fft_recompute(here), v);
}

// The products of a block. Where there are two sums, `cache` holds the spectrum of the block's
// window, and afterwards that of the next one.
template <typename T, int SUMS, bool ORDERED>
__device__ void add_block(const cuda_lags &lags, const task &task, const chain<T> &at,
                          const fft_thread<T> &fft, complex_of<T> *cache, complex_of<T> *second,
                          complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int64_t first = at.block * lags.w.hop;
    const int64_t w_first = ORDERED ? first : lags.w.first + first;
    complex_of<T> v[CUDA_FFT_POINTS];
    if (SUMS == 1) {
        transform_window(lags, at.x, at.left > 0 ? task.begin + first : lags.x.size, fft, v);
        spectrum_store(cache, fft, v);
    }
    transform_block<ORDERED>(lags, at.w, at.left > 0 ? w_first : lags.w.size * lags.w.step, fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        complex_of<T> *const bin = cache + fft.thread + (j << (fft.log2_points - 4));
        multiply_add(sum[j], *bin, conjugated(v[j]));
        if (SUMS == 2) *bin = v[j];
    }
    if (SUMS == 1) return;
    transform_window(lags, at.x,
                     at.left > 0 ? task.begin + at.block * lags.w.hop + lags.chunk : lags.x.size,
                     fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int bin = fft.thread + (j << (fft.log2_points - 4));
        complex_of<T> of_bin = second[bin];
        multiply_add(of_bin, v[j], conjugated(cache[bin]));
        second[bin] = of_bin;
        cache[bin] = v[j];
    }
}

// Adds the sums of all thread rows in order, into memory or to its contents, and clears them.
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
__device__ void cache_window(const cuda_lags &lags, const task &task, const chain<T> &at,
                             const fft_thread<T> &fft, complex_of<T> *cache)
{
    const int64_t first = task.begin + task.block * lags.w.hop;
    complex_of<T> v[CUDA_FFT_POINTS] = {};
    if (first > -lags.x.length && first < lags.x.size)
        transform_window(lags, at.x, at.left > 0 ? first : lags.x.size, fft, v);
    spectrum_store(cache, fft, v);
}

// Blocks are [path][job][split]; every split has a chain.
template <typename T, int SUMS, bool ORDERED>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    lags_kernel(const __grid_constant__ cuda_lags lags, complex_of<T> *to, const T *x, const T *w)
{
    fft_thread<T> fft = fft_thread_of<T>(lags.form);
    if (ORDERED) fft.negacyclic = true;
    const int points = 1 << fft.log2_points, rows = (int)blockDim.y;
    complex_of<T> *const spectra = (complex_of<T> *)shared_memory + rows * (points + points / 16);
    complex_of<T> *const cache = spectra + threadIdx.y * points;
    complex_of<T> *const second = cache + rows * points;
    task *const shared_task = (task *)(spectra + SUMS * rows * points);
    complex_of<T> sum[CUDA_FFT_POINTS] = {};
    if (SUMS == 2) spectrum_store(second, fft, sum);
    if (threadIdx.x == 0 && threadIdx.y == 0) *shared_task = task_of<SUMS>(lags);
    __syncthreads();
    const task &task = *shared_task;
    for (int first = task.first; first < task.end; first += rows) {
        chain<T> at = chain_of(lags, task, x, w, first + (int)threadIdx.y);
        if (SUMS == 2) cache_window(lags, task, at, fft, cache);
        for (int i = task.each; i > 0; i--) {
            add_block<T, SUMS, ORDERED>(lags, task, at, fft, cache, second, sum);
            at.block++;
            at.left--;
        }
        const int done = first + rows - task.first;
        if (done % task.in_a_row && first + rows < task.end) continue;
        complex_of<T> *const to_sum = to + (task.sum << fft.log2_points);
        flush(fft, to_sum, done > task.in_a_row, sum);
        if (task.both) flush_second(fft, to_sum + points, done > task.in_a_row, second);
    }
}

// Thread rows are [task].
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    lags_results_kernel(const __grid_constant__ cuda_lags lags,
                        const __grid_constant__ cuda_sink sink, const complex_of<T> *sums)
{
    const fft_thread<T> fft = fft_thread_of<T>(lags.form);
    const int64_t number = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const int points = 1 << fft.log2_points;
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (number < lags.tasks ? number : lags.tasks - 1) * points, fft, v);
    fft_block_inverse(fft, v);
    if (number >= lags.tasks) return;
    int64_t row = lags.first + number;
    const int64_t first = take(&row, lags.chunks) * lags.chunk, end = first + lags.chunk;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = first + fft.thread + j * (points / CUDA_FFT_POINTS) - lags.lead,
                      upper = at + points;
        const complex_of<T> value = scaled(v[j], 1 / (T)points), imaginary = {-value.im, 0};
        if (at >= first && at < end) sink_store(sink, row, at, value);
        if (fft.negacyclic && upper < end) sink_store(sink, row, upper, imaginary);
    }
}

template <typename T>
void (*lags_kernel_of(const cuda_lags *lags, int sums))(cuda_lags, complex_of<T> *, const T *,
                                                        const T *)
{
    if (sums == 2) return lags_kernel<T, 2, true>;
    const bool ordered = lags->form.negacyclic && !lags->w.reversed && lags->w.first == 0;
    return ordered ? lags_kernel<T, 1, true> : lags_kernel<T, 1, false>;
}
} // namespace

cudaError_t cuda_launch_lags(const cuda_lags *lags, int sums, bool f64, void *spectra,
                             const void *x, const void *w)
{
    const int log2_points = lags->form.log2_points;
    const int64_t chunks = sums == 1 ? lags->tasks : lags->tasks / lags->jobs * lags->chunks;
    const cudaError_t error =
        queue_real(f64, lags_kernel_of<float>(lags, sums), lags_kernel_of<double>(lags, sums),
                   lags->tasks * lags->splits, fft_block(log2_points),
                   cuda_lags_shared((size_t)1 << log2_points, sums, f64), *lags, spectra, x, w);
    if (error != cudaSuccess) return error;
    return cuda_launch_add_sums(f64, spectra, spectra, chunks << (log2_points + 1), lags->splits);
}

cudaError_t cuda_launch_lags_results(const cuda_lags *lags, const cuda_sink *sink, bool f64,
                                     const void *spectra)
{
    const dim3 threads = fft_block(lags->form.log2_points);
    return queue_real(f64, lags_results_kernel<float>, lags_results_kernel<double>,
                      ceiling(lags->tasks, threads.y), threads,
                      fft_block_shared(lags->form.log2_points, f64), *lags, *sink, spectra);
}
