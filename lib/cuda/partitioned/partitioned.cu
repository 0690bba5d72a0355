// SPDX-License-Identifier: MIT
// The kernels of cuda/partitioned: transforms from samples to spectra in shares and back, and the
// products between them.
#include <assert.h>
#include <type_traits>

#include "cuda/kernels/windows.cuh"
#include "kernels.h"

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

inline __device__ const cuda_quantum &quantum_of(const cuda_partition_memory &memory,
                                                 const cuda_partition_launch &launch)
{
    return memory.quantum ? *memory.quantum : launch.quantum;
}

// Quanta that a group is ahead.
inline __host__ __device__ int phase_of(const cuda_segment &segment, int group)
{
    return group & (segment.quanta - 1);
}

// The first group for which `number` + its phase is a multiple of the quanta of a block; the others
// follow `quanta` apart.
inline __host__ __device__ int first_due(const cuda_segment &segment, uint64_t number)
{
    return (int)(-number & (uint64_t)(segment.quanta - 1));
}

inline __device__ int groups_due(const cuda_partition_layout &layout, const cuda_segment &segment,
                                 uint64_t number)
{
    const int first = first_due(segment, number);
    return first < layout.groups ? (layout.groups - first - 1) / segment.quanta + 1 : 0;
}

// The index of the spectra of a group's last complete block; `newest` is that of group 0.
inline __device__ int newest_block(const cuda_segment &segment, int newest, uint64_t quantum,
                                   int group)
{
    const int collected = (int)(quantum + 1) & (segment.quanta - 1);
    newest += collected + phase_of(segment, group) >= segment.quanta;
    return newest < segment.partitions ? newest : 0;
}

// Transforms a window whose frame j is sample(j), and stores its spectrum: the first share at `to`,
// the others `pitch` bins apart.
template <typename T, typename Sample>
__device__ void transform_frames(const cuda_partition_layout &layout, const transform_job<T> &job,
                                 Sample sample, complex_of<T> *to, int64_t pitch)
{
    const int points = layout.segment[job.segment].points, threads = points / CUDA_FFT_POINTS;
    const int share = 1 << layout.log2_share;
    complex_of<T> v[CUDA_FFT_POINTS];
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int at = job.fft.thread + j * threads;
        v[j] = layout.complex ? complex_of<T>{sample(2 * at), sample(2 * at + 1)}
                              : complex_of<T>{sample(at), -sample(at + points)};
    }
    fft_block_forward(job.fft, v);
    if (job.idle) return;
#pragma unroll
    for (int j = 0; j < CUDA_FFT_POINTS; j++) {
        const int k = job.fft.thread + j * threads;
        to[(k >> layout.log2_share) * pitch + (k & (share - 1))] = v[j];
    }
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
    if (now.fill + memory.frames < layout.quantum) return;
    const int64_t n = (int64_t)groups_due(layout, segment, quantum + 1) * layout.group_inputs;
    if (job.first >= n) return;
    if (job.number >= n) job.idle = true, job.number = n - 1;
    const int number = (int)(job.number / layout.group_inputs),
              group = first_due(segment, quantum + 1) + number * segment.quanta;
    const int64_t channel =
        group * layout.group_inputs + (job.number - (int64_t)number * layout.group_inputs);
    const int64_t slot = newest_block(segment, now.newest[job.segment], quantum, group);
    const int reals = layout.complex ? 2 : 1, own = layout.quantum * reals,
              ring = layout.window * reals;
    // Reals of the window that came before the quantum.
    const int old = 2 * segment.hop * reals - own;
    const uint64_t begin = quantum * own - old;
    const T *x = (const T *)memory.x + (channel * memory.x_frames + now.x_from) * reals;
    T *samples = (T *)memory.samples + channel * ring;
    const auto sample = [=](int j) {
        T *stored = samples + ((begin + j) & (ring - 1));
        if (j < old) return *stored;
        if (job.segment == 0 && !job.idle) *stored = x[j - old];
        return x[j - old];
    };
    const int64_t row = (int64_t)segment.partitions << layout.log2_share;
    transform_frames(layout, job, sample,
                     (complex_of<T> *)memory.segment[job.segment].spectra + channel * row +
                         (slot << layout.log2_share),
                     layout.inputs * row);
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
    const int64_t path = job.number / segment.partitions;
    const int p = job.number % segment.partitions;
    const auto range = taps.paths[path].segment[taps.segment];
    const int reals = layout.complex ? 2 : 1, n = segment.hop * reals;
    const int64_t first = (taps.first + (int64_t)(range.first + p) * segment.hop) * reals,
                  end = taps.span * reals;
    const T *w = (const T *)taps.taps + path * end;
    job.idle |= p >= range.count;
    const auto sample = [=](int j) {
        return j < n && first + j < end ? w[first + j] / segment.points : T(0);
    };
    transform_frames(layout, job, sample,
                     (complex_of<T> *)taps.spectra + ((range.column + p) << layout.log2_share),
                     taps.columns << layout.log2_share);
}

// What the other segments have ready for the outputs of a quantum of one channel of segment 0.
template <typename T> struct ready_outputs {
    const T *at[CUDA_MAX_SEGMENTS - 1]; // NULL: nothing

    // `channel` counts those of both sets.
    __device__ ready_outputs(const cuda_partition_layout &layout,
                             const cuda_partition_memory &memory, uint64_t quantum, int64_t channel,
                             int group)
    {
        const int reals = layout.complex ? 2 : 1;
#pragma unroll
        for (int i = 1; i < CUDA_MAX_SEGMENTS; i++) {
            const cuda_segment &segment = layout.segment[i];
            const uint64_t own = quantum + phase_of(segment, group),
                           played = own - segment.start; // quanta
            const int64_t row =
                (played & segment.quanta ? 2 : 0) * (int64_t)layout.outputs + channel;
            const int64_t first =
                row * segment.hop + (int64_t)(played & (segment.quanta - 1)) * layout.quantum;
            at[i - 1] = i < layout.n_segments && own >= (uint64_t)segment.start
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
// [set][group that is due][output of the group].
struct inverse_output {
    int set, group;
    int64_t channel; // of those of both sets
    bool idle;       // it has no filter, or no group is due there

    __device__ inverse_output(const cuda_partition_layout &layout, const cuda_segment &segment,
                              const cuda_partition_launch &launch, const cuda_quantum &now,
                              int groups, int64_t number)
    {
        const int64_t above = number / layout.group_outputs;
        const int row = (int)(above / groups), due = (int)(above - (int64_t)row * groups);
        set = launch.first_set + row;
        group = first_due(segment, now.number + 2) + due * segment.quanta;
        channel = (int64_t)set * layout.outputs + (int64_t)group * layout.group_outputs +
                  (number - above * layout.group_outputs);
        idle = !now.filter[set].first_path || group >= layout.groups;
    }
};

// Whether a thread block of partition_inverse_kernel has any output that is not idle.
inline __device__ bool has_outputs(const cuda_partition_layout &layout, const cuda_segment &segment,
                                   const cuda_partition_launch &launch, const cuda_quantum &now,
                                   int groups, int64_t first)
{
    const int64_t end = first + blockDim.x / (segment.points / CUDA_FFT_POINTS),
                  n = (int64_t)groups * layout.group_outputs,
                  due = (int64_t)groups_due(layout, segment, now.number + 2) * layout.group_outputs;
    for (int i = 0; i < launch.sets; i++)
        if (now.filter[launch.first_set + i].first_path && first < i * n + due && end > i * n)
            return true;
    return false;
}

template <typename T>
__global__ void __launch_bounds__(fft_max_threads<T>(), 1)
    partition_inverse_kernel(const __grid_constant__ cuda_partition_layout layout,
                             const __grid_constant__ cuda_partition_memory memory,
                             const __grid_constant__ cuda_partition_launch launch)
{
    const int64_t channels = 2 * (int64_t)layout.outputs;
    transform_job<T> job =
        find_job<T>(layout, launch.finished, (int64_t)launch.sets * layout.group_outputs);
    const cuda_quantum &now = quantum_of(memory, launch);
    const cuda_segment &segment = layout.segment[job.segment];
    const int groups = launch.finished[job.segment];
    if (now.fill + memory.frames < layout.quantum) return;
    if (!has_outputs(layout, segment, launch, now, groups, job.first)) return;
    const inverse_output output(layout, segment, launch, now, groups, job.number);
    job.idle |= output.idle;
    const int points = segment.points, threads = points / CUDA_FFT_POINTS,
              n = segment.hop * (layout.complex ? 2 : 1);
    const complex_of<T> *sums =
        (const complex_of<T> *)memory.segment[job.segment].sums + output.channel * points;
    const uint64_t own = now.number + phase_of(segment, output.group);
    const int half = (own + 1) & segment.quanta ? 0 : 1; // of the two alternating blocks
    const bool first = job.segment == 0;
    T *y = first ? (T *)memory.y + ((int64_t)now.ring_index * channels + output.channel) * n
                 : (T *)memory.segment[job.segment].out +
                       ((int64_t)half * channels + output.channel) * n;
    const ready_outputs<T> others(layout, memory, now.number, output.channel, output.group);
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

// Products: of every output the sum over its paths and their partitions, for the quantum's share of
// the bins of each segment. Both spectra are read once, 16 bytes a thread, and nothing else is:
// sums stay in registers. Lanes divide the share among them; groups of lanes divide the paths, or
// where these are few the partitions of a path.

constexpr int LOG2_THREADS = 8;
static_assert(1 << LOG2_THREADS == CUDA_PRODUCT_THREADS, "");

// What a thread reads at once, and its sums.
template <typename T> using bin_vector = vector_of<complex_of<T>>;

template <typename T>
inline __device__ void add_bin_products(bin_vector<T> &sum, const bin_vector<T> &a,
                                        const bin_vector<T> &b)
{
#pragma unroll
    for (int v = 0; v < bin_vector<T>::N; v++) multiply_add(sum.at[v], a.at[v], b.at[v]);
}

// Adds the groups' sums up by a tree; group 0 has the result.
template <typename T> __device__ void add_groups(bin_vector<T> &sum, int lanes)
{
    bin_vector<T> *shared = (bin_vector<T> *)shared_memory;
    shared[threadIdx.x] = sum;
    for (int half = CUDA_PRODUCT_THREADS / 2; half >= lanes; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x >= half) continue;
        const bin_vector<T> other = shared[threadIdx.x + half];
#pragma unroll
        for (int v = 0; v < bin_vector<T>::N; v++) sum.at[v] = sum.at[v] + other.at[v];
        shared[threadIdx.x] = sum;
    }
}

// Reads 16 bytes with one instruction, which the compiler does not do for complex numbers.
template <typename T> inline __device__ bin_vector<T> load_bins(const bin_vector<T> *at)
{
    const vector_of<T> reals = *(const vector_of<T> *)at;
    bin_vector<T> v;
#pragma unroll
    for (int i = 0; i < bin_vector<T>::N; i++) v.at[i] = {reals.at[2 * i], reals.at[2 * i + 1]};
    return v;
}

// Adds n products of spectra `step` vectors apart: taps upwards, inputs downwards.
template <typename T>
inline __device__ void add_span(bin_vector<T> &sum, const bin_vector<T> *h, const bin_vector<T> *x,
                                int n, int64_t step)
{
#pragma unroll 4
    for (; n > 0; n--) {
        add_bin_products(sum, load_bins(h), load_bins(x));
        h += step;
        x -= step;
    }
}

// A path's spectra in one segment, from its first partition on and from slot 0 of its input on.
template <typename T> struct path_operands {
    const bin_vector<T> *taps, *inputs;
    int count;         // partitions
    int newest, slots; // the first partition meets slot `newest`, the next ones those before it
    int64_t share;     // vectors from one spectrum to the next
};

// Adds partitions p, p + 2^log2_step, ... of a path: they meet the slots from `newest` down, and
// then those from the last one down.
template <typename T>
inline __device__ void add_path(bin_vector<T> &sum, const path_operands<T> &path, int p,
                                int log2_step)
{
    int newest = path.newest;
#pragma unroll 1
    for (int part = 0; part < 2; part++, newest += path.slots) {
        const int end = newest + 1 < path.count ? newest + 1 : path.count, step = 1 << log2_step;
        const int n = p < end ? (end - p + step - 1) >> log2_step : 0;
        add_span(sum, path.taps + p * path.share, path.inputs + (newest - p) * path.share, n,
                 path.share << log2_step);
        p += n << log2_step;
    }
}

// Log2 of how many of `paths` paths 2^log2_groups groups take at once: as many as there are, but a
// power of two.
inline __device__ int log2_paths_at_once(int log2_groups, int paths)
{
    int log2 = 0;
    while (log2 < log2_groups && 2 << log2 <= paths) log2++;
    return log2;
}

// Blocks are [segment][set][chunk of 2^log2_lanes lanes][output].
template <typename T>
__global__ void __launch_bounds__(CUDA_PRODUCT_THREADS, sizeof(T) == 8 ? 3 : 4)
    partition_products_kernel(const __grid_constant__ cuda_partition_layout layout,
                              const __grid_constant__ cuda_partition_memory memory,
                              const __grid_constant__ cuda_partition_launch launch, int log2_lanes,
                              int log2_chunks)
{
    const int64_t share = (int64_t)1 << (log2_lanes + log2_chunks);
    const unsigned outputs = layout.outputs, above = blockIdx.x / outputs,
                   out = blockIdx.x - above * outputs;
    const int chunk = above & ((1 << log2_chunks) - 1), row = above >> log2_chunks,
              number = launch.sets == 1 ? row : row >> 1,
              set = launch.first_set + (launch.sets == 1 ? 0 : row & 1);
    const cuda_segment &segment = layout.segment[number];
    const cuda_quantum &now = quantum_of(memory, launch);
    const cuda_paths &filter = now.filter[set];
    if (now.fill + memory.frames < layout.quantum || !filter.first_path) return;
    const int own = layout.groups == 1 ? 0 : out / layout.group_outputs, // group of channels
        phase = (int)(now.number + 1 + phase_of(segment, own)) & (segment.quanta - 1),
              newest = newest_block(segment, now.newest[number], now.number, own);
    const int lane = (chunk << log2_lanes) + (threadIdx.x & ((1 << log2_lanes) - 1)),
              group = threadIdx.x >> log2_lanes;
    const bin_vector<T> *taps = (const bin_vector<T> *)filter.spectra[number] +
                                phase * filter.columns[number] * share + lane;
    const bin_vector<T> *inputs = (const bin_vector<T> *)memory.segment[number].spectra +
                                  (int64_t)phase * layout.inputs * segment.partitions * share +
                                  lane;
    const int end = filter.first_path[out + 1], first = filter.first_path[out];
    const int log2_groups = LOG2_THREADS - log2_lanes,
              log2_paths = log2_paths_at_once(log2_groups, end - first);
    bin_vector<T> sum = {};
    for (int c = first + (group & ((1 << log2_paths) - 1)); c < end; c += 1 << log2_paths) {
        const cuda_path &path = filter.paths[c];
        const cuda_path_range &range = path.segment[number];
        const int slot = newest - range.first;
        const path_operands<T> operands = {taps + range.column * share,
                                           inputs + (int64_t)path.in * segment.partitions * share,
                                           range.count,
                                           slot < 0 ? slot + segment.partitions : slot,
                                           segment.partitions,
                                           share};
        add_path(sum, operands, group >> log2_paths, log2_groups - log2_paths);
    }
    add_groups(sum, 1 << log2_lanes);
    if (group) return;
    bin_vector<T> *to = (bin_vector<T> *)memory.segment[number].sums;
    to[(((int64_t)set * outputs + out) * segment.quanta + phase) * share + lane] = sum;
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

// Queues kernel `i` of a quantum, or makes or changes its node.
template <typename... Parameters, typename... Arguments>
cudaError_t aim(const cuda_partition_target &target, int i, void (*kernel)(Parameters...),
                int64_t blocks, dim3 threads, size_t shared_bytes, Arguments... arguments)
{
    if (!target.nodes)
        return queue_on(target.stream, kernel, blocks, threads, shared_bytes, arguments...);
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const cudaError_t error =
        shared_bytes > DEFAULT_SHARED ? allow_shared((const void *)kernel) : cudaSuccess;
    if (error != cudaSuccess) return error;
    void *pointers[] = {&arguments...};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)kernel;
    parameters.gridDim = dim3((unsigned)blocks);
    parameters.blockDim = threads;
    parameters.sharedMemBytes = (unsigned)shared_bytes;
    parameters.kernelParams = pointers;
    static_assert((std::is_same_v<Parameters, Arguments> && ...), "pointers have no conversions");
    if (target.exec)
        return cudaGraphExecKernelNodeSetParams(target.exec, target.nodes[i], &parameters);
    return cudaGraphAddKernelNode(&target.nodes[i], target.graph,
                                  i ? &target.nodes[i - 1] : nullptr, i > 0, &parameters);
}

template <typename T>
cudaError_t
launch_products(const cuda_partition_layout *layout, const cuda_partition_memory *memory,
                const cuda_partition_launch *launch, const cuda_partition_target *target)
{
    const int log2_vectors = layout->log2_share - (bin_vector<T>::N == 2);
    assert(layout->n_segments <= CUDA_MAX_SEGMENTS && log2_vectors >= 0);
    const int log2_lanes = log2_vectors < 5 ? log2_vectors : 5;
    const int log2_chunks = log2_vectors - log2_lanes;
    const int64_t rows = (int64_t)layout->n_segments * launch->sets;
    return aim(*target, 1, partition_products_kernel<T>, (rows * layout->outputs) << log2_chunks,
               dim3(CUDA_PRODUCT_THREADS), sizeof(bin_vector<T>) * CUDA_PRODUCT_THREADS, *layout,
               *memory, *launch, log2_lanes, log2_chunks);
}

// Transforms of all segments, groups[i] * n of segment i; kernel `number` of the quantum.
template <typename Kernel>
cudaError_t
launch_segments(Kernel kernel, int number, const cuda_partition_layout *layout,
                const int groups[CUDA_MAX_SEGMENTS], int64_t n, const cuda_partition_memory *memory,
                const cuda_partition_launch *launch, const cuda_partition_target *target)
{
    const transform_block block =
        transform_block_of(layout->segment, layout->n_segments, layout->f64);
    int64_t blocks = 0;
    for (int i = 0; i < layout->n_segments; i++)
        blocks += transform_blocks(layout->segment[i], block.threads, groups[i] * n);
    return aim(*target, number, kernel, blocks, dim3(block.threads), block.shared_bytes, *layout,
               *memory, *launch);
}
} // namespace

cudaError_t cuda_partitioned_load_kernels(const cuda_partition_layout *layout)
{
    return with_scalar(layout->f64, [=](auto scalar) {
        using T = decltype(scalar);
        cudaError_t error = load_kernel(partition_forward_kernel<T>);
        if (error == cudaSuccess) error = load_kernel(partition_products_kernel<T>);
        return error == cudaSuccess ? load_kernel(partition_inverse_kernel<T>) : error;
    });
}

cudaError_t cuda_partitioned_launch(const cuda_partition_layout *layout,
                                    const cuda_partition_memory *memory,
                                    const cuda_partition_launch *launch,
                                    const cuda_partition_target *target)
{
    return with_scalar(layout->f64, [=](auto scalar) {
        using T = decltype(scalar);
        cudaError_t error =
            launch_segments(partition_forward_kernel<T>, 0, layout, launch->collected,
                            layout->group_inputs, memory, launch, target);
        if (error == cudaSuccess) error = launch_products<T>(layout, memory, launch, target);
        if (error != cudaSuccess) return error;
        return launch_segments(partition_inverse_kernel<T>, 2, layout, launch->finished,
                               (int64_t)launch->sets * layout->group_outputs, memory, launch,
                               target);
    });
}

cudaError_t cuda_partitioned_launch_taps(const cuda_partition_layout *layout,
                                         const cuda_partition_taps *taps)
{
    const cuda_segment &segment = layout->segment[taps->segment];
    assert(taps->segment < layout->n_segments && taps->first < taps->span);
    const transform_block block = transform_block_of(&segment, 1, layout->f64);
    const int64_t blocks = transform_blocks(segment, block.threads, taps->n * segment.partitions);
    return queue(layout->f64 ? partition_taps_kernel<double> : partition_taps_kernel<float>, blocks,
                 dim3(block.threads), block.shared_bytes, *layout, *taps);
}
