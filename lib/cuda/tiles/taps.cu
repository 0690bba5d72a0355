// SPDX-License-Identifier: MIT
// Taps into spectra and the gradient's spectra into taps: a thread block holds pairs of
// neighbouring output channels for one input channel.
#include "spectra.cuh"

namespace {
// A block's cells; blocks are [group][input channel][run of output channels].
struct cells {
    int64_t group, in, first;

    explicit __device__ cells(const cuda_tiles &tiles)
    {
        const int run = 2 * tiles.pairs;
        int64_t block = blockIdx.x;
        first = take(&block, ceiling(tiles.out, run)) * run;
        in = take(&block, tiles.in);
        group = block;
    }

    // Spectra of taps are as the products want them; those of a fused kernel [group][in][out][bin].
    __device__ spectra_place place(const cuda_tiles &tiles) const
    {
        if (tiles.fused)
            return {((group * tiles.in + in) * tiles.out + first) * tiles.bins, tiles.bins, 1, 0};
        return place_spectra(tiles, group, tiles.in, tiles.out_pitch, in, first);
    }

    // Index of tap (row, i) of a tile, real or imaginary, below 0: there is none.
    __device__ int64_t tap(const cuda_tiles &tiles, const cuda_tiles_part &part,
                           const tile_row &row, int half, int i) const
    {
        const int64_t k = first + 2 * row.pair + half;
        return k < tiles.out ? tap_of(tiles, part.first_group + group, in, k, row.d, row.h, i) : -1;
    }
};

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    load_taps_kernel(const __grid_constant__ cuda_tiles tiles,
                     const __grid_constant__ cuda_tiles_part part, T *spectra, const T *taps)
{
    const cells cell(tiles);
    const tile_box box = box_of_taps(tiles);
    const tile_rows rows(tiles, tiles.pairs, tiles.dft[0].n, tiles.dft[1].n);
    complex_of<T> *z = tiles_of_block<T>();
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        const bool any = row.d < box.planes && row.h < box.rows;
        for (int i = rows.column; i < tiles.dft[2].n; i += rows.width) {
            T tap[2] = {};
            for (int half = 0; half < 2 && any && i < box.columns; half++) {
                const int64_t at = cell.tap(tiles, part, row, half, i);
                if (at >= 0) tap[half] = taps[at];
            }
            z[row.offset(tiles) + i] = {tap[0], tap[1]};
        }
    }
    transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    split_tiles(tiles, z, spectra, cell.place(tiles), tiles.out - cell.first, true);
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, sizeof(T) == 8 ? 2 : 3)
    store_taps_kernel(const __grid_constant__ cuda_tiles tiles,
                      const __grid_constant__ cuda_tiles_part part, T *taps, const T *spectra)
{
    const cells cell(tiles);
    const tile_box box = box_of_taps(tiles);
    const tile_rows rows(tiles, tiles.pairs, box.planes, box.rows);
    const T scale = scale_of<T>(tiles, 2);
    complex_of<T> *z = tiles_of_block<T>();
    join_tiles(tiles, z, spectra, cell.place(tiles), tiles.out - cell.first);
    transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    for (int r = rows.first(); r < rows.n; r += rows.step()) {
        const tile_row row = rows.at(r);
        for (int i = rows.column; i < box.columns; i += rows.width) {
            const complex_of<T> sums = z[row.offset(tiles) + i];
            for (int half = 0; half < 2; half++) {
                const int64_t to = cell.tap(tiles, part, row, half, i);
                if (to >= 0) taps[to] = (half ? sums.im : sums.re) * scale;
            }
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 1)
    gather_kernel(T *to, const T *from, int64_t n, int64_t sets, bool onto)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T sum = onto ? to[i] : 0;
    for (int64_t s = 0; s < sets; s++) sum += from[s * n + i];
    to[i] = sum;
}

int64_t blocks_of(const cuda_tiles *tiles, const cuda_tiles_part *part)
{
    return part->groups * tiles->in * ceiling(tiles->out, 2 * tiles->pairs);
}

template <typename T>
cudaError_t load(const cuda_tiles *tiles, const cuda_tiles_part *part, void *spectra,
                 const void *taps, cudaStream_t stream)
{
    return queue_tiles(load_taps_kernel<T>, tiles, tiles->pairs, blocks_of(tiles, part), stream,
                       *part, (T *)spectra, (const T *)taps);
}

template <typename T>
cudaError_t store(const cuda_tiles *tiles, const cuda_tiles_part *part, void *taps,
                  const void *spectra, cudaStream_t stream)
{
    return queue_tiles(store_taps_kernel<T>, tiles, tiles->pairs, blocks_of(tiles, part), stream,
                       *part, (T *)taps, (const T *)spectra);
}

template <typename T>
cudaError_t gather(void *to, const void *from, int64_t n, int64_t sets, bool onto,
                   cudaStream_t stream)
{
    return queue(gather_kernel<T>, ceiling(n, CUDA_TILES_THREADS), dim3(CUDA_TILES_THREADS), 0,
                 stream, (T *)to, (const T *)from, n, sets, onto);
}
} // namespace

size_t cuda_tiles_shared_bytes(const cuda_tiles *tiles, int pairs)
{
    const size_t element = tiles->f64 ? sizeof(complex_of<double>) : sizeof(complex_of<float>);
    return (size_t)pairs * (size_t)tiles->elements * element +
           2 * (size_t)tiles->pairs * sizeof(tile_place);
}

cudaError_t cuda_tiles_load_taps(const cuda_tiles *tiles, const cuda_tiles_part *part,
                                 void *spectra, const void *taps, cudaStream_t stream)
{
    return tiles->f64 ? load<double>(tiles, part, spectra, taps, stream)
                      : load<float>(tiles, part, spectra, taps, stream);
}

cudaError_t cuda_tiles_store_taps(const cuda_tiles *tiles, const cuda_tiles_part *part, void *taps,
                                  const void *spectra, cudaStream_t stream)
{
    return tiles->f64 ? store<double>(tiles, part, taps, spectra, stream)
                      : store<float>(tiles, part, taps, spectra, stream);
}

cudaError_t cuda_tiles_gather(bool f64, void *to, const void *from, int64_t n, int64_t sets,
                              bool onto, cudaStream_t stream)
{
    return f64 ? gather<double>(to, from, n, sets, onto, stream)
               : gather<float>(to, from, n, sets, onto, stream);
}
