// SPDX-License-Identifier: MIT
// The upper rungs of cuda/direct: a thread block shares a tile of samples and the taps of one input channel; a thread
// sums CUDA_TILE_COLUMNS outputs of up to CUDA_TILE_CHANNELS channels in registers. The tile has its halo (CUDA_HALO),
// or only the samples in the middle of what its outputs see, the rest coming through the caches (CUDA_CACHED). Along
// planes there is no tile: each plane of taps is a turn of its own.
#include "grid.cuh"

namespace {
// Thread blocks that a processor is to hold at once: registers for the sums set the limit.
template <typename T> constexpr int resident(int channels)
{
    return channels == 1 ? (sizeof(T) == 8 ? 2 : 4) : (sizeof(T) == 8 ? 1 : 2);
}

// One block's place in the pass.
template <typename T> struct place {
    int64_t z, y, x;              // output of the block's first thread
    int64_t first_channel, group; // of its CHANNELS; within the group
    int64_t item;
    int64_t row, column;           // sample at the tile's corner
    int middle_row, middle_column; // of the tile, seen from the first tap; 0 with a halo
    const T *samples, *taps;       // first channel of the group
};

template <typename T, int CHANNELS, bool HALO>
__device__ place<T> locate(const cuda_pass &pass, const cuda_tile &tile, const T *from, const T *taps)
{
    const cuda_axis *axis = pass.axis;
    const int width = CUDA_TILE_COLUMNS * tile.threads_x;
    place<T> at;
    int64_t block = blockIdx.x;
    at.x = take(&block, ceiling(axis[2].n, width)) * width;
    at.y = take(&block, ceiling(axis[1].n, tile.threads_y)) * tile.threads_y;
    at.z = take(&block, axis[0].n);
    at.first_channel = take(&block, ceiling(pass.to, CHANNELS)) * CHANNELS;
    at.group = take(&block, pass.groups);
    at.item = block;
    at.middle_row = HALO ? 0 : (int)(axis[1].from_dilation * (axis[1].taps - 1) / 2);
    at.middle_column = HALO ? 0 : (int)(axis[2].from_dilation * (axis[2].taps - 1) / 2);
    at.row = met(axis[1], at.y, 0) + at.middle_row;
    at.column = met(axis[2], at.x, 0) + at.middle_column;
    at.samples = from + (at.item * pass.groups + at.group) * pass.from * from_plane(pass);
    at.taps = taps + at.group * pass.tap_group + at.first_channel * pass.tap_to;
    return at;
}

// A sample of a plane, 0 outside.
template <typename T> __device__ T sample(const cuda_pass &pass, const T *plane, int64_t row, int64_t column)
{
    const bool within = inside(row, pass.axis[1].from_size) && inside(column, pass.axis[2].from_size);
    return within ? plane[row * pass.axis[2].from_size + column] : 0;
}

template <typename T>
__device__ void load_tile(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at, const T *plane, T *shared)
{
    for (int row = threadIdx.y; row < tile.rows; row += blockDim.y)
        for (int column = threadIdx.x; column < tile.columns; column += blockDim.x)
            shared[row * tile.columns + column] = sample(pass, plane, at.row + row, at.column + column);
}

// Taps [row][column][channel], 0 for channels beyond the last.
template <typename T, int CHANNELS>
__device__ void load_taps(const cuda_pass &pass, const place<T> &at, int64_t c, int64_t t0, T *shared)
{
    const int n = (int)(pass.axis[1].taps * pass.axis[2].taps), columns = (int)pass.axis[2].taps;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < n; i += blockDim.x * blockDim.y) {
        const T *tap = at.taps + c * pass.tap_from + tap_index(pass, t0, i / columns, i % columns);
        for (int k = 0; k < CHANNELS; k++)
            shared[i * CHANNELS + k] = at.first_channel + k < pass.to ? tap[k * pass.tap_to] : 0;
    }
}

// The samples that one tap of this thread's outputs meets.
template <typename T, bool HALO>
__device__ void gather(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at, const T *plane,
                       const T *shared, int t1, int t2, T ret[CUDA_TILE_COLUMNS])
{
    const cuda_axis *axis = pass.axis;
    const int step = (int)axis[2].from_step;
    const int row = threadIdx.y * (int)axis[1].from_step + t1 * (int)axis[1].from_dilation - at.middle_row;
    const int column = threadIdx.x * step + t2 * (int)axis[2].from_dilation - at.middle_column;
#pragma unroll
    for (int p = 0; p < CUDA_TILE_COLUMNS; p++) {
        const int i = column + p * tile.threads_x * step;
        if (HALO || (inside(row, tile.rows) && inside(i, tile.columns))) ret[p] = shared[row * tile.columns + i];
        else ret[p] = sample(pass, plane, at.row + row, at.column + i);
    }
}

template <typename T, int CHANNELS, bool HALO>
__device__ void add_products(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at, const T *plane,
                             const T *samples, const T *taps, T sum[CHANNELS][CUDA_TILE_COLUMNS])
{
    const int rows = (int)pass.axis[1].taps, columns = (int)pass.axis[2].taps;
    for (int t1 = 0; t1 < rows; t1++)
        for (int t2 = 0; t2 < columns; t2++, taps += CHANNELS) {
            T x[CUDA_TILE_COLUMNS];
            __align__(16) T w[CHANNELS];
            gather<T, HALO>(pass, tile, at, plane, samples, t1, t2, x);
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

template <typename T, int CHANNELS, bool HALO>
__global__ void __launch_bounds__(CUDA_THREADS, resident<T>(CHANNELS))
    tile_kernel(const __grid_constant__ cuda_pass pass, const __grid_constant__ cuda_tile tile, T *to, const T *from,
                const T *w, const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const place<T> at = locate<T, CHANNELS, HALO>(pass, tile, from, w);
    T *taps = (T *)shared_memory;
    T *samples = taps + axis[1].taps * axis[2].taps * CHANNELS;
    T sum[CHANNELS][CUDA_TILE_COLUMNS] = {};
    for (int64_t c = 0; c < pass.from; c++)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t depth = met(axis[0], at.z, t0);
            if (!inside(depth, axis[0].from_size)) continue; // the same for all threads of the block
            const T *plane = at.samples + c * from_plane(pass) + depth * axis[1].from_size * axis[2].from_size;
            __syncthreads();
            load_tile(pass, tile, at, plane, samples);
            load_taps<T, CHANNELS>(pass, at, c, t0, taps);
            __syncthreads();
            add_products<T, CHANNELS, HALO>(pass, tile, at, plane, samples, taps, sum);
        }
    const int64_t y = at.y + threadIdx.y;
    for (int k = 0; k < CHANNELS; k++)
        for (int p = 0; p < CUDA_TILE_COLUMNS; p++) {
            const int64_t x = at.x + p * tile.threads_x + threadIdx.x, channel = at.first_channel + k;
            if (y < axis[1].n && x < axis[2].n && channel < pass.to)
                store(pass, to, at.item, at.group * pass.to + channel, at.z, y, x, sum[k][p], bias);
        }
}

template <typename T, int CHANNELS, bool HALO>
cudaError_t launch(const cuda_pass *pass, const cuda_tile *tile, void *to, const void *from, const void *taps,
                   const void *bias, cudaStream_t stream)
{
    const cuda_axis *axis = pass->axis;
    const int64_t blocks = ceiling(axis[2].n, CUDA_TILE_COLUMNS * tile->threads_x) *
                           ceiling(axis[1].n, tile->threads_y) * axis[0].n * ceiling(pass->to, CHANNELS) *
                           pass->groups * pass->batch;
    void (*const kernel)(cuda_pass, cuda_tile, T *, const T *, const T *, const T *) = tile_kernel<T, CHANNELS, HALO>;
    return queue(kernel, blocks, dim3(tile->threads_x, tile->threads_y), tile->shared_bytes, stream, *pass, *tile,
                 (T *)to, (const T *)from, (const T *)taps, (const T *)bias);
}

template <typename T>
cudaError_t launch_typed(const cuda_pass *pass, bool halo, const cuda_tile *tile, void *to, const void *from,
                         const void *taps, const void *bias, cudaStream_t stream)
{
    if (tile->channels == 1)
        return halo ? launch<T, 1, true>(pass, tile, to, from, taps, bias, stream)
                    : launch<T, 1, false>(pass, tile, to, from, taps, bias, stream);
    return halo ? launch<T, CUDA_TILE_CHANNELS, true>(pass, tile, to, from, taps, bias, stream)
                : launch<T, CUDA_TILE_CHANNELS, false>(pass, tile, to, from, taps, bias, stream);
}
} // namespace

cudaError_t cuda_launch_tile(const cuda_pass *pass, cuda_variant variant, const cuda_tile *tile, bool f64, void *to,
                             const void *from, const void *taps, const void *bias, cudaStream_t stream)
{
    const bool halo = variant == CUDA_HALO;
    return f64 ? launch_typed<double>(pass, halo, tile, to, from, taps, bias, stream)
               : launch_typed<float>(pass, halo, tile, to, from, taps, bias, stream);
}
