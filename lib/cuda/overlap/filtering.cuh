// SPDX-License-Identifier: MIT
// The kernel of overlap-save and overlap-add (save.h), by what a group has of inputs and outputs
// and by what becomes of the samples of a window.
#ifndef PARTITA_CUDA_FILTERING_CUH
#define PARTITA_CUDA_FILTERING_CUH

#include "cuda/kernels/outputs.cuh"

// Inputs and outputs of a group decide what is kept where: one of each, nothing; one input, its
// spectrum in registers; several, their spectra in memory, where each thread reads what it wrote
// itself.
enum group { ONE_TO_ONE, ONE_TO_MANY, MANY };

// One window of a group of an item, and a part of its outputs.
struct task {
    int64_t b, group, item;
    int first; // output of the group
};

inline __device__ int64_t windows_of(const cuda_filtering &filtering, const cuda_step &step)
{
    return ceiling(filtering.in.windows - step.first, step.of);
}

inline __device__ task task_of(const cuda_filtering &filtering, int64_t number,
                               const cuda_save_cut &cut, const cuda_step &step)
{
    task task;
    task.first = (int)take(&number, cut.parts) * cut.of_part;
    task.b = step.first + step.of * take(&number, windows_of(filtering, step));
    task.item = take(&number, filtering.batch);
    task.group = number;
    return task;
}

// v = the spectrum of an output: the sum over the group's inputs.
template <typename T, group GROUP>
__device__ void sum_inputs(const cuda_filtering &filtering, const fft_place<T> &place,
                           const complex_of<T> *filter, const complex_of<T> *kept,
                           const complex_of<T> *x, complex_of<T> *v)
{
    const int apart = 1 << (place.log2_points - 4);
    filter += place.thread;
    if (GROUP == MANY) kept += place.thread;
    for (int c = 0; c < (GROUP == MANY ? (int)filtering.group_in : 1); c++)
#pragma unroll
        for (int j = 0; j < 16; j++, filter += apart, kept += GROUP == MANY ? apart : 0) {
            const complex_of<T> product = (GROUP == MANY ? *kept : x[j]) * *filter;
            v[j] = GROUP == MANY && c > 0 ? v[j] + product : product;
        }
}

// Spectra of a task's inputs, left in x or `kept`.
template <typename T, group GROUP>
__device__ void transform_inputs(const cuda_filtering &filtering, const task &task,
                                 const fft_place<T> &place, const T *from, complex_of<T> *kept,
                                 complex_of<T> x[16])
{
    const int64_t first = filtering.in.first + task.b * filtering.in.hop;
    const int64_t line = windows_line(filtering.in, task.group * filtering.batch + task.item);
    for (int c = 0; c < (GROUP == MANY ? (int)filtering.group_in : 1);
         c++, kept += 1 << place.log2_points) {
        const fft_place<T> here = fft_again(place);
        inputs_load(filtering.in, from, line + c, first, here, x);
        fft_forward(fft_again(here), x);
        if (GROUP == MANY) spectrum_store(kept, here, x);
    }
}

// Where a window's samples go.
template <typename T, cuda_way WAY>
__device__ outputs<T> target_of(const cuda_filtering &filtering, const task &task, T *y,
                                bool turned)
{
    const cuda_outputs &out = filtering.out;
    const int64_t channels = filtering.groups * filtering.group_out;
    const int64_t line = task.item * channels + task.group * filtering.group_out + task.first,
                  begin = task.b * out.hop;
    return WAY == CUDA_STEP
               ? outputs_between(out, y, line, begin - out.skip, begin + out.hop, 0, turned)
               : outputs_of(out, y, line, task.b, turned);
}

// Every row of threads takes as many turns as the others, which wait for it at barriers: behind the
// last output, or the last task, they store nothing.
template <typename T, group GROUP, cuda_way WAY>
__device__ void run_task(const cuda_filtering &filtering, const task &task, int of_part, bool valid,
                         const fft_place<T> &place, complex_of<T> *kept, T *y, const T *from,
                         const complex_of<T> *spectra, const T *bias)
{
    complex_of<T> x[16], v[16];
    transform_inputs<T, GROUP>(filtering, task, place, from, kept, x);
    const int64_t filter = filtering.group_in << place.log2_points;
    const int left = valid ? (int)filtering.group_out - task.first : 0;
    int64_t channel = task.group * filtering.group_out + task.first;
    outputs<T> target = target_of<T, WAY>(filtering, task, y, place.turned);
    spectra += channel * filter;
    for (int k = 0; k < (GROUP == ONE_TO_ONE ? 1 : of_part); k++) {
        const fft_place<T> here = fft_again(place);
        sum_inputs<T, GROUP>(filtering, here, spectra, kept, x, v);
        fft_inverse(fft_again(here), v);
        if (k < left)
            points_store<WAY == CUDA_STEP>(
                target, fft_again(here), v,
                finish_of(WAY == CUDA_SAVE && filtering.out.relu, bias, channel));
        if (k + 1 >= left) continue;
        target.y += filtering.out.size * (place.turned ? 1 : 2);
        spectra += filter;
        channel++;
    }
}

template <typename T, group GROUP, cuda_way WAY>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    filter_kernel(const __grid_constant__ cuda_filtering filtering,
                  const __grid_constant__ cuda_save_cut cut, const __grid_constant__ cuda_step step,
                  T *y, const T *x, const complex_of<T> *spectra, const T *bias,
                  complex_of<T> *memory)
{
    const fft_place<T> place = fft_place_of<T>(filtering.form);
    const int64_t n = filtering.groups * filtering.batch * windows_of(filtering, step) * cut.parts;
    const int64_t points = (int64_t)1 << place.log2_points, of_job = filtering.group_in * points;
    complex_of<T> *kept =
        cut.in_memory ? memory + blockIdx.x * blockDim.y * of_job
                      : (complex_of<T> *)shared_memory + blockDim.y * (points + points / 16);
    kept += threadIdx.y * of_job;
    // Without spectra in memory there are as many blocks as it takes.
    for (int turn = 0; GROUP == MANY || turn == 0; turn++) {
        const int64_t first = ((int64_t)turn * gridDim.x + blockIdx.x) * blockDim.y,
                      number = first + threadIdx.y;
        if (first >= n) break;
        const task task = task_of(filtering, number < n ? number : first, cut, step);
        run_task<T, GROUP, WAY>(filtering, task, cut.of_part, number < n, place, kept, y, x,
                                spectra, bias);
    }
}

template <typename T, group GROUP, cuda_way WAY>
cudaError_t launch_filter(const cuda_filtering *filtering, const cuda_save_cut *cut,
                          const cuda_step *step, const cuda_save_arrays *arrays,
                          cudaStream_t stream)
{
    void (*const kernel)(cuda_filtering, cuda_save_cut, cuda_step, T *, const T *,
                         const complex_of<T> *, const T *, complex_of<T> *) =
        filter_kernel<T, GROUP, WAY>;
    // Bias comes last in overlap-add.
    const void *bias = WAY == CUDA_SAVE ? arrays->bias : nullptr;
    return queue(kernel, cut->blocks, fft_block(filtering->form.log2_points), cut->shared_bytes,
                 stream, *filtering, *cut, *step, (T *)arrays->y, (const T *)arrays->x,
                 (const complex_of<T> *)arrays->spectra, (const T *)bias,
                 (complex_of<T> *)arrays->kept);
}

template <typename T, cuda_way WAY>
cudaError_t launch_way(const cuda_filtering *filtering, const cuda_save_cut *cut,
                       const cuda_step *step, const cuda_save_arrays *arrays, cudaStream_t stream)
{
    if (filtering->group_in > 1)
        return launch_filter<T, MANY, WAY>(filtering, cut, step, arrays, stream);
    return filtering->group_out > 1
               ? launch_filter<T, ONE_TO_MANY, WAY>(filtering, cut, step, arrays, stream)
               : launch_filter<T, ONE_TO_ONE, WAY>(filtering, cut, step, arrays, stream);
}

#endif
