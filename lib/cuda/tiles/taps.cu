// SPDX-License-Identifier: MIT
// Taps into spectra and the gradient's spectra into taps: a thread block holds pairs of
// neighbouring output channels for one input channel.
#include "cuda/kernels/tap_map.cuh"
#include "spectra.cuh"

namespace {
// A block's channels; blocks are [group][input channel][2*pairs output channels].
struct tap_channels {
    int64_t group, in, first;

    explicit __device__ tap_channels(const cuda_tiles &tiles)
    {
        const int width = 2 * tiles.pairs;
        int64_t block = blockIdx.x;
        first = take(&block, ceiling(tiles.out, width)) * width;
        in = take(&block, tiles.in);
        group = block;
    }

    // Spectra of taps are in the order of the products; those of a fused kernel
    // [group][in][out][bin].
    __device__ spectra_index spectra_at(const cuda_tiles &tiles) const
    {
        if (tiles.fused)
            return {((group * tiles.in + in) * tiles.out + first) * tiles.bins, tiles.bins, 1, 0};
        return index_spectra(tiles, group, tiles.in, tiles.out_pitch, in, first);
    }

    // Index of tap (row, i) of a tile, real or imaginary, below 0: there is none.
    __device__ int64_t tap(const cuda_tiles &tiles, int64_t first_group, const tile_row &row,
                           int half, int i) const
    {
        int64_t c = in, k = first + 2 * row.pair + half;
        if (k >= tiles.out) return -1;
        const int64_t branch = take(tiles.branches_out ? &k : &c, tiles.branches);
        return tap_path(tiles.taps, first_group + group, c, k, branch)
            .index(tiles.taps, row.d, row.h, i);
    }
};

template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    load_taps_kernel(const __grid_constant__ cuda_tiles tiles, int64_t first_group, T *spectra,
                     const S *taps)
{
    const tap_channels channels(tiles);
    const tile_box box = box_of_taps(tiles);
    const tile_rows rows(tiles, tiles.pairs, tiles.dft[0].n, tiles.dft[1].n);
    complex_of<T> *z = tiles_of_block<T>();
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.tile_row_at(r);
        const bool any = row.d < box.planes && row.h < box.rows;
        for (int i = rows.column; i < tiles.dft[2].n; i += rows.width) {
            T tap[2] = {};
            for (int half = 0; half < 2 && any && i < box.columns; half++) {
                const int64_t at = channels.tap(tiles, first_group, row, half, i);
                if (at >= 0) tap[half] = widened(taps[at]);
            }
            z[row.offset(tiles) + i] = {tap[0], tap[1]};
        }
    }
    cuda_tile_transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    split_tiles(tiles, z, spectra, channels.spectra_at(tiles), tiles.out - channels.first, true);
}

template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    store_taps_kernel(const __grid_constant__ cuda_tiles tiles, int64_t first_group, S *taps,
                      const T *spectra)
{
    const tap_channels channels(tiles);
    const tile_box box = box_of_taps(tiles);
    const tile_rows rows(tiles, tiles.pairs, box.planes, box.rows);
    const T scale = scale_of<T>(tiles, 2);
    complex_of<T> *z = tiles_of_block<T>();
    join_tiles(tiles, z, spectra, channels.spectra_at(tiles), tiles.out - channels.first);
    cuda_tile_transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.tile_row_at(r);
        for (int i = rows.column; i < box.columns; i += rows.width) {
            const complex_of<T> sums = z[row.offset(tiles) + i];
            for (int half = 0; half < 2; half++) {
                const int64_t to = channels.tap(tiles, first_group, row, half, i);
                if (to >= 0) narrow(&taps[to], (half ? sums.im : sums.re) * scale);
            }
        }
    }
}
} // namespace

size_t cuda_tiles_shared_bytes(const cuda_tiles *tiles, int pairs)
{
    const size_t element = tiles->f64 ? sizeof(complex_of<double>) : sizeof(complex_of<float>);
    return (size_t)pairs * (size_t)tiles->elements * element +
           2 * (size_t)tiles->pairs * sizeof(tile_samples);
}

cudaError_t cuda_tiles_queue_taps(const cuda_tiles *tiles, const cuda_tiles_batch *batch,
                                  cuda_layer_move move, void *to, const void *from)
{
    const int64_t blocks = batch->groups * tiles->in * ceiling(tiles->out, 2 * tiles->pairs);
    return with_storage(tiles->storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        if (move == CUDA_PACK)
            return queue_tiles(load_taps_kernel<S, T>, tiles, tiles->pairs, blocks,
                               batch->first_group, to, from);
        return queue_tiles(store_taps_kernel<S, T>, tiles, tiles->pairs, blocks, batch->first_group,
                           to, from);
    });
}
