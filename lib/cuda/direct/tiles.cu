// SPDX-License-Identifier: MIT
// cuda/direct:halo: a thread block shares a tile of samples with its halo and the taps of one input
// channel; a thread sums several columns of up to CUDA_TILE_CHANNELS output channels in registers.
// Planes are not tiled: planes of taps are loaded and summed one after the other.
#include "cuda/kernels/pass.cuh"
#include "kernels.h"

namespace {
// Thread blocks that a processor is to hold at once: registers for the sums set the limit.
template <typename T> constexpr int direct_resident(int channels)
{
    return (channels == 1 ? 16 : 8) / (int)sizeof(T);
}

// A window and a span of sums: for compute capability 8.0 ptxas needs more than the 64 registers
// that four blocks leave, or some are spilled.
template <typename T> constexpr int span_resident()
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900
    return 12 / (int)sizeof(T);
#else
    return direct_resident<T>(1);
#endif
}

// The tile of one block.
template <typename T> struct direct_tile {
    int64_t z, y, x;              // output of the block's first thread
    int64_t first_channel, group; // of its CHANNELS; within the group
    int64_t item;
    int64_t row, column;     // sample at the tile's corner
    const T *samples, *taps; // first channel of the group
};

template <typename T, int CHANNELS>
__device__ direct_tile<T> locate_direct_tile(const cuda_pass &pass, const cuda_tile &tile,
                                             const T *from, const T *taps)
{
    const cuda_axis *axis = pass.axis;
    const int width = tile.each * tile.threads_x;
    direct_tile<T> at;
    int64_t block = blockIdx.x;
    at.x = take(&block, ceiling(axis[2].n, width)) * width;
    at.y = take(&block, ceiling(axis[1].n, tile.threads_y)) * tile.threads_y;
    at.z = take(&block, axis[0].n);
    at.first_channel = take(&block, ceiling(pass.to, CHANNELS)) * CHANNELS;
    at.group = take(&block, pass.groups);
    at.item = block;
    at.row = met(axis[1], at.y, 0);
    at.column = met(axis[2], at.x, 0);
    at.samples = from + (at.item * pass.groups + at.group) * pass.from * from_plane(pass);
    at.taps = taps + at.group * pass.tap_group + at.first_channel * pass.tap_to;
    return at;
}

// The rows of a tile that a warp moves, and the columns of one of its threads.
struct warp_rows {
    int first, step, column, width;

    __device__ warp_rows()
    {
        enum { WARP = 32 };
        const int threads = blockDim.x * blockDim.y,
                  thread = threadIdx.y * blockDim.x + threadIdx.x;
        width = threads < WARP ? threads : WARP;
        first = thread / width;
        step = threads / width;
        column = thread % width;
    }
};

inline __device__ int clamp_index(int64_t n, int max)
{
    return min_int(n < 0 ? 0 : n, max);
}

template <typename T>
__device__ void load_tile(const cuda_pass &pass, const cuda_tile &tile, const direct_tile<T> &at,
                          const T *plane, T *shared)
{
    const cuda_axis *axis = pass.axis;
    const warp_rows rows;
    const int begin = clamp_index(-at.column, tile.columns),
              end = clamp_index(axis[2].from_size - at.column, tile.columns);
    const T *line = plane + (at.row + rows.first) * axis[2].from_size + at.column;
    for (int row = rows.first; row < tile.rows;
         row += rows.step, line += rows.step * axis[2].from_size) {
        const int last = in_bounds(at.row + row, axis[1].from_size) ? end : 0;
#pragma unroll 4
        for (int column = rows.column; column < tile.columns; column += rows.width)
            shared[row * tile.columns + column] =
                begin <= column && column < last ? line[column] : 0;
    }
}

// Taps [row][column][channel], 0 for channels beyond the last.
template <typename T, int CHANNELS>
__device__ void load_tile_taps(const cuda_pass &pass, const direct_tile<T> &at, int64_t c,
                               int64_t t0, T *shared)
{
    const int n = (int)(pass.axis[1].taps * pass.axis[2].taps), columns = (int)pass.axis[2].taps;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y) {
        const T *tap = at.taps + c * pass.tap_from + tap_index(pass, t0, i / columns, i % columns);
        for (int k = 0; k < CHANNELS; k++)
            shared[i * CHANNELS + k] = at.first_channel + k < pass.to ? tap[k * pass.tap_to] : 0;
    }
}

template <typename T, int CHANNELS>
__device__ void direct_add_products(const cuda_pass &pass, const cuda_tile &tile, const T *samples,
                                    const T *taps, T sum[CHANNELS][CUDA_TILE_COLUMNS])
{
    const cuda_axis *axis = pass.axis;
    const int rows = (int)axis[1].taps, columns = (int)axis[2].taps, step = (int)axis[2].from_step;
    for (int t1 = 0; t1 < rows; t1++)
        for (int t2 = 0; t2 < columns; t2++, taps += CHANNELS) {
            const int row = threadIdx.y * (int)axis[1].from_step + t1 * (int)axis[1].from_dilation;
            const int column = threadIdx.x * step + t2 * (int)axis[2].from_dilation;
            T x[CUDA_TILE_COLUMNS];
            __align__(16) T w[CHANNELS];
#pragma unroll
            for (int p = 0; p < CUDA_TILE_COLUMNS; p++)
                x[p] = samples[row * tile.columns + column + p * tile.threads_x * step];
            if (CHANNELS % vector_of<T>::N == 0)
#pragma unroll
                for (int q = 0; q < CHANNELS / vector_of<T>::N; q++)
                    ((vector_of<T> *)w)[q] = ((const vector_of<T> *)taps)[q];
            else
                for (int k = 0; k < CHANNELS; k++) w[k] = taps[k];
#pragma unroll
            for (int k = 0; k < CHANNELS; k++)
#pragma unroll
                for (int p = 0; p < CUDA_TILE_COLUMNS; p++) sum[k][p] += w[k] * x[p];
        }
}

template <typename T, int CHANNELS>
__global__ void __launch_bounds__(CUDA_PASS_THREADS, direct_resident<T>(CHANNELS))
    direct_tile_kernel(const __grid_constant__ cuda_pass pass,
                       const __grid_constant__ cuda_tile tile, T *to, const T *from, const T *w,
                       const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const direct_tile<T> at = locate_direct_tile<T, CHANNELS>(pass, tile, from, w);
    T *taps = (T *)shared_memory;
    T *samples = taps + axis[1].taps * axis[2].taps * CHANNELS;
    T sum[CHANNELS][CUDA_TILE_COLUMNS] = {};
    for (int64_t c = 0; c < pass.from; c++)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t depth = met(axis[0], at.z, t0);
            if (!in_bounds(depth, axis[0].from_size)) continue; // the same for all threads
            __syncthreads();
            load_tile(pass, tile, at,
                      at.samples + c * from_plane(pass) +
                          depth * axis[1].from_size * axis[2].from_size,
                      samples);
            load_tile_taps<T, CHANNELS>(pass, at, c, t0, taps);
            __syncthreads();
            direct_add_products<T, CHANNELS>(pass, tile, samples, taps, sum);
        }
    const int64_t y = at.y + threadIdx.y;
    for (int k = 0; k < CHANNELS; k++)
        for (int p = 0; p < CUDA_TILE_COLUMNS; p++) {
            const int64_t x = at.x + p * tile.threads_x + threadIdx.x,
                          channel = at.first_channel + k;
            if (y < axis[1].n && x < axis[2].n && channel < pass.to)
                store_pass_output(pass, to, {at.item, at.group * pass.to + channel, at.z, y, x},
                                  sum[k][p], bias);
        }
}

// A thread's outputs in a tile of spans: CUDA_TILE_SPAN neighbours of row `row` from `column` on.
// Of eight neighbouring threads four have spans of one row and four those of the next, as
// direct.c lays out samples.
struct span_start {
    int row, column;

    __device__ span_start() : row(threadIdx.y), column(threadIdx.x * CUDA_TILE_SPAN)
    {
        if (blockDim.x < 4 || blockDim.y < 2) return;
        const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
        row = (int)(thread / 4 % 2 + thread / (2 * blockDim.x) * 2);
        column = (int)(thread % 4 + thread / 8 % (blockDim.x / 4) * 4) * CUDA_TILE_SPAN;
    }
};

// Taps of an input channel, rows of them in whole groups; nothing is multiplied by those that fill
// the last one.
template <typename T>
__device__ void load_span_taps(const cuda_pass &pass, const direct_tile<T> &at, int64_t c,
                               int64_t t0, int pitch, T *shared)
{
    const int rows = (int)pass.axis[1].taps, columns = (int)pass.axis[2].taps;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < rows * pitch;
         i += blockDim.x * blockDim.y)
        shared[i] = i % pitch < columns
                        ? at.taps[c * pass.tap_from + tap_index(pass, t0, i / pitch, i % pitch)]
                        : 0;
}

// Sums over a window that slides along a row of samples.
template <typename T>
__device__ void add_span_products(const cuda_pass &pass, const cuda_tile &tile, const T *samples,
                                  const T *taps, T (&sum)[CUDA_TILE_SPAN])
{
    constexpr int SPAN = CUDA_TILE_SPAN, GROUP = CUDA_TILE_GROUP;
    const int columns = (int)pass.axis[2].taps,
              apart = (int)pass.axis[1].from_dilation * tile.columns;
    for (int t1 = 0; t1 < (int)pass.axis[1].taps; t1++, samples += apart) {
        T window[SPAN + GROUP];
        load_vectors<SPAN>(window, samples);
#pragma unroll 3 // registers of the window are then renamed, not moved
        for (int t2 = 0; t2 < columns; t2 += GROUP, taps += GROUP) {
            T w[GROUP];
            load_vectors<GROUP>(w, taps);
            load_vectors<GROUP>(window + SPAN, samples + t2 + SPAN);
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                if (t2 + k < columns)
#pragma unroll
                    for (int r = 0; r < SPAN; r++) sum[r] += w[k] * window[k + r];
#pragma unroll
            for (int r = 0; r < SPAN; r++) window[r] = window[GROUP + r];
        }
    }
}

// One output channel, spans of neighbours. Sums go back through shared memory, so that neighbouring
// threads store neighbours.
template <typename T>
__global__ void __launch_bounds__(CUDA_PASS_THREADS, span_resident<T>())
    direct_span_kernel(const __grid_constant__ cuda_pass pass,
                       const __grid_constant__ cuda_tile tile, T *to, const T *from, const T *w,
                       const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const direct_tile<T> at = locate_direct_tile<T, 1>(pass, tile, from, w);
    const int pitch = (int)ceiling(axis[2].taps, CUDA_TILE_GROUP) * CUDA_TILE_GROUP;
    T *const taps = (T *)shared_memory, *const samples = taps + axis[1].taps * pitch;
    const span_start mine;
    T sum[CUDA_TILE_SPAN] = {};
    for (int64_t c = 0; c < pass.from; c++)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t depth = met(axis[0], at.z, t0);
            if (!in_bounds(depth, axis[0].from_size)) continue; // the same for all threads
            __syncthreads();
            load_tile(pass, tile, at,
                      at.samples + c * from_plane(pass) +
                          depth * axis[1].from_size * axis[2].from_size,
                      samples);
            load_span_taps(pass, at, c, t0, pitch, taps);
            __syncthreads();
            add_span_products(pass, tile,
                              samples + mine.row * (int)axis[1].from_step * tile.columns +
                                  mine.column,
                              taps, sum);
        }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < CUDA_TILE_SPAN; r++)
        samples[mine.row * tile.columns + mine.column + r] = sum[r];
    __syncthreads();
    const warp_rows rows;
    for (int row = rows.first; row < tile.threads_y && at.y + row < axis[1].n; row += rows.step)
        for (int x = rows.column; x < tile.each * tile.threads_x && at.x + x < axis[2].n;
             x += rows.width)
            store_pass_output(
                pass, to,
                {at.item, at.group * pass.to + at.first_channel, at.z, at.y + row, at.x + x},
                samples[row * tile.columns + x], bias);
}
} // namespace

cudaError_t cuda_direct_queue_tiles(const cuda_pass *pass, bool f64, const cuda_tile *tile,
                                    const cuda_arrays *arrays)
{
    const cuda_axis *axis = pass->axis;
    const int64_t blocks = ceiling(axis[2].n, tile->each * tile->threads_x) *
                           ceiling(axis[1].n, tile->threads_y) * axis[0].n *
                           ceiling(pass->to, tile->channels) * pass->groups * pass->batch;
    return with_scalar(f64, [=](auto zero) {
        typedef decltype(zero) T;
        void (*kernel)(cuda_pass, cuda_tile, T *, const T *, const T *, const T *) =
            direct_tile_kernel<T, CUDA_TILE_CHANNELS>;
        if (tile->channels == 1) kernel = direct_tile_kernel<T, 1>;
        if (tile->each == CUDA_TILE_SPAN) kernel = direct_span_kernel<T>;
        return queue(kernel, blocks, dim3(tile->threads_x, tile->threads_y), tile->shared_bytes,
                     *pass, *tile, arrays->to, arrays->from, arrays->taps, arrays->bias);
    });
}
