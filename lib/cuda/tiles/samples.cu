// SPDX-License-Identifier: MIT
// Tiles of samples into spectra, and spectra into tiles of samples: a thread block holds pairs of
// neighbouring positions of one channel, each pair the real and the imaginary part of one
// transform, and reads or writes runs of 2*pairs of them at every bin.
#include "spectra.cuh"

namespace {
// Blocks are [group][channel][run of positions].
template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    load_tiles_kernel(const __grid_constant__ cuda_tiles tiles,
                      const __grid_constant__ cuda_tiles_part part, bool outputs, T *spectra,
                      const T *samples)
{
    const int64_t channels = outputs ? tiles.out : tiles.in;
    const int run = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, part.block / run) * run, channel = take(&block, channels),
                  group = block;
    complex_of<T> *z = tiles_of_block<T>();
    tile_place *place = places_of_block<T>(tiles, tiles.pairs);
    place_tiles(tiles, place, outputs, part.first_group + group, channel, part.first + first, run);
    __syncthreads();
    const tile_source<T> from[2] = {{samples, outputs}, {samples, outputs}};
    fill_tiles(tiles, z, place, from, tiles.pairs);
    const tile_box box = box_of(tiles, outputs);
    transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    const spectra_place at = place_spectra(tiles, group, channels, part.pitch, channel, first);
    split_tiles(tiles, z, spectra, at, run, outputs);
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    store_tiles_kernel(const __grid_constant__ cuda_tiles tiles,
                       const __grid_constant__ cuda_tiles_part part, T *samples, const T *spectra,
                       const T *bias, bool relu)
{
    const int run = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, part.block / run) * run, channel = take(&block, tiles.out),
                  group = block;
    complex_of<T> *z = tiles_of_block<T>();
    tile_place *place = places_of_block<T>(tiles, tiles.pairs);
    place_tiles(tiles, place, true, part.first_group + group, channel, part.first + first, run);
    const spectra_place at = place_spectra(tiles, group, tiles.out, part.pitch, channel, first);
    join_tiles(tiles, z, spectra, at, run);
    const tile_box box = box_of(tiles, true);
    transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    const T of_channel = bias ? bias[(part.first_group + group) * tiles.out + channel] : 0;
    drain_tiles(tiles, z, place, samples, tiles.pairs, scale_of<T>(tiles, 2), of_channel, relu);
}

int64_t blocks_of(const cuda_tiles *tiles, const cuda_tiles_part *part, int64_t channels)
{
    return part->groups * channels * (part->block / (2 * tiles->pairs));
}

template <typename T>
cudaError_t load(const cuda_tiles *tiles, const cuda_tiles_part *part, bool outputs, void *spectra,
                 const void *samples, cudaStream_t stream)
{
    return queue_tiles(load_tiles_kernel<T>, tiles, tiles->pairs,
                       blocks_of(tiles, part, outputs ? tiles->out : tiles->in), stream, *part,
                       outputs, (T *)spectra, (const T *)samples);
}

template <typename T>
cudaError_t store(const cuda_tiles *tiles, const cuda_tiles_part *part, void *samples,
                  const void *spectra, const void *bias, bool relu, cudaStream_t stream)
{
    return queue_tiles(store_tiles_kernel<T>, tiles, tiles->pairs,
                       blocks_of(tiles, part, tiles->out), stream, *part, (T *)samples,
                       (const T *)spectra, (const T *)bias, relu);
}
} // namespace

cudaError_t cuda_tiles_load(const cuda_tiles *tiles, const cuda_tiles_part *part, bool outputs,
                            void *spectra, const void *samples, cudaStream_t stream)
{
    return tiles->f64 ? load<double>(tiles, part, outputs, spectra, samples, stream)
                      : load<float>(tiles, part, outputs, spectra, samples, stream);
}

cudaError_t cuda_tiles_store(const cuda_tiles *tiles, const cuda_tiles_part *part, void *samples,
                             const void *spectra, const void *bias, bool relu, cudaStream_t stream)
{
    return tiles->f64 ? store<double>(tiles, part, samples, spectra, bias, relu, stream)
                      : store<float>(tiles, part, samples, spectra, bias, relu, stream);
}
