// SPDX-License-Identifier: MIT
// A few outputs of long operands: windows of both are transformed, multiplied and summed without leaving the thread
// block, so that both operands are read once and nothing else of their size is ever written.
#include "spectra.cuh"

namespace {
enum { MOST_TERMS = 64 }; // products summed in a row before they are rounded into a sum of sums

// Whether all samples of a window that begins at `first` are in a row in memory.
inline __device__ bool is_plain(const cuda_windows &windows, int64_t first)
{
    return windows.step == 1 && first >= 0 && first + windows.length <= windows.size;
}

// windows_load for a window that may begin anywhere. Most are plain: few registers are then spent on addresses. Others
// go through shared memory, a point at a time, for the same reason.
template <typename T>
__device__ void load_window(const cuda_windows &windows, const T *x, int64_t line, int64_t first,
                            const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int scalars = windows.complex_samples ? 2 : 1, points = 1 << place.log2_points;
    const T *samples = x + windows_line(windows, line) * windows.size * scalars;
    if (!is_plain(windows, first)) {
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x; i < points; i += blockDim.x)
            place.shared[i] = windows_point(windows, samples, first, i, points, place.turned);
#pragma unroll
        for (int j = 0; j < CUDA_FFT_POINTS; j++) v[j] = place.shared[threadIdx.x + j * blockDim.x];
        return;
    }
    const int step = windows.reversed ? -scalars : scalars, length = (int)windows.length;
    samples += (windows.reversed ? windows.size - 1 - first : first) * scalars;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int i = threadIdx.x + j * blockDim.x;
        v[j] = {i < length ? samples[i * step] : 0, 0};
        if (place.turned) v[j].im = i + points < length ? -samples[(i + points) * step] : 0;
        if (windows.complex_samples && i < length)
            v[j].im = windows.conjugated ? -samples[i * step + 1] : samples[i * step + 1];
    }
}

// Parts of the taps that see anything of x through the window of outputs that begins at `base`.
struct seen {
    int64_t first, count;
};

__device__ seen parts_seen(const cuda_lags &lags, int64_t base)
{
    const int64_t size = lags.x.size, part = lags.taps.length, last = base + lags.x.length - 1;
    const int64_t first = base >= size ? (base - size) / part + 1 : 0, behind = last < 0 ? 0 : last / part + 1;
    const int64_t end = behind < lags.taps.windows ? behind : lags.taps.windows;
    return {first, end > first ? end - first : 0};
}

// Elements first .. end-1 of an item, element e being part e % parts.count of channel e / parts.count.
struct elements {
    int64_t line, first, end, base;
    seen parts;
};

__device__ elements elements_of(const cuda_lags &lags, int64_t item, int64_t run)
{
    elements ret;
    ret.base = lags.x.first + take(&item, lags.windows) * lags.hop;
    ret.line = item;
    ret.parts = parts_seen(lags, ret.base);
    const int64_t all = lags.channels * ret.parts.count, each = ceiling(all, lags.runs);
    ret.first = run * each < all ? run * each : all;
    ret.end = ret.first + each < all ? ret.first + each : all;
    return ret;
}

// The product of one element's spectra is added to sum; `kept` holds the spectrum of the taps meanwhile.
template <typename T>
__device__ void add_element(const cuda_lags &lags, const elements &run, int64_t element, const fft_place<T> &place,
                            complex_of<T> *kept, complex_of<T> sum[CUDA_FFT_POINTS])
{
    const int64_t channel = element / run.parts.count, part = run.parts.first + element % run.parts.count;
    const int64_t taps = line_of(lags.taps_lines, run.line) + channel * lags.taps_term;
    const int64_t x = line_of(lags.x_lines, run.line) + channel * lags.x_term;
    const int64_t length = lags.taps.length;
    complex_of<T> v[CUDA_FFT_POINTS];
    load_window(lags.taps, (const T *)lags.taps_samples, taps, lags.taps.first + part * length, place, v);
    fft_forward(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) kept[j * blockDim.x] = v[j];
    load_window(lags.x, (const T *)lags.x_samples, x, run.base - part * length, place, v);
    fft_forward(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) sum[j] = sum[j] + v[j] * kept[j * blockDim.x];
}

// Blocks are [item][run]. A sum of sums is kept where it is to be in the end: it is touched once in MOST_TERMS
// elements.
template <typename T>
__global__ void __launch_bounds__(MOST_THREADS<T>, 1)
    lags_kernel(const __grid_constant__ cuda_kit kit, const __grid_constant__ cuda_lags lags, complex_of<T> *sums)
{
    int64_t block = blockIdx.x;
    const int64_t run = take(&block, lags.runs);
    const elements elements = elements_of(lags, lags.first + block, run);
    const fft_place<T> place = place_of_row<T>(kit);
    complex_of<T> *kept = (complex_of<T> *)shared_memory + kit.points + kit.points / 16 + threadIdx.x;
    sums += (int64_t)blockIdx.x * kit.points + threadIdx.x;
    bool fresh = true;
    for (int64_t at = elements.first; fresh || at < elements.end; at += MOST_TERMS) {
        complex_of<T> sum[CUDA_FFT_POINTS] = {};
        const int64_t end = at + MOST_TERMS < elements.end ? at + MOST_TERMS : elements.end;
        for (int64_t element = at; element < end; element++) add_element(lags, elements, element, place, kept, sum);
#pragma unroll
        for (int j = 0; j < CUDA_FFT_POINTS; j++) sums[j * blockDim.x] = fresh ? sum[j] : sums[j * blockDim.x] + sum[j];
        fresh = false;
    }
}

// Each thread one bin of one group: [item][group][bin].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_kernel(complex_of<T> *to, const complex_of<T> *from, int64_t points, int64_t runs, int64_t bins)
{
    const int64_t number = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    int64_t rest = number;
    const int64_t bin = take(&rest, points), first = take(&rest, ceiling(runs, CUDA_LAGS_GROUP)) * CUDA_LAGS_GROUP;
    if (number >= bins) return;
    const int64_t count = runs - first < CUDA_LAGS_GROUP ? runs - first : CUDA_LAGS_GROUP;
    complex_of<T> sum = {0, 0};
    from += (rest * runs + first) * points + bin;
    for (int64_t i = 0; i < count; i++) sum = sum + from[i * points];
    to[number] = sum;
}

// Blocks are items. Of a window's samples those before number part - 1 have wrapped.
template <typename T>
__global__ void __launch_bounds__(MOST_THREADS<T>, 1)
    lags_results_kernel(const __grid_constant__ cuda_kit kit, const __grid_constant__ cuda_sink sink,
                        const __grid_constant__ cuda_lags lags, const complex_of<T> *sums)
{
    int64_t line = lags.first + blockIdx.x;
    const int64_t first = take(&line, lags.windows) * lags.hop, end = first + lags.hop;
    const fft_place<T> place = place_of_row<T>(kit);
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (int64_t)blockIdx.x * kit.points, place, v);
    fft_inverse(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = first + threadIdx.x + j * blockDim.x - (lags.taps.length - 1), upper = at + kit.points;
        const complex_of<T> value = scaled(v[j], 1 / (T)kit.points), imaginary = {-value.im, 0};
        if (at >= first && at < end) put_at(sink, line, at, value);
        if (kit.planes == 1 && upper >= first && upper < end) put_at(sink, line, upper, imaginary);
    }
}

template <typename T>
cudaError_t launch_lags(const cuda_kit *kit, const cuda_lags *lags, void *sums, cudaStream_t stream)
{
    const dim3 threads(cuda_fft_threads((size_t)kit->points));
    const size_t shared = cuda_fft_shared((size_t)kit->points, kit->f64) + (size_t)kit->points * sizeof(complex_of<T>);
    return queue_large(lags_kernel<T>, lags->items * lags->runs, threads, shared, stream, *kit, *lags,
                       (complex_of<T> *)sums);
}

template <typename T>
cudaError_t launch_add(const cuda_kit *kit, void *to, const void *from, int64_t items, int64_t runs,
                       cudaStream_t stream)
{
    const int64_t bins = items * ceiling(runs, CUDA_LAGS_GROUP) * kit->points;
    return queue(add_kernel<T>, ceiling(bins, CUDA_THREADS), dim3(CUDA_THREADS), 0, stream, (complex_of<T> *)to,
                 (const complex_of<T> *)from, kit->points, runs, bins);
}

template <typename T>
cudaError_t launch_results(const cuda_kit *kit, const cuda_sink *sink, const cuda_lags *lags, const void *sums,
                           cudaStream_t stream)
{
    return queue_large(lags_results_kernel<T>, lags->items, dim3(cuda_fft_threads((size_t)kit->points)),
                       cuda_fft_shared((size_t)kit->points, kit->f64), stream, *kit, *sink, *lags,
                       (const complex_of<T> *)sums);
}
} // namespace

cudaError_t cuda_launch_lags(const cuda_kit *kit, const cuda_lags *lags, void *sums, cudaStream_t stream)
{
    return kit->f64 ? launch_lags<double>(kit, lags, sums, stream) : launch_lags<float>(kit, lags, sums, stream);
}

cudaError_t cuda_launch_lags_add(const cuda_kit *kit, void *to, const void *from, int64_t items, int64_t runs,
                                 cudaStream_t stream)
{
    return kit->f64 ? launch_add<double>(kit, to, from, items, runs, stream)
                    : launch_add<float>(kit, to, from, items, runs, stream);
}

cudaError_t cuda_launch_lags_results(const cuda_kit *kit, const cuda_sink *sink, const cuda_lags *lags,
                                     const void *sums, cudaStream_t stream)
{
    return kit->f64 ? launch_results<double>(kit, sink, lags, sums, stream)
                    : launch_results<float>(kit, sink, lags, sums, stream);
}
