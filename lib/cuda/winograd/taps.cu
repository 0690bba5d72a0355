// SPDX-License-Identifier: MIT
// Taps of cuda/winograd: transformed for a filter, and gradients of taps from sums over tiles. One
// thread a pair of channels, neighbours along the lines of the matrices.
#include "kernels.h"

#include "winograd.cuh"

namespace {
// Of one pair of channels, the first of its caller's taps and which phase's they are.
struct pair {
    int64_t first, phase[CUDA_WINOGRAD_AXES];
};

inline __device__ pair pair_of(const cuda_winograd_taps &taps, int64_t group, int64_t in,
                               int64_t out)
{
    const auto *axis = taps.axis;
    const int64_t phases = axis[0].phases * axis[1].phases;
    const int64_t ins = taps.phases_out ? taps.in : taps.in / phases;
    const int64_t outs = taps.phases_out ? taps.out / phases : taps.out;
    const int64_t phase = taps.phases_out ? out / outs : in / ins, c = in % ins, k = out % outs;
    const int64_t cell =
        taps.phases_out ? (group * ins + c) * outs + k : (group * outs + k) * ins + c;
    return {cell * axis[0].kernel * axis[1].kernel,
            {phase / axis[1].phases, phase % axis[1].phases}};
}

// Along one axis the caller's tap that is tap k of a phase; none if it is not below `kernel`.
inline __device__ int64_t tap_of(const cuda_winograd_taps &taps, int a, int64_t phase, int k)
{
    const auto &axis = taps.axis[a];
    return phase + axis.period * (taps.reversed ? axis.taps - 1 - k : k);
}

// Where tap (i, j) of a pair is; -1: nowhere, it counts as 0.
inline __device__ int64_t index_of(const cuda_winograd_taps &taps, const pair &of, int i, int j)
{
    const auto *axis = taps.axis;
    const int64_t row = tap_of(taps, 0, of.phase[0], i), column = tap_of(taps, 1, of.phase[1], j);
    if (i >= axis[0].taps || j >= axis[1].taps || row >= axis[0].kernel || column >= axis[1].kernel)
        return -1;
    return of.first +
           (taps.flip ? (axis[0].kernel - 1 - row) * axis[1].kernel + axis[1].kernel - 1 - column
                      : row * axis[1].kernel + column);
}

// Blocks are [group][in][run of out].
template <typename T, int E0, int E1>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    filter_kernel(const __grid_constant__ cuda_winograd_taps taps,
                  const __grid_constant__ winograd_points<T> down,
                  const __grid_constant__ winograd_points<T> along, T *to, const T *w)
{
    int64_t block = blockIdx.x;
    const int64_t out =
        take(&block, ceiling(taps.out, CUDA_WINOGRAD_THREADS)) * CUDA_WINOGRAD_THREADS +
        threadIdx.x;
    const int64_t in = take(&block, taps.in), group = block;
    if (out >= taps.out) return;
    const pair of = pair_of(taps, group, in, out);
    T v[E0][E1];
#pragma unroll
    for (int i = 0; i < E0; i++) {
        T x[E1];
#pragma unroll
        for (int j = 0; j < E1; j++) {
            const int64_t at = index_of(taps, of, i, j);
            x[j] = at >= 0 ? w[at] : 0;
        }
        transform_tile<WINOGRAD_TAPS, E1>(v[i], x, taps.axis[1].taps, along);
    }
    transform_columns<WINOGRAD_TAPS, E0, E1>(v, taps.axis[0].taps, down);
    to += (group * taps.in + in) * taps.pitch + out;
#pragma unroll
    for (int i = 0; i < E0; i++)
#pragma unroll
        for (int j = 0; j < E1; j++)
            to[(i * E1 + j) * taps.groups * taps.in * taps.pitch] = v[i][j];
}

// Blocks are [group][out][run of in].
template <typename T, int E0, int E1>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    weight_kernel(const __grid_constant__ cuda_winograd_taps taps,
                  const __grid_constant__ winograd_points<T> down,
                  const __grid_constant__ winograd_points<T> along, T *gw, const T *sums,
                  int64_t parts)
{
    int64_t block = blockIdx.x;
    const int64_t in =
        take(&block, ceiling(taps.in, CUDA_WINOGRAD_THREADS)) * CUDA_WINOGRAD_THREADS + threadIdx.x;
    const int64_t out = take(&block, taps.out), group = block;
    if (in >= taps.in) return;
    const pair of = pair_of(taps, group, in, out);
    const int64_t plane = taps.groups * taps.out * taps.pitch;
    sums += (group * taps.out + out) * taps.pitch + in;
    T v[E0][E1] = {};
    for (int64_t part = 0; part < parts; part++, sums += E0 * E1 * plane)
#pragma unroll
        for (int i = 0; i < E0; i++)
#pragma unroll
            for (int j = 0; j < E1; j++) v[i][j] += sums[(i * E1 + j) * plane];
    transform_columns<WINOGRAD_OUTPUT, E0, E1>(v, taps.axis[0].taps, down);
#pragma unroll
    for (int i = 0; i < E0; i++) {
        T y[E1] = {};
        transform_tile<WINOGRAD_OUTPUT, E1>(y, v[i], taps.axis[1].taps, along);
#pragma unroll
        for (int j = 0; j < E1; j++) {
            const int64_t at = index_of(taps, of, i, j);
            if (at >= 0) gw[at] = y[j];
        }
    }
}

template <typename T>
cudaError_t launch_filter(const cuda_winograd_taps *taps, void *to, const void *w,
                          cudaStream_t stream)
{
    const int down = taps->axis[0].extent, along = taps->axis[1].extent;
    const int64_t blocks = ceiling(taps->out, CUDA_WINOGRAD_THREADS) * taps->in * taps->groups;
    return with_extents(down, along, [=](auto e0, auto e1) {
        return queue(filter_kernel<T, decltype(e0)::N, decltype(e1)::N>, blocks,
                     dim3(CUDA_WINOGRAD_THREADS), 0, stream, *taps, winograd_points_of<T>(down),
                     winograd_points_of<T>(along), (T *)to, (const T *)w);
    });
}

template <typename T>
cudaError_t launch_weight(const cuda_winograd_taps *taps, void *gw, const void *sums, int64_t parts,
                          cudaStream_t stream)
{
    const int down = taps->axis[0].extent, along = taps->axis[1].extent;
    const int64_t blocks = ceiling(taps->in, CUDA_WINOGRAD_THREADS) * taps->out * taps->groups;
    return with_extents(down, along, [=](auto e0, auto e1) {
        return queue(weight_kernel<T, decltype(e0)::N, decltype(e1)::N>, blocks,
                     dim3(CUDA_WINOGRAD_THREADS), 0, stream, *taps, winograd_points_of<T>(down),
                     winograd_points_of<T>(along), (T *)gw, (const T *)sums, parts);
    });
}
} // namespace

cudaError_t cuda_winograd_filter(const cuda_winograd_taps *taps, bool f64, void *to, const void *w,
                                 cudaStream_t stream)
{
    return f64 ? launch_filter<double>(taps, to, w, stream)
               : launch_filter<float>(taps, to, w, stream);
}

cudaError_t cuda_winograd_weight(const cuda_winograd_taps *taps, bool f64, void *gw,
                                 const void *sums, int64_t parts, cudaStream_t stream)
{
    return f64 ? launch_weight<double>(taps, gw, sums, parts, stream)
               : launch_weight<float>(taps, gw, sums, parts, stream);
}
