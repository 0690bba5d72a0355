// SPDX-License-Identifier: MIT
// Transforms of cuda/partitioned: a thread block each, in shared memory, from samples to a spectrum in shares and back.
// Source: Stockham, High-speed convolution and correlation, AFIPS 28 (1966), radix 4; real samples by half as many
// complex points as in Press et al., Numerical Recipes, 12.3.
#include "bins.cuh"
#include "grid.cuh"
#include "partitions.h"

namespace {
// exp(-2 pi i k / largest), and its conjugate for the way back.
template <typename T, bool back> __device__ bin<T> root(const bin<T> *roots, int k)
{
    return back ? conjugate(roots[k]) : roots[k];
}

// One pass of radix 4 after s points' worth of passes; `step` roots apart are those of `points`.
template <typename T, bool back>
__device__ void pass_of_four(const bin<T> *from, bin<T> *to, int points, int s, const bin<T> *roots, int step)
{
    const int quarter = points / 4;
    for (int i = threadIdx.x; i < quarter; i += blockDim.x) {
        const int q = i & (s - 1), p = i - q, at = q + 4 * p;
        const bin<T> a = from[i], b = from[i + quarter], c = from[i + 2 * quarter], d = from[i + 3 * quarter];
        const bin<T> sum = a + c, difference = a - c, other = b + d, quartered = turned(b - d);
        to[at] = sum + other;
        to[at + s] = root<T, back>(roots, p * step) * (back ? difference + quartered : difference - quartered);
        to[at + 2 * s] = root<T, back>(roots, 2 * p * step) * (sum - other);
        to[at + 3 * s] = root<T, back>(roots, 3 * p * step) * (back ? difference - quartered : difference + quartered);
    }
}

template <typename T> __device__ void last_pass_of_two(const bin<T> *from, bin<T> *to, int points)
{
    const int half = points / 2;
    for (int i = threadIdx.x; i < half; i += blockDim.x) {
        const bin<T> a = from[i], b = from[i + half];
        to[i] = a + b;
        to[i + half] = a - b;
    }
}

// Transforms z[points], using as many behind it; returns where the result is. Gain: 1, back and forth `points`.
template <typename T, bool back> __device__ bin<T> *transform(bin<T> *z, int points, const bin<T> *roots, int largest)
{
    bin<T> *from = z, *to = z + points;
    for (int s = 1; s < points; s *= 4) {
        __syncthreads();
        if (points / s >= 4) pass_of_four<T, back>(from, to, points, s, roots, largest / points);
        else last_pass_of_two(from, to, points);
        bin<T> *const other = from;
        from = to;
        to = other;
    }
    __syncthreads();
    return from;
}

// Bin k of real samples from the transform of half as many complex points.
template <typename T> __device__ bin<T> split(const bin<T> *z, int points, int k, bin<T> root)
{
    if (k == 0) return {z[0].re + z[0].im, z[0].re - z[0].im};
    const bin<T> a = z[k], b = conjugate(z[points - k]);
    return scaled(a + b - turned(root * (a - b)), T(0.5));
}

// The reverse: what transforms back to pairs of samples.
template <typename T> __device__ bin<T> joined(const bin<T> *x, int points, int k, bin<T> root)
{
    if (k == 0) return {(x[0].re + x[0].im) / 2, (x[0].re - x[0].im) / 2};
    const bin<T> a = x[k], b = conjugate(x[points - k]);
    return scaled(a + b + turned(conjugate(root) * (a - b)), T(0.5));
}

// Transforms the samples in z and stores the spectrum: its first share at `to`, the next ones `pitch` bins apart.
template <typename T>
__device__ void store_spectrum(const cuda_partitions &partitions, const cuda_level &level, bin<T> *z,
                               const bin<T> *roots, bin<T> *to, int64_t pitch)
{
    const int points = level.points, share = partitions.share;
    const bin<T> *x = transform<T, false>(z, points, roots, partitions.largest);
    for (int k = threadIdx.x; k < points; k += blockDim.x)
        to[k / share * pitch + k % share] =
            partitions.complex ? x[k] : split(x, points, k, roots[k * (partitions.largest / (2 * points))]);
}

// Blocks are [level][input].
template <typename T>
__global__ void __launch_bounds__(CUDA_PARTITION_THREADS, 2)
    forward_kernel(const __grid_constant__ cuda_partitions partitions, const __grid_constant__ cuda_flow flow)
{
    const int c = blockIdx.x % partitions.inputs, i = blockIdx.x / partitions.inputs;
    const uint64_t tick = flow.tick->tick;
    if (blockIdx.x == 0 && threadIdx.x == 0) *flow.own_tick = *flow.tick;
    const cuda_level &level = partitions.level[i];
    if ((tick + 1) % level.ticks) return;
    const int reals = partitions.complex ? 2 : 1, own = partitions.tick * reals, line = partitions.largest * reals;
    const int n = 2 * level.hop * reals; // a window of the last frames, in reals
    const uint64_t begin = (tick + 1) * own - n;
    const T *x = (const T *)flow.x + (int64_t)c * own;
    T *samples = (T *)flow.samples + (int64_t)c * line, *z = (T *)shared_memory;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        T *kept = samples + ((begin + j) & (line - 1));
        const bool fresh = j >= n - own;
        z[j] = fresh ? x[j - (n - own)] : *kept;
        if (fresh && i == 0) *kept = z[j];
    }
    const int64_t slot = ((tick + 1) / level.ticks - 1) % level.parts, row = (int64_t)level.parts * partitions.share;
    store_spectrum(partitions, level, (bin<T> *)z, (const bin<T> *)flow.roots,
                   (bin<T> *)flow.level[i].spectra + c * row + slot * partitions.share, partitions.inputs * row);
}

// Blocks are [cell][partition].
template <typename T>
__global__ void __launch_bounds__(CUDA_PARTITION_THREADS, 2)
    taps_kernel(const __grid_constant__ cuda_partitions partitions, const __grid_constant__ cuda_taps taps)
{
    const cuda_level &level = partitions.level[taps.level];
    const int p = blockIdx.x % level.parts;
    const int64_t i = blockIdx.x / level.parts;
    const cuda_cell &cell = taps.cells[i];
    if (p >= cell.level[taps.level].count) return;
    const int64_t first = taps.offset + (int64_t)(cell.level[taps.level].first + p) * level.hop;
    const int reals = partitions.complex ? 2 : 1, n = level.hop * reals;
    const T *w = (const T *)taps.taps + i * taps.span * reals;
    T *z = (T *)shared_memory;
    for (int j = threadIdx.x; j < 2 * n; j += blockDim.x) {
        const int64_t at = first * reals + j;
        z[j] = j < n && at < taps.span * reals ? w[at] / level.points : T(0);
    }
    const int64_t place = cell.level[taps.level].base + p;
    store_spectrum(partitions, level, (bin<T> *)z, (const bin<T> *)taps.roots,
                   (bin<T> *)taps.spectra + place * partitions.share, taps.line * partitions.share);
}

// What the other levels have ready for a sample of the tick's outputs of level 0.
template <typename T>
__device__ T sum_of_levels(const cuda_partitions &partitions, const cuda_flow &flow, uint64_t tick, int channel, int j)
{
    const int reals = partitions.complex ? 2 : 1;
    T sum = 0;
    for (int i = 1; i < partitions.n_levels; i++) {
        const cuda_level &level = partitions.level[i];
        if (tick < (uint64_t)level.start) continue;
        const uint64_t at = tick - level.start, block = at / level.ticks;
        const int64_t line = (int64_t)(block % 2) * 2 * partitions.outputs + channel;
        sum += ((const T *)flow.level[i].out)[(line * level.hop + (at % level.ticks) * partitions.tick) * reals + j];
    }
    return sum;
}

// Blocks are [level][set][output].
template <typename T>
__global__ void __launch_bounds__(CUDA_PARTITION_THREADS, 2)
    inverse_kernel(const __grid_constant__ cuda_partitions partitions, const __grid_constant__ cuda_flow flow)
{
    const int channels = 2 * partitions.outputs, channel = blockIdx.x % channels, i = blockIdx.x / channels;
    const uint64_t tick = flow.own_tick->tick;
    const cuda_level &level = partitions.level[i];
    if (!flow.own_tick->filter[channel / partitions.outputs].first_cell) return;
    if ((tick + 2) % level.ticks && i > 0) return;
    const int points = level.points, reals = partitions.complex ? 2 : 1, n = level.hop * reals;
    const bin<T> *sums = (const bin<T> *)flow.level[i].sums + (int64_t)channel * points;
    const bin<T> *roots = (const bin<T> *)flow.roots;
    bin<T> *z = (bin<T> *)shared_memory;
    for (int k = threadIdx.x; k < points; k += blockDim.x)
        z[k] = partitions.complex ? sums[k] : joined(sums, points, k, roots[k * (partitions.largest / (2 * points))]);
    const T *outputs = (const T *)transform<T, true>(z, points, roots, partitions.largest) + n;
    if (i == 0) {
        T *y = (T *)flow.y + ((int64_t)(tick % partitions.rounds) * channels + channel) * n;
        for (int j = threadIdx.x; j < n; j += blockDim.x)
            y[j] = outputs[j] + sum_of_levels<T>(partitions, flow, tick, channel, j);
    } else {
        const uint64_t block = (tick + 1) / level.ticks - 1;
        T *out = (T *)flow.level[i].out + ((int64_t)(block % 2) * channels + channel) * n;
        for (int j = threadIdx.x; j < n; j += blockDim.x) out[j] = outputs[j];
    }
}

// The threads of a block: as many as one pass of the longest transform keeps busy, in whole warps.
int threads_of(const cuda_level &level)
{
    const int busy = level.points / 4;
    return busy > CUDA_PARTITION_THREADS ? CUDA_PARTITION_THREADS : busy < 32 ? 32 : busy;
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, const cuda_level &level, bool f64,
                   cudaStream_t stream, Arguments... arguments)
{
    const size_t bytes = cuda_transform_bytes(&level, f64);
    const cudaError_t error =
        cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return error == cudaSuccess ? queue(kernel, blocks, dim3(threads_of(level)), bytes, stream, arguments...) : error;
}
} // namespace

size_t cuda_transform_bytes(const cuda_level *level, bool f64)
{
    return (size_t)level->points * 4 * (f64 ? 8 : 4);
}

cudaError_t cuda_launch_forward(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    const int64_t blocks = (int64_t)partitions->n_levels * partitions->inputs;
    const cuda_level &largest = partitions->level[partitions->n_levels - 1];
    return launch(partitions->f64 ? forward_kernel<double> : forward_kernel<float>, blocks, largest, partitions->f64,
                  stream, *partitions, *flow);
}

cudaError_t cuda_launch_inverse(const cuda_partitions *partitions, const cuda_flow *flow, cudaStream_t stream)
{
    const int64_t blocks = (int64_t)partitions->n_levels * 2 * partitions->outputs;
    const cuda_level &largest = partitions->level[partitions->n_levels - 1];
    return launch(partitions->f64 ? inverse_kernel<double> : inverse_kernel<float>, blocks, largest, partitions->f64,
                  stream, *partitions, *flow);
}

cudaError_t cuda_launch_taps(const cuda_partitions *partitions, const cuda_taps *taps, cudaStream_t stream)
{
    const cuda_level &level = partitions->level[taps->level];
    return launch(partitions->f64 ? taps_kernel<double> : taps_kernel<float>, taps->n * level.parts, level,
                  partitions->f64, stream, *partitions, *taps);
}
