// SPDX-License-Identifier: MIT
#include "filtering.cuh"

cudaError_t cuda_launch_add(const cuda_filtering *filtering, const cuda_save_cut *cut, bool f64,
                            const cuda_step *step, const cuda_save_arrays *arrays,
                            cudaStream_t stream)
{
    return f64 ? launch_way<double, CUDA_STEP>(filtering, cut, step, arrays, stream)
               : launch_way<float, CUDA_STEP>(filtering, cut, step, arrays, stream);
}
