// SPDX-License-Identifier: MIT
// The ladder of stencils is that of W. Hwu, D. Kirk and I. El Hajj, Programming Massively Parallel
// Processors, chapter 7. The separable filter's method is that of V. Podlozhnyuk, Image Convolution
// with CUDA (2007), as in CUDA's samples: a kernel for the rows and one for the columns, tiles with
// their halo in shared memory, taps in constant memory, loops over taps unrolled, several outputs a
// thread.
#include "cuda/kernels/launch.cuh"

#include "gpu/kernels.h"

// What launches do: these kernels are linked without the module.
const struct cuda_thread *cuda_thread(void)
{
    static const struct cuda_thread thread = {cudaStreamPerThread, false};
    return &thread;
}

namespace {
constexpr int THREADS = 256;

// One thread for each of n items.
template <typename... Parameters, typename... Arguments>
bool queue_items(void (*kernel)(size_t, Parameters...), size_t n, Arguments... arguments)
{
    return queue(kernel, ceiling((int64_t)n, THREADS), dim3(THREADS), 0, n, arguments...) ==
           cudaSuccess;
}

inline __device__ size_t item()
{
    return (size_t)blockIdx.x * THREADS + threadIdx.x;
}

inline __device__ bin product(bin a, bin b, float scale)
{
    return {(a.re * b.re - a.im * b.im) * scale, (a.re * b.im + a.im * b.re) * scale};
}

inline __device__ void put(float *to, float value)
{
    *to = value;
}

inline __device__ void put(bin *to, float value)
{
    *to = {value, 0};
}

inline __device__ void put(bin *to, bin value)
{
    *to = value;
}

inline __device__ float real_part(float value)
{
    return value;
}

inline __device__ float real_part(bin value)
{
    return value.re;
}

template <typename To, typename From>
__global__ void pad(size_t n, To *to, const From *from, rows l, size_t row, bool reversed)
{
    const size_t i = item(), r = i / row, k = i % row;
    if (i < n)
        put(&to[i], k < l.length ? from[r * l.length + (reversed ? l.length - 1 - k : k)] : From{});
}

template <typename From>
__global__ void crop(size_t n, float *to, const From *from, rows l, size_t row)
{
    const size_t i = item();
    if (i < n) to[i] = real_part(from[i / l.length * row + i % l.length]);
}

__global__ void multiply(size_t n, bin *spectra, const bin *filters, size_t bins, size_t n_filters,
                         float scale)
{
    const size_t i = item();
    if (i < n)
        spectra[i] = product(spectra[i], filters[i / bins % n_filters * bins + i % bins], scale);
}

__global__ void gather(size_t n, bin *to, const bin *x, windows w)
{
    const size_t i = item(), at = i / w.points * w.hop + i % w.points, before = w.points - w.hop;
    if (i < n) to[i] = at >= before && at - before < w.n ? x[at - before] : bin{0, 0};
}

__global__ void multiply_all(size_t n, bin *to, const bin *spectra, const bin *filters, windows w)
{
    const size_t i = item(), window_bins = w.count * w.points;
    if (i < n)
        to[i] = product(spectra[i % window_bins],
                        filters[i / window_bins * w.points + i % w.points], 1 / (float)w.points);
}

__global__ void scatter(size_t n, bin *y, const bin *from, windows w)
{
    const size_t i = item(), k = i / w.n_out, at = i % w.n_out;
    if (i < n) y[i] = from[(k * w.count + at / w.hop) * w.points + w.points - w.hop + at % w.hop];
}

__global__ void gather_words_kernel(size_t n, unsigned *to, const unsigned *from, const size_t *at,
                                    size_t words)
{
    const size_t i = item();
    if (i < n) to[i] = from[at[i / words] * words + i % words];
}

// Tiles of the two passes: threads, outputs of a thread, the line of a tile with its halo.
constexpr int R = TWO_PASSES_RADIUS, STEPS = 8;
constexpr int ROW_X = 16, ROW_Y = 4, ROW_LINE = ROW_X * STEPS + 2 * R;
constexpr int COLUMN_X = 16, COLUMN_Y = 8, COLUMN_LINE = COLUMN_Y * STEPS + 2 * R;
constexpr int COLUMN_PITCH = COLUMN_LINE + 1; // no two threads of a row in one bank

__global__ void rows_kernel(float *to, const float *from, two_passes f)
{
    int64_t block = blockIdx.x;
    const int x0 = (int)take(&block, ceiling(f.width, ROW_X * STEPS)) * ROW_X * STEPS;
    const int y = (int)block * ROW_Y + (int)threadIdx.y;
    float *line = (float *)shared_memory + threadIdx.y * ROW_LINE;
    for (int i = (int)threadIdx.x; i < ROW_LINE; i += ROW_X) {
        const int x = x0 + i - R;
        line[i] = y < f.height && x >= 0 && x < f.width ? from[(size_t)y * f.width + x] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int i = s * ROW_X + (int)threadIdx.x;
        float sum = 0;
#pragma unroll
        for (int k = 0; k <= 2 * R; k++) sum += f.row[k] * line[i + k];
        if (y < f.height && x0 + i < f.width) to[(size_t)y * f.width + x0 + i] = sum;
    }
}

__global__ void columns_kernel(float *to, const float *from, two_passes f)
{
    int64_t block = blockIdx.x;
    const int x = (int)take(&block, ceiling(f.width, COLUMN_X)) * COLUMN_X + (int)threadIdx.x;
    const int y0 = (int)block * COLUMN_Y * STEPS;
    float *line = (float *)shared_memory + threadIdx.x * COLUMN_PITCH;
    for (int i = (int)threadIdx.y; i < COLUMN_LINE; i += COLUMN_Y) {
        const int y = y0 + i - R;
        line[i] = x < f.width && y >= 0 && y < f.height ? from[(size_t)y * f.width + x] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int i = s * COLUMN_Y + (int)threadIdx.y;
        float sum = 0;
#pragma unroll
        for (int k = 0; k <= 2 * R; k++) sum += f.column[k] * line[i + k];
        if (x < f.width && y0 + i < f.height) to[(size_t)(y0 + i) * f.width + x] = sum;
    }
}

// Stencils: the edge of a thread block, and of its tile with the halo.
constexpr int EDGE = 32, WIDE = EDGE + 2 * R, INNER = EDGE - 2 * R;

inline __device__ float sample(const float *from, const stencil &s, int y, int x)
{
    const bool inside = y >= 0 && y < s.height && x >= 0 && x < s.width;
    return inside ? from[(size_t)y * s.width + x] : 0;
}

struct corner {
    int y, x;
};

// The first position of a block of `edge` outputs along both axes.
inline __device__ corner block_begin(const stencil &s, int edge)
{
    int64_t block = blockIdx.x;
    const int x = (int)take(&block, ceiling(s.width, edge)) * edge;
    return {(int)block * edge, x};
}

// Stores the sum of the taps times read(i, k), the sample i rows and k columns after the first one.
template <typename Read>
inline __device__ void store_stencil(float *to, const stencil &s, int y, int x, const Read &read)
{
    float sum = 0;
    if (y >= s.height || x >= s.width) return;
    for (int i = 0; i <= 2 * R; i++)
#pragma unroll
        for (int k = 0; k <= 2 * R; k++) sum += s.taps[i][k] * read(i, k);
    to[(size_t)y * s.width + x] = sum;
}

__global__ void in_memory_kernel(float *to, const float *from, const __grid_constant__ stencil s)
{
    const corner begin = block_begin(s, EDGE);
    const int y = begin.y + (int)threadIdx.y, x = begin.x + (int)threadIdx.x;
    store_stencil(to, s, y, x, [&](int i, int k) { return sample(from, s, y + i - R, x + k - R); });
}

__global__ void in_cache_kernel(float *to, const float *from, const __grid_constant__ stencil s)
{
    const corner begin = block_begin(s, EDGE);
    const int row = (int)threadIdx.y, column = (int)threadIdx.x;
    float *tile = (float *)shared_memory;
    tile[row * EDGE + column] = sample(from, s, begin.y + row, begin.x + column);
    __syncthreads();
    store_stencil(to, s, begin.y + row, begin.x + column, [&](int i, int k) {
        const int y = row + i - R, x = column + k - R;
        const bool in_tile = y >= 0 && y < EDGE && x >= 0 && x < EDGE;
        return in_tile ? tile[y * EDGE + x] : sample(from, s, begin.y + y, begin.x + x);
    });
}

__global__ void input_tile_kernel(float *to, const float *from, const __grid_constant__ stencil s)
{
    const corner begin = block_begin(s, INNER);
    const int row = (int)threadIdx.y, column = (int)threadIdx.x;
    float *tile = (float *)shared_memory;
    tile[row * EDGE + column] = sample(from, s, begin.y + row - R, begin.x + column - R);
    __syncthreads();
    if (row >= INNER || column >= INNER) return;
    store_stencil(to, s, begin.y + row, begin.x + column,
                  [&](int i, int k) { return tile[(row + i) * EDGE + column + k]; });
}

__global__ void output_tile_kernel(float *to, const float *from, const __grid_constant__ stencil s)
{
    const corner begin = block_begin(s, EDGE);
    const int row = (int)threadIdx.y, column = (int)threadIdx.x;
    float *tile = (float *)shared_memory;
    for (int i = row; i < WIDE; i += EDGE)
        for (int k = column; k < WIDE; k += EDGE)
            tile[i * WIDE + k] = sample(from, s, begin.y + i - R, begin.x + k - R);
    __syncthreads();
    store_stencil(to, s, begin.y + row, begin.x + column,
                  [&](int i, int k) { return tile[(row + i) * WIDE + column + k]; });
}

// Thread blocks of EDGE x EDGE threads with `outputs` outputs along both axes.
bool queue_stencil(void (*kernel)(float *, const float *, stencil), int outputs, int tile,
                   float *to, const float *from, const stencil *s)
{
    return queue(kernel, ceiling(s->width, outputs) * ceiling(s->height, outputs), dim3(EDGE, EDGE),
                 tile * tile * sizeof(float), to, from, *s) == cudaSuccess;
}
} // namespace

bool pad_to_real(float *to, const float *from, rows l, bool reversed)
{
    return queue_items(pad<float, float>, l.count * rows_pitch(l), to, from, l, rows_pitch(l),
                       reversed);
}

bool pad_to_complex(bin *to, const float *from, rows l, bool reversed)
{
    return queue_items(pad<bin, float>, l.count * l.padded, to, from, l, l.padded, reversed);
}

bool pad_complex(bin *to, const bin *from, rows l)
{
    return queue_items(pad<bin, bin>, l.count * l.padded, to, from, l, l.padded, false);
}

bool crop_real(float *to, const float *from, rows l)
{
    return queue_items(crop<float>, l.count * l.length, to, from, l, rows_pitch(l));
}

bool crop_complex(float *to, const bin *from, rows l)
{
    return queue_items(crop<bin>, l.count * l.length, to, from, l, l.padded);
}

bool multiply_rows(bin *spectra, const bin *filters, size_t rows, size_t bins, size_t n_filters,
                   size_t points)
{
    return queue_items(multiply, rows * bins, spectra, filters, bins, n_filters, 1 / (float)points);
}

bool gather_windows(bin *to, const bin *x, windows w)
{
    return queue_items(gather, w.count * w.points, to, x, w);
}

bool multiply_windows(bin *to, const bin *spectra, const bin *filters, windows w)
{
    return queue_items(multiply_all, w.n_filters * w.count * w.points, to, spectra, filters, w);
}

bool scatter_windows(bin *y, const bin *from, windows w)
{
    return queue_items(scatter, w.n_filters * w.n_out, y, from, w);
}

bool gather_words(void *to, const void *from, const size_t *at, size_t n, size_t words)
{
    return queue_items(gather_words_kernel, n * words, (unsigned *)to, (const unsigned *)from, at,
                       words);
}

bool filter_rows(float *to, const float *from, const two_passes *f)
{
    return queue(rows_kernel, ceiling(f->width, ROW_X * STEPS) * ceiling(f->height, ROW_Y),
                 dim3(ROW_X, ROW_Y), ROW_Y * ROW_LINE * sizeof(float), to, from, *f) == cudaSuccess;
}

bool filter_columns(float *to, const float *from, const two_passes *f)
{
    return queue(columns_kernel, ceiling(f->width, COLUMN_X) * ceiling(f->height, COLUMN_Y * STEPS),
                 dim3(COLUMN_X, COLUMN_Y), COLUMN_X * COLUMN_PITCH * sizeof(float), to, from,
                 *f) == cudaSuccess;
}

bool stencil_in_memory(float *to, const float *from, const stencil *s)
{
    return queue_stencil(in_memory_kernel, EDGE, 0, to, from, s);
}

bool stencil_in_cache(float *to, const float *from, const stencil *s)
{
    return queue_stencil(in_cache_kernel, EDGE, EDGE, to, from, s);
}

bool stencil_input_tile(float *to, const float *from, const stencil *s)
{
    return queue_stencil(input_tile_kernel, INNER, EDGE, to, from, s);
}

bool stencil_output_tile(float *to, const float *from, const stencil *s)
{
    return queue_stencil(output_tile_kernel, EDGE, WIDE, to, from, s);
}
