// SPDX-License-Identifier: MIT
#include "races.h"

extern __shared__ __align__(16) unsigned char shared_memory[];

namespace {
enum { THREADS = 32 };

struct __align__(8) pair
{
    float first, second;
};

__device__ float first_of(const float *pairs)
{
    return ((const pair *)pairs)->first;
}

__global__ void races(int kernel, float *to)
{
    float *const shared = (float *)shared_memory;
    const unsigned i = threadIdx.x, next = (i + 1) % THREADS;
    shared[i] = (float)i;
    if (kernel == RACES_WRITE_AFTER_WRITE && i == THREADS - 1) shared[0] = 1;
    if (kernel == RACES_BYTE) ((unsigned char *)(shared + THREADS))[i] = 1;
    if (kernel == RACES_BYTE && i == 0) shared[THREADS] = 0;
    if (kernel != RACES_READ_AFTER_WRITE) __syncthreads();
    const float taken = shared[next];
    if (kernel != RACES_WRITE_AFTER_READ) __syncthreads();
    shared[i] = taken;
    __syncthreads();
    to[i] = kernel == RACES_MISALIGNED ? first_of(shared + 1) : shared[next];
}
} // namespace

cudaError_t races_launch(enum races_kernel kernel, float *to)
{
    const cudaLaunchConfig_t config = {dim3(1), dim3(THREADS), 2 * THREADS * sizeof(float),
                                       cudaStreamPerThread};
    return cudaLaunchKernelEx(&config, races, (int)kernel, to);
}
