// SPDX-License-Identifier: MIT
// Tiles of cuda/winograd: samples transformed into matrices, one thread a tile of a line, and sums
// transformed back. Neighbouring threads have neighbouring tiles, so that matrices are written and
// read in whole lines of memory; the samples that tiles share come through the caches. Source:
// Lavin & Gray, Fast algorithms for convolutional neural networks (2015), 4.1 and 4.2.
#include "kernels.h"

#include "winograd.cuh"

namespace {
// The work of a thread: a tile of a line, and where its first element lies.
struct winograd_tile {
    int64_t line, column; // of the matrices; the tile's
    int64_t channel;      // of the array, counted over all groups
    int64_t plane;        // its first sample
    int64_t at[CUDA_WINOGRAD_AXES];
};

// Lines of one frequency.
inline __host__ __device__ int64_t winograd_lines(const cuda_winograd_tiles &tiles)
{
    return tiles.groups * tiles.axis[0].branches * tiles.axis[1].branches * tiles.channels;
}

inline __device__ uint32_t take_tile(uint32_t *number, int64_t n)
{
    const uint32_t digit = *number % (uint32_t)n;
    *number /= (uint32_t)n;
    return digit;
}

// False for threads beyond the last tile or line.
inline __device__ bool locate_winograd_tile(const cuda_winograd_tiles &tiles, winograd_tile *ret)
{
    const cuda_winograd_side *down = &tiles.axis[0], *along = &tiles.axis[1];
    int64_t block = blockIdx.x;
    ret->column = take(&block, ceiling(tiles.n, blockDim.x)) * blockDim.x + threadIdx.x;
    ret->line = block * blockDim.y + threadIdx.y;
    if (ret->column >= tiles.n || ret->line >= winograd_lines(tiles)) return false;
    uint32_t tile = tiles.first + (uint32_t)ret->column;
    const int64_t tile_along = take_tile(&tile, along->tiles),
                  tile_down = take_tile(&tile, down->tiles);
    const int64_t image_along = take_tile(&tile, along->images),
                  image_down = take_tile(&tile, down->images);
    int64_t rest = ret->line;
    const int64_t channel = take(&rest, tiles.channels),
                  branch_along = take(&rest, along->branches);
    const int64_t branch_down = take(&rest, down->branches);
    ret->channel = rest * tiles.channels + channel;
    ret->plane = (tile * tiles.groups * tiles.channels + ret->channel) * down->size * along->size;
    ret->at[0] = down->base + down->image * image_down + down->branch * branch_down +
                 down->step * down->tile * tile_down;
    ret->at[1] = along->base + along->image * image_along + along->branch * branch_along +
                 along->step * along->tile * tile_along;
    return true;
}

template <typename S, typename T, int E0, int E1, winograd_transform TRANSFORM>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    winograd_tiles_kernel(const __grid_constant__ cuda_winograd_tiles tiles,
                          const __grid_constant__ winograd_points<T> down,
                          const __grid_constant__ winograd_points<T> along, T *to, const S *from)
{
    const cuda_winograd_side *rows = &tiles.axis[0], *columns = &tiles.axis[1];
    winograd_tile at;
    if (!locate_winograd_tile(tiles, &at)) return;
    from += at.plane;
    bool within[E1];
#pragma unroll
    for (int j = 0; j < E1; j++)
        within[j] = j < columns->elements && in_bounds(at.at[1] + columns->step * j, columns->size);
    T v[E0][E1];
    const S *line = from + at.at[0] * columns->size + at.at[1];
#pragma unroll
    for (int i = 0; i < E0; i++, line += rows->step * columns->size) {
        const bool row_within =
            i < rows->elements && in_bounds(at.at[0] + rows->step * i, rows->size);
        const S *sample = line;
        T x[E1];
#pragma unroll
        for (int j = 0; j < E1; j++, sample += columns->step)
            x[j] = row_within && within[j] ? widened(*sample) : 0;
        winograd_axis_transform<TRANSFORM, E1>(v[i], x, columns->elements, along);
    }
    winograd_columns<TRANSFORM, E0, E1>(v, rows->elements, down);
    const int64_t frequency = winograd_lines(tiles) * tiles.pitch;
    to += at.line * tiles.pitch + at.column;
#pragma unroll
    for (int i = 0; i < E0; i++)
#pragma unroll
        for (int j = 0; j < E1; j++, to += frequency) *to = v[i][j];
}

// A row of a tile, with bias and activation. A NaN stays one.
template <typename S, typename T, int E1>
__device__ void winograd_store_row(const cuda_winograd_tiles &tiles, S *line, int64_t column, T *y,
                                   T bias)
{
    const cuda_winograd_side &columns = tiles.axis[1];
    constexpr int N = vector_of<T>::N;
#pragma unroll
    for (int j = 0; j < E1; j++) {
        y[j] += bias;
        if (tiles.relu && y[j] < 0) y[j] = 0;
    }
    if (E1 > N && tiles.wide) {
#pragma unroll
        for (int j = 0; j + N <= E1; j += N) {
            vector_of<T> wide;
            if (j >= columns.elements) break;
#pragma unroll
            for (int k = 0; k < N; k++) wide.at[k] = y[j + k];
            *(vector_of<T> *)(line + column + j) = wide;
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < E1; j++) {
        const int64_t sample = column + columns.step * j;
        if (j < columns.elements && in_bounds(sample, columns.size)) narrow(&line[sample], y[j]);
    }
}

template <typename S, typename T, int E0, int E1>
__global__ void __launch_bounds__(CUDA_WINOGRAD_THREADS, 1)
    winograd_output_kernel(const __grid_constant__ cuda_winograd_tiles tiles,
                           const __grid_constant__ winograd_points<T> down,
                           const __grid_constant__ winograd_points<T> along, S *to, const T *sums,
                           const S *bias)
{
    const cuda_winograd_side *rows = &tiles.axis[0], *columns = &tiles.axis[1];
    winograd_tile at;
    if (!locate_winograd_tile(tiles, &at)) return;
    const int64_t frequency = winograd_lines(tiles) * tiles.pitch;
    sums += at.line * tiles.pitch + at.column;
    T v[E0][E1];
#pragma unroll
    for (int i = 0; i < E0; i++)
#pragma unroll
        for (int j = 0; j < E1; j++, sums += frequency) v[i][j] = *sums;
    winograd_columns<WINOGRAD_OUTPUT, E0, E1>(v, rows->elements, down);
    const T added = bias ? widened(bias[at.channel]) : 0;
    to += at.plane;
#pragma unroll
    for (int i = 0; i < E0; i++) {
        const int64_t row = at.at[0] + rows->step * i;
        if (i >= rows->elements || !in_bounds(row, rows->size)) continue;
        T y[E1] = {};
        winograd_axis_transform<WINOGRAD_OUTPUT, E1>(y, v[i], columns->elements, along);
        winograd_store_row<S, T, E1>(tiles, to + row * columns->size, at.at[1], y, added);
    }
}

// Threads along the tiles, and along lines where tiles are few.
dim3 winograd_threads(uint32_t tiles)
{
    const int x = power_of_two(tiles, CUDA_WINOGRAD_THREADS);
    return dim3(x, CUDA_WINOGRAD_THREADS / x);
}
} // namespace

cudaError_t cuda_winograd_queue_tiles(const cuda_winograd_tiles *tiles, cuda_layer_move move,
                                      void *to, const void *from, const void *bias)
{
    const int extents[] = {tiles->axis[0].extent, tiles->axis[1].extent};
    const dim3 threads = winograd_threads(tiles->n);
    const int64_t blocks =
        ceiling(tiles->n, threads.x) * ceiling(winograd_lines(*tiles), threads.y);
    return with_extents(tiles->storage, extents, [=](auto zero, auto e0, auto e1) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        constexpr int E0 = decltype(e0)::value, E1 = decltype(e1)::value;
        if (move == CUDA_STORE)
            return queue_extents<T>(winograd_output_kernel<S, T, E0, E1>, extents, blocks, threads,
                                    *tiles, to, from, bias);
        return queue_extents<T>(move == CUDA_LOAD
                                    ? winograd_tiles_kernel<S, T, E0, E1, WINOGRAD_INPUT>
                                    : winograd_tiles_kernel<S, T, E0, E1, WINOGRAD_TAPS>,
                                extents, blocks, threads, *tiles, to, from);
    });
}
