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

// Sample of element (d, h, i) of a tile, from the beginning of the array; below 0: there is none.
inline __device__ int64_t sample_of(const cuda_tiles &tiles, bool outputs, const tile_place &place, int d, int h, int i)
{
    const cuda_tiles_side &plane = side_of(tiles.axis[0], outputs), &row = side_of(tiles.axis[1], outputs);
    const cuda_tiles_side &column = side_of(tiles.axis[2], outputs);
    const int64_t at_d = place.at[0] + plane.step * d, at_h = place.at[1] + row.step * h;
    const int64_t at_i = place.at[2] + column.step * i;
    const bool exists =
        place.plane >= 0 && inside(at_d, plane.size) && inside(at_h, row.size) && inside(at_i, column.size);
    return exists ? place.plane + (at_d * row.size + at_h) * column.size + at_i : -1;
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
    int n[3];
    for (int a = 0; a < 3; a++) n[a] = lesser(outputs ? tiles.axis[a].tile : tiles.axis[a].extent, tiles.dft[a].n);
    return {n[0], n[1], n[2]};
}

inline __device__ tile_box box_of_taps(const cuda_tiles &tiles)
{
    return {(int)tiles.axis[0].taps, (int)tiles.axis[1].taps, (int)tiles.axis[2].taps};
}

// Takes element i of a run of pairs of boxes apart.
struct tile_element {
    int pair, d, h, i;

    __device__ tile_element(const tile_box &box, int index)
    {
        i = index % box.columns;
        index /= box.columns;
        h = index % box.rows;
        index /= box.rows;
        d = index % box.planes;
        pair = index / box.planes;
    }

    __device__ int offset(const cuda_tiles &tiles) const
    {
        return pair * tiles.elements + d * tiles.dft[0].step + h * tiles.dft[1].step + i;
    }
};

// Fills pairs of tiles with samples: n_pairs of them, the places of whose tiles are `place`; zeros elsewhere. Ends
// before a barrier.
template <typename T>
inline __device__ void fill_tiles(const cuda_tiles &tiles, bool outputs, complex_of<T> *z, const tile_place *place,
                                  const T *samples, int n_pairs)
{
    const tile_box box = box_of(tiles, outputs);
    const int n = n_pairs * box.planes * box.rows * box.columns;
    for (int i = threadIdx.x; i < n_pairs * tiles.elements; i += blockDim.x) z[i] = {0, 0};
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const tile_element e(box, i);
        const int64_t a = sample_of(tiles, outputs, place[2 * e.pair], e.d, e.h, e.i);
        const int64_t b = sample_of(tiles, outputs, place[2 * e.pair + 1], e.d, e.h, e.i);
        z[e.offset(tiles)] = {a < 0 ? 0 : samples[a], b < 0 ? 0 : samples[b]};
    }
}

// Stores the outputs of pairs of tiles, `scale` times, with the channel's bias and activation. A NaN stays one.
template <typename T>
inline __device__ void drain_tiles(const cuda_tiles &tiles, const complex_of<T> *z, const tile_place *place, T *samples,
                                   int n_pairs, T scale, T bias, bool relu)
{
    const tile_box box = box_of(tiles, true);
    const int n = n_pairs * box.planes * box.rows * box.columns;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const tile_element e(box, i);
        const complex_of<T> sums = z[e.offset(tiles)];
        for (int half = 0; half < 2; half++) {
            const int64_t at = sample_of(tiles, true, place[2 * e.pair + half], e.d, e.h, e.i);
            T sum = (half ? sums.im : sums.re) * scale + bias;
            if (relu && sum < 0) sum = 0;
            if (at >= 0) samples[at] = sum;
        }
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
