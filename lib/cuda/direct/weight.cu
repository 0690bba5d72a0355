// SPDX-License-Identifier: MIT
// Gradients of taps. A thread block sums CUDA_WEIGHT_TAPS taps of one pair of channels, each thread
// its own rows and columns; then the threads' sums are added as a binary tree. No atomics, so that
// the order is fixed.
#include "cuda/kernels/pass.cuh"
#include "kernels.h"

namespace {
// Blocks are [group][output channel][input channel][CUDA_WEIGHT_TAPS taps].
template <typename T>
__global__ void __launch_bounds__(CUDA_PASS_THREADS, 1)
    direct_weight_kernel(const __grid_constant__ cuda_pass pass, T *gw, const T *x, const T *gy)
{
    const cuda_axis *axis = pass.axis;
    const int64_t n_taps = axis[0].taps * axis[1].taps * axis[2].taps, y_plane = to_plane(pass);
    int64_t block = blockIdx.x;
    const int64_t first_tap = take(&block, ceiling(n_taps, CUDA_WEIGHT_TAPS)) * CUDA_WEIGHT_TAPS;
    const int64_t c = take(&block, pass.from), k = take(&block, pass.to), g = block,
                  rows = pass.batch * axis[0].n * axis[1].n; // [item][plane][row]
    T sum[CUDA_WEIGHT_TAPS] = {};
    // The sample that each tap meets with output 0, along each axis.
    int64_t met_first[CUDA_WEIGHT_TAPS][3];
#pragma unroll
    for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
        int64_t tap = first_tap + t;
        met_first[t][2] = met(axis[2], 0, take(&tap, axis[2].taps));
        met_first[t][1] = met(axis[1], 0, take(&tap, axis[1].taps));
        met_first[t][0] = met(axis[0], 0, tap);
    }
    for (int64_t i = threadIdx.y; i < rows; i += blockDim.y) {
        int64_t row = i;
        const int64_t y = take(&row, axis[1].n), z = take(&row, axis[0].n), item = row;
        const T *samples = x + ((item * pass.groups + g) * pass.from + c) * from_plane(pass);
        const T *gradient = gy + ((item * pass.groups + g) * pass.to + k) * y_plane +
                            (z * axis[1].n + y) * axis[2].n;
        // The row of samples that each tap meets, counted from the first output's.
        const T *line[CUDA_WEIGHT_TAPS];
#pragma unroll
        for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
            const int64_t at_row = met_first[t][1] + axis[1].from_step * y;
            const int64_t at_plane = met_first[t][0] + axis[0].from_step * z;
            const bool meets = first_tap + t < n_taps && in_bounds(at_row, axis[1].from_size) &&
                               in_bounds(at_plane, axis[0].from_size);
            line[t] = meets ? samples + (at_plane * axis[1].from_size + at_row) * axis[2].from_size
                            : nullptr;
        }
        for (int64_t column = threadIdx.x; column < axis[2].n; column += blockDim.x) {
            const T factor = gradient[column];
#pragma unroll
            for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
                const int64_t at = met_first[t][2] + axis[2].from_step * column;
                if (line[t] && in_bounds(at, axis[2].from_size)) sum[t] += factor * line[t][at];
            }
        }
    }
    add_threads<T, CUDA_WEIGHT_TAPS>(sum, (T *)shared_memory);
    if (threadIdx.x || threadIdx.y) return;
    gw += g * pass.tap_group + k * pass.tap_to + c * pass.tap_from;
    for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
        int64_t tap = first_tap + t;
        if (tap >= n_taps) return;
        const int64_t t2 = take(&tap, axis[2].taps), t1 = take(&tap, axis[1].taps);
        gw[tap_index(pass, tap, t1, t2)] = sum[t];
    }
}

// A warp reads one row where there are several.
dim3 weight_threads(int64_t columns, int64_t rows)
{
    const int y = power_of_two(rows, CUDA_PASS_THREADS / power_of_two(columns, 32));
    return dim3(power_of_two(columns, CUDA_PASS_THREADS / y), y);
}

} // namespace

cudaError_t cuda_direct_queue_weight(const cuda_pass *pass, bool f64, void *gw, const void *x,
                                     const void *gy)
{
    const int64_t n_taps = pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
    const int64_t blocks = ceiling(n_taps, CUDA_WEIGHT_TAPS) * pass->from * pass->to * pass->groups;
    const dim3 threads =
        weight_threads(pass->axis[2].n, pass->batch * pass->axis[0].n * pass->axis[1].n);
    return queue_real(f64, direct_weight_kernel<float>, direct_weight_kernel<double>, blocks,
                      threads, CUDA_WEIGHT_TAPS * threads.x * threads.y * (f64 ? 8 : 4), *pass, gw,
                      x, gy);
}
