// SPDX-License-Identifier: MIT
// Where the samples of tiles are (../tile_grid.h), as seen by a thread block that holds pairs of tiles in shared
// memory: the real parts of elements are one tile, the imaginary parts its neighbour.
#ifndef PARTITA_CUDA_TILE_PLACES_CUH
#define PARTITA_CUDA_TILE_PLACES_CUH

#include "grid.cuh"
#include "tile_fft.cuh"

// One tile of one channel.
struct tile_place {
    int64_t plane; // first sample of its channel; below 0: there is no such tile
    int64_t at[3]; // sample of element 0 along each axis; may lie outside
};

inline __device__ const cuda_tiles_side &side_of(const cuda_tiles_axis &axis, bool outputs)
{
    return outputs ? axis.out : axis.in;
}

// Channel `channel` of a group, phases included, at a position.
inline __device__ tile_place place_tile(const cuda_tiles &tiles, bool outputs, int64_t group, int64_t channel,
                                        int64_t position)
{
    tile_place place = {-1, {}};
    if (position >= tiles.positions) return place;
    const bool phased = outputs == tiles.phases_out;
    const int64_t channels = (outputs ? tiles.out : tiles.in) / (phased ? tiles.phases : 1);
    int64_t phase = phased ? take(&channel, tiles.phases) : 0, tile = take(&position, tiles.tiles);
    int64_t image = take(&position, tiles.images), plane = 1;
#pragma unroll
    for (int a = 2; a >= 0; a--) {
        const cuda_tiles_axis &axis = tiles.axis[a];
        const cuda_tiles_side &side = side_of(axis, outputs);
        const int64_t q = axis.first + axis.tile * take(&tile, axis.tiles) + (outputs ? 0 : axis.lead);
        place.at[a] =
            side.base + side.image * take(&image, axis.images) + side.phase * take(&phase, axis.phases) + side.step * q;
        plane *= side.size;
    }
    place.plane = ((position * tiles.groups + group) * channels + channel) * plane;
    return place;
}

// A box of elements of a tile: the first ones along each axis.
struct tile_box {
    int planes, rows, columns;
};

inline __device__ int lesser(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

// The elements of a tile that hold its inputs, or its outputs.
inline __device__ tile_box box_of(const cuda_tiles &tiles, bool outputs)
{
    const cuda_tiles_axis *axis = tiles.axis;
    const cuda_dft *dft = tiles.dft;
    if (outputs) return {(int)axis[0].tile, (int)axis[1].tile, (int)axis[2].tile};
    return {lesser(axis[0].extent, dft[0].n), lesser(axis[1].extent, dft[1].n), lesser(axis[2].extent, dft[2].n)};
}

inline __device__ tile_box box_of_taps(const cuda_tiles &tiles)
{
    return {(int)tiles.axis[0].taps, (int)tiles.axis[1].taps, (int)tiles.axis[2].taps};
}

// A row of elements of a pair of tiles.
struct tile_row {
    int pair, d, h;

    __device__ int offset(const cuda_tiles &tiles) const
    {
        return pair * tiles.elements + d * tiles.dft[0].step + h * tiles.dft[1].step;
    }
};

// Shares rows of pairs of boxes out among the threads of a block: each does columns column, column + width, ... of
// some.
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

    __device__ tile_row at(int i) const
    {
        const int h = rows.take(&i), d = planes.take(&i);
        return {i, d, h};
    }
};

// A row of samples of one tile: sample i of it, for first <= i < end, is at `samples` + step*i; there may be none.
template <typename T> struct sample_row {
    T *samples;
    int64_t at, step, size;

    __device__ sample_row(const cuda_tiles &tiles, bool outputs, const tile_place &place, const tile_row &row, T *array)
        : samples(nullptr)
    {
        const cuda_tiles_side &plane = side_of(tiles.axis[0], outputs), &line = side_of(tiles.axis[1], outputs);
        const cuda_tiles_side &column = side_of(tiles.axis[2], outputs);
        const tile_box box = box_of(tiles, outputs);
        const int64_t d = place.at[0] + plane.step * row.d, h = place.at[1] + line.step * row.h;
        at = place.at[2];
        step = column.step;
        size = column.size;
        if (place.plane >= 0 && row.d < box.planes && row.h < box.rows && inside(d, plane.size) && inside(h, line.size))
            samples = array + place.plane + (d * line.size + h) * column.size;
    }

    // NULL: there is no such sample.
    __device__ T *of(int i) const
    {
        const int64_t column = at + step * i;
        return samples && inside(column, size) ? samples + column : nullptr;
    }
};

// An array in tiles: of the grid's outputs, or inputs.
template <typename T> struct tile_source {
    const T *samples;
    bool outputs;
};

// Fills pairs of tiles with samples, zeros elsewhere: the real parts with those of the first array, the imaginary ones
// with those of the second, at the places 2*pair and 2*pair + 1. Ends before a barrier.
template <typename T>
inline __device__ void fill_tiles(const cuda_tiles &tiles, complex_of<T> *z, const tile_place *place,
                                  const tile_source<T> (&from)[2], int n_pairs)
{
    const tile_rows rows(tiles, n_pairs, tiles.dft[0].n, tiles.dft[1].n);
    const int columns[2] = {box_of(tiles, from[0].outputs).columns, box_of(tiles, from[1].outputs).columns};
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        const sample_row<const T> a(tiles, from[0].outputs, place[2 * row.pair], row, from[0].samples);
        const sample_row<const T> b(tiles, from[1].outputs, place[2 * row.pair + 1], row, from[1].samples);
        complex_of<T> *const to = z + row.offset(tiles);
        for (int i = rows.column; i < tiles.dft[2].n; i += rows.width) {
            const T *const re = i < columns[0] ? a.of(i) : nullptr, *const im = i < columns[1] ? b.of(i) : nullptr;
            to[i] = {re ? *re : 0, im ? *im : 0};
        }
    }
}

// Stores element i of a row of a pair of tiles, `scale` times, with bias and activation. A NaN stays one.
template <typename T>
inline __device__ void store_pair(const sample_row<T> (&to)[2], int i, complex_of<T> sums, T scale, T bias, bool relu)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        T *const at = to[half].of(i);
        T sum = (half ? sums.im : sums.re) * scale + bias;
        if (relu && sum < 0) sum = 0;
        if (at) *at = sum;
    }
}

// Stores the outputs of pairs of tiles, `scale` times, with the channel's bias and activation.
template <typename T>
inline __device__ void drain_tiles(const cuda_tiles &tiles, const complex_of<T> *z, const tile_place *place, T *samples,
                                   int n_pairs, T scale, T bias, bool relu)
{
    const tile_box box = box_of(tiles, true);
    const tile_rows rows(tiles, n_pairs, box.planes, box.rows);
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        const complex_of<T> *const from = z + row.offset(tiles);
        const sample_row<T> to[2] = {{tiles, true, place[2 * row.pair], row, samples},
                                     {tiles, true, place[2 * row.pair + 1], row, samples}};
        for (int i = rows.column; i < box.columns; i += rows.width) store_pair(to, i, from[i], scale, bias, relu);
    }
}

// Index into the caller's taps of tap (d, h, i) of a cell: input channel c and output channel k of a group, phases
// included; below 0: there is none, it counts as 0.
inline __device__ int64_t tap_of(const cuda_tiles &tiles, int64_t group, int64_t c, int64_t k, int d, int h, int i)
{
    const int64_t element[3] = {d, h, i};
    int64_t phase = take(tiles.phases_out ? &k : &c, tiles.phases), index = 0, taps = 1;
    const int64_t in = tiles.in / (tiles.phases_out ? 1 : tiles.phases);
    const int64_t out = tiles.out / (tiles.phases_out ? tiles.phases : 1);
#pragma unroll
    for (int a = 2; a >= 0; a--) {
        const cuda_tiles_axis &axis = tiles.axis[a];
        const int64_t nth = axis.reversed ? axis.taps - 1 - element[a] : element[a];
        const int64_t tap = take(&phase, axis.phases) + axis.period * nth;
        if (tap >= axis.kernel) return -1;
        index += taps * (tiles.flip ? axis.kernel - 1 - tap : tap);
        taps *= axis.kernel;
    }
    const int64_t cell = tiles.phases_out ? (group * in + c) * out + k : (group * out + k) * in + c;
    return cell * taps + index;
}

// 1/(2^twice n) for n elements of all axes: `twice` of the transforms in a product were twice what they should be.
template <typename T> inline __device__ T scale_of(const cuda_tiles &tiles, int twice)
{
    return (T)1 / ((T)tiles.dft[0].n * (T)tiles.dft[1].n * (T)tiles.dft[2].n * (T)(1 << twice));
}

#endif
