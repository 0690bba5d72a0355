// SPDX-License-Identifier: MIT
// The kernels of queued streams: frames into the history, outputs from heads and partitions with
// the bits of the host's sums, and the position.
#include "history.cuh"

namespace {
// The position. Its kernels have one thread.

inline __device__ void set_quantum(const cuda_queued_layout &layout, cuda_quantum &quantum,
                                   uint64_t number)
{
    const cuda_partition_layout &partitions = layout.partitions;
    quantum.number = number;
    quantum.x_from = (int64_t)(number % (layout.history / partitions.quantum)) * partitions.quantum;
    quantum.ring_index = (int)(number % partitions.ring_quanta);
    for (int i = 0; i < partitions.n_segments; i++) {
        const uint64_t slots = partitions.segment[i].partitions;
        quantum.newest[i] =
            (int)(((number + 1) / partitions.segment[i].quanta + slots - 1) % slots);
    }
}

// The fade begins when the current block of every segment has been multiplied with both filters in
// all of its bin ranges.
inline __device__ void begin_swap(const cuda_queued_layout &layout, cuda_queued_position &position)
{
    uint64_t last = 0;
    for (int i = 0; i < layout.partitions.n_segments; i++) {
        const cuda_segment &segment = layout.partitions.segment[i];
        const int old = (int)position.quantum.number & (segment.quanta - 1);
        const bool begins = old == 0 || segment.quanta - old < layout.partitions.groups;
        const uint64_t played = position.quantum.number - (begins ? 0 : old) + segment.start;
        if (played > last) last = played;
    }
    position.swap = position.next;
    position.next.number = 0;
    position.fade_begin = last * layout.partitions.quantum + layout.delay;
    position.fade_end = position.fade_begin + position.swap.fade;
    position.quantum.filter[1 - position.set] = position.swap.filter;
}

inline __device__ void begin_next_swap(const cuda_queued_layout &layout,
                                       cuda_queued_position &position)
{
    if (!position.swap.number && position.next.number &&
        position.quantum.number >= position.free_quantum)
        begin_swap(layout, position);
}

inline __device__ void end_swap(const cuda_queued_layout &layout, cuda_queued_position &position,
                                unsigned *settled)
{
    if (!position.swap.number || position.frame < position.fade_end) return;
    position.quantum.filter[position.set].first_path = nullptr;
    position.set = 1 - position.set;
    position.free_quantum = position.fade_end / layout.partitions.quantum + 1;
    *(volatile unsigned *)settled = position.swap.number;
    position.swap.number = 0;
}

__global__ void __launch_bounds__(1, 1)
    queued_start_kernel(const __grid_constant__ cuda_queued_layout layout,
                        const __grid_constant__ cuda_queued_memory memory,
                        const __grid_constant__ cuda_paths filter, bool keep)
{
    cuda_queued_position &position = *memory.position;
    position.swap.number = position.next.number = 0;
    if (!keep) {
        position.frame = position.free_quantum = 0;
        position.last = position.set = position.quantum.fill = 0;
        set_quantum(layout, position.quantum, 0);
    }
    position.quantum.filter[position.set] = filter;
    position.quantum.filter[1 - position.set].first_path = nullptr;
}

__global__ void __launch_bounds__(1, 1)
    queued_post_kernel(const __grid_constant__ cuda_queued_layout layout,
                       const __grid_constant__ cuda_queued_memory memory,
                       const __grid_constant__ cuda_queued_swap swap)
{
    memory.position->next = swap;
    begin_next_swap(layout, *memory.position);
}

__global__ void __launch_bounds__(1, 1)
    queued_advance_kernel(const __grid_constant__ cuda_queued_layout layout,
                          const __grid_constant__ cuda_queued_memory memory, int n)
{
    cuda_queued_position &position = *memory.position;
    position.frame += n;
    position.last = n;
    position.quantum.fill += n;
    if (position.quantum.fill >= layout.partitions.quantum) {
        position.quantum.fill -= layout.partitions.quantum;
        set_quantum(layout, position.quantum, position.quantum.number + 1);
    }
    end_swap(layout, position, memory.settled);
    begin_next_swap(layout, position);
}

// Blocks are channels.
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    queued_take_kernel(const __grid_constant__ cuda_queued_layout layout,
                       const __grid_constant__ cuda_queued_memory memory,
                       const __grid_constant__ cuda_queued_step step,
                       const __grid_constant__ cuda_channels x, int first)
{
    const int64_t channel = first + blockIdx.x;
    const int reals = layout.partitions.complex ? 2 : 1;
    const T *from = step.silent ? nullptr : (const T *)x.at[blockIdx.x] + step.x_first * reals;
    take_frames(layout, memory, channel,
                taken_frames<T>{memory.position->frame, memory.position->last, step.n, from});
}

// Outputs. A frame has two reals, of which real samples use the first.

// The head of a path for one output. Sums of a segment: of the taps' real parts with both reals of
// the samples, and of their imaginary parts.
template <typename T> struct head_sums {
    const cuda_queued_layout &layout;
    const T *x, *taps; // the input's ring
    int64_t at;        // frame of the first tap
    T sum[2][2];

    __device__ void add(int tap)
    {
        const int reals = layout.partitions.complex ? 2 : 1, parts = layout.complex_taps ? 2 : 1;
        const T *sample = x + ring_index(at - tap, layout.history) * reals;
        const T *h = taps + (int64_t)tap * parts;
        if (!layout.lanes && parts == 2) {
            sum[0][0] = sum[0][0] + (product(h[0], sample[0]) - product(h[1], sample[1]));
            sum[0][1] = sum[0][1] + (product(h[0], sample[1]) + product(h[1], sample[0]));
            return;
        }
        for (int p = 0; p < parts; p++)
            for (int r = 0; r < reals; r++)
                sum[p][r] = layout.lanes ? fused(h[p], sample[r], sum[p][r])
                                         : sum[p][r] + product(h[p], sample[r]);
    }

    // Taps s of `rows` rows from a tap on, first <= s < last.
    __device__ void add_rows(int from, int first, int last, int rows, int row)
    {
        for (int s = first; s < last; s++)
            for (int a = rows - 1; a >= 0; a--) add(from + a * row + s);
    }

    // In the order of struct fir_order.
    __device__ void add_segment(int from, int n, int row)
    {
        const int chunk = layout.rows * row;
        for (; n >= chunk; n -= chunk, from += chunk) add_rows(from, 0, row, layout.rows, row);
        const int full = n / row, left = n - full * row;
        add_rows(from, 0, left, full + 1, row);
        add_rows(from, left, row, full, row);
    }

    __device__ void add_to(T y[2], int n)
    {
        const int step = layout.partitions.complex ? 2 : 1;
        const bool brief = layout.short_lanes && 2 * n * step < 3 * layout.lanes;
        const int lanes = brief ? layout.short_lanes : layout.lanes;
        const int row = lanes ? lanes / step : 1;
        for (int j = 0; j < n; j += layout.sum_taps) {
            sum[0][0] = sum[0][1] = sum[1][0] = sum[1][1] = 0;
            add_segment(j, n - j < layout.sum_taps ? n - j : layout.sum_taps, row);
            y[0] += sum[0][0] - sum[1][1];
            y[1] += sum[0][1] + sum[1][0];
        }
    }
};

// An output of a channel by the filter of a set: the partitions' sum, to which heads are added.
template <typename T>
inline __device__ void output_of_set(const cuda_queued_layout &layout,
                                     const cuda_queued_memory &memory, int set, int64_t channel,
                                     uint64_t frame, T y[2])
{
    const cuda_partition_layout &partitions = layout.partitions;
    const cuda_paths &filter = memory.position->quantum.filter[set];
    const int reals = partitions.complex ? 2 : 1;
    y[0] = y[1] = 0;
    if (frame >= (uint64_t)layout.delay) {
        const uint64_t at = frame - layout.delay, quantum = at / partitions.quantum;
        const int64_t row =
            ((int64_t)(quantum % partitions.ring_quanta) * 2 + set) * partitions.outputs + channel;
        const T *ready = (const T *)memory.partitions.y +
                         (row * partitions.quantum + (int64_t)(at % partitions.quantum)) * reals;
        for (int r = 0; r < reals; r++) y[r] = ready[r];
    }
    for (size_t p = filter.first_path[channel]; p < filter.first_path[channel + 1]; p++) {
        const cuda_path &path = filter.paths[p];
        if (!path.head_taps) continue;
        const int64_t at = (int64_t)((frame + layout.history - layout.latency) % layout.history);
        head_sums<T> head = {layout,
                             (const T *)memory.partitions.x + path.in * layout.history * reals,
                             (const T *)path.head,
                             at,
                             {}};
        head.add_to(y, path.head_taps);
    }
}

// Blocks are [channel][outputs].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    queued_emit_kernel(const __grid_constant__ cuda_queued_layout layout,
                       const __grid_constant__ cuda_queued_memory memory,
                       const __grid_constant__ cuda_queued_step step,
                       const __grid_constant__ cuda_channels y, int first, int blocks)
{
    const int number = blockIdx.x / blocks;
    const int64_t channel = first + number;
    const int64_t i = (int64_t)(blockIdx.x - number * blocks) * CUDA_THREADS + threadIdx.x;
    const cuda_queued_position &position = *memory.position;
    const int reals = layout.partitions.complex ? 2 : 1, own = position.set;
    if (i >= step.due) return;
    const uint64_t frame = position.frame + step.wait + i * layout.stride;
    const bool swapping = position.swap.number && frame >= position.fade_begin;
    const bool over = swapping && frame >= position.fade_end;
    const int set = over ? 1 - own : own;
    const cuda_paths *filter = position.quantum.filter;
    const affected_output output = {position.frame, frame, channel, 0};
    T out[2], incoming[2];
    output_of_set(layout, memory, set, channel, frame, out);
    bool affected = is_affected(layout, memory, filter[set], output);
    if (swapping && !over) {
        output_of_set(layout, memory, 1 - own, channel, frame, incoming);
        blend(layout, {position.fade_begin, position.swap.fade}, frame, out, incoming);
        affected = affected || is_affected(layout, memory, filter[1 - own], output);
    }
    T *to = (T *)y.at[number] + (step.y_first + i) * reals;
    for (int r = 0; r < reals; r++)
        if (affected) set_nan(&to[r]);
        else to[r] = out[r];
}
} // namespace

cudaError_t cuda_queued_load_kernels(const cuda_queued_layout *layout)
{
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        using T = decltype(scalar);
        cudaError_t error = load_kernel(queued_start_kernel);
        if (error == cudaSuccess) error = load_kernel(queued_post_kernel);
        if (error == cudaSuccess) error = load_kernel(queued_advance_kernel);
        if (error == cudaSuccess) error = load_kernel(queued_take_kernel<T>);
        return error == cudaSuccess ? load_kernel(queued_emit_kernel<T>) : error;
    });
}

cudaError_t cuda_queued_start(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                              const cuda_paths *filter, bool keep)
{
    return queue(queued_start_kernel, 1, dim3(1), 0, *layout, *memory, *filter, keep);
}

cudaError_t cuda_queued_post(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                             const cuda_queued_swap *swap)
{
    return queue(queued_post_kernel, 1, dim3(1), 0, *layout, *memory, *swap);
}

cudaError_t cuda_queued_take(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                             const cuda_queued_step *step, const cuda_channels *x, int first,
                             int count)
{
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        return queue(queued_take_kernel<decltype(scalar)>, count, dim3(CUDA_THREADS),
                     CUDA_THREADS * sizeof(uint64_t), *layout, *memory, *step, *x, first);
    });
}

cudaError_t cuda_queued_emit(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                             const cuda_queued_step *step, const cuda_channels *y, int first,
                             int count)
{
    const int blocks = (int)ceiling(step->due, CUDA_THREADS);
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        return queue(queued_emit_kernel<decltype(scalar)>, (int64_t)count * blocks,
                     dim3(CUDA_THREADS), 0, *layout, *memory, *step, *y, first, blocks);
    });
}

cudaError_t cuda_queued_advance(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                                int n)
{
    return queue(queued_advance_kernel, 1, dim3(1), 0, *layout, *memory, n);
}
