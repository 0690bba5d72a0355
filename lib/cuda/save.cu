// SPDX-License-Identifier: MIT
#include "outputs.cuh"

namespace {
// Inputs and outputs of a group decide what is kept where: one of each, nothing; one input, its spectrum in registers;
// several, their spectra in memory, where each thread reads what it wrote itself.
enum group { ONE_TO_ONE, ONE_TO_MANY, MANY };

// One job and a part of its outputs.
struct task {
    int64_t job, b, group, item, first, end; // outputs of the group
};

inline __device__ task task_of(const cuda_filtering &filtering, int64_t number, int64_t parts)
{
    task task;
    const int64_t part = take(&number, parts);
    task.job = number;
    task.b = take(&number, filtering.in.windows);
    task.item = take(&number, filtering.batch);
    task.group = number;
    task.first = filtering.group_out * part / parts;
    task.end = filtering.group_out * (part + 1) / parts;
    return task;
}

// v = the spectrum of an output: the sum over the group's inputs.
template <typename T, group GROUP>
__device__ void sum_inputs(const cuda_filtering &filtering, const fft_place<T> &place, const complex_of<T> *filter,
                           const complex_of<T> *kept, const complex_of<T> *x, complex_of<T> *v)
{
    const int points = 1 << place.log2_points, n = GROUP == MANY ? (int)filtering.group_in : 1;
    for (int c = 0; c < n; c++, filter += points, kept += points)
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const int bin = place.thread + j * (points / 16);
            const complex_of<T> product = (GROUP == MANY ? kept[bin] : x[j]) * filter[bin];
            v[j] = GROUP == MANY && c > 0 ? v[j] + product : product;
        }
}

template <typename T, group GROUP>
__device__ void run_task(const cuda_filtering &filtering, const task &task, bool valid, const fft_place<T> &place,
                         complex_of<T> *kept, T *y, const T *x, const complex_of<T> *spectra, const T *bias)
{
    const int64_t first = windows_first(filtering.in, task.job);
    const int64_t line = windows_line(filtering.in, task.job / filtering.in.windows);
    const int points = 1 << place.log2_points;
    complex_of<T> inputs[16], v[16];
    for (int c = 0; c < (GROUP == MANY ? (int)filtering.group_in : 1); c++) {
        inputs_load(filtering.in, x, line + c, first, place, inputs);
        fft_forward(place, inputs);
        if (GROUP == MANY) spectrum_store(kept + (int64_t)c * points, place, inputs);
    }
    for (int64_t k = task.first; k < task.end; k++) {
        const int64_t channel = task.group * filtering.group_out + k;
        sum_inputs<T, GROUP>(filtering, place, spectra + channel * filtering.group_in * points, kept, inputs, v);
        fft_inverse(place, v);
        if (valid)
            outputs_store(filtering.out, y, task.item * filtering.groups * filtering.group_out + channel, task.b, place,
                          v, finish_of(filtering.out.relu, bias, channel));
        if (GROUP == ONE_TO_ONE) return;
    }
}

template <typename T, group GROUP>
__global__ void __launch_bounds__(fft_most_threads<T>(), 1)
    save_kernel(const __grid_constant__ cuda_filtering filtering, int64_t parts, bool in_memory, T *y, const T *x,
                const complex_of<T> *spectra, const T *bias, complex_of<T> *memory)
{
    const fft_place<T> place = fft_place_of<T>(filtering.form);
    const int64_t n = filtering.groups * filtering.batch * filtering.in.windows * parts;
    const int64_t points = (int64_t)1 << place.log2_points, of_job = filtering.group_in * points;
    complex_of<T> *kept = in_memory ? memory + blockIdx.x * blockDim.y * of_job
                                    : (complex_of<T> *)shared_memory + blockDim.y * (points + points / 16);
    kept += threadIdx.y * of_job;
    // Without spectra in memory there are as many blocks as it takes.
    int64_t first = (int64_t)blockIdx.x * blockDim.y;
    do {
        // Rows of threads beyond the last task take the barriers with the others.
        const int64_t number = first + threadIdx.y;
        const bool valid = number < n;
        const task task = task_of(filtering, valid ? number : first, parts);
        run_task<T, GROUP>(filtering, task, valid, place, kept, y, x, spectra, bias);
        first += (int64_t)gridDim.x * blockDim.y;
    } while (GROUP == MANY && first < n);
}

template <typename T, group GROUP>
cudaError_t launch(const cuda_filtering *filtering, const cuda_save_cut *cut, void *y, const void *x,
                   const void *spectra, const void *bias, void *kept, cudaStream_t stream)
{
    void (*const kernel)(cuda_filtering, int64_t, bool, T *, const T *, const complex_of<T> *, const T *,
                         complex_of<T> *) = save_kernel<T, GROUP>;
    const cudaError_t error = allow_shared(kernel, cut->shared_bytes);
    if (error != cudaSuccess) return error;
    return queue(kernel, cut->blocks, fft_block(filtering->form.log2_points), cut->shared_bytes, stream, *filtering,
                 cut->parts, cut->in_memory, (T *)y, (const T *)x, (const complex_of<T> *)spectra, (const T *)bias,
                 (complex_of<T> *)kept);
}

template <typename T>
cudaError_t launch_typed(const cuda_filtering *filtering, const cuda_save_cut *cut, void *y, const void *x,
                         const void *spectra, const void *bias, void *kept, cudaStream_t stream)
{
    if (filtering->group_in > 1) return launch<T, MANY>(filtering, cut, y, x, spectra, bias, kept, stream);
    return filtering->group_out > 1 ? launch<T, ONE_TO_MANY>(filtering, cut, y, x, spectra, bias, kept, stream)
                                    : launch<T, ONE_TO_ONE>(filtering, cut, y, x, spectra, bias, kept, stream);
}
} // namespace

cudaError_t cuda_launch_save(const cuda_filtering *filtering, const cuda_save_cut *cut, bool f64, void *y,
                             const void *x, const void *spectra, const void *bias, void *kept, cudaStream_t stream)
{
    return f64 ? launch_typed<double>(filtering, cut, y, x, spectra, bias, kept, stream)
               : launch_typed<float>(filtering, cut, y, x, spectra, bias, kept, stream);
}
