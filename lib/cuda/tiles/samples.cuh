// SPDX-License-Identifier: MIT
// Where the samples of tiles are (geometry/tile_grid.h), as seen by a thread block that holds pairs
// of tiles in shared memory: the real parts of elements are one tile, the imaginary parts its
// neighbour.
#ifndef PARTITA_CUDA_TILE_SAMPLES_CUH
#define PARTITA_CUDA_TILE_SAMPLES_CUH

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/storage.cuh"
#include "fft.cuh"

// One tile of one channel. Its elements that are samples make a box; there are none if there is no
// such tile.
struct tile_samples {
    int64_t first;          // index of the sample of element (0, 0, 0), which may lie outside
    int begin[3], count[3]; // of the box: elements along each axis from `begin` on
};

inline __device__ const cuda_tiles_side &grid_side(const cuda_tiles_axis &axis, bool outputs)
{
    return outputs ? axis.out : axis.in;
}

// A box of elements of a tile: the first ones along each axis.
struct tile_box {
    int planes, rows, columns;
};

// The elements of a tile that hold its inputs, or its outputs.
inline __device__ tile_box box_of(const cuda_tiles &tiles, bool outputs)
{
    const cuda_tiles_axis *axis = tiles.axis;
    const cuda_dft *dft = tiles.dft;
    if (outputs) return {(int)axis[0].tile, (int)axis[1].tile, (int)axis[2].tile};
    return {min_int(axis[0].extent, dft[0].n), min_int(axis[1].extent, dft[1].n),
            min_int(axis[2].extent, dft[2].n)};
}

// Of `most` elements from sample `at` on, those whose samples exist.
inline __device__ void bound(const cuda_tiles_side &side, int64_t at, int max, int *ret_begin,
                             int *ret_count)
{
    const int64_t before = at < 0 ? -at : 0, until = at < side.size ? side.size - at : 0;
    const int begin = min_int(side.step == 1 ? before : ceiling(before, side.step), max);
    *ret_begin = begin;
    *ret_count = min_int(side.step == 1 ? until : ceiling(until, side.step), max) - begin;
}

// A channel of a group, branches included, of the array of outputs or inputs.
struct tile_channel {
    bool outputs;
    int64_t group, channel;
};

// Its tile at a position.
inline __device__ tile_samples locate_tile(const cuda_tiles &tiles, tile_channel channel,
                                           int64_t position)
{
    tile_samples ret = {};
    if (position >= tiles.positions) return ret;
    const bool branched = channel.outputs == tiles.branches_out;
    const int64_t channels =
        (channel.outputs ? tiles.out : tiles.in) / (branched ? tiles.branches : 1);
    int64_t branch = branched ? take(&channel.channel, tiles.branches) : 0;
    int64_t tile = take(&position, tiles.tiles), image = take(&position, tiles.images), plane = 1;
    const tile_box box = box_of(tiles, channel.outputs);
    const int max[3] = {box.planes, box.rows, box.columns};
#pragma unroll
    for (int a = 2; a >= 0; a--) {
        const cuda_tiles_axis &axis = tiles.axis[a];
        const cuda_tiles_side &side = grid_side(axis, channel.outputs);
        const int64_t q =
            axis.first + axis.tile * take(&tile, axis.tiles) + (channel.outputs ? 0 : axis.lead);
        const int64_t at = side.base + side.image * take(&image, axis.images) +
                           side.branch * take(&branch, axis.branches) + side.step * q;
        bound(side, at, max[a], &ret.begin[a], &ret.count[a]);
        ret.first += at * plane;
        plane *= side.size;
    }
    ret.first += ((position * tiles.groups + channel.group) * channels + channel.channel) * plane;
    return ret;
}

// The tiles of a channel at n neighbouring positions. Ends before a barrier.
inline __device__ void locate_tiles(const cuda_tiles &tiles, tile_samples *at, tile_channel channel,
                                    int64_t position, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        at[i] = locate_tile(tiles, channel, position + i);
}

inline __device__ tile_box box_of_taps(const cuda_tiles &tiles)
{
    const auto *axis = tiles.taps.axis;
    return {(int)axis[0].taps, (int)axis[1].taps, (int)axis[2].taps};
}

// Whether i is one of `count` numbers from `begin` on.
inline __device__ bool within_box(int begin, int count, int i)
{
    return (unsigned)(i - begin) < (unsigned)count;
}

// A row of elements of a pair of tiles.
struct tile_row {
    int pair, d, h;

    __device__ int offset(const cuda_tiles &tiles) const
    {
        return pair * tiles.elements + d * tiles.dft[0].step + h * tiles.dft[1].step;
    }
};

// Shares rows of pairs of boxes out among the threads of a block: each does columns column, column
// + width, ... of some.
struct tile_rows {
    divider rows, planes;
    int n, width, column;

    __device__ tile_rows(const cuda_tiles &tiles, int n_pairs, int planes, int rows)
        : rows(rows), planes(planes), n(n_pairs * planes * rows), width(tiles.row_threads),
          column(threadIdx.x % tiles.row_threads)
    {
    }

    __device__ int first() const
    {
        return threadIdx.x / width;
    }

    __device__ int step() const
    {
        return blockDim.x / width;
    }

    __device__ tile_row tile_row_at(int i) const
    {
        const int h = rows.take_digit(&i), d = planes.take_digit(&i);
        return {i, d, h};
    }
};

// A row of samples of one tile, `count` of them from element `begin` on; element i's is at samples
// + first + step*i.
template <typename T> struct sample_row {
    T *samples;
    int64_t first, step;
    int begin, count;

    __device__ sample_row(const cuda_tiles &tiles, bool outputs, const tile_samples &at,
                          const tile_row &row, T *array)
        : samples(array), begin(at.begin[2]), count(0)
    {
        const cuda_tiles_side &plane = grid_side(tiles.axis[0], outputs),
                              &line = grid_side(tiles.axis[1], outputs);
        const cuda_tiles_side &column = grid_side(tiles.axis[2], outputs);
        const int64_t row_step = line.step * column.size,
                      plane_step = plane.step * line.size * column.size;
        step = column.step;
        first = at.first + plane_step * row.d + row_step * row.h;
        if (within_box(at.begin[0], at.count[0], row.d) &&
            within_box(at.begin[1], at.count[1], row.h))
            count = at.count[2];
    }

    // Whether there is a sample of element i.
    __device__ bool has_sample(int i) const
    {
        return within_box(begin, count, i);
    }

    // The samples of elements i, i + apart, ..; 0 where there is none. All are asked for before one
    // is waited for.
    template <int N, typename Sample> __device__ void read(int i, int apart, Sample (&ret)[N]) const
    {
        const int64_t to_next = step * apart;
        T *from = samples + (first + step * i);
#pragma unroll
        for (int k = 0; k < N; k++, i += apart, from += to_next)
            ret[k] = has_sample(i) ? widened(*from) : 0;
    }

    // The reverse.
    template <int N, typename Sum>
    __device__ void write(int i, int apart, const Sum (&given)[N]) const
    {
        const int64_t to_next = step * apart;
        T *to = samples + (first + step * i);
#pragma unroll
        for (int k = 0; k < N; k++, i += apart, to += to_next)
            if (has_sample(i)) narrow(to, given[k]);
    }
};

// An array in tiles: of the grid's outputs, or inputs.
template <typename S> struct tile_source {
    const S *samples;
    bool outputs;
};

// Fills pairs of tiles with samples, zeros elsewhere: the real parts with those of the first array
// at tiles 2*pair, the imaginary ones with those of the second at 2*pair + 1. Ends before a
// barrier.
template <typename S, typename T>
inline __device__ void fill_tiles(const cuda_tiles &tiles, complex_of<T> *z, const tile_samples *at,
                                  const tile_source<S> (&from)[2], int n_pairs)
{
    const tile_rows rows(tiles, n_pairs, tiles.dft[0].n, tiles.dft[1].n);
    const int n = tiles.dft[2].n;
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.tile_row_at(r);
        const sample_row<const S> a(tiles, from[0].outputs, at[2 * row.pair], row, from[0].samples);
        const sample_row<const S> b(tiles, from[1].outputs, at[2 * row.pair + 1], row,
                                    from[1].samples);
        complex_of<T> *const to = z + row.offset(tiles);
        for (int i = rows.column; i < n; i += CUDA_TILES_COLUMNS * rows.width) {
            T re[CUDA_TILES_COLUMNS], im[CUDA_TILES_COLUMNS];
            a.read(i, rows.width, re);
            b.read(i, rows.width, im);
#pragma unroll
            for (int k = 0; k < CUDA_TILES_COLUMNS; k++)
                if (i + k * rows.width < n) to[i + k * rows.width] = {re[k], im[k]};
        }
    }
}

// Where the elements of a channel's tiles go.
template <typename S, typename T> struct tile_output {
    S *samples;
    T scale, bias;
};

// Stores elements i, i + apart, .. of a row of a pair of tiles. A NaN stays one.
template <int N, typename S, typename T>
inline __device__ void store_pairs(const sample_row<S> (&to)[2], int i, int apart,
                                   const complex_of<T> (&sums)[N], const tile_output<S, T> &output,
                                   bool relu)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        T outputs[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            outputs[k] = (half ? sums[k].im : sums[k].re) * output.scale + output.bias;
            if (relu && outputs[k] < 0) outputs[k] = 0;
        }
        to[half].write(i, apart, outputs);
    }
}

// Stores the outputs of pairs of tiles with scale, bias and activation.
template <typename S, typename T>
inline __device__ void drain_tiles(const cuda_tiles &tiles, const complex_of<T> *z,
                                   const tile_samples *at, const tile_output<S, T> &output,
                                   int n_pairs)
{
    const tile_box box = box_of(tiles, true);
    const tile_rows rows(tiles, n_pairs, box.planes, box.rows);
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.tile_row_at(r);
        const complex_of<T> *const from = z + row.offset(tiles);
        const sample_row<S> to[2] = {{tiles, true, at[2 * row.pair], row, output.samples},
                                     {tiles, true, at[2 * row.pair + 1], row, output.samples}};
        for (int i = rows.column; i < box.columns; i += CUDA_TILES_COLUMNS * rows.width) {
            complex_of<T> sums[CUDA_TILES_COLUMNS];
#pragma unroll
            for (int k = 0; k < CUDA_TILES_COLUMNS; k++)
                sums[k] = i + k * rows.width < box.columns ? from[i + k * rows.width]
                                                           : complex_of<T>{0, 0};
            store_pairs(to, i, rows.width, sums, output, tiles.relu);
        }
    }
}

// 1/(2^twice n) for n elements of all axes: `twice` of the transforms in a product were twice as
// large as they should be.
template <typename T> inline __device__ T scale_of(const cuda_tiles &tiles, int twice)
{
    return (T)1 / ((T)tiles.dft[0].n * (T)tiles.dft[1].n * (T)tiles.dft[2].n * (T)(1 << twice));
}

#endif
