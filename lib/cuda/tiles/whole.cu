// SPDX-License-Identifier: MIT
// Tiles that no thread block holds: pairs of them lie in memory in natural order, where cuFFT
// transforms them. What is here brings samples or taps there and back, and spectra to where the
// products want them. A unit is one pair.
#include "spectra.cuh"

namespace {
enum { ROWS = 32 }; // of a thread block

// Where a unit belongs: [group][line][pair] of lines of positions, channels being lines, or of
// output channels, input channels being lines.
struct unit_place {
    int64_t group, line, first; // first: of its two positions, or output channels

    __device__ unit_place(const cuda_tiles &tiles, const cuda_tiles_part &part,
                          const cuda_tiles_units &units, int64_t unit)
    {
        const bool taps = units.of == CUDA_UNITS_TAPS;
        unit += units.first;
        first = 2 * take(&unit, ceiling(taps ? tiles.out : part.block, 2));
        line = take(&unit, units.of == CUDA_UNITS_OUTPUTS ? tiles.out : tiles.in);
        group = unit;
    }

    __device__ spectra_place spectra(const cuda_tiles &tiles, const cuda_tiles_part &part,
                                     const cuda_tiles_units &units) const
    {
        if (units.of == CUDA_UNITS_TAPS)
            return place_spectra(tiles, group, tiles.in, tiles.out_pitch, line, first);
        return place_spectra(tiles, group, units.of == CUDA_UNITS_OUTPUTS ? tiles.out : tiles.in,
                             part.pitch, line, first);
    }

    // Tiles of the unit that there are.
    __device__ int64_t count(const cuda_tiles &tiles, const cuda_tiles_part &part,
                             const cuda_tiles_units &units) const
    {
        return (units.of == CUDA_UNITS_TAPS ? tiles.out : part.block) - first;
    }

    __device__ tile_place place(const cuda_tiles &tiles, const cuda_tiles_part &part,
                                const cuda_tiles_units &units, int half) const
    {
        return place_tile(tiles, units.of == CUDA_UNITS_OUTPUTS, part.first_group + group, line,
                          part.first + first + half);
    }

    // Index of a tap of one of the unit's cells, below 0: there is none.
    __device__ int64_t tap(const cuda_tiles &tiles, const cuda_tiles_part &part,
                           const tile_row &row, int half, int i) const
    {
        const int64_t k = first + half;
        return k < tiles.out ? tap_of(tiles, part.first_group + group, line, k, row.d, row.h, i)
                             : -1;
    }
};

// Rows of the unit of a block, ROWS of them; blocks are [unit][run of rows].
struct unit_rows {
    int first, end, step, column, width, rows;

    __device__ unit_rows(const cuda_tiles &tiles, int planes, int rows, int64_t *ret_unit)
        : rows(rows)
    {
        int64_t block = blockIdx.x;
        const int run = (int)take(&block, ceiling((int64_t)planes * rows, ROWS)) * ROWS;
        *ret_unit = block;
        width = tiles.row_threads;
        column = threadIdx.x % width;
        first = run + threadIdx.x / width;
        end = lesser((int64_t)planes * rows, run + ROWS);
        step = blockDim.x / width;
    }

    __device__ tile_row at(int r) const
    {
        return {0, r / rows, r % rows};
    }
};

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    fill_units_kernel(const __grid_constant__ cuda_tiles tiles,
                      const __grid_constant__ cuda_tiles_part part,
                      const __grid_constant__ cuda_tiles_units units, complex_of<T> *z,
                      const T *samples)
{
    int64_t unit;
    const unit_rows rows(tiles, tiles.dft[0].n, tiles.dft[1].n, &unit);
    const unit_place at(tiles, part, units, unit);
    const bool outputs = units.of == CUDA_UNITS_OUTPUTS;
    const tile_place place[2] = {at.place(tiles, part, units, 0), at.place(tiles, part, units, 1)};
    z += unit * tiles.elements;
    for (int r = rows.first; r < rows.end; r += rows.step) {
        const tile_row row = rows.at(r);
        const sample_row<const T> a(tiles, outputs, place[0], row, samples),
            b(tiles, outputs, place[1], row, samples);
        for (int i = rows.column; i < tiles.dft[2].n; i += rows.width) {
            T re[1], im[1];
            a.read(i, 0, re);
            b.read(i, 0, im);
            z[row.offset(tiles) + i] = {re[0], im[0]};
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    fill_tap_units_kernel(const __grid_constant__ cuda_tiles tiles,
                          const __grid_constant__ cuda_tiles_part part,
                          const __grid_constant__ cuda_tiles_units units, complex_of<T> *z,
                          const T *taps)
{
    int64_t unit;
    const unit_rows rows(tiles, tiles.dft[0].n, tiles.dft[1].n, &unit);
    const unit_place at(tiles, part, units, unit);
    const tile_box box = box_of_taps(tiles);
    z += unit * tiles.elements;
    for (int r = rows.first; r < rows.end; r += rows.step) {
        const tile_row row = rows.at(r);
        const bool any = row.d < box.planes && row.h < box.rows;
        for (int i = rows.column; i < tiles.dft[2].n; i += rows.width) {
            const bool within = any && i < box.columns;
            const int64_t a = within ? at.tap(tiles, part, row, 0, i) : -1,
                          b = within ? at.tap(tiles, part, row, 1, i) : -1;
            z[row.offset(tiles) + i] = {a < 0 ? 0 : taps[a], b < 0 ? 0 : taps[b]};
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    drain_units_kernel(const __grid_constant__ cuda_tiles tiles,
                       const __grid_constant__ cuda_tiles_part part,
                       const __grid_constant__ cuda_tiles_units units, T *samples,
                       const complex_of<T> *z, const T *bias, bool relu)
{
    const tile_box box = box_of(tiles, true);
    int64_t unit;
    const unit_rows rows(tiles, box.planes, box.rows, &unit);
    const unit_place at(tiles, part, units, unit);
    const tile_place place[2] = {at.place(tiles, part, units, 0), at.place(tiles, part, units, 1)};
    const T scale = scale_of<T>(tiles, 2);
    const T of_channel = bias ? bias[(part.first_group + at.group) * tiles.out + at.line] : 0;
    z += unit * tiles.elements;
    for (int r = rows.first; r < rows.end; r += rows.step) {
        const tile_row row = rows.at(r);
        const sample_row<T> to[2] = {{tiles, true, place[0], row, samples},
                                     {tiles, true, place[1], row, samples}};
        for (int i = rows.column; i < box.columns; i += rows.width) {
            const complex_of<T> sums[1] = {z[row.offset(tiles) + i]};
            store_pairs(to, i, 0, sums, scale, of_channel, relu);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    drain_tap_units_kernel(const __grid_constant__ cuda_tiles tiles,
                           const __grid_constant__ cuda_tiles_part part,
                           const __grid_constant__ cuda_tiles_units units, T *taps,
                           const complex_of<T> *z)
{
    const tile_box box = box_of_taps(tiles);
    int64_t unit;
    const unit_rows rows(tiles, box.planes, box.rows, &unit);
    const unit_place at(tiles, part, units, unit);
    const T scale = scale_of<T>(tiles, 2);
    z += unit * tiles.elements;
    for (int r = rows.first; r < rows.end; r += rows.step) {
        const tile_row row = rows.at(r);
        for (int i = rows.column; i < box.columns; i += rows.width) {
            const complex_of<T> sums = z[row.offset(tiles) + i];
            const int64_t a = at.tap(tiles, part, row, 0, i), b = at.tap(tiles, part, row, 1, i);
            if (a >= 0) taps[a] = sums.re * scale;
            if (b >= 0) taps[b] = sums.im * scale;
        }
    }
}

// A frequency in natural order; bins are those of the first half of the last axis.
struct frequency {
    int f[3];

    __device__ frequency(const cuda_tiles &tiles, int i, int last)
    {
        f[2] = i % last;
        f[1] = i / last % tiles.dft[1].n;
        f[0] = i / last / tiles.dft[1].n;
    }

    __device__ int element(const cuda_tiles &tiles) const
    {
        return (f[0] * tiles.dft[1].n + f[1]) * tiles.dft[2].n + f[2];
    }

    __device__ void negate(const cuda_tiles &tiles)
    {
        for (int a = 0; a < 3; a++) f[a] = f[a] ? tiles.dft[a].n - f[a] : 0;
    }

    __device__ int bin(const cuda_tiles &tiles) const
    {
        return (f[0] * tiles.dft[1].n + f[1]) * (tiles.dft[2].n / 2 + 1) + f[2];
    }
};

// Blocks are [unit][run of bins].
template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    split_units_kernel(const __grid_constant__ cuda_tiles tiles,
                       const __grid_constant__ cuda_tiles_part part,
                       const __grid_constant__ cuda_tiles_units units, T *spectra,
                       const complex_of<T> *z)
{
    int64_t block = blockIdx.x;
    const int bin =
        (int)take(&block, ceiling(tiles.bins, CUDA_TILES_THREADS)) * CUDA_TILES_THREADS +
        threadIdx.x;
    if (bin >= tiles.bins) return;
    const unit_place at(tiles, part, units, block);
    frequency f(tiles, bin, tiles.dft[2].n / 2 + 1);
    z += block * tiles.elements;
    const complex_of<T> here = z[f.element(tiles)];
    f.negate(tiles);
    const bin_of_pair<T> of(here, z[f.element(tiles)]);
    put_pair(tiles, spectra, at.spectra(tiles, part, units), bin, of, at.count(tiles, part, units),
             units.of != CUDA_UNITS_INPUTS);
}

// Blocks are [unit][run of elements].
template <typename T>
__global__ void __launch_bounds__(CUDA_TILES_THREADS, 2)
    join_units_kernel(const __grid_constant__ cuda_tiles tiles,
                      const __grid_constant__ cuda_tiles_part part,
                      const __grid_constant__ cuda_tiles_units units, complex_of<T> *z,
                      const T *spectra)
{
    int64_t block = blockIdx.x;
    const int i =
        (int)take(&block, ceiling(tiles.elements, CUDA_TILES_THREADS)) * CUDA_TILES_THREADS +
        threadIdx.x;
    if (i >= tiles.elements) return;
    const unit_place at(tiles, part, units, block);
    frequency f(tiles, i, tiles.dft[2].n);
    const bool mirrored = f.f[2] > tiles.dft[2].n / 2;
    if (mirrored) f.negate(tiles);
    complex_of<T> a, b;
    get_pair(tiles, spectra, at.spectra(tiles, part, units), f.bin(tiles),
             at.count(tiles, part, units), &a, &b);
    z[block * tiles.elements + i] = mirrored ? complex_of<T>{a.re + b.im, b.re - a.im}
                                             : complex_of<T>{a.re - b.im, a.im + b.re};
}

int64_t row_blocks(const cuda_tiles_units *units, int64_t rows)
{
    return units->n * ceiling(rows, ROWS);
}

template <typename T>
cudaError_t fill(const cuda_tiles *tiles, const cuda_tiles_part *part,
                 const cuda_tiles_units *units, void *z, const void *from, cudaStream_t stream)
{
    return queue(units->of == CUDA_UNITS_TAPS ? fill_tap_units_kernel<T> : fill_units_kernel<T>,
                 row_blocks(units, (int64_t)tiles->dft[0].n * tiles->dft[1].n),
                 dim3(tiles->threads), 0, stream, *tiles, *part, *units, (complex_of<T> *)z,
                 (const T *)from);
}

template <typename T>
cudaError_t drain(const cuda_tiles *tiles, const cuda_tiles_part *part,
                  const cuda_tiles_units *units, void *to, const void *z, const void *bias,
                  bool relu, cudaStream_t stream)
{
    const cuda_tiles_axis *axis = tiles->axis;
    if (units->of == CUDA_UNITS_TAPS)
        return queue(drain_tap_units_kernel<T>, row_blocks(units, axis[0].taps * axis[1].taps),
                     dim3(tiles->threads), 0, stream, *tiles, *part, *units, (T *)to,
                     (const complex_of<T> *)z);
    return queue(drain_units_kernel<T>, row_blocks(units, axis[0].tile * axis[1].tile),
                 dim3(tiles->threads), 0, stream, *tiles, *part, *units, (T *)to,
                 (const complex_of<T> *)z, (const T *)bias, relu);
}

template <typename T>
cudaError_t split(const cuda_tiles *tiles, const cuda_tiles_part *part,
                  const cuda_tiles_units *units, void *spectra, const void *z, cudaStream_t stream)
{
    return queue(split_units_kernel<T>, units->n * ceiling(tiles->bins, CUDA_TILES_THREADS),
                 dim3(CUDA_TILES_THREADS), 0, stream, *tiles, *part, *units, (T *)spectra,
                 (const complex_of<T> *)z);
}

template <typename T>
cudaError_t join(const cuda_tiles *tiles, const cuda_tiles_part *part,
                 const cuda_tiles_units *units, void *z, const void *spectra, cudaStream_t stream)
{
    return queue(join_units_kernel<T>, units->n * ceiling(tiles->elements, CUDA_TILES_THREADS),
                 dim3(CUDA_TILES_THREADS), 0, stream, *tiles, *part, *units, (complex_of<T> *)z,
                 (const T *)spectra);
}
} // namespace

cudaError_t cuda_units_fill(const cuda_tiles *tiles, const cuda_tiles_part *part,
                            const cuda_tiles_units *units, void *z, const void *from,
                            cudaStream_t stream)
{
    return tiles->f64 ? fill<double>(tiles, part, units, z, from, stream)
                      : fill<float>(tiles, part, units, z, from, stream);
}

cudaError_t cuda_units_drain(const cuda_tiles *tiles, const cuda_tiles_part *part,
                             const cuda_tiles_units *units, void *to, const void *z,
                             const void *bias, bool relu, cudaStream_t stream)
{
    return tiles->f64 ? drain<double>(tiles, part, units, to, z, bias, relu, stream)
                      : drain<float>(tiles, part, units, to, z, bias, relu, stream);
}

cudaError_t cuda_units_split(const cuda_tiles *tiles, const cuda_tiles_part *part,
                             const cuda_tiles_units *units, void *spectra, const void *z,
                             cudaStream_t stream)
{
    return tiles->f64 ? split<double>(tiles, part, units, spectra, z, stream)
                      : split<float>(tiles, part, units, spectra, z, stream);
}

cudaError_t cuda_units_join(const cuda_tiles *tiles, const cuda_tiles_part *part,
                            const cuda_tiles_units *units, void *z, const void *spectra,
                            cudaStream_t stream)
{
    return tiles->f64 ? join<double>(tiles, part, units, z, spectra, stream)
                      : join<float>(tiles, part, units, z, spectra, stream);
}
