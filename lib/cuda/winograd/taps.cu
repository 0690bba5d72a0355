// SPDX-License-Identifier: MIT
// Taps of cuda/winograd: transformed for a filter, and gradients of taps from sums over tiles. One
// thread a pair of channels, neighbours along the lines of the matrices.
#include "cuda/kernels/tap_map.cuh"
#include "kernels.h"
#include "winograd.cuh"

namespace {
// Of one pair of channels; branches are the slow digit of the channels that have them.
inline __device__ tap_path path_of(const cuda_tap_map &map, int64_t group, int64_t in, int64_t out)
{
    const int64_t branch = map.branches_out ? out / map.out : in / map.in;
    return tap_path(map, group, in % map.in, out % map.out, branch);
}

// Blocks are [group][in][CUDA_WINOGRAD_THREADS of out].
template <typename S, typename T, int E0, int E1>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    winograd_taps_kernel(const __grid_constant__ cuda_winograd_taps taps,
                         const __grid_constant__ winograd_points<T> down,
                         const __grid_constant__ winograd_points<T> along, T *to, const S *w)
{
    int64_t block = blockIdx.x;
    const int64_t out =
        take(&block, ceiling(taps.out, CUDA_WINOGRAD_THREADS)) * CUDA_WINOGRAD_THREADS +
        threadIdx.x;
    const int64_t in = take(&block, taps.in), group = block;
    if (out >= taps.out) return;
    const tap_path path = path_of(taps.map, group, in, out);
    T v[E0][E1];
#pragma unroll
    for (int i = 0; i < E0; i++) {
        T x[E1];
#pragma unroll
        for (int j = 0; j < E1; j++) {
            const int64_t at = path.index(taps.map, 0, i, j);
            x[j] = at >= 0 ? widened(w[at]) : 0;
        }
        winograd_axis_transform<WINOGRAD_TAPS, E1>(v[i], x, (int)taps.map.axis[2].taps, along);
    }
    winograd_columns<WINOGRAD_TAPS, E0, E1>(v, (int)taps.map.axis[1].taps, down);
    to += (group * taps.in + in) * taps.pitch + out;
#pragma unroll
    for (int i = 0; i < E0; i++)
#pragma unroll
        for (int j = 0; j < E1; j++)
            to[(i * E1 + j) * taps.groups * taps.in * taps.pitch] = v[i][j];
}

// Blocks are [group][out][CUDA_WINOGRAD_THREADS of in].
template <typename S, typename T, int E0, int E1>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    winograd_weight_kernel(const __grid_constant__ cuda_winograd_taps taps,
                           const __grid_constant__ winograd_points<T> down,
                           const __grid_constant__ winograd_points<T> along, S *gw, const T *sums)
{
    int64_t block = blockIdx.x;
    const int64_t in =
        take(&block, ceiling(taps.in, CUDA_WINOGRAD_THREADS)) * CUDA_WINOGRAD_THREADS + threadIdx.x;
    const int64_t out = take(&block, taps.out), group = block;
    if (in >= taps.in) return;
    const tap_path path = path_of(taps.map, group, in, out);
    const int64_t plane = taps.groups * taps.out * taps.pitch;
    sums += (group * taps.out + out) * taps.pitch + in;
    T v[E0][E1] = {};
    for (int64_t chunk = 0; chunk < taps.chunks; chunk++, sums += E0 * E1 * plane)
#pragma unroll
        for (int i = 0; i < E0; i++)
#pragma unroll
            for (int j = 0; j < E1; j++) v[i][j] += sums[(i * E1 + j) * plane];
    winograd_columns<WINOGRAD_OUTPUT, E0, E1>(v, (int)taps.map.axis[1].taps, down);
#pragma unroll
    for (int i = 0; i < E0; i++) {
        T y[E1] = {};
        winograd_axis_transform<WINOGRAD_OUTPUT, E1>(y, v[i], (int)taps.map.axis[2].taps, along);
#pragma unroll
        for (int j = 0; j < E1; j++) {
            const int64_t at = path.index(taps.map, 0, i, j);
            if (at >= 0) narrow(&gw[at], y[j]);
        }
    }
}
} // namespace

cudaError_t cuda_winograd_queue_taps(const cuda_winograd_taps *taps, cuda_layer_move move, void *to,
                                     const void *from)
{
    const bool pack = move == CUDA_PACK;
    const int64_t blocks = pack ? ceiling(taps->out, CUDA_WINOGRAD_THREADS) * taps->in
                                : ceiling(taps->in, CUDA_WINOGRAD_THREADS) * taps->out;
    return with_extents(taps->storage, taps->extent, [=](auto zero, auto e0, auto e1) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        constexpr int E0 = decltype(e0)::value, E1 = decltype(e1)::value;
        const dim3 threads(CUDA_WINOGRAD_THREADS);
        if (pack)
            return queue_extents<T>(winograd_taps_kernel<S, T, E0, E1>, taps->extent,
                                    blocks * taps->groups, threads, *taps, to, from);
        return queue_extents<T>(winograd_weight_kernel<S, T, E0, E1>, taps->extent,
                                blocks * taps->groups, threads, *taps, to, from);
    });
}
