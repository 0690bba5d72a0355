// SPDX-License-Identifier: MIT
// cuda/direct:plain: one thread an output, samples and taps through the caches (Hwu, Kirk and El
// Hajj, Programming Massively Parallel Processors, chapter 7).
#include "cuda/kernels/pass.cuh"
#include "kernels.h"

namespace {
// Blocks are [item][channel][CUDA_PASS_THREADS positions]: a block has one output channel, so that
// its threads read the same tap at the same time.
template <typename T>
__global__ void __launch_bounds__(CUDA_PASS_THREADS, sizeof(T) == 8 ? 2 : 3)
    direct_plain_kernel(const __grid_constant__ cuda_pass pass, T *to, const T *from, const T *taps,
                        const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const int64_t positions = axis[0].n * axis[1].n * axis[2].n;
    int64_t block = blockIdx.x;
    int64_t position =
        take(&block, ceiling(positions, CUDA_PASS_THREADS)) * CUDA_PASS_THREADS + threadIdx.x;
    const int64_t channel = take(&block, pass.groups * pass.to), item = block;
    if (position >= positions) return;
    const int64_t x = take(&position, axis[2].n), y = take(&position, axis[1].n), z = position;
    const int64_t group = channel / pass.to;
    from += (item * pass.groups + group) * pass.from * from_plane(pass);
    taps += group * pass.tap_group + channel % pass.to * pass.tap_to;
    T sum = 0;
    for (int64_t c = 0; c < pass.from; c++, from += from_plane(pass), taps += pass.tap_from)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t plane = met(axis[0], z, t0);
            if (!in_bounds(plane, axis[0].from_size)) continue;
            for (int64_t t1 = 0; t1 < axis[1].taps; t1++) {
                const int64_t row = met(axis[1], y, t1);
                if (!in_bounds(row, axis[1].from_size)) continue;
                const T *samples = from + (plane * axis[1].from_size + row) * axis[2].from_size;
                const T *w = taps + tap_index(pass, t0, t1, 0);
                int64_t column = met(axis[2], x, 0);
                for (int64_t t2 = 0; t2 < axis[2].taps;
                     t2++, column += axis[2].from_dilation, w += axis[2].tap_step)
                    if (in_bounds(column, axis[2].from_size)) sum += samples[column] * *w;
            }
        }
    store_pass_output(pass, to, {item, channel, z, y, x}, sum, bias);
}
} // namespace

cudaError_t cuda_direct_queue_plain(const cuda_pass *pass, bool f64, const cuda_arrays *arrays)
{
    const int64_t positions = pass->axis[0].n * pass->axis[1].n * pass->axis[2].n;
    const int64_t blocks =
        ceiling(positions, CUDA_PASS_THREADS) * pass->groups * pass->to * pass->batch;
    return queue_real(f64, direct_plain_kernel<float>, direct_plain_kernel<double>, blocks,
                      dim3(CUDA_PASS_THREADS), 0, *pass, arrays->to, arrays->from, arrays->taps,
                      arrays->bias);
}
