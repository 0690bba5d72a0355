// SPDX-License-Identifier: MIT
// Spectra of pairs of tiles between shared memory and the device's, where they begin with the bin (tiles_kernels.h).
#ifndef PARTITA_CUDA_TILE_SPECTRA_CUH
#define PARTITA_CUDA_TILE_SPECTRA_CUH

#include "tile_places.cuh"

// Where spectra lie, in elements: that of the first tile, from one tile to the next, from one bin to the next, and of
// Gauss's products from one of the three forms to the next.
struct spectra_place {
    int64_t at, tile, bin, form;
};

// Line `line` of a group, from `column` on, of spectra [group][form][bin][lines][pitch].
inline __device__ spectra_place place_spectra(const cuda_tiles &tiles, int64_t group, int64_t lines, int64_t pitch,
                                              int64_t line, int64_t column)
{
    const int64_t bin = lines * pitch, all = bin * tiles.bins;
    return {group * all * (tiles.gauss ? 3 : 1) + line * pitch + column, 1, bin, all};
}

// One number; of (a + ib)(c + id) by Gauss: c(a + b), a(d - c), b(c + d), c + id being the right factor.
template <typename T> inline __device__ void put(T *to, int64_t form, complex_of<T> a, bool gauss, bool right)
{
    if (!gauss) {
        *(complex_of<T> *)to = a;
        return;
    }
    to[0] = right ? a.re : a.re + a.im;
    to[form] = right ? a.im - a.re : a.re;
    to[2 * form] = right ? a.re + a.im : a.im;
}

template <typename T> inline __device__ complex_of<T> get(const T *from, int64_t form, bool gauss)
{
    if (!gauss) return *(const complex_of<T> *)from;
    return {from[0] - from[2 * form], from[0] + from[form]};
}

// The transforms of two tiles of real samples at one bin: twice both.
template <typename T> struct bin_of_pair {
    complex_of<T> a, b;

    // From that of a + ib at the bin's frequency and its negative.
    __device__ bin_of_pair(complex_of<T> f, complex_of<T> g) : a{f.re + g.re, f.im - g.im}, b{f.im + g.im, g.re - f.re}
    {
    }
};

// Writes a bin of a pair, of which `n` tiles there are, the first at `at`; conjugated if they are the right factor of a
// product.
template <typename T>
inline __device__ void put_pair(const cuda_tiles &tiles, T *spectra, const spectra_place &at, int bin,
                                bin_of_pair<T> of, int64_t n, bool right)
{
    const int reals = tiles.gauss ? 1 : 2;
    if (right) of.a.im = -of.a.im, of.b.im = -of.b.im;
    T *to = spectra + (at.at + bin * at.bin) * reals;
    if (n > 0) put(to, at.form, of.a, tiles.gauss, right);
    if (n > 1) put(to + at.tile * reals, at.form, of.b, tiles.gauss, right);
}

// The reverse.
template <typename T>
inline __device__ void get_pair(const cuda_tiles &tiles, const T *spectra, const spectra_place &at, int bin, int64_t n,
                                complex_of<T> *ret_a, complex_of<T> *ret_b)
{
    const int reals = tiles.gauss ? 1 : 2;
    const T *from = spectra + (at.at + bin * at.bin) * reals;
    *ret_a = *ret_b = {0, 0};
    if (n > 0) *ret_a = get(from, at.form, tiles.gauss);
    if (n > 1) *ret_b = get(from + at.tile * reals, at.form, tiles.gauss);
}

// The place of pair p of a run of them.
inline __device__ spectra_place place_pair(const spectra_place &at, int p)
{
    return {at.at + 2 * p * at.tile, at.tile, at.bin, at.form};
}

// Writes those of all pairs of a block, of which `n` tiles there are.
template <typename T>
inline __device__ void split_tiles(const cuda_tiles &tiles, const complex_of<T> *z, T *spectra, const spectra_place &at,
                                   int64_t n, bool right)
{
    const divider pairs(tiles.pairs);
    for (int i = threadIdx.x; i < tiles.bins * tiles.pairs; i += blockDim.x) {
        int bin = i;
        const int p = pairs.take(&bin);
        const uint32_t *pair = tiles.tables.pair + 2 * bin;
        const bin_of_pair<T> of(z[p * tiles.elements + pair[0]], z[p * tiles.elements + pair[1]]);
        put_pair(tiles, spectra, place_pair(at, p), bin, of, n - 2 * p, right);
    }
}

// The reverse: a + ib.
template <typename T>
inline __device__ void join_tiles(const cuda_tiles &tiles, complex_of<T> *z, const T *spectra, const spectra_place &at,
                                  int64_t n)
{
    const divider pairs(tiles.pairs);
    for (int i = threadIdx.x; i < tiles.bins * tiles.pairs; i += blockDim.x) {
        int bin = i;
        const int p = pairs.take(&bin);
        const uint32_t *pair = tiles.tables.pair + 2 * bin;
        complex_of<T> a, b;
        get_pair(tiles, spectra, place_pair(at, p), bin, n - 2 * p, &a, &b);
        z[p * tiles.elements + pair[1]] = {a.re + b.im, b.re - a.im};
        z[p * tiles.elements + pair[0]] = {a.re - b.im, a.im + b.re};
    }
}

template <typename T> inline __device__ complex_of<T> *tiles_of_block()
{
    return (complex_of<T> *)shared_memory;
}

// The places of a block's tiles, behind `buffers` pairs of tiles.
template <typename T> inline __device__ tile_place *places_of_block(const cuda_tiles &tiles, int buffers)
{
    return (tile_place *)(tiles_of_block<T>() + buffers * tiles.elements);
}

// Places of `n` neighbouring positions of one channel. Ends before a barrier.
inline __device__ void place_tiles(const cuda_tiles &tiles, tile_place *place, bool outputs, int64_t group,
                                   int64_t channel, int64_t position, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        place[i] = place_tile(tiles, outputs, group, channel, position + i);
}

// Launches a kernel whose blocks hold so many pairs of tiles.
template <typename... Parameters, typename... Arguments>
inline cudaError_t queue_tiles(void (*kernel)(Parameters...), const cuda_tiles *tiles, int pairs, int64_t blocks,
                               cudaStream_t stream, Arguments... arguments)
{
    return queue(kernel, blocks, dim3(tiles->threads), cuda_tiles_shared_bytes(tiles, pairs), stream, *tiles,
                 arguments...);
}

#endif
