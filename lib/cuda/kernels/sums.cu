// SPDX-License-Identifier: MIT
// Sums over chunks and the end of sums in place, one thread a sum; the gradient of the bias: a
// block sums one channel, each thread its own positions, without atomics, so that the order is
// fixed.
#include "sums.h"

#include "launch.cuh"
#include "storage.cuh"

namespace {
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 4)
    add_chunks_kernel(const __grid_constant__ cuda_chunks of, T *to, const T *from)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (i >= of.n) return;
    T sum = of.onto ? to[i] : 0;
    for (int64_t c = 0; c < of.chunks; c++) sum += from[c * of.n + i];
    to[i] = sum;
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
    bias_gradient_kernel(S *gb, const S *gy, int64_t batch, int64_t channels, int64_t n)
{
    const int64_t channel = blockIdx.x;
    T sum[1] = {};
    for (int64_t item = 0; item < batch; item++)
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            sum[0] += widened(gy[(item * channels + channel) * n + i]);
    add_threads<T, 1>(sum, (T *)shared_memory);
    if (threadIdx.x == 0) narrow(&gb[channel], sum[0]);
}
} // namespace

cudaError_t cuda_add_chunks(const cuda_chunks *chunks, bool f64, void *to, const void *from)
{
    return with_scalar(f64, [=](auto zero) {
        typedef decltype(zero) T;
        return queue(add_chunks_kernel<T>, ceiling(chunks->n, CUDA_THREADS), dim3(CUDA_THREADS), 0,
                     *chunks, (T *)to, (const T *)from);
    });
}

cudaError_t cuda_launch_add_sums(bool f64, void *sums, int64_t n, int64_t count)
{
    const cuda_chunks others = {n, count - 1, true};
    return cuda_add_chunks(&others, f64, sums, (char *)sums + n * (f64 ? 8 : 4));
}

cudaError_t cuda_launch_finish(const cuda_finish *finish, bool f64)
{
    return with_scalar(f64, [=](auto zero) {
        return queue(finish_kernel<decltype(zero)>,
                     ceiling(finish->rows * finish->length, CUDA_THREADS), dim3(CUDA_THREADS), 0,
                     *finish);
    });
}

cudaError_t cuda_bias_gradient(const int64_t sizes[3], cuda_storage storage, void *gb,
                               const void *gy)
{
    const int64_t batch = sizes[0], channels = sizes[1], n = sizes[2];
    const int threads = power_of_two(n, CUDA_THREADS);
    return with_storage(storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        return queue(bias_gradient_kernel<S, T>, channels, dim3(threads), threads * sizeof(T),
                     (S *)gb, (const S *)gy, batch, channels, n);
    });
}
