// SPDX-License-Identifier: MIT
// Sums over all outputs: gradients of taps and of biases. A thread block sums CUDA_WEIGHT_TAPS taps
// of one pair of channels over a run of rows, each thread its own columns; then the threads' sums
// are added as a binary tree. No atomics, so that the order is one.
#include "cuda/kernels/grid.cuh"

namespace {
// Adds the sums of all threads of a block, a power of two, each of N numbers; those of thread 0 are
// the result. `shared` holds N numbers for each thread.
template <typename T, int N> __device__ void add_threads(T sum[N], T *shared)
{
    const int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (int i = 0; i < N; i++) shared[i * threads + thread] = sum[i];
    for (int half = threads / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half)
            for (int i = 0; i < N; i++)
                shared[i * threads + thread] += shared[i * threads + thread + half];
    }
    if (thread > 0) return; // nobody waited for the last of it
    for (int i = 0; i < N; i++) sum[i] = shared[i * threads];
}

// Rows [first, last) of [item][plane][row] that a part sums.
struct rows {
    int64_t first, last;
};

__host__ __device__ rows rows_of_part(const cuda_pass &pass, int64_t part, int64_t parts)
{
    const int64_t n = pass.batch * pass.axis[0].n * pass.axis[1].n, each = ceiling(n, parts);
    const int64_t first = part * each < n ? part * each : n;
    return {first, first + each < n ? first + each : n};
}

// Blocks are [part][group][output channel][input channel][run of taps].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    weight_kernel(const __grid_constant__ cuda_pass pass, T *sums, const T *x, const T *gy,
                  int64_t parts)
{
    const cuda_axis *axis = pass.axis;
    const int64_t n_taps = axis[0].taps * axis[1].taps * axis[2].taps, y_plane = to_plane(pass);
    int64_t block = blockIdx.x;
    const int64_t first_tap = take(&block, ceiling(n_taps, CUDA_WEIGHT_TAPS)) * CUDA_WEIGHT_TAPS;
    const int64_t c = take(&block, pass.from), k = take(&block, pass.to),
                  g = take(&block, pass.groups), part = block;
    T sum[CUDA_WEIGHT_TAPS] = {};
    const rows run = rows_of_part(pass, part, parts);
    int64_t met_first[CUDA_WEIGHT_TAPS]
                     [3]; // the sample that each tap meets with output 0, along each axis
#pragma unroll
    for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
        int64_t tap = first_tap + t;
        met_first[t][2] = met(axis[2], 0, take(&tap, axis[2].taps));
        met_first[t][1] = met(axis[1], 0, take(&tap, axis[1].taps));
        met_first[t][0] = met(axis[0], 0, tap);
    }
    for (int64_t i = run.first + threadIdx.y; i < run.last; i += blockDim.y) {
        int64_t row = i;
        const int64_t y = take(&row, axis[1].n), z = take(&row, axis[0].n), item = row;
        const T *samples = x + ((item * pass.groups + g) * pass.from + c) * from_plane(pass);
        const T *gradient = gy + ((item * pass.groups + g) * pass.to + k) * y_plane +
                            (z * axis[1].n + y) * axis[2].n;
        const T *line[CUDA_WEIGHT_TAPS]; // the row of samples that each tap meets, from where
                                         // output 0 would
#pragma unroll
        for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
            const int64_t at_row = met_first[t][1] + axis[1].from_step * y;
            const int64_t at_plane = met_first[t][0] + axis[0].from_step * z;
            const bool meets = first_tap + t < n_taps && inside(at_row, axis[1].from_size) &&
                               inside(at_plane, axis[0].from_size);
            line[t] = meets ? samples + (at_plane * axis[1].from_size + at_row) * axis[2].from_size
                            : nullptr;
        }
        for (int64_t column = threadIdx.x; column < axis[2].n; column += blockDim.x) {
            const T factor = gradient[column];
#pragma unroll
            for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
                const int64_t at = met_first[t][2] + axis[2].from_step * column;
                if (line[t] && inside(at, axis[2].from_size)) sum[t] += factor * line[t][at];
            }
        }
    }
    add_threads<T, CUDA_WEIGHT_TAPS>(sum, (T *)shared_memory);
    if (threadIdx.x || threadIdx.y) return;
    sums += part * pass.groups * pass.tap_group + g * pass.tap_group + k * pass.tap_to +
            c * pass.tap_from;
    for (int t = 0; t < CUDA_WEIGHT_TAPS; t++) {
        int64_t tap = first_tap + t;
        if (tap >= n_taps) return;
        const int64_t t2 = take(&tap, axis[2].taps), t1 = take(&tap, axis[1].taps);
        sums[tap_index(pass, tap, t1, t2)] = sum[t];
    }
}

template <typename T>
__global__ void add_parts_kernel(T *gw, const T *sums, int64_t n, int64_t parts)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_THREADS + threadIdx.x;
    if (i >= n) return;
    T sum = 0;
    for (int64_t part = 0; part < parts; part++) sum += sums[part * n + i];
    gw[i] = sum;
}

template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bias_kernel(T *gb, const T *gy, int64_t batch, int64_t channels, int64_t n)
{
    const int64_t channel = blockIdx.x;
    T sum[1] = {};
    for (int64_t item = 0; item < batch; item++)
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            sum[0] += gy[(item * channels + channel) * n + i];
    add_threads<T, 1>(sum, (T *)shared_memory);
    if (threadIdx.x == 0) gb[channel] = sum[0];
}

// The least power of two from n on, at most `most`.
int power(int64_t n, int most)
{
    int p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

// A warp reads one row where there are several.
dim3 threads_of(int64_t columns, int64_t rows)
{
    const int y = power(rows, CUDA_THREADS / power(columns, 32));
    return dim3(power(columns, CUDA_THREADS / y), y);
}

template <typename T>
cudaError_t launch_weight(const cuda_pass *pass, T *gw, T *sums, const T *x, const T *gy,
                          int64_t parts, cudaStream_t stream)
{
    const int64_t n_taps = pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
    const int64_t blocks =
        ceiling(n_taps, CUDA_WEIGHT_TAPS) * pass->from * pass->to * pass->groups * parts;
    const dim3 threads = threads_of(
        pass->axis[2].n, ceiling(pass->batch * pass->axis[0].n * pass->axis[1].n, parts));
    const size_t shared_bytes = CUDA_WEIGHT_TAPS * threads.x * threads.y * sizeof(T);
    const cudaError_t error = queue(weight_kernel<T>, blocks, threads, shared_bytes, stream, *pass,
                                    parts > 1 ? sums : gw, x, gy, parts);
    if (error != cudaSuccess || parts == 1) return error;
    const int64_t n = pass->groups * pass->tap_group;
    return queue(add_parts_kernel<T>, ceiling(n, CUDA_THREADS), dim3(CUDA_THREADS), 0, stream, gw,
                 (const T *)sums, n, parts);
}

template <typename T>
cudaError_t launch_bias(T *gb, const T *gy, int64_t batch, int64_t channels, int64_t n,
                        cudaStream_t stream)
{
    const int threads = power(n, CUDA_THREADS);
    return queue(bias_kernel<T>, channels, dim3(threads), threads * sizeof(T), stream, gb, gy,
                 batch, channels, n);
}
} // namespace

cudaError_t cuda_launch_weight(const cuda_pass *pass, bool f64, void *gw, void *sums, const void *x,
                               const void *gy, int64_t parts, cudaStream_t stream)
{
    return f64 ? launch_weight(pass, (double *)gw, (double *)sums, (const double *)x,
                               (const double *)gy, parts, stream)
               : launch_weight(pass, (float *)gw, (float *)sums, (const float *)x,
                               (const float *)gy, parts, stream);
}

cudaError_t cuda_launch_bias(bool f64, void *gb, const void *gy, int64_t batch, int64_t channels,
                             int64_t n, cudaStream_t stream)
{
    return f64 ? launch_bias((double *)gb, (const double *)gy, batch, channels, n, stream)
               : launch_bias((float *)gb, (const float *)gy, batch, channels, n, stream);
}
