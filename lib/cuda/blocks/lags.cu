// SPDX-License-Identifier: MIT
// A few outputs of long operands: windows of both are transformed, multiplied and summed in the
// thread block, so that both operands are read once and nothing of their size is written.
#include "kernels.cuh"

namespace {
// Points of a window all of whose samples lie consecutively in memory from `samples` on, `step`
// apart. WHOLE: it has as many as the transform holds.
template <typename T, bool WHOLE>
__device__ void load_inside(const cuda_windows &windows, const T *samples, int step,
                            const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = 1 << fft.log2_points, apart = (int)blockDim.x * step;
    int left = (int)windows.length - (int)threadIdx.x;
    samples += (int)threadIdx.x * step;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        v[j] = {WHOLE || left > 0 ? *samples : 0, 0};
        if (fft.negacyclic) v[j].im = WHOLE || left > points ? -samples[points * step] : 0;
        else if (windows.complex_samples && (WHOLE || left > 0))
            v[j].im = windows.conjugated ? -samples[1] : samples[1];
        samples += apart;
        left -= (int)blockDim.x;
    }
}

// The points of the window of a row that begins at position `first`.
template <typename T, bool WHOLE>
__device__ void load_window(const cuda_windows &windows, const T *row, int64_t first,
                            const fft_thread<T> &fft, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int scalars = windows.complex_samples ? 2 : 1;
    if (windows.step == 1 && first >= 0 && first + windows.length <= windows.size) {
        row += (windows.reversed ? windows.size - 1 - first : first) * scalars;
        load_inside<T, WHOLE>(windows, row, windows.reversed ? -scalars : scalars, fft, v);
    } else if (windows.step == 1 && !windows.reversed && fft.negacyclic)
        window_points(windows, row, first, fft, v);
    else windows_points(windows, row, first, fft, v);
}

// The blocks of the taps that read samples of x for the window of outputs that begins at `base`.
struct seen {
    int64_t first, count;
};

__device__ seen blocks_seen(const cuda_lags &lags, int64_t base)
{
    const int64_t size = lags.x.size, length = lags.taps.length, last = base + lags.x.length - 1;
    const int64_t first = base >= size ? (base - size) / length + 1 : 0,
                  behind = last < 0 ? 0 : last / length + 1;
    const int64_t end = behind < lags.taps.count ? behind : lags.taps.count;
    return {first, end > first ? end - first : 0};
}

__device__ int64_t base_of(const cuda_lags &lags, int64_t task)
{
    return lags.x.first + task % lags.windows * lags.hop;
}

// The terms that a thread block sums: [channel][block] of a task, first .. end-1.
struct terms {
    int64_t task, first, end;
};

__device__ terms terms_of_block(const cuda_lags &lags)
{
    const int64_t task = lags.first + blockIdx.x / lags.chunks, chunk = blockIdx.x % lags.chunks;
    const int64_t all = lags.channels * blocks_seen(lags, base_of(lags, task)).count,
                  each = ceiling(all, lags.chunks);
    const int64_t first = chunk * each < all ? chunk * each : all;
    return {task, first, first + each < all ? first + each : all};
}

// Where the next term is; so many are `left` of its channel.
template <typename T> struct cursor {
    const T *taps, *x; // rows
    int64_t taps_first, x_first, left;
};

// The term with `rest` of them to go. Divisions are done here, so that nothing is held for them.
template <typename T> __device__ cursor<T> seek(const cuda_lags &lags, int64_t rest)
{
    const terms terms = terms_of_block(lags);
    const int64_t term = terms.end - rest, row = terms.task / lags.windows,
                  length = lags.taps.length;
    const int64_t base = base_of(lags, terms.task);
    const seen blocks = blocks_seen(lags, base);
    const int64_t channel = term / blocks.count, at = term % blocks.count,
                  block = blocks.first + at;
    const int64_t taps = row_of(lags.taps_rows, row) + channel * lags.taps_term;
    const int64_t x = row_of(lags.x_rows, row) + channel * lags.x_term;
    return {windows_row_at(lags.taps, (const T *)lags.taps_samples, taps),
            windows_row_at(lags.x, (const T *)lags.x_samples, x), lags.taps.first + block * length,
            base - block * length, blocks.count - at};
}

// The product of one term's spectra is added to sum; `cache` holds the spectrum of the taps
// meanwhile.
template <typename T>
__device__ void cuda_blocks_add_term(const cuda_lags &lags, const cursor<T> &at,
                                     const fft_thread<T> &fft, complex_of<T> *cache,
                                     complex_of<T> sum[CUDA_FFT_POINTS])
{
    complex_of<T> v[CUDA_FFT_POINTS];
    load_window<T, false>(lags.taps, at.taps, at.taps_first, fft, v);
    fft_block_forward(fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) cache[j * blockDim.x] = v[j];
    load_window<T, true>(lags.x, at.x, at.x_first, fft, v);
    fft_block_forward(fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) multiply_add(sum[j], v[j], cache[j * blockDim.x]);
}

// Blocks are [task][chunk]. A sum of sums lies where the result is to be: it is touched once in
// MAX_TERMS terms.
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    lags_kernel(const __grid_constant__ cuda_fft_params params,
                const __grid_constant__ cuda_lags lags, complex_of<T> *sums)
{
    fft_thread<T> fft = fft_thread_of<T>(params.form);
    complex_of<T> *cache =
        (complex_of<T> *)shared_memory + params.points + params.points / 16 + threadIdx.x;
    const terms terms = terms_of_block(lags);
    int64_t rest = terms.end - terms.first;
    sums += (int64_t)blockIdx.x * params.points + threadIdx.x;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) sums[j * blockDim.x] = {0, 0};
    // A run of terms ends where its channel does: values computed there once take registers that
    // sums need otherwise.
    while (rest > 0) {
        cursor<T> at = seek<T>(lags, rest);
        complex_of<T> sum[CUDA_FFT_POINTS] = {};
        int left = (int)(at.left < MAX_TERMS ? at.left : MAX_TERMS);
        if (left > rest) left = (int)rest;
        rest -= left;
        for (; left > 0; left--) {
            fft = fft_recompute(fft);
            cuda_blocks_add_term(lags, at, fft, cache, sum);
            at.taps_first += lags.taps.length;
            at.x_first -= lags.taps.length;
        }
#pragma unroll
        for (int j = 0; j < CUDA_FFT_POINTS; j++)
            sums[j * blockDim.x] = sums[j * blockDim.x] + sum[j];
    }
}

// Each thread one bin of one group: [task][group][bin].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_kernel(complex_of<T> *to, const complex_of<T> *from, int64_t points, int64_t chunks,
               int64_t bins)
{
    const int64_t number = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    int64_t rest = number;
    const int64_t bin = take(&rest, points),
                  first = take(&rest, ceiling(chunks, CUDA_LAGS_GROUP)) * CUDA_LAGS_GROUP;
    if (number >= bins) return;
    const int64_t left = chunks - first,
                  count = left < CUDA_LAGS_GROUP ? left : (int64_t)CUDA_LAGS_GROUP;
    complex_of<T> sum = {0, 0};
    from += (rest * chunks + first) * points + bin;
    for (int64_t i = 0; i < count; i++) sum = sum + from[i * points];
    to[number] = sum;
}

// Blocks are tasks. Of a window's samples those before number length - 1 have wrapped.
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    lags_results_kernel(const __grid_constant__ cuda_fft_params params,
                        const __grid_constant__ cuda_sink sink,
                        const __grid_constant__ cuda_lags lags, const complex_of<T> *sums)
{
    int64_t row = lags.first + blockIdx.x;
    const int64_t first = take(&row, lags.windows) * lags.hop, end = first + lags.hop;
    const fft_thread<T> fft = fft_thread_of<T>(params.form);
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (int64_t)blockIdx.x * params.points, fft, v);
    fft_block_inverse(fft, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = first + threadIdx.x + j * blockDim.x - (lags.taps.length - 1),
                      upper = at + params.points;
        const complex_of<T> value = scaled(v[j], 1 / (T)params.points), imaginary = {-value.im, 0};
        if (at >= first && at < end) sink_store(sink, row, at, value);
        if (params.planes == 1 && upper >= first && upper < end)
            sink_store(sink, row, upper, imaginary);
    }
}
} // namespace

cudaError_t cuda_launch_lags(const cuda_fft_params *params, const cuda_lags *lags, void *sums)
{
    const size_t points = (size_t)params->points;
    return with_scalar(params->f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(lags_kernel<T>, lags->tasks * lags->chunks, dim3(cuda_fft_threads(points)),
                     cuda_lags_shared(points, params->f64), *params, *lags, (complex_of<T> *)sums);
    });
}

cudaError_t cuda_launch_lags_add(const cuda_fft_params *params, void *to, const void *from,
                                 int64_t tasks, int64_t chunks)
{
    const int64_t bins = tasks * ceiling(chunks, CUDA_LAGS_GROUP) * params->points;
    return with_scalar(params->f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(add_kernel<T>, ceiling(bins, CUDA_THREADS), dim3(CUDA_THREADS), 0,
                     (complex_of<T> *)to, (const complex_of<T> *)from, params->points, chunks,
                     bins);
    });
}

cudaError_t cuda_launch_lags_results(const cuda_fft_params *params, const cuda_sink *sink,
                                     const cuda_lags *lags, const void *sums)
{
    const size_t points = (size_t)params->points;
    return with_scalar(params->f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(lags_results_kernel<T>, lags->tasks, dim3(cuda_fft_threads(points)),
                     cuda_fft_shared(points, params->f64), *params, *sink, *lags,
                     (const complex_of<T> *)sums);
    });
}
