// SPDX-License-Identifier: MIT
// Tiles of layers without sums over many channels, from samples to samples in one kernel. Two tiles
// of a channel are one complex transform; both meet the same taps, so that the product needs none
// of their spectra by itself: the pair's is multiplied by the taps' as it is. For the gradient of
// the taps the two are a tile of x and the one of gy that meets it.
#include "spectra.cuh"

namespace {
// sum = z times the taps' spectrum, or onto it; z and sum may be the same. Begins after a barrier.
template <typename T>
__device__ void multiply_by_taps(const cuda_tiles &tiles, complex_of<T> *sum,
                                 const complex_of<T> *z, const complex_of<T> *taps, bool onto)
{
    const divider pairs(tiles.pairs);
    for (int i = threadIdx.x; i < tiles.bins * tiles.pairs; i += blockDim.x) {
        int bin = i;
        const int first = pairs.take_digit(&bin) * tiles.elements;
        const bin_elements pair = elements_of(tiles, bin);
        const int f = first + (int)pair.f, g = first + (int)pair.g;
        const complex_of<T> w = taps[bin], at_f = z[f] * w, at_g = z[g] * conjugated(w);
        if (f != g) sum[g] = onto ? sum[g] + at_g : at_g;
        sum[f] = onto ? sum[f] + at_f : at_f;
    }
}

// Blocks are [group][output channel][2*pairs positions].
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    tiles_fused_kernel(const __grid_constant__ cuda_tiles tiles, S *to, const S *samples,
                       const complex_of<T> *taps, const S *bias)
{
    const int width = 2 * tiles.pairs, size = tiles.pairs * tiles.elements;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, ceiling(tiles.positions, width)) * width,
                  channel = take(&block, tiles.out);
    const int64_t group = block;
    complex_of<T> *const z = tiles_of_block<T>(), *const sum = tiles.in > 1 ? z + size : z;
    tile_samples *at = samples_of_block<T>(tiles, tiles.in > 1 ? 2 * tiles.pairs : tiles.pairs);
    const tile_source<S> from[2] = {{samples, false}, {samples, false}};
    const tile_box in = box_of(tiles, false), out = box_of(tiles, true);
    for (int64_t c = 0; c < tiles.in; c++) {
        __syncthreads();
        locate_tiles(tiles, at, {false, group, c}, first, width);
        __syncthreads();
        fill_tiles(tiles, z, at, from, tiles.pairs);
        cuda_tile_transform<false>(z, tiles, tiles.pairs, in.planes, in.rows);
        multiply_by_taps(tiles, sum, z,
                         taps + ((group * tiles.in + c) * tiles.out + channel) * tiles.bins, c > 0);
    }
    locate_tiles(tiles, at, {true, group, channel}, first, width);
    cuda_tile_transform<true>(sum, tiles, tiles.pairs, out.planes, out.rows);
    const T of_channel = bias ? widened(bias[group * tiles.out + channel]) : 0;
    const tile_output<S, T> output = {to, scale_of<T>(tiles, 1), of_channel};
    drain_tiles(tiles, sum, at, output, tiles.pairs);
}

// Adds the conjugate of gy's spectrum times that of x, of all pairs in order. Begins after a
// barrier.
template <typename T>
__device__ void tiles_add_products(const cuda_tiles &tiles, complex_of<T> *sum,
                                   const complex_of<T> *z)
{
    for (int bin = threadIdx.x; bin < tiles.bins; bin += blockDim.x) {
        const bin_elements pair = elements_of(tiles, bin);
        complex_of<T> of_bin = sum[bin];
        for (int p = 0; p < tiles.pairs; p++) {
            const bin_of_pair<T> both(z[p * tiles.elements + pair.f],
                                      z[p * tiles.elements + pair.g]);
            multiply_add(of_bin, both.a, conjugated(both.b));
        }
        sum[bin] = of_bin;
    }
}

// Sums over chunks of the positions, [chunk][group][in][out][bin]. Blocks are the same without the
// bin.
template <typename S, typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    tiles_fused_weight_kernel(const __grid_constant__ cuda_tiles tiles, complex_of<T> *sums,
                              const S *x, const S *gy, int64_t chunks)
{
    int64_t block = blockIdx.x;
    const int64_t k = take(&block, tiles.out), c = take(&block, tiles.in),
                  group = take(&block, tiles.groups);
    const int64_t each = ceiling(ceiling(tiles.positions, tiles.pairs), chunks) * tiles.pairs;
    const int64_t begin = block * each,
                  end = begin + each < tiles.positions ? begin + each : tiles.positions;
    complex_of<T> *const z = tiles_of_block<T>(), *const sum = z + tiles.pairs * tiles.elements;
    tile_samples *at = samples_of_block<T>(tiles, tiles.pairs + 1);
    const tile_source<S> from[2] = {{x, false}, {gy, true}};
    const tile_channel channels[2] = {{false, group, c}, {true, group, k}};
    const tile_box box = box_of(tiles, false);
    for (int bin = threadIdx.x; bin < tiles.bins; bin += blockDim.x) sum[bin] = {0, 0};
    for (int64_t first = begin; first < end; first += tiles.pairs) {
        __syncthreads();
        for (int i = threadIdx.x; i < 2 * tiles.pairs; i += blockDim.x)
            at[i] = first + i / 2 < end ? locate_tile(tiles, channels[i % 2], first + i / 2)
                                        : tile_samples{};
        __syncthreads();
        fill_tiles(tiles, z, at, from, tiles.pairs);
        cuda_tile_transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
        tiles_add_products(tiles, sum, z);
    }
    for (int bin = threadIdx.x; bin < tiles.bins; bin += blockDim.x)
        sums[blockIdx.x * (int64_t)tiles.bins + bin] = sum[bin];
}
} // namespace

cudaError_t cuda_tiles_fused(const cuda_tiles *tiles, void *to, const void *samples,
                             const void *taps, const void *bias)
{
    const int64_t blocks = tiles->groups * tiles->out * ceiling(tiles->positions, 2 * tiles->pairs);
    const int pairs = tiles->in > 1 ? 2 * tiles->pairs : tiles->pairs;
    return with_storage(tiles->storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        return queue_tiles(tiles_fused_kernel<S, T>, tiles, pairs, blocks, to, samples, taps, bias);
    });
}

cudaError_t cuda_tiles_fused_weight(const cuda_tiles *tiles, void *sums, const void *x,
                                    const void *gy, int64_t chunks)
{
    const int64_t blocks = chunks * tiles->groups * tiles->in * tiles->out;
    return with_storage(tiles->storage, [=](auto zero) {
        typedef decltype(zero) S;
        typedef typename sum_of<S>::type T;
        return queue_tiles(tiles_fused_weight_kernel<S, T>, tiles, tiles->pairs + 1, blocks, sums,
                           x, gy, chunks);
    });
}
