// SPDX-License-Identifier: MIT
// The kernels of streams and banks around those of a quantum: frames into the history, outputs from
// heads and partitions, and their fades; and the position of a stream.
#include <assert.h>

#include "history.cuh"
#include "schedule.h"

namespace {
// The position. Its kernel has one thread.

inline __device__ void begin_next_swap(const cuda_partition_layout &layout, cuda_position &position)
{
    if (position.swap || !position.next.number || position.quantum.number < position.free_quantum)
        return;
    position.swap = position.next.number;
    position.next.number = 0;
    cuda_slot_begin_swap(&layout, layout.groups, position.quantum.number, &position.quantum.slot,
                         &position.next);
}

inline __device__ void end_swap(const cuda_partition_layout &layout, cuda_position &position,
                                unsigned *settled)
{
    cuda_slot &slot = position.quantum.slot;
    if (!position.swap || position.frame < slot.fade_end) return;
    position.free_quantum = slot.fade_end / layout.quantum + 1;
    cuda_slot_end_swap(&slot);
    *(volatile unsigned *)settled = position.swap;
    position.swap = 0;
}

inline __device__ void start_position(const cuda_partition_layout &layout, cuda_position &position,
                                      const cuda_paths &filter, bool keep)
{
    cuda_slot &slot = position.quantum.slot;
    position.swap = position.next.number = 0;
    if (!keep) {
        position.frame = position.free_quantum = 0;
        position.last = position.quantum.fill = slot.set = slot.phase = 0;
        cuda_quantum_begin(&layout, 0, &position.quantum);
    }
    slot.filter[slot.set] = filter;
    slot.filter[1 - slot.set].first_path = nullptr;
    slot.fade_begin = slot.fade_end = UINT64_MAX;
}

inline __device__ void advance_position(const cuda_partition_layout &layout,
                                        cuda_position &position, unsigned *settled)
{
    const int n = position.step.n;
    position.frame += n;
    position.last = n;
    position.quantum.fill += n;
    if (position.quantum.fill >= layout.quantum) {
        position.quantum.fill -= layout.quantum;
        cuda_quantum_begin(&layout, position.quantum.number + 1, &position.quantum);
    }
    end_swap(layout, position, settled);
}

__global__ void __launch_bounds__(1, 1)
    position_kernel(const __grid_constant__ cuda_partition_layout layout,
                    const __grid_constant__ cuda_partition_memory memory, cuda_position_event event,
                    const __grid_constant__ cuda_swap swap)
{
    cuda_position &position = *memory.position;
    if (event == CUDA_ADVANCE) advance_position(layout, position, memory.settled);
    else if (event == CUDA_POST) position.next = swap;
    else start_position(layout, position, swap.filter, event == CUDA_REPLACE);
    begin_next_swap(layout, position);
}

// Channel `number` of the caller's arrays.
template <bool BANK> struct frames_of_channel {
    int slot, channel; // of the slot

    __device__ frames_of_channel(const cuda_channels &channels, int number, int channels_of_slot)
    {
        const int job = BANK ? number / channels_of_slot : 0;
        slot = BANK ? channels.slots[job] >> 1 : 0;
        channel = channels.first + number - job * channels_of_slot;
    }

    // Its sample `first`.
    template <typename T>
    __device__ T *samples(const cuda_channels &channels, int64_t first, int reals) const
    {
        if (!channels.base) return (T *)channels.at[channel - channels.first] + first * reals;
        return (T *)(channels.base + slot * channels.pitch) +
               (channel * channels.samples + first) * reals;
    }
};

// Blocks are channels. The kernels that follow find the step at the position.
template <typename T, bool BANK>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    take_kernel(const __grid_constant__ cuda_partition_layout layout,
                const __grid_constant__ cuda_partition_memory memory,
                const __grid_constant__ cuda_step given, const __grid_constant__ cuda_channels x)
{
    const cuda_step step = !BANK && memory.step ? *memory.step : given;
    const frames_of_channel<BANK> frames(x, blockIdx.x, layout.group_inputs);
    const T *from = nullptr;
    if (!step.silent) from = frames.template samples<T>(x, step.x_first, layout.complex ? 2 : 1);
    const uint64_t now = BANK ? step.frame : memory.position->frame;
    const int last = BANK ? layout.quantum : memory.position->last;
    if (!BANK && blockIdx.x == 0 && threadIdx.x == 0) {
        memory.position->step = step;
        memory.position->quantum.frames = step.n;
    }
    take_frames(layout, memory, (int64_t)frames.slot * layout.group_inputs + frames.channel,
                taken_frames<T>{now, last, step.n, from});
}

// Outputs. A frame has two reals, of which real samples use the first.

constexpr int HEAD_SEGMENT = 64; // taps summed before a sum is rounded into y

// The head of a path for one output. Sums of a segment: of the taps' real parts with both reals of
// the samples, and of their imaginary parts.
template <typename T> struct head_sums {
    const cuda_partition_layout &layout;
    const T *x, *taps; // the input's ring
    int64_t at;        // frame of the first tap
    T sum[2][2];

    __device__ void add(int tap)
    {
        const int reals = layout.complex ? 2 : 1, parts = layout.complex_taps ? 2 : 1;
        const T *sample = x + ring_index(at - tap, layout.history) * reals;
        const T *h = taps + (int64_t)tap * parts;
        for (int p = 0; p < parts; p++)
            for (int r = 0; r < reals; r++) sum[p][r] = fma(h[p], sample[r], sum[p][r]);
    }

    __device__ void add_to(T y[2], int n)
    {
        for (int j = 0; j < n; j += HEAD_SEGMENT) {
            sum[0][0] = sum[0][1] = sum[1][0] = sum[1][1] = 0;
            for (int tap = j; tap < n && tap < j + HEAD_SEGMENT; tap++) add(tap);
            y[0] += sum[0][0] - sum[1][1];
            y[1] += sum[0][1] + sum[1][0];
        }
    }
};

// An output of a channel of a slot by a filter of a set: the partitions' sum, to which heads are
// added.
template <bool BANK> struct output_of_filter {
    const cuda_paths &filter;
    int set;
    uint64_t frame;
    int slot, channel; // of the slot

    template <typename T>
    __device__ void add_heads(const cuda_partition_layout &layout,
                              const cuda_partition_memory &memory, T y[2]) const
    {
        const int reals = layout.complex ? 2 : 1;
        const int64_t at = (int64_t)((frame + layout.history - layout.latency) % layout.history);
        const T *x = (const T *)memory.x;
        for (size_t p = filter.first_path[channel]; p < filter.first_path[channel + 1]; p++) {
            const cuda_path &path = filter.paths[p];
            if (!path.head_taps) continue;
            head_sums<T> head = {
                layout, x + path.in * layout.history * reals, (const T *)path.head, at, {}};
            head.add_to(y, path.head_taps);
        }
    }

    template <typename T>
    __device__ void load(const cuda_partition_layout &layout, const cuda_partition_memory &memory,
                         T y[2]) const
    {
        const int reals = layout.complex ? 2 : 1;
        y[0] = y[1] = 0;
        if (frame >= (uint64_t)layout.delay) {
            const uint64_t at = frame - layout.delay, quantum = at / layout.quantum;
            const int64_t row =
                ((int64_t)(quantum % layout.ring_quanta) * 2 + set) * layout.outputs +
                slot * layout.group_outputs + channel;
            const T *ready = (const T *)memory.y +
                             (row * layout.quantum + (int64_t)(at % layout.quantum)) * reals;
            for (int r = 0; r < reals; r++) y[r] = ready[r];
        }
        if (!BANK) add_heads(layout, memory, y);
    }
};

// Blocks are [channel][outputs].
template <typename T, bool BANK>
__global__ void __launch_bounds__(CUDA_THREADS, sizeof(T) == 8 ? 3 : 4)
    emit_kernel(const __grid_constant__ cuda_partition_layout layout,
                const __grid_constant__ cuda_partition_memory memory,
                const __grid_constant__ cuda_step given, const __grid_constant__ cuda_channels y,
                int blocks)
{
    const cuda_step &step = BANK ? given : memory.position->step;
    const int number = blockIdx.x / blocks, reals = layout.complex ? 2 : 1;
    const int i = (blockIdx.x - number * blocks) * blockDim.x + threadIdx.x;
    if (i >= step.due) return;
    const frames_of_channel<BANK> frames(y, number, layout.group_outputs);
    const cuda_slot &slot = BANK ? step.slots[frames.slot] : memory.position->quantum.slot;
    const uint64_t now = BANK ? step.frame : memory.position->frame,
                   frame = now + step.wait + (uint64_t)i * layout.stride;
    const bool over = frame >= slot.fade_end;
    const int set = over ? 1 - slot.set : slot.set;
    const affected_output output = {now, frame, frames.channel,
                                    (int64_t)frames.slot * layout.group_inputs};
    T out[2] = {0, 0}, incoming[2];
    bool affected = false;
    if (!BANK || slot.filter[set].first_path) {
        output_of_filter<BANK>{slot.filter[set], set, frame, frames.slot, frames.channel}.load(
            layout, memory, out);
        affected = is_affected(layout, memory, slot.filter[set], output);
    }
    if (frame >= slot.fade_begin && !over) {
        output_of_filter<BANK>{slot.filter[1 - set], 1 - set, frame, frames.slot, frames.channel}
            .load(layout, memory, incoming);
        blend({slot.fade_begin, slot.fade}, frame, out, incoming);
        affected = affected || is_affected(layout, memory, slot.filter[1 - set], output);
    }
    T *to = frames.template samples<T>(y, step.y_first + i, reals);
    for (int r = 0; r < reals; r++)
        if (affected) set_nan(&to[r]);
        else to[r] = out[r];
}

// Threads that move the frames of a quantum.
int frame_threads(const cuda_partition_layout *layout)
{
    return power_of_two(layout->quantum, CUDA_THREADS);
}
} // namespace

cudaError_t cuda_frames_take(const cuda_partition_layout *layout,
                             const cuda_partition_memory *memory, const cuda_step *step,
                             const cuda_channels *x)
{
    const int threads = frame_threads(layout);
    return with_scalar(layout->f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(step->slots ? take_kernel<T, true> : take_kernel<T, false>, x->count,
                     dim3(threads), threads * sizeof(uint64_t), *layout, *memory, *step, *x);
    });
}

cudaError_t cuda_frames_emit(const cuda_partition_layout *layout,
                             const cuda_partition_memory *memory, const cuda_step *step,
                             const cuda_channels *y)
{
    const int threads = frame_threads(layout), blocks = (int)ceiling(step->due, threads);
    return with_scalar(layout->f64, [=](auto scalar) {
        using T = decltype(scalar);
        return queue(step->slots ? emit_kernel<T, true> : emit_kernel<T, false>, y->count * blocks,
                     dim3(threads), 0, *layout, *memory, *step, *y, blocks);
    });
}

cudaError_t cuda_position_change(const cuda_partition_layout *layout,
                                 const cuda_partition_memory *memory, cuda_position_event event,
                                 const cuda_swap *swap)
{
    return queue(position_kernel, 1, dim3(1), 0, *layout, *memory, event,
                 swap ? *swap : cuda_swap());
}
