// SPDX-License-Identifier: MIT
// One thread a point or a bin.
#include "cuda/kernels/jobs.h"
#include "cuda/kernels/outputs.cuh"

namespace {
enum { THREADS = 256 };

// The thread's number among all of a launch.
inline __device__ int64_t number_of_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
    points_kernel(const __grid_constant__ cuda_fft_form form,
                  const __grid_constant__ cuda_windows windows,
                  const __grid_constant__ cuda_range range, complex_of<T> *to, const T *x)
{
    const int64_t i = number_of_thread(), points = (int64_t)1 << form.log2_points,
                  window = i >> form.log2_points;
    const int point = (int)(i & (points - 1));
    if (window >= range.n) return;
    const complex_of<T> z =
        windows_point(windows, x, range.first + window, point, (int)points, form.turned);
    to[i] = form.turned ? z * ((const complex_of<T> *)form.factors)[point] : z;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
    products_kernel(const __grid_constant__ cuda_products of, complex_of<T> *y,
                    const complex_of<T> *x, const complex_of<T> *spectra)
{
    const int64_t i = number_of_thread(), job = i / of.points, bin = i % of.points;
    if (job >= of.jobs.n) return;
    const int64_t channel = (of.jobs.first + job) / of.of_group * of.group_out + of.k;
    const complex_of<T> *filter = spectra + channel * of.group_in * of.points + bin;
    complex_of<T> sum = x[i] * *filter;
    for (int64_t c = 1; c < of.group_in; c++)
        sum = sum + x[c * of.room * of.points + i] * filter[c * of.points];
    y[i] = sum;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
    outputs_kernel(const __grid_constant__ cuda_filtering filtering,
                   const __grid_constant__ cuda_range jobs, int64_t k, T *y,
                   const complex_of<T> *from, const T *bias)
{
    const cuda_fft_form &form = filtering.form;
    const int64_t i = number_of_thread(), points = (int64_t)1 << form.log2_points;
    const int point = (int)(i & (points - 1));
    int64_t job = i >> form.log2_points;
    if (job >= jobs.n) return;
    job += jobs.first;
    const int64_t b = take(&job, filtering.in.windows), item = take(&job, filtering.batch);
    const int64_t channel = job * filtering.group_out + k,
                  all = filtering.groups * filtering.group_out;
    const complex_of<T> z =
        form.turned ? from[i] * conjugate(((const complex_of<T> *)form.factors)[point]) : from[i];
    const outputs<T> to = outputs_of(filtering.out, y, item * all + channel, b, form.turned);
    point_store<false>(to, point, (int)points, form.turned, z,
                       finish_of(filtering.out.relu, bias, channel));
}

// Jobs first .. end-1 of run r of a group's.
struct run_jobs {
    int64_t first, end;
};

inline __device__ run_jobs run_of(int64_t of_group, int64_t group, int64_t run, int64_t runs)
{
    return {group * of_group + of_group * run / runs,
            group * of_group + of_group * (run + 1) / runs};
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
    correlations_kernel(const __grid_constant__ cuda_correlations of, int64_t first_group,
                        int64_t n_groups, complex_of<T> *sums, const complex_of<T> *x,
                        const complex_of<T> *gy)
{
    int64_t i = number_of_thread();
    const int64_t bin = take(&i, of.points), c = take(&i, of.group_in), k = take(&i, of.group_out);
    const int64_t group = first_group + take(&i, n_groups), run = i;
    if (run >= of.runs) return;
    const run_jobs all = run_of(of.of_group, group, run, of.runs);
    const int64_t begin = of.jobs.first, end = begin + of.jobs.n;
    int64_t job = all.first > begin ? all.first : begin;
    const int64_t last = all.end < end ? all.end : end;
    if (job >= last) return;
    complex_of<T> *to =
        sums + (((run * of.groups + group) * of.group_out + k) * of.group_in + c) * of.points + bin;
    complex_of<T> sum = job == all.first ? complex_of<T>{0, 0} : *to;
    for (; job < last; job++)
        sum = sum + x[(c * of.room + job - begin) * of.points + bin] *
                        conjugate(gy[(k * of.room + job - begin) * of.points + bin]);
    *to = sum;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4) add_runs_kernel(T *sums, int64_t n, int64_t runs)
{
    const int64_t i = number_of_thread();
    if (i >= n) return;
    T sum = sums[i];
    for (int64_t run = 1; run < runs; run++) sum += sums[run * n + i];
    sums[i] = sum;
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 4)
    points_lines_kernel(const __grid_constant__ cuda_fft_form form,
                        const __grid_constant__ cuda_lines lines, T *y, const complex_of<T> *from)
{
    const int64_t i = number_of_thread(), points = (int64_t)1 << form.log2_points,
                  line = i >> form.log2_points;
    const int point = (int)(i & (points - 1));
    if (line >= lines.lines) return;
    const complex_of<T> z =
        form.turned ? from[i] * conjugate(((const complex_of<T> *)form.factors)[point]) : from[i];
    lines_store(lines, y, line, point, (int)points, form.turned, z);
}

// One thread for each of n things.
template <typename... Parameters, typename... Arguments>
cudaError_t queue_each(void (*kernel)(Parameters...), int64_t n, cudaStream_t stream,
                       Arguments... arguments)
{
    return queue(kernel, ceiling(n, THREADS), dim3(THREADS), 0, stream, arguments...);
}

template <typename T>
cudaError_t launch_correlations(const cuda_correlations *of, void *sums, const void *x,
                                const void *gy, cudaStream_t stream)
{
    const int64_t first = of->jobs.first / of->of_group,
                  n = (of->jobs.first + of->jobs.n - 1) / of->of_group - first + 1;
    return queue_each(
        correlations_kernel<T>, of->runs * n * of->group_out * of->group_in * of->points, stream,
        *of, first, n, (complex_of<T> *)sums, (const complex_of<T> *)x, (const complex_of<T> *)gy);
}
} // namespace

cudaError_t cuda_launch_points(const cuda_fft_form *form, bool f64, const cuda_windows *windows,
                               const cuda_range *range, void *points, const void *x,
                               cudaStream_t stream)
{
    const int64_t n = range->n << form->log2_points;
    return f64 ? queue_each(points_kernel<double>, n, stream, *form, *windows, *range,
                            (complex_of<double> *)points, (const double *)x)
               : queue_each(points_kernel<float>, n, stream, *form, *windows, *range,
                            (complex_of<float> *)points, (const float *)x);
}

cudaError_t cuda_launch_products(const cuda_products *products, bool f64, void *y, const void *x,
                                 const void *spectra, cudaStream_t stream)
{
    const int64_t n = products->jobs.n * products->points;
    return f64 ? queue_each(products_kernel<double>, n, stream, *products, (complex_of<double> *)y,
                            (const complex_of<double> *)x, (const complex_of<double> *)spectra)
               : queue_each(products_kernel<float>, n, stream, *products, (complex_of<float> *)y,
                            (const complex_of<float> *)x, (const complex_of<float> *)spectra);
}

cudaError_t cuda_launch_outputs(const cuda_filtering *filtering, bool f64, const cuda_range *jobs,
                                int64_t k, void *y, const void *points, const void *bias,
                                cudaStream_t stream)
{
    const int64_t n = jobs->n << filtering->form.log2_points;
    return f64 ? queue_each(outputs_kernel<double>, n, stream, *filtering, *jobs, k, (double *)y,
                            (const complex_of<double> *)points, (const double *)bias)
               : queue_each(outputs_kernel<float>, n, stream, *filtering, *jobs, k, (float *)y,
                            (const complex_of<float> *)points, (const float *)bias);
}

cudaError_t cuda_launch_correlations(const cuda_correlations *correlations, bool f64, void *sums,
                                     const void *x, const void *gy, cudaStream_t stream)
{
    return f64 ? launch_correlations<double>(correlations, sums, x, gy, stream)
               : launch_correlations<float>(correlations, sums, x, gy, stream);
}

cudaError_t cuda_launch_add_runs(bool f64, void *sums, int64_t n, int64_t runs, cudaStream_t stream)
{
    return f64 ? queue_each(add_runs_kernel<double>, n, stream, (double *)sums, n, runs)
               : queue_each(add_runs_kernel<float>, n, stream, (float *)sums, n, runs);
}

cudaError_t cuda_launch_points_lines(const cuda_fft_form *form, bool f64, const cuda_lines *lines,
                                     void *y, const void *points, cudaStream_t stream)
{
    const int64_t n = lines->lines << form->log2_points;
    return f64 ? queue_each(points_lines_kernel<double>, n, stream, *form, *lines, (double *)y,
                            (const complex_of<double> *)points)
               : queue_each(points_lines_kernel<float>, n, stream, *form, *lines, (float *)y,
                            (const complex_of<float> *)points);
}
