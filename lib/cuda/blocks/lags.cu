// SPDX-License-Identifier: MIT
// A few outputs of long operands: windows of both are transformed, multiplied and summed without
// leaving the thread block, so that both operands are read once and nothing else of their size is
// ever written.
#include "cuda/kernels/outputs.cuh"
#include "cuda/kernels/spectra.cuh"

namespace {
const int MOST_TERMS = 64; // products summed in a row before they are rounded into a sum of sums

// Points of a window of which all samples are in a row in memory from `samples` on, `step` apart.
// WHOLE: it has as many as the transform holds.
template <typename T, bool WHOLE>
__device__ void load_plain(const cuda_windows &windows, const T *samples, int step,
                           const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = 1 << place.log2_points, apart = (int)blockDim.x * step;
    int left = (int)windows.length - (int)threadIdx.x;
    samples += (int)threadIdx.x * step;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        v[j] = {WHOLE || left > 0 ? *samples : 0, 0};
        if (place.turned) v[j].im = WHOLE || left > points ? -samples[points * step] : 0;
        else if (windows.complex_samples && (WHOLE || left > 0))
            v[j].im = windows.conjugated ? -samples[1] : samples[1];
        samples += apart;
        left -= (int)blockDim.x;
    }
}

// The points of the window of a line that begins at position `first`.
template <typename T, bool WHOLE>
__device__ void load_window(const cuda_windows &windows, const T *line, int64_t first,
                            const fft_place<T> &place, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int scalars = windows.complex_samples ? 2 : 1;
    if (windows.step == 1 && first >= 0 && first + windows.length <= windows.size) {
        line += (windows.reversed ? windows.size - 1 - first : first) * scalars;
        load_plain<T, WHOLE>(windows, line, windows.reversed ? -scalars : scalars, place, v);
    } else if (windows.step == 1 && !windows.reversed &&
               place.turned) // points are two samples each
        inputs_load(windows, line, 0, first, place, v);
    else load_points(windows, line, first, place, v);
}

// Parts of the taps that see anything of x through the window of outputs that begins at `base`.
struct seen {
    int64_t first, count;
};

__device__ seen parts_seen(const cuda_lags &lags, int64_t base)
{
    const int64_t size = lags.x.size, part = lags.taps.length, last = base + lags.x.length - 1;
    const int64_t first = base >= size ? (base - size) / part + 1 : 0,
                  behind = last < 0 ? 0 : last / part + 1;
    const int64_t end = behind < lags.taps.windows ? behind : lags.taps.windows;
    return {first, end > first ? end - first : 0};
}

__device__ int64_t base_of(const cuda_lags &lags, int64_t item)
{
    return lags.x.first + item % lags.windows * lags.hop;
}

// The elements that a thread block sums: [channel][part] of an item, first .. end-1.
struct elements {
    int64_t item, first, end;
};

__device__ elements elements_of_block(const cuda_lags &lags)
{
    const int64_t item = lags.first + blockIdx.x / lags.runs, run = blockIdx.x % lags.runs;
    const int64_t all = lags.channels * parts_seen(lags, base_of(lags, item)).count,
                  each = ceiling(all, lags.runs);
    const int64_t first = run * each < all ? run * each : all;
    return {item, first, first + each < all ? first + each : all};
}

// Where the next element is; so many are `left` of its channel.
template <typename T> struct cursor {
    const T *taps, *x; // lines
    int64_t taps_first, x_first, left;
};

// The element with `rest` of them to go. Divisions are done here and nothing is kept for them.
template <typename T> __device__ cursor<T> seek(const cuda_lags &lags, int64_t rest)
{
    const elements elements = elements_of_block(lags);
    const int64_t element = elements.end - rest, line = elements.item / lags.windows,
                  length = lags.taps.length;
    const int64_t base = base_of(lags, elements.item);
    const seen parts = parts_seen(lags, base);
    const int64_t channel = element / parts.count, at = element % parts.count,
                  part = parts.first + at;
    const int64_t taps = line_of(lags.taps_lines, line) + channel * lags.taps_term;
    const int64_t x = line_of(lags.x_lines, line) + channel * lags.x_term;
    return {line_at(lags.taps, (const T *)lags.taps_samples, taps),
            line_at(lags.x, (const T *)lags.x_samples, x), lags.taps.first + part * length,
            base - part * length, parts.count - at};
}

// The product of one element's spectra is added to sum; `kept` holds the spectrum of the taps
// meanwhile.
template <typename T>
__device__ void add_element(const cuda_lags &lags, const cursor<T> &at, const fft_place<T> &place,
                            complex_of<T> *kept, complex_of<T> sum[CUDA_FFT_POINTS])
{
    complex_of<T> v[CUDA_FFT_POINTS];
    load_window<T, false>(lags.taps, at.taps, at.taps_first, place, v);
    fft_forward(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) kept[j * blockDim.x] = v[j];
    load_window<T, true>(lags.x, at.x, at.x_first, place, v);
    fft_forward(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) multiply_add(sum[j], v[j], kept[j * blockDim.x]);
}

// Blocks are [item][run]. A sum of sums is kept where it is to be in the end: it is touched once in
// MOST_TERMS elements.
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    lags_kernel(const __grid_constant__ cuda_kit kit, const __grid_constant__ cuda_lags lags,
                complex_of<T> *sums)
{
    fft_place<T> place = fft_place_of<T>(kit.form);
    complex_of<T> *kept =
        (complex_of<T> *)shared_memory + kit.points + kit.points / 16 + threadIdx.x;
    const elements elements = elements_of_block(lags);
    int64_t rest = elements.end - elements.first;
    sums += (int64_t)blockIdx.x * kit.points + threadIdx.x;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) sums[j * blockDim.x] = {0, 0};
    // Rows end where channels do: what is done there once in a row takes registers that sums need
    // meanwhile.
    while (rest > 0) {
        cursor<T> at = seek<T>(lags, rest);
        complex_of<T> sum[CUDA_FFT_POINTS] = {};
        int row = (int)(at.left < MOST_TERMS ? at.left : MOST_TERMS);
        if (row > rest) row = (int)rest;
        rest -= row;
        for (; row > 0; row--) {
            asm volatile(""
                         : "+r"(place.thread)); // or addresses are kept from turn to turn, and sums
                                                // spilled for them
            add_element(lags, at, place, kept, sum);
            at.taps_first += lags.taps.length;
            at.x_first -= lags.taps.length;
        }
#pragma unroll
        for (int j = 0; j < CUDA_FFT_POINTS; j++)
            sums[j * blockDim.x] = sums[j * blockDim.x] + sum[j];
    }
}

// Each thread one bin of one group: [item][group][bin].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_kernel(complex_of<T> *to, const complex_of<T> *from, int64_t points, int64_t runs,
               int64_t bins)
{
    const int64_t number = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    int64_t rest = number;
    const int64_t bin = take(&rest, points),
                  first = take(&rest, ceiling(runs, CUDA_LAGS_GROUP)) * CUDA_LAGS_GROUP;
    if (number >= bins) return;
    const int64_t left = runs - first,
                  count = left < CUDA_LAGS_GROUP ? left : (int64_t)CUDA_LAGS_GROUP;
    complex_of<T> sum = {0, 0};
    from += (rest * runs + first) * points + bin;
    for (int64_t i = 0; i < count; i++) sum = sum + from[i * points];
    to[number] = sum;
}

// Blocks are items. Of a window's samples those before number part - 1 have wrapped.
template <typename T>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    lags_results_kernel(const __grid_constant__ cuda_kit kit,
                        const __grid_constant__ cuda_sink sink,
                        const __grid_constant__ cuda_lags lags, const complex_of<T> *sums)
{
    int64_t line = lags.first + blockIdx.x;
    const int64_t first = take(&line, lags.windows) * lags.hop, end = first + lags.hop;
    const fft_place<T> place = fft_place_of<T>(kit.form);
    complex_of<T> v[CUDA_FFT_POINTS];
    spectrum_load(sums + (int64_t)blockIdx.x * kit.points, place, v);
    fft_inverse(place, v);
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int64_t at = first + threadIdx.x + j * blockDim.x - (lags.taps.length - 1),
                      upper = at + kit.points;
        const complex_of<T> value = scaled(v[j], 1 / (T)kit.points), imaginary = {-value.im, 0};
        if (at >= first && at < end) put_at(sink, line, at, value);
        if (kit.planes == 1 && upper >= first && upper < end) put_at(sink, line, upper, imaginary);
    }
}

template <typename T>
cudaError_t launch_lags(const cuda_kit *kit, const cuda_lags *lags, void *sums, cudaStream_t stream)
{
    const dim3 threads(cuda_fft_threads((size_t)kit->points));
    return queue(lags_kernel<T>, lags->items * lags->runs, threads,
                 cuda_lags_shared((size_t)kit->points, kit->f64), stream, *kit, *lags,
                 (complex_of<T> *)sums);
}

template <typename T>
cudaError_t launch_add(const cuda_kit *kit, void *to, const void *from, int64_t items, int64_t runs,
                       cudaStream_t stream)
{
    const int64_t bins = items * ceiling(runs, CUDA_LAGS_GROUP) * kit->points;
    return queue(add_kernel<T>, ceiling(bins, CUDA_THREADS), dim3(CUDA_THREADS), 0, stream,
                 (complex_of<T> *)to, (const complex_of<T> *)from, kit->points, runs, bins);
}

template <typename T>
cudaError_t launch_results(const cuda_kit *kit, const cuda_sink *sink, const cuda_lags *lags,
                           const void *sums, cudaStream_t stream)
{
    return queue(lags_results_kernel<T>, lags->items, dim3(cuda_fft_threads((size_t)kit->points)),
                 cuda_fft_shared((size_t)kit->points, kit->f64), stream, *kit, *sink, *lags,
                 (const complex_of<T> *)sums);
}
} // namespace

cudaError_t cuda_launch_lags(const cuda_kit *kit, const cuda_lags *lags, void *sums,
                             cudaStream_t stream)
{
    return kit->f64 ? launch_lags<double>(kit, lags, sums, stream)
                    : launch_lags<float>(kit, lags, sums, stream);
}

cudaError_t cuda_launch_lags_add(const cuda_kit *kit, void *to, const void *from, int64_t items,
                                 int64_t runs, cudaStream_t stream)
{
    return kit->f64 ? launch_add<double>(kit, to, from, items, runs, stream)
                    : launch_add<float>(kit, to, from, items, runs, stream);
}

cudaError_t cuda_launch_lags_results(const cuda_kit *kit, const cuda_sink *sink,
                                     const cuda_lags *lags, const void *sums, cudaStream_t stream)
{
    return kit->f64 ? launch_results<double>(kit, sink, lags, sums, stream)
                    : launch_results<float>(kit, sink, lags, sums, stream);
}
