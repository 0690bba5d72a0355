// SPDX-License-Identifier: MIT
// Tiles of samples into spectra, and spectra into tiles of samples: a thread block holds pairs of
// neighbouring positions of one channel, each pair the real and the imaginary part of one
// transform, and reads or writes 2*pairs of them side by side at every bin.
#include "spectra.cuh"

namespace {
// Blocks are [group][channel][2*pairs positions].
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    load_tiles_kernel(const __grid_constant__ cuda_tiles tiles,
                      const __grid_constant__ cuda_tiles_batch batch, bool outputs, T *spectra,
                      const S *samples)
{
    const int64_t channels = outputs ? tiles.out : tiles.in;
    const int width = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, batch.block / width) * width,
                  channel = take(&block, channels), group = block;
    complex_of<T> *z = tiles_of_block<T>();
    tile_samples *at = samples_of_block<T>(tiles, tiles.pairs);
    locate_tiles(tiles, at, {outputs, batch.first_group + group, channel}, batch.first + first,
                 width);
    __syncthreads();
    const tile_source<S> from[2] = {{samples, outputs}, {samples, outputs}};
    fill_tiles(tiles, z, at, from, tiles.pairs);
    const tile_box box = box_of(tiles, outputs);
    cuda_tile_transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    split_tiles(tiles, z, spectra,
                index_spectra(tiles, group, channels, batch.pitch, channel, first), width, outputs);
}

template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    store_tiles_kernel(const __grid_constant__ cuda_tiles tiles,
                       const __grid_constant__ cuda_tiles_batch batch, S *samples, const T *spectra,
                       const S *bias)
{
    const int width = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, batch.block / width) * width,
                  channel = take(&block, tiles.out), group = block;
    complex_of<T> *z = tiles_of_block<T>();
    tile_samples *at = samples_of_block<T>(tiles, tiles.pairs);
    locate_tiles(tiles, at, {true, batch.first_group + group, channel}, batch.first + first, width);
    join_tiles(tiles, z, spectra,
               index_spectra(tiles, group, tiles.out, batch.pitch, channel, first), width);
    const tile_box box = box_of(tiles, true);
    cuda_tile_transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    const T of_channel =
        bias ? widened(bias[(batch.first_group + group) * tiles.out + channel]) : 0;
    const tile_output<S, T> output = {samples, scale_of<T>(tiles, 2), of_channel};
    drain_tiles(tiles, z, at, output, tiles.pairs);
}
} // namespace

cudaError_t cuda_tiles_queue_samples(const cuda_tiles *tiles, const cuda_tiles_batch *batch,
                                     cuda_layer_move move, void *to, const void *from,
                                     const void *bias)
{
    const bool outputs = move != CUDA_LOAD;
    const int64_t blocks =
        batch->groups * (outputs ? tiles->out : tiles->in) * (batch->block / (2 * tiles->pairs));
    return with_storage(tiles->storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        if (move == CUDA_STORE)
            return queue_tiles(store_tiles_kernel<S, T>, tiles, tiles->pairs, blocks, *batch, to,
                               from, bias);
        return queue_tiles(load_tiles_kernel<S, T>, tiles, tiles->pairs, blocks, *batch, outputs,
                           to, from);
    });
}
