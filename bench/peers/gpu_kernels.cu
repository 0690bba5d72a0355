// SPDX-License-Identifier: MIT
// The separable filter's method is that of V. Podlozhnyuk, Image Convolution with CUDA (2007), as in CUDA's samples: a
// kernel for the rows and one for the columns, tiles with their halo in shared memory, taps in constant memory, loops
// over taps unrolled, several outputs a thread.
#include "gpu_kernels.h"

namespace {
constexpr int THREADS = 256, MOST_BLOCKS = 1 << 16;

unsigned blocks_for(size_t n)
{
    const size_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

__device__ size_t first_item()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ size_t next_item()
{
    return (size_t)gridDim.x * blockDim.x;
}

__device__ float2 product(float2 a, float2 b, float scale)
{
    return make_float2((a.x * b.x - a.y * b.y) * scale, (a.x * b.y + a.y * b.x) * scale);
}

__device__ void put(float *to, float value)
{
    *to = value;
}

__device__ void put(float2 *to, float value)
{
    *to = make_float2(value, 0);
}

__device__ float real_part(float value)
{
    return value;
}

__device__ float real_part(float2 value)
{
    return value.x;
}

template <typename T> __global__ void pad(T *to, const float *from, line l, size_t row, bool reversed)
{
    for (size_t i = first_item(); i < l.rows * row; i += next_item()) {
        const size_t r = i / row, k = i % row;
        put(&to[i], k < l.length ? from[r * l.length + (reversed ? l.length - 1 - k : k)] : 0);
    }
}

template <typename T> __global__ void crop(float *to, const T *from, line l, size_t row)
{
    for (size_t i = first_item(); i < l.rows * l.length; i += next_item())
        to[i] = real_part(from[i / l.length * row + i % l.length]);
}

__global__ void multiply(float2 *spectra, const float2 *filters, size_t rows, size_t bins, size_t n_filters,
                         float scale)
{
    for (size_t i = first_item(); i < rows * bins; i += next_item())
        spectra[i] = product(spectra[i], filters[i / bins % n_filters * bins + i % bins], scale);
}

__global__ void gather(float2 *to, const float2 *x, windows w)
{
    for (size_t i = first_item(); i < w.count * w.points; i += next_item()) {
        const size_t at = i / w.points * w.hop + i % w.points, before = w.points - w.hop;
        to[i] = at >= before && at - before < w.n ? x[at - before] : make_float2(0, 0);
    }
}

__global__ void multiply_all(float2 *to, const float2 *spectra, const float2 *filters, windows w)
{
    const size_t window_bins = w.count * w.points;
    for (size_t i = first_item(); i < w.n_filters * window_bins; i += next_item())
        to[i] = product(spectra[i % window_bins], filters[i / window_bins * w.points + i % w.points], 1.f / w.points);
}

__global__ void scatter(float2 *y, const float2 *from, windows w)
{
    for (size_t i = first_item(); i < w.n_filters * w.n_out; i += next_item()) {
        const size_t k = i / w.n_out, at = i % w.n_out;
        y[i] = from[(k * w.count + at / w.hop) * w.points + w.points - w.hop + at % w.hop];
    }
}

constexpr int R = TWO_PASSES_RADIUS, TILE = 16, STEPS = 8; // outputs a thread, TILE apart

__global__ void rows_kernel(float *to, const float *from, two_passes f)
{
    __shared__ float tile[4][TILE * STEPS + 2 * R];
    const int x0 = (int)blockIdx.x * TILE * STEPS, y = (int)(blockIdx.y * 4 + threadIdx.y);
    float *own = tile[threadIdx.y];
    for (int i = (int)threadIdx.x; i < TILE * STEPS + 2 * R; i += TILE) {
        const int x = x0 + i - R;
        own[i] = y < f.height && x >= 0 && x < f.width ? from[(size_t)y * f.width + x] : 0;
    }
    __syncthreads();
    if (y >= f.height) return;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int i = s * TILE + (int)threadIdx.x;
        float sum = 0;
#pragma unroll
        for (int k = 0; k <= 2 * R; k++) sum += f.row[k] * own[i + k];
        if (x0 + i < f.width) to[(size_t)y * f.width + x0 + i] = sum;
    }
}

__global__ void columns_kernel(float *to, const float *from, two_passes f)
{
    __shared__ float tile[TILE][8 * STEPS + 2 * R + 1];
    const int x = (int)(blockIdx.x * TILE + threadIdx.x), y0 = (int)blockIdx.y * 8 * STEPS;
    float *own = tile[threadIdx.x];
    for (int i = (int)threadIdx.y; i < 8 * STEPS + 2 * R; i += 8) {
        const int y = y0 + i - R;
        own[i] = x < f.width && y >= 0 && y < f.height ? from[(size_t)y * f.width + x] : 0;
    }
    __syncthreads();
    if (x >= f.width) return;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int i = s * 8 + (int)threadIdx.y;
        float sum = 0;
#pragma unroll
        for (int k = 0; k <= 2 * R; k++) sum += f.column[k] * own[i + k];
        if (y0 + i < f.height) to[(size_t)(y0 + i) * f.width + x] = sum;
    }
}

unsigned parts(int n, int part)
{
    return (unsigned)((n + part - 1) / part);
}
} // namespace

// In-place transforms of reals need room for one more complex number.
static size_t real_row(line l)
{
    return l.padded + 2;
}

void pad_to_real(float *to, const float *from, line l, bool reversed)
{
    pad<<<blocks_for(l.rows * real_row(l)), THREADS>>>(to, from, l, real_row(l), reversed);
}

void pad_to_complex(float2 *to, const float *from, line l, bool reversed)
{
    pad<<<blocks_for(l.rows * l.padded), THREADS>>>(to, from, l, l.padded, reversed);
}

void crop_real(float *to, const float *from, line l)
{
    crop<<<blocks_for(l.rows * l.length), THREADS>>>(to, from, l, real_row(l));
}

void crop_complex(float *to, const float2 *from, line l)
{
    crop<<<blocks_for(l.rows * l.length), THREADS>>>(to, from, l, l.padded);
}

void multiply_rows(float2 *spectra, const float2 *filters, size_t rows, size_t bins, size_t n_filters, float scale)
{
    multiply<<<blocks_for(rows * bins), THREADS>>>(spectra, filters, rows, bins, n_filters, scale);
}

void gather_windows(float2 *to, const float2 *x, windows w)
{
    gather<<<blocks_for(w.count * w.points), THREADS>>>(to, x, w);
}

void multiply_windows(float2 *to, const float2 *spectra, const float2 *filters, windows w)
{
    multiply_all<<<blocks_for(w.n_filters * w.count * w.points), THREADS>>>(to, spectra, filters, w);
}

void scatter_windows(float2 *y, const float2 *from, windows w)
{
    scatter<<<blocks_for(w.n_filters * w.n_out), THREADS>>>(y, from, w);
}

void filter_rows(float *to, const float *from, const two_passes *f)
{
    rows_kernel<<<dim3(parts(f->width, TILE * STEPS), parts(f->height, 4)), dim3(TILE, 4)>>>(to, from, *f);
}

void filter_columns(float *to, const float *from, const two_passes *f)
{
    columns_kernel<<<dim3(parts(f->width, TILE), parts(f->height, 8 * STEPS)), dim3(TILE, 8)>>>(to, from, *f);
}
