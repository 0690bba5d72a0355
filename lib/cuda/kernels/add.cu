// SPDX-License-Identifier: MIT
// Overlap-add. Windows that share outputs are kept apart: their heads are gathered afterwards
// (decision 3), or windows of one step are too far from each other to meet, and steps are launches
// one after the other (the source's schedule of K steps).
#include "cuda/overlap/filtering.cuh"

namespace {
enum { THREADS = 256 };

// One thread an output.
template <typename T, typename S>
__global__ void __launch_bounds__(THREADS, 4)
    gather_kernel(const __grid_constant__ cuda_filtering filtering, S *y, const S *heads,
                  const T *bias)
{
    const cuda_outputs &out = filtering.out;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t at = take(&i, out.size), line = i,
                  channels = filtering.groups * filtering.group_out;
    if (line >= filtering.batch * channels) return;
    const int64_t position = at * out.stride;
    int64_t b = position / out.hop + 1, head = position - b * out.hop + out.skip;
    if ((!heads || head < 0) && !bias && !out.relu) return;
    S sum = y[line * out.size + at];
    for (; heads && head >= 0 && b < filtering.in.windows; b++, head -= out.hop)
        sum = sum + heads[(line * filtering.in.windows + b) * out.skip + head];
    y[line * out.size + at] = finished(sum, finish_of(out.relu, bias, line % channels));
}

template <typename T, typename S>
cudaError_t launch_gather(const cuda_filtering *filtering, const cuda_save_arrays *arrays,
                          cudaStream_t stream)
{
    const int64_t n =
        filtering->batch * filtering->groups * filtering->group_out * filtering->out.size;
    return queue(gather_kernel<T, S>, ceiling(n, THREADS), dim3(THREADS), 0, stream, *filtering,
                 (S *)arrays->y, (const S *)arrays->heads, (const T *)arrays->bias);
}

template <typename T>
cudaError_t launch_add(const cuda_filtering *filtering, const cuda_save_cut *cut, cuda_way way,
                       const cuda_step *step, const cuda_save_arrays *arrays, cudaStream_t stream)
{
    return way == CUDA_GATHER ? launch_way<T, CUDA_GATHER>(filtering, cut, step, arrays, stream)
                              : launch_way<T, CUDA_STEP>(filtering, cut, step, arrays, stream);
}
} // namespace

cudaError_t cuda_launch_add(const cuda_filtering *filtering, const cuda_save_cut *cut, bool f64,
                            cuda_way way, const cuda_step *step, const cuda_save_arrays *arrays,
                            cudaStream_t stream)
{
    return f64 ? launch_add<double>(filtering, cut, way, step, arrays, stream)
               : launch_add<float>(filtering, cut, way, step, arrays, stream);
}

cudaError_t cuda_launch_gather(const cuda_filtering *filtering, bool f64,
                               const cuda_save_arrays *arrays, cudaStream_t stream)
{
    if (filtering->form.turned)
        return f64 ? launch_gather<double, double>(filtering, arrays, stream)
                   : launch_gather<float, float>(filtering, arrays, stream);
    return f64 ? launch_gather<double, complex_of<double>>(filtering, arrays, stream)
               : launch_gather<float, complex_of<float>>(filtering, arrays, stream);
}
