// SPDX-License-Identifier: MIT
// CUDA C++ for a host compiler: the keywords that the kernels use, and launches.
#ifndef HOSTDEV_CUDA_RUNTIME_H
#define HOSTDEV_CUDA_RUNTIME_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#define __global__ static
#define __device__
#define __host__
#define __shared__
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(threads, blocks)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

struct hostdev_index {
    unsigned x, y, z;
};

// A queued kernel: `run` is the body of a thread, `call` its copy of the arguments.
struct hostdev_kernel {
    struct hostdev_index grid, block;
    size_t shared_bytes;
    void (*run)(void *call);
    void (*release)(void *call);
    void *call;
};

extern "C" {
// Of the running thread.
extern struct hostdev_index threadIdx, blockIdx, blockDim, gridDim;

void hostdev_barrier(const char *file, int line);
// mma.c: the nearest number of TF32; n instructions mma.sync.m16n8k8 of a warp.
uint32_t hostdev_tf32(float x);
void hostdev_mma(int n, float *sum, const uint32_t *a, const uint32_t *b);
cudaError_t hostdev_launch(const struct hostdev_kernel *kernel, const void *symbol,
                           size_t parameter_bytes, cudaStream_t stream);
}

#define __syncthreads() hostdev_barrier(__FILE__, __LINE__)

template <typename Call> void hostdev_run(void *call)
{
    (*(Call *)call)();
}

template <typename Call> void hostdev_release(void *call)
{
    delete (Call *)call;
}

template <typename Call>
cudaError_t hostdev_queue_kernel(const cudaLaunchConfig_t *config, const void *symbol,
                                 size_t parameter_bytes, Call call)
{
    const dim3 grid = config->gridDim, block = config->blockDim;
    const hostdev_kernel kernel = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z},
                                   config->dynamicSmemBytes, hostdev_run<Call>,
                                   hostdev_release<Call>,    new Call(call)};
    return hostdev_launch(&kernel, symbol, parameter_bytes, config->stream);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments... arguments)
{
    return hostdev_queue_kernel(config, (const void *)kernel, (sizeof(Parameters) + ... + 0),
                                [=] { kernel(static_cast<Parameters>(arguments)...); });
}

// As the run-time's template, which loads the kernel.
template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(Parameters...))
{
    return cudaFuncGetAttributes(attributes, (const void *)kernel);
}

#endif
