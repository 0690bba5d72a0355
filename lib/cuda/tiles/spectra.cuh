// SPDX-License-Identifier: MIT
// Spectra of pairs of tiles between shared memory and the device's, where they begin with the bin
// (kernels.h).
#ifndef PARTITA_CUDA_TILE_SPECTRA_CUH
#define PARTITA_CUDA_TILE_SPECTRA_CUH

#include "samples.cuh"

// Where spectra lie, in elements: that of the first tile, from one tile to the next, from one bin
// to the next, and of Gauss's products from one of the three forms to the next.
struct spectra_index {
    int64_t first, tile, bin, form;
};

// Line `line` of a group, from `column` on, of spectra [group][form][bin][lines][pitch].
inline __device__ spectra_index index_spectra(const cuda_tiles &tiles, int64_t group, int64_t lines,
                                              int64_t pitch, int64_t line, int64_t column)
{
    const int64_t bin = lines * pitch, all = bin * tiles.bins;
    return {group * all * (tiles.gauss ? 3 : 1) + line * pitch + column, 1, bin, all};
}

// Two numbers side by side, as two tiles of a pair lie.
template <typename E> struct __align__(sizeof(E) > 4 ? 16 : 8) neighbours
{
    E a, b;
};

// Of (a + ib)(c + id) by Gauss: c(a + b), a(d - c), b(c + d), c + id being the right factor.
template <typename T> struct gauss_forms {
    T both[3];

    __device__ gauss_forms(complex_of<T> a, bool right)
        : both{right ? a.re : a.re + a.im, right ? a.im - a.re : a.re, right ? a.re + a.im : a.im}
    {
    }
};

// The transforms of two tiles of real samples at one bin: twice both.
template <typename T> struct bin_of_pair {
    complex_of<T> a, b;

    // From that of a + ib at the bin's frequency and its negative.
    __device__ bin_of_pair(complex_of<T> f, complex_of<T> g)
        : a{f.re + g.re, f.im - g.im}, b{f.im + g.im, g.re - f.re}
    {
    }
};

// The elements of a bin's frequency and of its negative.
struct __align__(8) bin_elements
{
    uint32_t f, g;
};

inline __device__ bin_elements elements_of(const cuda_tiles &tiles, int bin)
{
    return ((const bin_elements *)tiles.tables.pair)[bin];
}

// Writes the spectra of all pairs of a block, of which `n` tiles there are; conjugated if they are
// the right factor of a product. Lines have room for the second of a pair in any case, and are
// aligned to pairs of numbers.
template <typename T>
inline __device__ void split_tiles(const cuda_tiles &tiles, const complex_of<T> *z, T *spectra,
                                   const spectra_index &at, int64_t n, bool right)
{
    const divider pairs(tiles.pairs);
#pragma unroll 2 // more loads in flight
    for (int i = threadIdx.x; i < tiles.bins * tiles.pairs; i += blockDim.x) {
        int bin = i;
        const int p = pairs.take_digit(&bin);
        const bin_elements pair = elements_of(tiles, bin);
        bin_of_pair<T> both(z[p * tiles.elements + pair.f], z[p * tiles.elements + pair.g]);
        const int64_t first = at.first + 2 * p * at.tile + bin * at.bin, left = n - 2 * p;
        complex_of<T> *const to = (complex_of<T> *)spectra + first;
        if (left <= 0) continue;
        if (right) both.a.im = -both.a.im, both.b.im = -both.b.im;
        if (tiles.gauss) {
            const gauss_forms<T> a(both.a, right), b(both.b, right);
#pragma unroll
            for (int k = 0; k < 3; k++)
                *(neighbours<T> *)(spectra + first + k * at.form) = {a.both[k], b.both[k]};
        } else if (!tiles.fused) *(neighbours<complex_of<T>> *)to = {both.a, both.b};
        else {
            to[0] = both.a;
            if (left > 1) to[at.tile] = both.b;
        }
    }
}

// The reverse: a + ib. The place of a second tile that does not exist holds no number.
template <typename T>
inline __device__ void join_tiles(const cuda_tiles &tiles, complex_of<T> *z, const T *spectra,
                                  const spectra_index &at, int64_t n)
{
    const divider pairs(tiles.pairs);
#pragma unroll 2 // more loads in flight
    for (int i = threadIdx.x; i < tiles.bins * tiles.pairs; i += blockDim.x) {
        int bin = i;
        const int p = pairs.take_digit(&bin);
        const bin_elements pair = elements_of(tiles, bin);
        const int64_t first = at.first + 2 * p * at.tile + bin * at.bin, left = n - 2 * p;
        const complex_of<T> *const from = (const complex_of<T> *)spectra + first;
        neighbours<complex_of<T>> both = {};
        if (left > 0 && tiles.gauss) {
            neighbours<T> form[3];
#pragma unroll
            for (int k = 0; k < 3; k++)
                form[k] = *(const neighbours<T> *)(spectra + first + k * at.form);
            both = {{form[0].a - form[2].a, form[0].a + form[1].a},
                    {form[0].b - form[2].b, form[0].b + form[1].b}};
        } else if (left > 0 && !tiles.fused) both = *(const neighbours<complex_of<T>> *)from;
        else if (left > 0) {
            both.a = from[0];
            if (left > 1) both.b = from[at.tile];
        }
        const complex_of<T> a = both.a, b = left > 1 ? both.b : complex_of<T>{0, 0};
        z[p * tiles.elements + pair.g] = {a.re + b.im, b.re - a.im};
        z[p * tiles.elements + pair.f] = {a.re - b.im, a.im + b.re};
    }
}

template <typename T> inline __device__ complex_of<T> *tiles_of_block()
{
    return (complex_of<T> *)shared_memory;
}

// Where the samples of a block's tiles are, behind `buffers` pairs of tiles.
template <typename T>
inline __device__ tile_samples *samples_of_block(const cuda_tiles &tiles, int buffers)
{
    return (tile_samples *)(tiles_of_block<T>() + buffers * tiles.elements);
}

// Queues a kernel whose blocks hold so many pairs of tiles.
template <typename Kernel, typename... Arguments>
inline cudaError_t queue_tiles(Kernel *kernel, const cuda_tiles *tiles, int pairs, int64_t blocks,
                               Arguments... arguments)
{
    return queue(kernel, blocks, dim3(tiles->threads), cuda_tiles_shared_bytes(tiles, pairs),
                 *tiles, arguments...);
}

#endif
