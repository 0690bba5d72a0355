// SPDX-License-Identifier: MIT
// Kernels of a quantum, which are queued or are nodes of a graph.
#ifndef PARTITA_CUDA_ISSUE_CUH
#define PARTITA_CUDA_ISSUE_CUH

#include <type_traits>

#include "cuda/kernels/launch.cuh"
#include "kernels.h"

struct kernel_grid {
    int64_t blocks;
    int threads;
    size_t shared_bytes;
};

// Queues kernel `i` of a quantum, or makes or changes its node. Shared memory is asked for when the
// node is made, since a change is a part of each quantum.
template <typename... Parameters, typename... Arguments>
inline cudaError_t issue_kernel(const cuda_partition_target &target, int i, const kernel_grid &grid,
                                void (*kernel)(Parameters...), Arguments... arguments)
{
    static_assert((std::is_same_v<Parameters, Arguments> && ...), "pointers have no conversions");
    if (!target.nodes)
        return queue_on(target.stream, kernel, grid.blocks, dim3(grid.threads), grid.shared_bytes,
                        arguments...);
    if (grid.blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const bool asks = !target.exec && grid.shared_bytes > DEFAULT_SHARED;
    const cudaError_t error = asks ? allow_shared((const void *)kernel) : cudaSuccess;
    if (error != cudaSuccess) return error;
    void *pointers[] = {&arguments...};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)kernel;
    parameters.gridDim = dim3((unsigned)grid.blocks);
    parameters.blockDim = dim3(grid.threads);
    parameters.sharedMemBytes = (unsigned)grid.shared_bytes;
    parameters.kernelParams = pointers;
    if (target.exec)
        return cudaGraphExecKernelNodeSetParams(target.exec, target.nodes[i], &parameters);
    const bool follows = target.follows || i > 0;
    return cudaGraphAddKernelNode(&target.nodes[i], target.graph,
                                  follows ? &target.nodes[i - 1] : nullptr, follows, &parameters);
}

#endif
