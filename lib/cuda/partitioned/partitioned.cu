// SPDX-License-Identifier: MIT
// The kernels of cuda/partitioned: transforms from samples to spectra in shares and back, with the
// products (products.cuh) between them.
#include <assert.h>

#include "cuda/kernels/windows.cuh"
#include "products.cuh"

namespace {
// Transforms. All segments go in one launch: a thread block holds as many transforms of one segment
// as it has threads for.

// The transform that a thread works on. Threads beyond the last one of a segment are idle, but take
// the barriers with the others.
template <typename T> struct transform_job {
    int segment;
    int64_t first, number; // within its segment: the thread block's first transform, and its own
    bool idle;
    fft_thread<T> fft;
};

// Thread blocks of a segment that has `n` transforms.
inline __host__ __device__ int64_t transform_blocks(const cuda_segment &segment, int threads,
                                                    int64_t n)
{
    return ceiling(n, threads / (segment.points / CUDA_FFT_POINTS));
}

template <typename T>
__device__ transform_job<T> segment_job(const cuda_segment &segment, int i, int64_t block,
                                        int64_t n)
{
    const int threads = segment.points / CUDA_FFT_POINTS, row = threadIdx.x / threads;
    const int64_t first = block * (blockDim.x / threads), number = first + row;
    complex_of<T> *shared =
        (complex_of<T> *)shared_memory + row * (segment.points + segment.points / 16);
    const fft_thread<T> fft = fft_thread_at<T>(segment.form, shared, threadIdx.x % threads);
    return {i, first, number < n ? number : n - 1, number >= n, fft};
}

// The same where segment i has groups[i] * n transforms, one segment after the other.
template <typename T>
__device__ transform_job<T> find_job(const cuda_partition_layout &layout,
                                     const int groups[CUDA_MAX_SEGMENTS], int64_t n)
{
    int64_t block = blockIdx.x;
    for (int i = 0;; i++) {
        const int64_t blocks = transform_blocks(layout.segment[i], blockDim.x, groups[i] * n);
        if (block < blocks) return segment_job<T>(layout.segment[i], i, block, groups[i] * n);
        block -= blocks;
    }
}

// Transforms a window whose frame j is sample(j): v[j] is bin thread + j * threads.
template <typename T, typename Sample>
__device__ void transform_frames(const cuda_partition_layout &layout, const transform_job<T> &job,
                                 Sample sample, complex_of<T> v[CUDA_FFT_POINTS])
{
    const int points = layout.segment[job.segment].points, threads = points / CUDA_FFT_POINTS;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = job.fft.thread + j * threads;
        v[j] = layout.complex ? complex_of<T>{sample(2 * at), sample(2 * at + 1)}
                              : complex_of<T>{sample(at), -sample(at + points)};
    }
    fft_block_forward(job.fft, v);
}

// Stores a spectrum: the first share at `to`, the others `pitch` bins apart.
template <typename T>
__device__ void store_spectrum(const cuda_partition_layout &layout, const transform_job<T> &job,
                               const complex_of<T> v[CUDA_FFT_POINTS], complex_of<T> *to,
                               int64_t pitch)
{
    const int threads = layout.segment[job.segment].points / CUDA_FFT_POINTS;
    const int share = 1 << layout.log2_share;
    if (job.idle) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int k = job.fft.thread + j * threads;
        to[(k >> layout.log2_share) * pitch + (k & (share - 1))] = v[j];
    }
}

// The same in 16 bits, from share `at` of the path on. A thread rounds a line.
inline __device__ void store_spectrum_i16(const cuda_partition_layout &layout,
                                          const transform_job<float> &job,
                                          complex_of<float> v[CUDA_FFT_POINTS],
                                          const cuda_path &path, int64_t at)
{
    static_assert((int)CUDA_I16_BINS == (int)CUDA_FFT_POINTS, "a thread has a line");
    const int thread = job.fft.thread,
              threads = layout.segment[job.segment].points / CUDA_FFT_POINTS;
    gather_line(v, job.fft.shared, thread, threads);
    if (job.idle) return;
    const int log2_lines = layout.log2_share - 4;
    at += (int64_t)(thread >> log2_lines) * path.segment[job.segment].columns;
    const int64_t line = (at << log2_lines) + (thread & ((1 << log2_lines) - 1));
    uint32_t words[CUDA_I16_BINS];
    path.scales[line] = round_line(words, v);
    vector_of<uint32_t> *to = (vector_of<uint32_t> *)path.spectra + line * 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = {words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
}

template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    partition_forward_kernel(const __grid_constant__ cuda_partition_layout layout,
                             const __grid_constant__ cuda_partition_memory memory,
                             const __grid_constant__ cuda_partition_launch launch)
{
    transform_job<T> job = find_job<T>(layout, launch.collected, layout.group_inputs);
    const cuda_quantum &now = quantum_of(memory, launch);
    const uint64_t quantum = now.number;
    const cuda_segment &segment = layout.segment[job.segment];
    if (now.fill + now.frames < layout.quantum) return;
    const bool bank = launch.bank.slots;
    const int due =
        bank ? launch.collected[job.segment] : cuda_groups_due(&layout, &segment, quantum + 1);
    const int64_t n = (int64_t)due * layout.group_inputs;
    if (job.first >= n) return;
    if (job.number >= n) job.idle = true, job.number = n - 1;
    const int number = (int)(job.number / layout.group_inputs),
              group = bank ? (int)(launch.bank.collected[job.segment][number] >> 1)
                           : cuda_first_due(&segment, quantum + 1) + number * segment.quanta;
    const int64_t channel =
        (int64_t)group * layout.group_inputs + (job.number - (int64_t)number * layout.group_inputs);
    const int64_t slot =
        newest_block(segment, now.newest[job.segment], quantum, phase_of(launch, segment, group));
    const int reals = layout.complex ? 2 : 1, length = layout.quantum * reals,
              ring = layout.window * reals;
    // Reals of the window that came before the quantum.
    const int old = 2 * segment.hop * reals - length;
    const uint64_t begin = quantum * length - old;
    const T *x = (const T *)memory.x + (channel * layout.history + now.x_from) * reals;
    T *samples = (T *)memory.samples + channel * ring;
    const auto sample = [=](int j) {
        T *stored = samples + ((begin + j) & (ring - 1));
        if (j < old) return *stored;
        if (job.segment == 0 && !job.idle) *stored = x[j - old];
        return x[j - old];
    };
    const int64_t row = (int64_t)segment.partitions << layout.log2_share;
    complex_of<T> v[CUDA_FFT_POINTS];
    transform_frames(layout, job, sample, v);
    store_spectrum(layout, job, v,
                   (complex_of<T> *)memory.segment[job.segment].spectra + channel * row +
                       (slot << layout.log2_share),
                   layout.inputs * row);
}

// Whether a thread block of partition_taps_kernel has any partition that is not left out.
inline __device__ bool has_partitions(const cuda_segment &segment, const cuda_partition_taps &taps,
                                      int64_t first)
{
    const int64_t rows = blockDim.x / (segment.points / CUDA_FFT_POINTS);
    for (int64_t i = first; i < first + rows && i < taps.n * segment.partitions; i++)
        if (i % segment.partitions < taps.paths[i / segment.partitions].segment[taps.segment].count)
            return true;
    return false;
}

// Transforms are [path][partition] of one segment.
template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    partition_taps_kernel(const __grid_constant__ cuda_partition_layout layout,
                          const __grid_constant__ cuda_partition_taps taps)
{
    const cuda_segment &segment = layout.segment[taps.segment];
    transform_job<T> job =
        segment_job<T>(segment, taps.segment, blockIdx.x, taps.n * segment.partitions);
    if (!has_partitions(segment, taps, job.first)) return;
    const int64_t path = job.number / segment.partitions;
    const int p = job.number % segment.partitions;
    const cuda_path &target = taps.paths[path];
    const cuda_path_range &range = target.segment[taps.segment];
    const int reals = layout.complex ? 2 : 1, n = segment.hop * reals;
    const int64_t first = (taps.first + (int64_t)(range.first + p) * segment.hop) * reals,
                  end = taps.span * reals;
    const T *w = (const T *)taps.taps + path * end;
    job.idle |= p >= range.count;
    const auto sample = [=](int j) {
        return j < n && first + j < end ? w[first + j] / segment.points : T(0);
    };
    const int64_t at = (int64_t)range.at + p;
    complex_of<T> v[CUDA_FFT_POINTS];
    transform_frames(layout, job, sample, v);
    if constexpr (sizeof(T) == sizeof(float))
        if (layout.i16) return store_spectrum_i16(layout, job, v, target, at);
    store_spectrum(layout, job, v, (complex_of<T> *)target.spectra + (at << layout.log2_share),
                   (int64_t)range.columns << layout.log2_share);
}

// The finished sums of the other segments for the outputs of a quantum of one channel of segment 0.
template <typename T> struct ready_outputs {
    const T *at[CUDA_MAX_SEGMENTS - 1]; // NULL: nothing

    // `channel` counts those of both sets.
    __device__ ready_outputs(const cuda_partition_layout &layout,
                             const cuda_partition_memory &memory,
                             const cuda_partition_launch &launch, uint64_t quantum, int64_t channel,
                             int group)
    {
        const int reals = layout.complex ? 2 : 1;
#pragma unroll
        for (int i = 1; i < CUDA_MAX_SEGMENTS; i++) {
            const cuda_segment &segment = layout.segment[i];
            const uint64_t current = quantum + phase_of(launch, segment, group),
                           played = current - segment.start; // quanta
            const int64_t row =
                (played & segment.quanta ? 2 : 0) * (int64_t)layout.outputs + channel;
            const int64_t first =
                row * segment.hop + (int64_t)(played & (segment.quanta - 1)) * layout.quantum;
            at[i - 1] = i < layout.n_segments && current >= (uint64_t)segment.start
                            ? (const T *)memory.segment[i].out + first * reals
                            : nullptr;
        }
    }

    // Their sum for one real of the outputs.
    __device__ T operator[](int j) const
    {
        T sum = 0;
#pragma unroll
        for (int i = 1; i < CUDA_MAX_SEGMENTS; i++)
            if (at[i - 1]) sum += at[i - 1][j];
        return sum;
    }
};

// The output of a transform of partition_inverse_kernel, whose transforms are
// [set][group that is due][output of the group]; of a bank [slot with its set][output of the slot].
struct inverse_output {
    int set, group;
    int64_t channel; // of those of both sets
    bool idle;       // it has no filter, or no group is due there

    __device__ inverse_output(const cuda_partition_layout &layout,
                              const cuda_partition_launch &launch, const cuda_quantum &now,
                              int index, int64_t number)
    {
        const cuda_segment &segment = layout.segment[index];
        const int groups = launch.finished[index];
        const int64_t above = number / layout.group_outputs;
        if (launch.bank.slots) {
            const unsigned job = launch.bank.finished[index][above];
            group = job >> 1, set = job & 1;
        } else {
            const int row = (int)(above / groups), due = (int)(above - (int64_t)row * groups);
            set = row;
            group = cuda_first_due(&segment, now.number + 2) + due * segment.quanta;
        }
        channel = (int64_t)set * layout.outputs + (int64_t)group * layout.group_outputs +
                  (number - above * layout.group_outputs);
        idle = group >= layout.groups || !filter_of(launch, now, group, set).first_path;
    }
};

// Whether a thread block of partition_inverse_kernel has any output that is not idle.
inline __device__ bool has_outputs(const cuda_partition_layout &layout, const cuda_segment &segment,
                                   const cuda_partition_launch &launch, const cuda_quantum &now,
                                   int groups, int64_t first)
{
    if (launch.bank.slots) return true; // the lists have none without a filter
    const int64_t end = first + blockDim.x / (segment.points / CUDA_FFT_POINTS),
                  n = (int64_t)groups * layout.group_outputs,
                  due = (int64_t)cuda_groups_due(&layout, &segment, now.number + 2) *
                        layout.group_outputs;
    for (int set = 0; set < 2; set++)
        if (now.slot.filter[set].first_path && first < set * n + due && end > set * n) return true;
    return false;
}

template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    partition_inverse_kernel(const __grid_constant__ cuda_partition_layout layout,
                             const __grid_constant__ cuda_partition_memory memory,
                             const __grid_constant__ cuda_partition_launch launch)
{
    const int64_t channels = 2 * (int64_t)layout.outputs;
    transform_job<T> job = find_job<T>(layout, launch.finished,
                                       (launch.bank.slots ? 1 : 2) * (int64_t)layout.group_outputs);
    const cuda_quantum &now = quantum_of(memory, launch);
    const cuda_segment &segment = layout.segment[job.segment];
    const int groups = launch.finished[job.segment];
    if (now.fill + now.frames < layout.quantum) return;
    if (!has_outputs(layout, segment, launch, now, groups, job.first)) return;
    const inverse_output output(layout, launch, now, job.segment, job.number);
    job.idle |= output.idle;
    const int points = segment.points, threads = points / CUDA_FFT_POINTS,
              n = segment.hop * (layout.complex ? 2 : 1);
    const complex_of<T> *sums =
        (const complex_of<T> *)memory.segment[job.segment].sums + output.channel * points;
    const uint64_t current = now.number + phase_of(launch, segment, output.group);
    const int half = (current + 1) & segment.quanta ? 0 : 1; // of the two alternating blocks
    const bool first = job.segment == 0;
    T *y = first ? (T *)memory.y + ((int64_t)now.ring_index * channels + output.channel) * n
                 : (T *)memory.segment[job.segment].out +
                       ((int64_t)half * channels + output.channel) * n;
    const ready_outputs<T> others(layout, memory, launch, now.number, output.channel, output.group);
    const auto put = [&](int j, T value) { y[j] = first ? value + others[j] : value; };
    complex_of<T> v[CUDA_FFT_POINTS];
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++)
        v[j] = job.idle ? complex_of<T>{0, 0} : sums[job.fft.thread + j * threads];
    fft_block_inverse(job.fft, v);
    if (job.idle) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = job.fft.thread + j * threads;
        if (!layout.complex) put(at, -v[j].im);
        else if (j >= CUDA_FFT_POINTS / 2) {
            put(2 * at - n, v[j].re);
            put(2 * at - n + 1, v[j].im);
        }
    }
}

// Threads of a block that serves these segments, and the shared memory of their transforms.
struct transform_block {
    int threads;
    size_t shared_bytes;
};

transform_block transform_block_of(const cuda_segment *segments, int n, bool f64)
{
    enum { FULL = 128 };
    transform_block block = {FULL, 0};
    for (int i = 0; i < n; i++)
        if (cuda_fft_threads(segments[i].points) > block.threads)
            block.threads = cuda_fft_threads(segments[i].points);
    assert((size_t)block.threads * CUDA_FFT_POINTS <= cuda_fft_max(f64) || block.threads == FULL);
    for (int i = 0; i < n; i++) {
        const size_t bytes = block.threads / cuda_fft_threads(segments[i].points) *
                             cuda_fft_shared(segments[i].points, f64);
        if (bytes > block.shared_bytes) block.shared_bytes = bytes;
    }
    return block;
}

// A quantum's work.
struct quantum_call {
    const cuda_partition_layout *layout;
    const cuda_partition_memory *memory;
    const cuda_partition_launch *launch;
};

// The kernel of products for the filters of a layout.
template <typename T> auto products_kernel_of(const cuda_partition_layout &layout)
{
    if constexpr (sizeof(T) == sizeof(float))
        if (layout.i16) return partition_products_kernel<T, tap_bins_i16>;
    return partition_products_kernel<T, tap_bins<T>>;
}

template <typename T> cudaError_t launch_products(const quantum_call &call)
{
    const cuda_partition_layout &layout = *call.layout;
    const int log2_vectors = layout.log2_share - (bin_vector<T>::N == 2);
    assert(layout.n_segments <= CUDA_MAX_SEGMENTS && log2_vectors >= 0);
    const int log2_lanes = log2_vectors < 5 ? log2_vectors : 5;
    const int log2_chunks = log2_vectors - log2_lanes;
    // Of a stream both sets; the lists of a bank have the sets.
    const int64_t rows = call.launch->bank.slots
                             ? (int64_t)call.launch->finished[0] * layout.group_outputs
                             : 2 * layout.outputs;
    return queue(products_kernel_of<T>(layout), (layout.n_segments * rows) << log2_chunks,
                 dim3(CUDA_PRODUCT_THREADS), sizeof(bin_vector<T>) * CUDA_PRODUCT_THREADS, layout,
                 *call.memory, *call.launch, log2_lanes, log2_chunks);
}

// Transforms of all segments, groups[i] * n of segment i.
template <typename Kernel>
cudaError_t launch_segments(const quantum_call &call, Kernel kernel,
                            const int groups[CUDA_MAX_SEGMENTS], int64_t n)
{
    const cuda_partition_layout &layout = *call.layout;
    const transform_block block = transform_block_of(layout.segment, layout.n_segments, layout.f64);
    int64_t blocks = 0;
    for (int i = 0; i < layout.n_segments; i++)
        blocks += transform_blocks(layout.segment[i], block.threads, groups[i] * n);
    return queue(kernel, blocks, dim3(block.threads), block.shared_bytes, layout, *call.memory,
                 *call.launch);
}
} // namespace

cudaError_t cuda_partitioned_launch(const cuda_partition_layout *layout,
                                    const cuda_partition_memory *memory,
                                    const cuda_partition_launch *launch)
{
    const quantum_call call = {layout, memory, launch};
    return with_scalar(layout->f64, [=](auto scalar) {
        using T = decltype(scalar);
        cudaError_t error = launch_segments(call, partition_forward_kernel<T>, launch->collected,
                                            layout->group_inputs);
        if (error == cudaSuccess) error = launch_products<T>(call);
        if (error != cudaSuccess) return error;
        return launch_segments(call, partition_inverse_kernel<T>, launch->finished,
                               (launch->bank.slots ? 1 : 2) * (int64_t)layout->group_outputs);
    });
}

cudaError_t cuda_partitioned_launch_taps(const cuda_partition_layout *layout,
                                         const cuda_partition_taps *taps)
{
    const cuda_segment &segment = layout->segment[taps->segment];
    assert(taps->segment < layout->n_segments && taps->first < taps->span);
    const transform_block block = transform_block_of(&segment, 1, layout->f64);
    const int64_t blocks = transform_blocks(segment, block.threads, taps->n * segment.partitions);
    return queue_real(layout->f64, partition_taps_kernel<float>, partition_taps_kernel<double>,
                      blocks, dim3(block.threads), block.shared_bytes, *layout, *taps);
}
