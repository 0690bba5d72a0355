// SPDX-License-Identifier: MIT
#include "filter.h"

#include "cuda/kernels/outputs.cuh"

namespace {
// Inputs and outputs of a group decide where input spectra are held: one of each, nowhere; one
// input and several outputs, in registers; several inputs, in memory, where each thread reads its
// own values.
enum group { SINGLE_PATH, SINGLE_INPUT, SUMMED_INPUTS };

// One window of a group of an item, and a chunk of its outputs.
struct task {
    int64_t b, group, item;
    int first; // output of the group
};

inline __device__ int64_t windows_of_row(const cuda_filtering &filtering,
                                         const cuda_filter_windows &windows)
{
    return ceiling(filtering.in.count - windows.first, windows.step);
}

inline __device__ task filter_task(const cuda_filtering &filtering, int64_t number,
                                   const cuda_filter_layout &layout,
                                   const cuda_filter_windows &windows)
{
    task task;
    task.first = (int)take(&number, layout.chunks) * layout.chunk_outputs;
    task.b = windows.first + windows.step * take(&number, windows_of_row(filtering, windows));
    task.item = take(&number, filtering.batch);
    task.group = number;
    return task;
}

// v = the spectrum of an output: the sum over the group's inputs.
template <typename T, group GROUP>
__device__ void sum_inputs(const cuda_filtering &filtering, const fft_thread<T> &fft,
                           const complex_of<T> *filter, const complex_of<T> *cache,
                           const complex_of<T> *x, complex_of<T> *v)
{
    const int apart = 1 << (fft.log2_points - 4);
    filter += fft.thread;
    if (GROUP == SUMMED_INPUTS) cache += fft.thread;
    for (int c = 0; c < (GROUP == SUMMED_INPUTS ? (int)filtering.group_in : 1); c++)
#pragma unroll
        for (int j = 0; j < 16; j++, filter += apart, cache += GROUP == SUMMED_INPUTS ? apart : 0) {
            const complex_of<T> product = (GROUP == SUMMED_INPUTS ? *cache : x[j]) * *filter;
            v[j] = GROUP == SUMMED_INPUTS && c > 0 ? v[j] + product : product;
        }
}

// Spectra of a task's inputs, left in x or the cache.
template <typename T, group GROUP>
__device__ void transform_inputs(const cuda_filtering &filtering, const task &task,
                                 const fft_thread<T> &fft, const T *from, complex_of<T> *cache,
                                 complex_of<T> x[16])
{
    const int64_t first = filtering.in.first + task.b * filtering.in.hop;
    const T *row = windows_row_at(filtering.in, from, task.group * filtering.batch + task.item);
    for (int c = 0; c < (GROUP == SUMMED_INPUTS ? (int)filtering.group_in : 1); c++) {
        const fft_thread<T> here = fft_recompute(fft);
        window_points(filtering.in, row, first, here, x);
        fft_block_forward(fft_recompute(here), x);
        if (GROUP == SUMMED_INPUTS) spectrum_store(cache, here, x);
        row += filtering.in.size * (fft.negacyclic ? 1 : 2);
        cache += 1 << fft.log2_points;
    }
}

// Where the samples of a task's first output go.
template <typename T, bool ACCUMULATE>
__device__ outputs<T> outputs_of_task(const cuda_filtering &filtering, const task &task, T *y,
                                      bool negacyclic)
{
    const cuda_outputs &out = filtering.out;
    const int64_t channels = filtering.groups * filtering.group_out;
    const int64_t row = task.item * channels + task.group * filtering.group_out + task.first,
                  begin = task.b * out.hop;
    return ACCUMULATE
               ? outputs_between(out, y, row, begin - out.skip, begin + out.hop, 0, negacyclic)
               : outputs_of(out, y, row, task.b, negacyclic);
}

// Every thread row makes as many transforms as the others, which wait for it at barriers: behind
// the last output, or the last task, it stores nothing.
template <typename T, group GROUP, bool ACCUMULATE>
__device__ void filter_run_task(const cuda_filtering &filtering, const task &task,
                                int chunk_outputs, bool valid, const fft_thread<T> &fft,
                                complex_of<T> *cache, T *y, const T *from,
                                const complex_of<T> *spectra, const T *bias)
{
    complex_of<T> x[16], v[16];
    transform_inputs<T, GROUP>(filtering, task, fft, from, cache, x);
    const int64_t filter = filtering.group_in << fft.log2_points;
    const int left = valid ? (int)filtering.group_out - task.first : 0;
    int64_t channel = task.group * filtering.group_out + task.first;
    outputs<T> to = outputs_of_task<T, ACCUMULATE>(filtering, task, y, fft.negacyclic);
    spectra += channel * filter;
    for (int k = 0; k < (GROUP == SINGLE_PATH ? 1 : chunk_outputs); k++) {
        const fft_thread<T> here = fft_recompute(fft);
        sum_inputs<T, GROUP>(filtering, here, spectra, cache, x, v);
        fft_block_inverse(fft_recompute(here), v);
        if (k < left)
            outputs_store<ACCUMULATE>(to, fft_recompute(here), v,
                                      finish_of(!ACCUMULATE && filtering.out.relu, bias, channel));
        if (k + 1 >= left) continue;
        to.y += filtering.out.size * (fft.negacyclic ? 1 : 2);
        spectra += filter;
        channel++;
    }
}

template <typename T, group GROUP, bool ACCUMULATE>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    filter_kernel(const __grid_constant__ cuda_filtering filtering,
                  const __grid_constant__ cuda_filter_layout layout,
                  const __grid_constant__ cuda_filter_windows windows, T *y, const T *x,
                  const complex_of<T> *spectra, const T *bias, complex_of<T> *memory)
{
    const fft_thread<T> fft = fft_thread_of<T>(filtering.form);
    const int64_t n =
        filtering.groups * filtering.batch * windows_of_row(filtering, windows) * layout.chunks;
    const int64_t points = (int64_t)1 << fft.log2_points, of_task = filtering.group_in * points;
    complex_of<T> *cache =
        layout.in_memory ? memory + blockIdx.x * blockDim.y * of_task
                         : (complex_of<T> *)shared_memory + blockDim.y * (points + points / 16);
    cache += threadIdx.y * of_task;
    // Without spectra in memory there is a thread block for every task.
    for (int round = 0; GROUP == SUMMED_INPUTS || round == 0; round++) {
        const int64_t first = ((int64_t)round * gridDim.x + blockIdx.x) * blockDim.y,
                      number = first + threadIdx.y;
        if (first >= n) break;
        const task task = filter_task(filtering, number < n ? number : first, layout, windows);
        filter_run_task<T, GROUP, ACCUMULATE>(filtering, task, layout.chunk_outputs, number < n,
                                              fft, cache, y, x, spectra, bias);
    }
}

template <typename T, bool ACCUMULATE> auto filter_kernel_of(const cuda_filtering *filtering)
{
    auto *kernel = filter_kernel<T, SINGLE_PATH, ACCUMULATE>;
    if (filtering->group_out > 1) kernel = filter_kernel<T, SINGLE_INPUT, ACCUMULATE>;
    if (filtering->group_in > 1) kernel = filter_kernel<T, SUMMED_INPUTS, ACCUMULATE>;
    return kernel;
}
} // namespace

cudaError_t cuda_launch_filter(const cuda_filtering *filtering, const cuda_filter_layout *layout,
                               bool f64, const cuda_filter_windows *windows,
                               const cuda_arrays *arrays)
{
    const bool accumulate = filtering->accumulate;
    return with_scalar(f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(accumulate ? filter_kernel_of<T, true>(filtering)
                                : filter_kernel_of<T, false>(filtering),
                     layout->blocks, fft_block(filtering->form.log2_points), layout->shared_bytes,
                     *filtering, *layout, *windows, arrays->to, arrays->from, arrays->taps,
                     accumulate ? nullptr : arrays->bias, arrays->workspace);
    });
}
