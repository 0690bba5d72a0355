// SPDX-License-Identifier: MIT
// Transforms of cuda/partitioned, from samples to spectra in shares and back. All levels go in one
// launch: a thread block holds as many transforms of one level as its threads make at once.
#include "cuda/kernels/fft.cuh"
#include "cuda/kernels/launch.cuh"
#include "kernels.h"

namespace {
template <typename T> constexpr int most_threads()
{
    return (sizeof(T) == 8 ? CUDA_FFT_MOST_F64 : CUDA_FFT_MOST_F32) / CUDA_FFT_POINTS;
}

// What a thread works on. Threads beyond the last transform of a level take the barriers with the
// others (idle).
template <typename T> struct job {
    int level;
    int64_t number; // of the transform within its level
    bool idle;
    fft_place<T> place;
};

// Blocks of a level, of `n` transforms.
inline __host__ __device__ int64_t blocks_of(const cuda_level &level, int threads, int64_t n)
{
    return ceiling(n, threads / (level.points / CUDA_FFT_POINTS));
}

template <typename T>
__device__ job<T> locate(const cuda_level &level, int i, int64_t block, int64_t n)
{
    const int threads = level.points / CUDA_FFT_POINTS, row = threadIdx.x / threads;
    const int64_t number = block * (blockDim.x / threads) + row;
    complex_of<T> *shared =
        (complex_of<T> *)shared_memory + row * (level.points + level.points / 16);
    const fft_place<T> place = fft_locate<T>(level.form, shared, threadIdx.x % threads);
    return {i, number < n ? number : n - 1, number >= n, place};
}

// The job of a block whose levels have `n` transforms each.
template <typename T> __device__ job<T> take_job(const cuda_partitions &partitions, int64_t n)
{
    int64_t block = blockIdx.x;
    for (int i = 0;; i++) {
        const int64_t blocks = blocks_of(partitions.level[i], blockDim.x, n);
        if (block < blocks) return locate<T>(partitions.level[i], i, block, n);
        block -= blocks;
    }
}

// Transforms a window whose frame j is sample(j), and stores its spectrum: the first share at `to`,
// the next ones `pitch` bins apart.
template <typename T, typename Sample>
__device__ void transform(const cuda_partitions &partitions, const job<T> &job, Sample sample,
                          complex_of<T> *to, int64_t pitch)
{
    const int points = partitions.level[job.level].points, threads = points / CUDA_FFT_POINTS;
    const int share = 1 << partitions.log2_share;
    complex_of<T> v[CUDA_FFT_POINTS];
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = job.place.thread + j * threads;
        v[j] = partitions.complex ? complex_of<T>{sample(2 * at), sample(2 * at + 1)}
                                  : complex_of<T>{sample(at), -sample(at + points)};
    }
    fft_forward(job.place, v);
    if (job.idle) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int k = job.place.thread + j * threads;
        to[(k >> partitions.log2_share) * pitch + (k & (share - 1))] = v[j];
    }
}

template <typename T>
__global__ void __launch_bounds__(most_threads<T>(), 1)
    forward_kernel(const __grid_constant__ cuda_partitions partitions,
                   const __grid_constant__ cuda_flow flow)
{
    const job<T> job = take_job<T>(partitions, partitions.inputs);
    const uint64_t tick = flow.tick->tick;
    const int64_t slot = flow.tick->newest[job.level];
    const cuda_level &level = partitions.level[job.level];
    if (blockIdx.x == 0 && threadIdx.x == 0) *flow.own_tick = *flow.tick;
    if ((tick + 1) & (level.ticks - 1)) return;
    const int reals = partitions.complex ? 2 : 1, own = partitions.tick * reals,
              line = partitions.window * reals;
    const int old = 2 * level.hop * reals - own; // reals of the window that came before the tick
    const uint64_t begin = tick * own - old;
    const T *x = (const T *)flow.x + job.number * own;
    T *samples = (T *)flow.samples + job.number * line;
    const auto sample = [=](int j) {
        T *kept = samples + ((begin + j) & (line - 1));
        if (j < old) return *kept;
        if (job.level == 0 && !job.idle) *kept = x[j - old];
        return x[j - old];
    };
    const int64_t row = (int64_t)level.parts << partitions.log2_share;
    transform(partitions, job, sample,
              (complex_of<T> *)flow.level[job.level].spectra + job.number * row +
                  (slot << partitions.log2_share),
              partitions.inputs * row);
}

// Blocks are of [cell][partition] of one level.
template <typename T>
__global__ void __launch_bounds__(most_threads<T>(), 1)
    taps_kernel(const __grid_constant__ cuda_partitions partitions,
                const __grid_constant__ cuda_taps taps)
{
    const cuda_level &level = partitions.level[taps.level];
    job<T> job = locate<T>(level, taps.level, blockIdx.x, taps.n * level.parts);
    const int64_t cell = job.number / level.parts;
    const int p = job.number % level.parts;
    const auto range = taps.cells[cell].level[taps.level];
    const int reals = partitions.complex ? 2 : 1, n = level.hop * reals;
    const int64_t first = (taps.offset + (int64_t)(range.first + p) * level.hop) * reals,
                  end = taps.span * reals;
    const T *w = (const T *)taps.taps + cell * end;
    job.idle |= p >= range.count;
    const auto sample = [=](int j) {
        return j < n && first + j < end ? w[first + j] / level.points : T(0);
    };
    transform(partitions, job, sample,
              (complex_of<T> *)taps.spectra + ((range.base + p) << partitions.log2_share),
              taps.line << partitions.log2_share);
}

// What the other levels have ready for the tick's outputs of a channel of level 0.
template <typename T> struct ready {
    const T *at[CUDA_LEVELS - 1]; // NULL: nothing

    __device__ ready(const cuda_partitions &partitions, const cuda_flow &flow, uint64_t tick,
                     int64_t channel)
    {
        const int reals = partitions.complex ? 2 : 1;
#pragma unroll
        for (int i = 1; i < CUDA_LEVELS; i++) {
            const cuda_level &level = partitions.level[i];
            const uint64_t played = tick - level.start; // ticks
            const int64_t line =
                (played & level.ticks ? 2 : 0) * (int64_t)partitions.outputs + channel;
            const int64_t first =
                line * level.hop + (int64_t)(played & (level.ticks - 1)) * partitions.tick;
            at[i - 1] = i < partitions.n_levels && tick >= (uint64_t)level.start
                            ? (const T *)flow.level[i].out + first * reals
                            : nullptr;
        }
    }

    // For a real of the outputs.
    __device__ T operator[](int j) const
    {
        T sum = 0;
#pragma unroll
        for (int i = 1; i < CUDA_LEVELS; i++)
            if (at[i - 1]) sum += at[i - 1][j];
        return sum;
    }
};

// The transforms of a level are of [set][output].
template <typename T>
__global__ void __launch_bounds__(most_threads<T>(), 1)
    inverse_kernel(const __grid_constant__ cuda_partitions partitions,
                   const __grid_constant__ cuda_flow flow)
{
    const int64_t channels = 2 * (int64_t)partitions.outputs;
    job<T> job = take_job<T>(partitions, channels);
    const uint64_t tick = flow.own_tick->tick;
    const cuda_level &level = partitions.level[job.level];
    if (job.level > 0 && (tick + 2) & (level.ticks - 1)) return;
    job.idle |= !flow.own_tick->filter[job.number / partitions.outputs].first_cell;
    const int points = level.points, threads = points / CUDA_FFT_POINTS,
              n = level.hop * (partitions.complex ? 2 : 1);
    const complex_of<T> *sums =
        (const complex_of<T> *)flow.level[job.level].sums + job.number * points;
    const int turn = (tick + 1) & level.ticks ? 0 : 1; // its block's, of two
    const bool first = job.level == 0;
    T *y = first ? (T *)flow.y + ((int64_t)flow.own_tick->round * channels + job.number) * n
                 : (T *)flow.level[job.level].out + ((int64_t)turn * channels + job.number) * n;
    const ready<T> others(partitions, flow, tick, job.number);
    const auto put = [&](int j, T value) { y[j] = first ? value + others[j] : value; };
    complex_of<T> v[CUDA_FFT_POINTS];
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++)
        v[j] = job.idle ? complex_of<T>{0, 0} : sums[job.place.thread + j * threads];
    fft_inverse(job.place, v);
    if (job.idle) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = job.place.thread + j * threads;
        if (!partitions.complex) put(at, -v[j].im);
        else if (j >= CUDA_FFT_POINTS / 2) {
            put(2 * at - n, v[j].re);
            put(2 * at - n + 1, v[j].im);
        }
    }
}

// Threads of a block that serves these levels, and what shared memory their transforms take.
struct extent {
    int threads;
    size_t shared_bytes;
};

extent extent_of(const cuda_level *levels, int n, bool f64)
{
    enum { FULL = 128 };
    extent extent = {FULL, 0};
    for (int i = 0; i < n; i++)
        if (cuda_fft_threads(levels[i].points) > extent.threads)
            extent.threads = cuda_fft_threads(levels[i].points);
    for (int i = 0; i < n; i++) {
        const size_t bytes = extent.threads / cuda_fft_threads(levels[i].points) *
                             cuda_fft_shared(levels[i].points, f64);
        if (bytes > extent.shared_bytes) extent.shared_bytes = bytes;
    }
    return extent;
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, const extent &extent,
                   cudaStream_t stream, Arguments... arguments)
{
    return queue(kernel, blocks, dim3(extent.threads), extent.shared_bytes, stream, arguments...);
}

// Of all levels, each with `n` transforms.
template <typename Kernel>
cudaError_t launch_levels(Kernel kernel, const cuda_partitions *partitions, const cuda_flow *flow,
                          int64_t n, cudaStream_t stream)
{
    const extent extent = extent_of(partitions->level, partitions->n_levels, partitions->f64);
    int64_t blocks = 0;
    for (int i = 0; i < partitions->n_levels; i++)
        blocks += blocks_of(partitions->level[i], extent.threads, n);
    return launch(kernel, blocks, extent, stream, *partitions, *flow);
}
} // namespace

cudaError_t cuda_load_transforms(const cuda_partitions *partitions)
{
    const cudaError_t error =
        load_kernel(partitions->f64 ? forward_kernel<double> : forward_kernel<float>);
    return error == cudaSuccess
               ? load_kernel(partitions->f64 ? inverse_kernel<double> : inverse_kernel<float>)
               : error;
}

cudaError_t cuda_launch_forward(const cuda_partitions *partitions, const cuda_flow *flow,
                                cudaStream_t stream)
{
    return launch_levels(partitions->f64 ? forward_kernel<double> : forward_kernel<float>,
                         partitions, flow, partitions->inputs, stream);
}

cudaError_t cuda_launch_inverse(const cuda_partitions *partitions, const cuda_flow *flow,
                                cudaStream_t stream)
{
    return launch_levels(partitions->f64 ? inverse_kernel<double> : inverse_kernel<float>,
                         partitions, flow, 2 * (int64_t)partitions->outputs, stream);
}

cudaError_t cuda_launch_taps(const cuda_partitions *partitions, const cuda_taps *taps,
                             cudaStream_t stream)
{
    const cuda_level &level = partitions->level[taps->level];
    const extent extent = extent_of(&level, 1, partitions->f64);
    return launch(partitions->f64 ? taps_kernel<double> : taps_kernel<float>,
                  blocks_of(level, extent.threads, taps->n * level.parts), extent, stream,
                  *partitions, *taps);
}
