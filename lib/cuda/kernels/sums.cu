// SPDX-License-Identifier: MIT
// Sums over chunks and the end of sums in place, one thread a sum; the gradient of the bias: a
// block sums one channel, each thread its own positions, without atomics, so that the order is
// fixed.
#include "sums.h"

#include "launch.cuh"
#include "storage.cuh"

namespace {
// Sums that are `step` apart, in groups: that of a group takes the place of its first one. Threads
// are [group][n].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_sums_kernel(T *to, const T *sums, int64_t n, int64_t count, int64_t step)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    const int64_t first = i / n * CUDA_SUMS_GROUP, at = first * step * n + i % n;
    if (first >= count) return;
    const int left = min_int(count - first, CUDA_SUMS_GROUP);
    T sum = sums[at];
    for (int c = 1; c < left; c++) sum += sums[at + c * step * n];
    to[at] = sum;
}

template <typename S>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_kernel(S *to, const S *x, const S *y, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (i < n) narrow(&to[i], widened(x[i]) + widened(y[i]));
}

// A NaN stays one.
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    finish_kernel(const __grid_constant__ cuda_finish finish)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (i >= finish.rows * finish.length) return;
    T value = ((const T *)finish.y)[i];
    if (finish.bias) value += ((const T *)finish.bias)[i / finish.length % finish.channels];
    if (finish.relu && value < 0) value = 0;
    ((T *)finish.y)[i] = value;
}

template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bias_gradient_kernel(S *gb, const S *gy, int64_t batch, int64_t channels, int64_t n, bool add)
{
    const int64_t channel = blockIdx.x;
    T sum[1] = {};
    for (int64_t item = 0; item < batch; item++)
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            sum[0] += widened(gy[(item * channels + channel) * n + i]);
    add_threads<T, 1>(sum, (T *)shared_memory);
    if (threadIdx.x > 0) return;
    const T before = add ? widened(gb[channel]) : 0;
    narrow(&gb[channel], sum[0]);
    if (add) narrow(&gb[channel], before + widened(gb[channel]));
}
} // namespace

cudaError_t cuda_launch_add_sums(bool f64, void *to, void *sums, int64_t n, int64_t count)
{
    cudaError_t error = cudaSuccess;
    for (int64_t step = 1; count > 1 && error == cudaSuccess; step *= CUDA_SUMS_GROUP) {
        const int64_t groups = ceiling(count, CUDA_SUMS_GROUP);
        error = queue_real(f64, add_sums_kernel<float>, add_sums_kernel<double>,
                           ceiling(groups * n, CUDA_THREADS), dim3(CUDA_THREADS), 0,
                           groups > 1 ? sums : to, sums, n, count, step);
        count = groups;
    }
    return error;
}

cudaError_t cuda_launch_add(cuda_storage storage, void *to, const void *x, const void *y, int64_t n)
{
    return with_storage(storage, [=](auto zero) {
        typedef decltype(zero) S;
        return queue(add_kernel<S>, ceiling(n, CUDA_THREADS), dim3(CUDA_THREADS), 0, to, x, y, n);
    });
}

cudaError_t cuda_launch_finish(const cuda_finish *finish, bool f64)
{
    return queue_real(f64, finish_kernel<float>, finish_kernel<double>,
                      ceiling(finish->rows * finish->length, CUDA_THREADS), dim3(CUDA_THREADS), 0,
                      *finish);
}

cudaError_t cuda_bias_gradient(const int64_t sizes[3], cuda_storage storage, void *gb,
                               const void *gy, bool add)
{
    const int64_t batch = sizes[0], channels = sizes[1], n = sizes[2];
    const int threads = power_of_two(n, CUDA_THREADS);
    return with_storage(storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        return queue(bias_gradient_kernel<S, T>, channels, dim3(threads), threads * sizeof(T), gb,
                     gy, batch, channels, n, add);
    });
}
