// SPDX-License-Identifier: MIT
// Shared by kernels: launching, vectors of memory, the digits of a block's index.
#ifndef PARTITA_CUDA_LAUNCH_CUH
#define PARTITA_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stdint.h>
#include <type_traits>

#include "thread.h"

enum { CUDA_THREADS = 256 }; // of a thread block, unless there is a reason for another number

// Dynamic shared memory of the running block, as much as its launch says.
extern __shared__ __align__(16) unsigned char shared_memory[];

// Bytes of shared memory that a block has without asking: CUDA C++ Programming Guide, technical
// specifications.
constexpr size_t DEFAULT_SHARED = 48 << 10;

// Lets a kernel's blocks have all the shared memory that the device gives, none of it being static.
// Not just for one launch: the limit is the kernel's, so that a plan would lower another's on
// another thread.
inline cudaError_t allow_shared(const void *kernel)
{
    int device = 0, max = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&max, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, max);
}

// Queues a kernel of `blocks` blocks, refused above 2^31 - 1, on the stream of the call; arguments
// are converted to its parameters' types. Or only brings the kernel to the device: its first launch
// would do so as well, but not while the stream is recorded (CUDA C++ Programming Guide, lazy
// loading).
template <typename... Parameters, typename... Arguments>
inline cudaError_t queue(void (*kernel)(Parameters...), int64_t blocks, dim3 threads,
                         size_t shared_bytes, Arguments... arguments)
{
    struct cudaFuncAttributes attributes;
    if (blocks == 0) return cudaSuccess;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const bool asks = shared_bytes > DEFAULT_SHARED && !cuda_thread()->loaded;
    const cudaError_t error = asks ? allow_shared((const void *)kernel) : cudaSuccess;
    if (error != cudaSuccess) return error;
    if (cuda_thread()->loads) return cudaFuncGetAttributes(&attributes, kernel);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = cuda_thread()->stream;
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

// The same of the kernel for the type that a problem computes in.
template <typename KernelF32, typename KernelF64, typename... Arguments>
inline cudaError_t queue_real(bool f64, KernelF32 *kernel_f32, KernelF64 *kernel_f64,
                              Arguments... arguments)
{
    return f64 ? queue(kernel_f64, arguments...) : queue(kernel_f32, arguments...);
}

// Calls a function object with a zero of the type that a problem computes in.
template <typename Use> inline cudaError_t with_scalar(bool f64, Use use)
{
    return f64 ? use(0.0) : use(0.0f);
}

// Calls a function object with a number as a constant: that of these to which it is equal, or the
// last one.
template <int FIRST, int... REST, typename Use> inline auto with_constant(int n, Use use)
{
    if constexpr (sizeof...(REST) > 0)
        if (n != FIRST) return with_constant<REST...>(n, use);
    return use(std::integral_constant<int, FIRST>());
}

// 16 bytes of elements: a thread moves no more with one instruction.
template <typename E> struct __align__(16) vector_of
{
    static constexpr int N = 16 / (int)sizeof(E);
    E at[N];
};

template <int N, typename T> inline __device__ void load_vectors(T *ret, const T *from)
{
#pragma unroll
    for (int k = 0; k < N; k += vector_of<T>::N) {
        const vector_of<T> now = *(const vector_of<T> *)(from + k);
#pragma unroll
        for (int i = 0; i < vector_of<T>::N; i++) ret[k + i] = now.at[i];
    }
}

inline __host__ __device__ int64_t ceiling(int64_t n, int64_t step)
{
    return (n + step - 1) / step;
}

inline __device__ int min_int(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

// Takes the last digit, of base n, off a number.
inline __device__ int64_t take(int64_t *number, int64_t n)
{
    if (n == 1) return 0; // often so, and a division of 64 bits takes long
    const int64_t digit = *number % n;
    *number /= n;
    return digit;
}

inline __device__ bool in_bounds(int64_t at, int64_t size)
{
    return (uint64_t)at < (uint64_t)size;
}

// Adds the sums of all threads of a block, a power of two, each of N numbers, as a binary tree; the
// totals are those of thread 0. `shared` holds N numbers for each thread.
template <typename T, int N> inline __device__ void add_threads(T sum[N], T *shared)
{
    const int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (int i = 0; i < N; i++) shared[i * threads + thread] = sum[i];
    for (int half = threads / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half)
            for (int i = 0; i < N; i++)
                shared[i * threads + thread] += shared[i * threads + thread + half];
    }
    if (thread > 0) return; // no other thread waited for the last addition
    for (int i = 0; i < N; i++) sum[i] = shared[i * threads];
}

#endif
