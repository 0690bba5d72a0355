// SPDX-License-Identifier: MIT
// Where the samples of tiles are (../tile_grid.h), as seen by a thread block that holds pairs of
// tiles in shared memory: the real parts of elements are one tile, the imaginary parts its
// neighbour.
#ifndef PARTITA_CUDA_TILE_PLACES_CUH
#define PARTITA_CUDA_TILE_PLACES_CUH

#include "cuda/kernels/launch.cuh"
#include "fft.cuh"

// One tile of one channel. Its elements that are samples make a box; there are none if there is no
// such tile.
struct tile_place {
    int64_t first;          // index of the sample of element (0, 0, 0), which may lie outside
    int begin[3], count[3]; // of the box: elements along each axis from `begin` on
};

inline __device__ const cuda_tiles_side &side_of(const cuda_tiles_axis &axis, bool outputs)
{
    return outputs ? axis.out : axis.in;
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
    return {lesser(axis[0].extent, dft[0].n), lesser(axis[1].extent, dft[1].n),
            lesser(axis[2].extent, dft[2].n)};
}

// Of `most` elements from sample `at` on, those whose samples exist.
inline __device__ void bound(const cuda_tiles_side &side, int64_t at, int most, int *ret_begin,
                             int *ret_count)
{
    const int64_t before = at < 0 ? -at : 0, until = at < side.size ? side.size - at : 0;
    const int begin = lesser(side.step == 1 ? before : ceiling(before, side.step), most);
    *ret_begin = begin;
    *ret_count = lesser(side.step == 1 ? until : ceiling(until, side.step), most) - begin;
}

// Channel `channel` of a group, phases included, at a position.
inline __device__ tile_place place_tile(const cuda_tiles &tiles, bool outputs, int64_t group,
                                        int64_t channel, int64_t position)
{
    tile_place place = {};
    if (position >= tiles.positions) return place;
    const bool phased = outputs == tiles.phases_out;
    const int64_t channels = (outputs ? tiles.out : tiles.in) / (phased ? tiles.phases : 1);
    int64_t phase = phased ? take(&channel, tiles.phases) : 0, tile = take(&position, tiles.tiles);
    int64_t image = take(&position, tiles.images), plane = 1;
    const tile_box box = box_of(tiles, outputs);
    const int most[3] = {box.planes, box.rows, box.columns};
#pragma unroll
    for (int a = 2; a >= 0; a--) {
        const cuda_tiles_axis &axis = tiles.axis[a];
        const cuda_tiles_side &side = side_of(axis, outputs);
        const int64_t q =
            axis.first + axis.tile * take(&tile, axis.tiles) + (outputs ? 0 : axis.lead);
        const int64_t at = side.base + side.image * take(&image, axis.images) +
                           side.phase * take(&phase, axis.phases) + side.step * q;
        bound(side, at, most[a], &place.begin[a], &place.count[a]);
        place.first += at * plane;
        plane *= side.size;
    }
    place.first += ((position * tiles.groups + group) * channels + channel) * plane;
    return place;
}

inline __device__ tile_box box_of_taps(const cuda_tiles &tiles)
{
    return {(int)tiles.axis[0].taps, (int)tiles.axis[1].taps, (int)tiles.axis[2].taps};
}

// Whether i is one of `count` numbers from `begin` on.
inline __device__ bool has(int begin, int count, int i)
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

    __device__ tile_row at(int i) const
    {
        const int h = rows.take(&i), d = planes.take(&i);
        return {i, d, h};
    }
};

// A row of samples of one tile, `count` of them from element `begin` on; element i's is at samples
// + first + step*i.
template <typename T> struct sample_row {
    T *samples;
    int64_t first, step;
    int begin, count;

    __device__ sample_row(const cuda_tiles &tiles, bool outputs, const tile_place &place,
                          const tile_row &row, T *array)
        : samples(array), begin(place.begin[2]), count(0)
    {
        const cuda_tiles_side &plane = side_of(tiles.axis[0], outputs),
                              &line = side_of(tiles.axis[1], outputs);
        const cuda_tiles_side &column = side_of(tiles.axis[2], outputs);
        const int64_t row_step = line.step * column.size,
                      plane_step = plane.step * line.size * column.size;
        step = column.step;
        first = place.first + plane_step * row.d + row_step * row.h;
        if (has(place.begin[0], place.count[0], row.d) &&
            has(place.begin[1], place.count[1], row.h))
            count = place.count[2];
    }

    // Whether there is a sample of element i.
    __device__ bool holds(int i) const
    {
        return has(begin, count, i);
    }

    // The samples of elements i, i + apart, ..; 0 where there is none. All are asked for before one
    // is waited for.
    template <int N, typename Sample> __device__ void read(int i, int apart, Sample (&ret)[N]) const
    {
        const int64_t to_next = step * apart;
        T *from = samples + (first + step * i);
#pragma unroll
        for (int k = 0; k < N; k++, i += apart, from += to_next) ret[k] = holds(i) ? *from : 0;
    }

    // The reverse.
    template <int N> __device__ void write(int i, int apart, const T (&given)[N]) const
    {
        const int64_t to_next = step * apart;
        T *to = samples + (first + step * i);
#pragma unroll
        for (int k = 0; k < N; k++, i += apart, to += to_next)
            if (holds(i)) *to = given[k];
    }
};

// An array in tiles: of the grid's outputs, or inputs.
template <typename T> struct tile_source {
    const T *samples;
    bool outputs;
};

// Fills pairs of tiles with samples, zeros elsewhere: the real parts with those of the first array,
// the imaginary ones with those of the second, at the places 2*pair and 2*pair + 1. Ends before a
// barrier.
template <typename T>
inline __device__ void fill_tiles(const cuda_tiles &tiles, complex_of<T> *z,
                                  const tile_place *place, const tile_source<T> (&from)[2],
                                  int n_pairs)
{
    const tile_rows rows(tiles, n_pairs, tiles.dft[0].n, tiles.dft[1].n);
    const int n = tiles.dft[2].n;
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        const sample_row<const T> a(tiles, from[0].outputs, place[2 * row.pair], row,
                                    from[0].samples);
        const sample_row<const T> b(tiles, from[1].outputs, place[2 * row.pair + 1], row,
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

// Stores elements i, i + apart, .. of a row of a pair of tiles, `scale` times, with bias and
// activation. A NaN stays one.
template <int N, typename T>
inline __device__ void store_pairs(const sample_row<T> (&to)[2], int i, int apart,
                                   const complex_of<T> (&sums)[N], T scale, T bias, bool relu)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        T outputs[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            outputs[k] = (half ? sums[k].im : sums[k].re) * scale + bias;
            if (relu && outputs[k] < 0) outputs[k] = 0;
        }
        to[half].write(i, apart, outputs);
    }
}

// Stores the outputs of pairs of tiles, `scale` times, with the channel's bias and activation.
template <typename T>
inline __device__ void drain_tiles(const cuda_tiles &tiles, const complex_of<T> *z,
                                   const tile_place *place, T *samples, int n_pairs, T scale,
                                   T bias, bool relu)
{
    const tile_box box = box_of(tiles, true);
    const tile_rows rows(tiles, n_pairs, box.planes, box.rows);
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        const complex_of<T> *const from = z + row.offset(tiles);
        const sample_row<T> to[2] = {{tiles, true, place[2 * row.pair], row, samples},
                                     {tiles, true, place[2 * row.pair + 1], row, samples}};
        for (int i = rows.column; i < box.columns; i += CUDA_TILES_COLUMNS * rows.width) {
            complex_of<T> sums[CUDA_TILES_COLUMNS];
#pragma unroll
            for (int k = 0; k < CUDA_TILES_COLUMNS; k++)
                sums[k] = i + k * rows.width < box.columns ? from[i + k * rows.width]
                                                           : complex_of<T>{0, 0};
            store_pairs(to, i, rows.width, sums, scale, bias, relu);
        }
    }
}

// Index into the caller's taps of tap (d, h, i) of a cell: input channel c and output channel k of
// a group, phases included; below 0: there is none, it counts as 0.
inline __device__ int64_t tap_of(const cuda_tiles &tiles, int64_t group, int64_t c, int64_t k,
                                 int d, int h, int i)
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

// 1/(2^twice n) for n elements of all axes: `twice` of the transforms in a product were twice what
// they should be.
template <typename T> inline __device__ T scale_of(const cuda_tiles &tiles, int twice)
{
    return (T)1 / ((T)tiles.dft[0].n * (T)tiles.dft[1].n * (T)tiles.dft[2].n * (T)(1 << twice));
}

#endif
