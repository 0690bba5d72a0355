// SPDX-License-Identifier: MIT
// What kernels share: launching, the shape of a grid, positions of samples and taps, the end of a
// sum.
#ifndef PARTITA_CUDA_GRID_CUH
#define PARTITA_CUDA_GRID_CUH

#include "kernels.h"

// Dynamic shared memory of the running block, as much as its launch says.
extern __shared__ __align__(16) unsigned char shared_memory[];

// Bytes of shared memory that a block has without asking: CUDA C++ Programming Guide, technical
// specifications.
constexpr size_t SHARED_UNASKED = 48 << 10;

// Lets a kernel's blocks have all the shared memory that the device gives, none of it being static.
// Not just what a launch needs: the limit is the kernel's, so that a plan would take from another's
// on another thread.
inline cudaError_t allow_shared(const void *kernel)
{
    int device = 0, most = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
}

// Brings a kernel to the device. Its first launch would do so as well, but not while the stream is
// recorded: CUDA C++ Programming Guide, lazy loading.
template <typename... Parameters> inline cudaError_t load_kernel(void (*kernel)(Parameters...))
{
    struct cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, (const void *)kernel);
}

// Queues a kernel of `blocks` blocks, refused above 2^31 - 1; arguments are converted to its
// parameters' types.
template <typename... Parameters, typename... Arguments>
inline cudaError_t queue(void (*kernel)(Parameters...), int64_t blocks, dim3 threads,
                         size_t shared_bytes, cudaStream_t stream, Arguments... arguments)
{
    if (blocks == 0) return cudaSuccess;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const cudaError_t error =
        shared_bytes > SHARED_UNASKED ? allow_shared((const void *)kernel) : cudaSuccess;
    if (error != cudaSuccess) return error;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// 16 bytes of elements: what a thread moves at most with one instruction.
template <typename E> struct __align__(16) vector_of
{
    static constexpr int N = 16 / (int)sizeof(E);
    E at[N];
};

inline __host__ __device__ int64_t ceiling(int64_t n, int64_t step)
{
    return (n + step - 1) / step;
}

// Takes the last digit, of base n, off a number.
inline __device__ int64_t take(int64_t *number, int64_t n)
{
    if (n == 1) return 0; // often so, and a division of 64 bits takes long
    const int64_t digit = *number % n;
    *number /= n;
    return digit;
}

// The sample that output j meets with tap t; outside [0, from_size) in padding.
inline __device__ int64_t met(const cuda_axis &axis, int64_t j, int64_t t)
{
    return axis.from_first + axis.from_step * j + axis.from_dilation * t;
}

inline __device__ bool inside(int64_t at, int64_t size)
{
    return (uint64_t)at < (uint64_t)size;
}

// Index, within the taps of one pair of channels, of tap t2 of row t1 of plane t0.
inline __host__ __device__ int64_t tap_index(const cuda_pass &pass, int64_t t0, int64_t t1,
                                             int64_t t2)
{
    const cuda_axis *axis = pass.axis;
    const int64_t plane = axis[0].tap_first + axis[0].tap_step * t0,
                  row = axis[1].tap_first + axis[1].tap_step * t1;
    return (plane * axis[1].kernel + row) * axis[2].kernel + axis[2].tap_first +
           axis[2].tap_step * t2;
}

// Samples of one channel of the arrays that a pass reads and writes.
inline __host__ __device__ int64_t from_plane(const cuda_pass &pass)
{
    return pass.axis[0].from_size * pass.axis[1].from_size * pass.axis[2].from_size;
}

inline __host__ __device__ int64_t to_plane(const cuda_pass &pass)
{
    return pass.axis[0].to_size * pass.axis[1].to_size * pass.axis[2].to_size;
}

// Stores the sum of output (z, y, x) of a channel, counted over all groups and items, with bias and
// activation. A NaN stays one.
template <typename T>
inline __device__ void store(const cuda_pass &pass, T *to, int64_t item, int64_t channel, int64_t z,
                             int64_t y, int64_t x, T sum, const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const int64_t plane = axis[0].to_first + axis[0].to_step * z,
                  row = axis[1].to_first + axis[1].to_step * y;
    const int64_t column = axis[2].to_first + axis[2].to_step * x;
    if (bias) sum += bias[channel];
    if (pass.relu && sum < 0) sum = 0;
    to[(item * pass.groups * pass.to + channel) * to_plane(pass) +
       (plane * axis[1].to_size + row) * axis[2].to_size + column] = sum;
}

#endif
