// SPDX-License-Identifier: MIT
// One thread a sum.
#include "grid.cuh"
#include "sums.h"

namespace {
enum { SUM_THREADS = 256 };

template <typename T>
__global__ void __launch_bounds__(SUM_THREADS, 4) add_sums_kernel(T *sums, int64_t n, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * SUM_THREADS + threadIdx.x;
    if (i >= n) return;
    T sum = sums[i];
    for (int64_t k = 1; k < count; k++) sum += sums[k * n + i];
    sums[i] = sum;
}

// A NaN stays one.
template <typename T>
__global__ void __launch_bounds__(SUM_THREADS, 4)
    finish_kernel(const __grid_constant__ cuda_finish finish)
{
    const int64_t i = (int64_t)blockIdx.x * SUM_THREADS + threadIdx.x;
    if (i >= finish.rows * finish.length) return;
    T value = ((const T *)finish.y)[i];
    if (finish.bias) value += ((const T *)finish.bias)[i / finish.length % finish.channels];
    if (finish.relu && value < 0) value = 0;
    ((T *)finish.y)[i] = value;
}

template <typename T>
cudaError_t launch_add_sums(void *sums, int64_t n, int64_t count, cudaStream_t stream)
{
    return queue(add_sums_kernel<T>, ceiling(n, SUM_THREADS), dim3(SUM_THREADS), 0, stream,
                 (T *)sums, n, count);
}

template <typename T> cudaError_t launch_finish(const cuda_finish *finish, cudaStream_t stream)
{
    return queue(finish_kernel<T>, ceiling(finish->rows * finish->length, SUM_THREADS),
                 dim3(SUM_THREADS), 0, stream, *finish);
}
} // namespace

cudaError_t cuda_launch_add_sums(bool f64, void *sums, int64_t n, int64_t count,
                                 cudaStream_t stream)
{
    return f64 ? launch_add_sums<double>(sums, n, count, stream)
               : launch_add_sums<float>(sums, n, count, stream);
}

cudaError_t cuda_launch_finish(const cuda_finish *finish, bool f64, cudaStream_t stream)
{
    return f64 ? launch_finish<double>(finish, stream) : launch_finish<float>(finish, stream);
}
