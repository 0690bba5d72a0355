// SPDX-License-Identifier: MIT
// The upper rungs of cuda/direct: a thread block shares a tile of samples and the taps of one input
// channel; a thread sums CUDA_TILE_COLUMNS outputs of up to CUDA_TILE_CHANNELS channels in
// registers. The tile has its halo (CUDA_HALO), or only the samples in the middle of what its
// outputs see, the rest coming through the caches (CUDA_CACHED). Along planes there is no tile:
// each plane of taps is a turn of its own.
#include "cuda/kernels/grid.cuh"

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
__device__ place<T> locate(const cuda_pass &pass, const cuda_tile &tile, const T *from,
                           const T *taps)
{
    const cuda_axis *axis = pass.axis;
    const int width = tile.each * tile.threads_x;
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
template <typename T>
__device__ T sample(const cuda_pass &pass, const T *plane, int64_t row, int64_t column)
{
    const bool within =
        inside(row, pass.axis[1].from_size) && inside(column, pass.axis[2].from_size);
    return within ? plane[row * pass.axis[2].from_size + column] : 0;
}

template <typename T>
__device__ void load_tile(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at,
                          const T *plane, T *shared)
{
    for (int row = threadIdx.y; row < tile.rows; row += blockDim.y)
        for (int column = threadIdx.x; column < tile.columns; column += blockDim.x)
            shared[row * tile.columns + column] =
                sample(pass, plane, at.row + row, at.column + column);
}

// Taps [row][column][channel], 0 for channels beyond the last.
template <typename T, int CHANNELS>
__device__ void load_taps(const cuda_pass &pass, const place<T> &at, int64_t c, int64_t t0,
                          T *shared)
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
__device__ void gather(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at,
                       const T *plane, const T *shared, int t1, int t2, T ret[CUDA_TILE_COLUMNS])
{
    const cuda_axis *axis = pass.axis;
    const int step = (int)axis[2].from_step;
    const int row =
        threadIdx.y * (int)axis[1].from_step + t1 * (int)axis[1].from_dilation - at.middle_row;
    const int column = threadIdx.x * step + t2 * (int)axis[2].from_dilation - at.middle_column;
#pragma unroll
    for (int p = 0; p < CUDA_TILE_COLUMNS; p++) {
        const int i = column + p * tile.threads_x * step;
        if (HALO || (inside(row, tile.rows) && inside(i, tile.columns)))
            ret[p] = shared[row * tile.columns + i];
        else ret[p] = sample(pass, plane, at.row + row, at.column + i);
    }
}

template <typename T, int CHANNELS, bool HALO>
__device__ void add_products(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at,
                             const T *plane, const T *samples, const T *taps,
                             T sum[CHANNELS][CUDA_TILE_COLUMNS])
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
    tile_kernel(const __grid_constant__ cuda_pass pass, const __grid_constant__ cuda_tile tile,
                T *to, const T *from, const T *w, const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const place<T> at = locate<T, CHANNELS, HALO>(pass, tile, from, w);
    T *taps = (T *)shared_memory;
    T *samples = taps + axis[1].taps * axis[2].taps * CHANNELS;
    T sum[CHANNELS][CUDA_TILE_COLUMNS] = {};
    for (int64_t c = 0; c < pass.from; c++)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t depth = met(axis[0], at.z, t0);
            if (!inside(depth, axis[0].from_size))
                continue; // the same for all threads of the block
            const T *plane =
                at.samples + c * from_plane(pass) + depth * axis[1].from_size * axis[2].from_size;
            __syncthreads();
            load_tile(pass, tile, at, plane, samples);
            load_taps<T, CHANNELS>(pass, at, c, t0, taps);
            __syncthreads();
            add_products<T, CHANNELS, HALO>(pass, tile, at, plane, samples, taps, sum);
        }
    const int64_t y = at.y + threadIdx.y;
    for (int k = 0; k < CHANNELS; k++)
        for (int p = 0; p < CUDA_TILE_COLUMNS; p++) {
            const int64_t x = at.x + p * tile.threads_x + threadIdx.x,
                          channel = at.first_channel + k;
            if (y < axis[1].n && x < axis[2].n && channel < pass.to)
                store(pass, to, at.item, at.group * pass.to + channel, at.z, y, x, sum[k][p], bias);
        }
}

// A thread's outputs in a tile of runs: CUDA_TILE_RUN neighbours of row `row` from `column` on.
// Four neighbours of a warp have runs of one row and four those of the next, as tile.c lays out
// samples.
struct run_place {
    int row, column;

    __device__ run_place() : row(threadIdx.y), column(threadIdx.x * CUDA_TILE_RUN)
    {
        if (blockDim.x < 4 || blockDim.y < 2) return;
        const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
        row = (int)(thread / 4 % 2 + thread / (2 * blockDim.x) * 2);
        column = (int)(thread % 4 + thread / 8 % (blockDim.x / 4) * 4) * CUDA_TILE_RUN;
    }
};

// Rows of a tile that are threads' turns, and the columns of one.
struct turns {
    int first, step, column, width;

    __device__ turns()
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

// n, or 0 or `most` if it lies beyond.
inline __device__ int64_t between(int64_t n, int64_t most)
{
    return n < 0 ? 0 : n < most ? n : most;
}

template <typename T>
__device__ void load_run_tile(const cuda_pass &pass, const cuda_tile &tile, const place<T> &at,
                              const T *plane, T *shared)
{
    const cuda_axis *axis = pass.axis;
    const turns turn;
    const int begin = (int)between(-at.column, tile.columns),
              end = (int)between(axis[2].from_size - at.column, tile.columns);
    const T *line = plane + (at.row + turn.first) * axis[2].from_size + at.column;
    for (int row = turn.first; row < tile.rows;
         row += turn.step, line += turn.step * axis[2].from_size) {
        const int last = inside(at.row + row, axis[1].from_size) ? end : 0;
#pragma unroll 4
        for (int column = turn.column; column < tile.columns; column += turn.width)
            shared[row * tile.columns + column] =
                begin <= column && column < last ? line[column] : 0;
    }
}

// Taps of an input channel, rows of them in whole groups; nothing is multiplied by those that fill
// the last one.
template <typename T>
__device__ void load_run_taps(const cuda_pass &pass, const place<T> &at, int64_t c, int64_t t0,
                              int pitch, T *shared)
{
    const int rows = (int)pass.axis[1].taps, columns = (int)pass.axis[2].taps;
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < rows * pitch;
         i += blockDim.x * blockDim.y)
        shared[i] = i % pitch < columns
                        ? at.taps[c * pass.tap_from + tap_index(pass, t0, i / pitch, i % pitch)]
                        : 0;
}

template <int N, typename T> __device__ void load_vectors(T *ret, const T *from)
{
#pragma unroll
    for (int q = 0; q < N / vector_of<T>::N; q++) {
        const vector_of<T> now = ((const vector_of<T> *)from)[q];
#pragma unroll
        for (int k = 0; k < vector_of<T>::N; k++) ret[q * vector_of<T>::N + k] = now.at[k];
    }
}

// Sums over a window that slides along a row of samples.
template <typename T>
__device__ void add_run_products(const cuda_pass &pass, const cuda_tile &tile, const T *samples,
                                 const T *taps, T (&sum)[CUDA_TILE_RUN])
{
    constexpr int RUN = CUDA_TILE_RUN, GROUP = CUDA_TILE_GROUP;
    const int columns = (int)pass.axis[2].taps,
              apart = (int)pass.axis[1].from_dilation * tile.columns;
    for (int t1 = 0; t1 < (int)pass.axis[1].taps; t1++, samples += apart) {
        T window[RUN + GROUP];
        load_vectors<RUN>(window, samples);
#pragma unroll 3 // the window is then back in its place without having moved
        for (int t2 = 0; t2 < columns; t2 += GROUP, taps += GROUP) {
            T w[GROUP];
            load_vectors<GROUP>(w, taps);
            load_vectors<GROUP>(window + RUN, samples + t2 + RUN);
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                if (t2 + k < columns)
#pragma unroll
                    for (int r = 0; r < RUN; r++) sum[r] += w[k] * window[k + r];
#pragma unroll
            for (int r = 0; r < RUN; r++) window[r] = window[GROUP + r];
        }
    }
}

// One output channel with runs. Sums go back through shared memory, so that neighbours store
// neighbours.
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, resident<T>(1))
    run_kernel(const __grid_constant__ cuda_pass pass, const __grid_constant__ cuda_tile tile,
               T *to, const T *from, const T *w, const T *bias)
{
    const cuda_axis *axis = pass.axis;
    const place<T> at = locate<T, 1, true>(pass, tile, from, w);
    const int pitch = (int)ceiling(axis[2].taps, CUDA_TILE_GROUP) * CUDA_TILE_GROUP;
    T *const taps = (T *)shared_memory, *const samples = taps + axis[1].taps * pitch;
    const run_place mine;
    T sum[CUDA_TILE_RUN] = {};
    for (int64_t c = 0; c < pass.from; c++)
        for (int64_t t0 = 0; t0 < axis[0].taps; t0++) {
            const int64_t depth = met(axis[0], at.z, t0);
            if (!inside(depth, axis[0].from_size))
                continue; // the same for all threads of the block
            const T *plane =
                at.samples + c * from_plane(pass) + depth * axis[1].from_size * axis[2].from_size;
            __syncthreads();
            load_run_tile(pass, tile, at, plane, samples);
            load_run_taps(pass, at, c, t0, pitch, taps);
            __syncthreads();
            add_run_products(pass, tile,
                             samples + mine.row * (int)axis[1].from_step * tile.columns +
                                 mine.column,
                             taps, sum);
        }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < CUDA_TILE_RUN; r++)
        samples[mine.row * tile.columns + mine.column + r] = sum[r];
    __syncthreads();
    const turns turn;
    for (int row = turn.first; row < tile.threads_y && at.y + row < axis[1].n; row += turn.step)
        for (int x = turn.column; x < tile.each * tile.threads_x && at.x + x < axis[2].n;
             x += turn.width)
            store(pass, to, at.item, at.group * pass.to + at.first_channel, at.z, at.y + row,
                  at.x + x, samples[row * tile.columns + x], bias);
}

template <typename T, int CHANNELS, bool HALO>
cudaError_t launch(const cuda_pass *pass, const cuda_tile *tile, void *to, const void *from,
                   const void *taps, const void *bias, cudaStream_t stream)
{
    const cuda_axis *axis = pass->axis;
    const int64_t blocks = ceiling(axis[2].n, tile->each * tile->threads_x) *
                           ceiling(axis[1].n, tile->threads_y) * axis[0].n *
                           ceiling(pass->to, CHANNELS) * pass->groups * pass->batch;
    void (*kernel)(cuda_pass, cuda_tile, T *, const T *, const T *, const T *) =
        tile_kernel<T, CHANNELS, HALO>;
    if (CHANNELS == 1 && HALO && tile->each == CUDA_TILE_RUN) kernel = run_kernel<T>;
    return queue(kernel, blocks, dim3(tile->threads_x, tile->threads_y), tile->shared_bytes, stream,
                 *pass, *tile, (T *)to, (const T *)from, (const T *)taps, (const T *)bias);
}

template <typename T>
cudaError_t launch_typed(const cuda_pass *pass, bool halo, const cuda_tile *tile, void *to,
                         const void *from, const void *taps, const void *bias, cudaStream_t stream)
{
    if (tile->channels == 1)
        return halo ? launch<T, 1, true>(pass, tile, to, from, taps, bias, stream)
                    : launch<T, 1, false>(pass, tile, to, from, taps, bias, stream);
    return halo ? launch<T, CUDA_TILE_CHANNELS, true>(pass, tile, to, from, taps, bias, stream)
                : launch<T, CUDA_TILE_CHANNELS, false>(pass, tile, to, from, taps, bias, stream);
}
} // namespace

cudaError_t cuda_launch_tile(const cuda_pass *pass, cuda_variant variant, const cuda_tile *tile,
                             bool f64, void *to, const void *from, const void *taps,
                             const void *bias, cudaStream_t stream)
{
    const bool halo = variant == CUDA_HALO;
    return f64 ? launch_typed<double>(pass, halo, tile, to, from, taps, bias, stream)
               : launch_typed<float>(pass, halo, tile, to, from, taps, bias, stream);
}
