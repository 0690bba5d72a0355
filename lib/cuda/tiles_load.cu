// SPDX-License-Identifier: MIT
// Tiles of samples into spectra, and spectra into tiles of samples: a thread block holds pairs of neighbouring
// positions of one channel, each pair the real and the imaginary part of one transform, and reads or writes runs of
// 2*pairs of them at every bin.
#include "tile_places.cuh"

namespace {
// Where spectra of one channel and position lie: a bin behind another, and the three forms of Gauss's product.
struct spectrum_place {
    int64_t at, bin, form;
};

// Element `column` of row `row` of a group's bin 0, of arrays [group][bin][rows][columns].
inline __device__ spectrum_place place_spectrum(const cuda_tiles &tiles, const cuda_tiles_part &part, int64_t group,
                                                int64_t rows, int64_t columns, int64_t row, int64_t column)
{
    const int64_t bin = rows * columns, all = bin * tiles.bins;
    return {group * all + row * columns + column, bin, part.groups * all};
}

template <typename T> inline __device__ void put(T *to, int64_t form, complex_of<T> a, bool gauss, bool taps)
{
    if (!gauss) {
        *(complex_of<T> *)to = a;
        return;
    }
    // Of (a + ib)(c + id): c(a + b), a(d - c), b(c + d). The product is first - third, first + second.
    to[0] = taps ? a.re : a.re + a.im;
    to[form] = taps ? a.im - a.re : a.re;
    to[2 * form] = taps ? a.re + a.im : a.im;
}

template <typename T> inline __device__ complex_of<T> get(const T *from, int64_t form, bool gauss)
{
    if (!gauss) return *(const complex_of<T> *)from;
    return {from[0] - from[2 * form], from[0] + from[form]};
}

// The transforms of a and b, of real samples, from that of a + ib: twice both; those of `columns` tiles of all pairs.
template <typename T>
inline __device__ void split(const cuda_tiles &tiles, const complex_of<T> *z, T *spectra, const spectrum_place &at,
                             int n_pairs, int64_t columns, bool taps, bool conjugated)
{
    const int reals = tiles.gauss ? 1 : 2;
    for (int i = threadIdx.x; i < tiles.bins * n_pairs; i += blockDim.x) {
        const int bin = i / n_pairs, p = i % n_pairs;
        const uint32_t *pair = tiles.tables.pair + 2 * bin;
        const complex_of<T> f = z[p * tiles.elements + pair[0]], g = z[p * tiles.elements + pair[1]];
        complex_of<T> a = {f.re + g.re, f.im - g.im}, b = {f.im + g.im, g.re - f.re};
        if (conjugated) a = conjugate(a), b = conjugate(b);
        T *to = spectra + (at.at + bin * at.bin + 2 * p) * reals;
        if (2 * p < columns) put(to, at.form, a, tiles.gauss, taps);
        if (2 * p + 1 < columns) put(to + reals, at.form, b, tiles.gauss, taps);
    }
}

// The reverse.
template <typename T>
inline __device__ void join(const cuda_tiles &tiles, complex_of<T> *z, const T *spectra, const spectrum_place &at,
                            int n_pairs, int64_t columns, bool gauss)
{
    const int reals = gauss ? 1 : 2;
    for (int i = threadIdx.x; i < tiles.bins * n_pairs; i += blockDim.x) {
        const int bin = i / n_pairs, p = i % n_pairs;
        const uint32_t *pair = tiles.tables.pair + 2 * bin;
        const T *from = spectra + (at.at + bin * at.bin + 2 * p) * reals;
        complex_of<T> a = {0, 0}, b = {0, 0};
        if (2 * p < columns) a = get(from, at.form, gauss);
        if (2 * p + 1 < columns) b = get(from + reals, at.form, gauss);
        z[p * tiles.elements + pair[1]] = {a.re + b.im, b.re - a.im};
        z[p * tiles.elements + pair[0]] = {a.re - b.im, a.im + b.re};
    }
}

template <typename T> inline __device__ complex_of<T> *tiles_of()
{
    return (complex_of<T> *)shared_memory;
}

// The places of a block's tiles, behind the tiles.
template <typename T> inline __device__ tile_place *places_of(const cuda_tiles &tiles)
{
    return (tile_place *)(tiles_of<T>() + tiles.pairs * tiles.elements);
}

// Blocks are [group][channel][run of positions].
template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 1)
    load_kernel(const __grid_constant__ cuda_tiles tiles, const __grid_constant__ cuda_tiles_part part, bool outputs,
                T *spectra, const T *samples)
{
    const int64_t channels = outputs ? tiles.out : tiles.in;
    const int run = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, part.block / run) * run, channel = take(&block, channels), group = block;
    complex_of<T> *z = tiles_of<T>();
    tile_place *place = places_of<T>(tiles);
    for (int i = threadIdx.x; i < run; i += blockDim.x)
        place[i] = place_tile(tiles, outputs, part.first_group + group, channel, part.first + first + i);
    fill_tiles(tiles, outputs, z, place, samples, tiles.pairs);
    const tile_box box = box_of(tiles, outputs);
    transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    const spectrum_place at = place_spectrum(tiles, part, group, channels, part.pitch, channel, first);
    split(tiles, z, spectra, at, tiles.pairs, run, false, outputs);
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 1)
    store_kernel(const __grid_constant__ cuda_tiles tiles, const __grid_constant__ cuda_tiles_part part, T *samples,
                 const T *spectra, const T *bias, bool relu)
{
    const int run = 2 * tiles.pairs;
    int64_t block = blockIdx.x;
    const int64_t first = take(&block, part.block / run) * run, channel = take(&block, tiles.out), group = block;
    complex_of<T> *z = tiles_of<T>();
    tile_place *place = places_of<T>(tiles);
    for (int i = threadIdx.x; i < run; i += blockDim.x)
        place[i] = place_tile(tiles, true, part.first_group + group, channel, part.first + first + i);
    const spectrum_place at = place_spectrum(tiles, part, group, tiles.out, part.pitch, channel, first);
    join(tiles, z, spectra, at, tiles.pairs, run, tiles.gauss);
    const tile_box box = box_of(tiles, true);
    transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    const T of_channel = bias ? bias[(part.first_group + group) * tiles.out + channel] : 0;
    drain_tiles(tiles, z, place, samples, tiles.pairs, scale_of<T>(tiles, 2), of_channel, relu);
}

// Blocks are [group][input channel][run of output channels].
struct cells {
    int64_t group, in, first;

    __device__ cells(const cuda_tiles &tiles)
    {
        const int run = 2 * tiles.pairs;
        int64_t block = blockIdx.x;
        first = take(&block, ceiling(tiles.out, run)) * run;
        in = take(&block, tiles.in);
        group = block;
    }
};

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 1)
    load_taps_kernel(const __grid_constant__ cuda_tiles tiles, const __grid_constant__ cuda_tiles_part part, T *spectra,
                     const T *taps)
{
    const cells cell(tiles);
    const tile_box box = box_of_taps(tiles);
    complex_of<T> *z = tiles_of<T>();
    for (int i = threadIdx.x; i < tiles.pairs * tiles.elements; i += blockDim.x) z[i] = {0, 0};
    __syncthreads();
    for (int i = threadIdx.x; i < tiles.pairs * box.planes * box.rows * box.columns; i += blockDim.x) {
        const tile_element e(box, i);
        T tap[2] = {};
        for (int half = 0; half < 2; half++) {
            const int64_t k = cell.first + 2 * e.pair + half;
            const int64_t at =
                k < tiles.out ? tap_of(tiles, part.first_group + cell.group, cell.in, k, e.d, e.h, e.i) : -1;
            if (at >= 0) tap[half] = taps[at];
        }
        z[e.offset(tiles)] = {tap[0], tap[1]};
    }
    transform<false>(z, tiles, tiles.pairs, box.planes, box.rows);
    const spectrum_place at = place_spectrum(tiles, part, cell.group, tiles.in, tiles.out_pitch, cell.in, cell.first);
    split(tiles, z, spectra, at, tiles.pairs, tiles.out - cell.first, true, true);
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 1)
    store_taps_kernel(const __grid_constant__ cuda_tiles tiles, const __grid_constant__ cuda_tiles_part part, T *taps,
                      const T *spectra)
{
    const cells cell(tiles);
    const tile_box box = box_of_taps(tiles);
    complex_of<T> *z = tiles_of<T>();
    const spectrum_place at = place_spectrum(tiles, part, cell.group, tiles.in, tiles.out_pitch, cell.in, cell.first);
    join(tiles, z, spectra, at, tiles.pairs, tiles.out - cell.first, false);
    transform<true>(z, tiles, tiles.pairs, box.planes, box.rows);
    const T scale = scale_of<T>(tiles, 2);
    for (int i = threadIdx.x; i < tiles.pairs * box.planes * box.rows * box.columns; i += blockDim.x) {
        const tile_element e(box, i);
        const complex_of<T> sums = z[e.offset(tiles)];
        for (int half = 0; half < 2; half++) {
            const int64_t k = cell.first + 2 * e.pair + half;
            const int64_t to =
                k < tiles.out ? tap_of(tiles, part.first_group + cell.group, cell.in, k, e.d, e.h, e.i) : -1;
            if (to >= 0) taps[to] = (half ? sums.im : sums.re) * scale;
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

template <typename T>
cudaError_t gather(void *to, const void *from, int64_t n, int64_t sets, bool onto, cudaStream_t stream)
{
    return queue(gather_kernel<T>, ceiling(n, CUDA_TILES_THREADS), dim3(CUDA_TILES_THREADS), 0, stream, (T *)to,
                 (const T *)from, n, sets, onto);
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const cuda_tiles *tiles, int64_t blocks, cudaStream_t stream,
                   Arguments... arguments)
{
    const size_t bytes = cuda_tiles_shared_bytes(tiles, tiles->pairs);
    const cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    return queue(kernel, blocks, dim3(tiles->threads), bytes, stream, *tiles, arguments...);
}

int64_t blocks_of_positions(const cuda_tiles *tiles, const cuda_tiles_part *part, int64_t channels)
{
    return part->groups * channels * (part->block / (2 * tiles->pairs));
}

int64_t blocks_of_cells(const cuda_tiles *tiles, const cuda_tiles_part *part)
{
    return part->groups * tiles->in * ceiling(tiles->out, 2 * tiles->pairs);
}

template <typename T>
cudaError_t load(const cuda_tiles *tiles, const cuda_tiles_part *part, bool outputs, void *spectra, const void *samples,
                 cudaStream_t stream)
{
    return launch(load_kernel<T>, tiles, blocks_of_positions(tiles, part, outputs ? tiles->out : tiles->in), stream,
                  *part, outputs, (T *)spectra, (const T *)samples);
}

template <typename T>
cudaError_t load_taps(const cuda_tiles *tiles, const cuda_tiles_part *part, void *spectra, const void *taps,
                      cudaStream_t stream)
{
    return launch(load_taps_kernel<T>, tiles, blocks_of_cells(tiles, part), stream, *part, (T *)spectra,
                  (const T *)taps);
}

template <typename T>
cudaError_t store(const cuda_tiles *tiles, const cuda_tiles_part *part, void *samples, const void *spectra,
                  const void *bias, bool relu, cudaStream_t stream)
{
    return launch(store_kernel<T>, tiles, blocks_of_positions(tiles, part, tiles->out), stream, *part, (T *)samples,
                  (const T *)spectra, (const T *)bias, relu);
}

template <typename T>
cudaError_t store_taps(const cuda_tiles *tiles, const cuda_tiles_part *part, void *taps, const void *spectra,
                       cudaStream_t stream)
{
    return launch(store_taps_kernel<T>, tiles, blocks_of_cells(tiles, part), stream, *part, (T *)taps,
                  (const T *)spectra);
}
} // namespace

size_t cuda_tiles_shared_bytes(const cuda_tiles *tiles, int pairs)
{
    const size_t element = tiles->f64 ? sizeof(complex_of<double>) : sizeof(complex_of<float>);
    return (size_t)pairs * ((size_t)tiles->elements * element + 2 * sizeof(tile_place));
}

cudaError_t cuda_tiles_load(const cuda_tiles *tiles, const cuda_tiles_part *part, bool outputs, void *spectra,
                            const void *samples, cudaStream_t stream)
{
    return tiles->f64 ? load<double>(tiles, part, outputs, spectra, samples, stream)
                      : load<float>(tiles, part, outputs, spectra, samples, stream);
}

cudaError_t cuda_tiles_load_taps(const cuda_tiles *tiles, const cuda_tiles_part *part, void *spectra, const void *taps,
                                 cudaStream_t stream)
{
    return tiles->f64 ? load_taps<double>(tiles, part, spectra, taps, stream)
                      : load_taps<float>(tiles, part, spectra, taps, stream);
}

cudaError_t cuda_tiles_store(const cuda_tiles *tiles, const cuda_tiles_part *part, void *samples, const void *spectra,
                             const void *bias, bool relu, cudaStream_t stream)
{
    return tiles->f64 ? store<double>(tiles, part, samples, spectra, bias, relu, stream)
                      : store<float>(tiles, part, samples, spectra, bias, relu, stream);
}

cudaError_t cuda_tiles_store_taps(const cuda_tiles *tiles, const cuda_tiles_part *part, void *taps, const void *spectra,
                                  cudaStream_t stream)
{
    return tiles->f64 ? store_taps<double>(tiles, part, taps, spectra, stream)
                      : store_taps<float>(tiles, part, taps, spectra, stream);
}

cudaError_t cuda_tiles_gather(bool f64, void *to, const void *from, int64_t n, int64_t sets, bool onto,
                              cudaStream_t stream)
{
    return f64 ? gather<double>(to, from, n, sets, onto, stream) : gather<float>(to, from, n, sets, onto, stream);
}
