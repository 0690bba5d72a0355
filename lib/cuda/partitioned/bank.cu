// SPDX-License-Identifier: MIT
// The kernels of banks: frames of the slots into the history, outputs with their fades, and a slot
// without a past.
#include <assert.h>

#include "bank.h"
#include "history.cuh"
#include "issue.cuh"

namespace {
// Blocks are [slot][input].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bank_take_kernel(const __grid_constant__ cuda_queued_layout layout,
                     const __grid_constant__ cuda_queued_memory memory,
                     const __grid_constant__ cuda_bank_quantum quantum)
{
    const cuda_partition_layout &partitions = layout.partitions;
    const int reals = partitions.complex ? 2 : 1, job = blockIdx.x / partitions.group_inputs;
    const int64_t slot = quantum.taken[job] >> 1,
                  input = blockIdx.x - (int64_t)job * partitions.group_inputs;
    const T *x = (const T *)(quantum.x + slot * quantum.x_pitch) +
                 (input * quantum.block + quantum.first) * reals;
    take_frames(layout, memory, slot * partitions.group_inputs + input,
                taken_frames<T>{quantum.frame, partitions.quantum, partitions.quantum, x});
}

// What the device has ready for an output of a slot.
template <typename T> struct slot_output {
    int64_t slot, channel;
    uint64_t frame;
    int offset, ring_index; // of the frame

    __device__ void add_to(const cuda_queued_layout &layout, const cuda_queued_memory &memory,
                           int set, T y[2]) const
    {
        const cuda_partition_layout &partitions = layout.partitions;
        const int reals = partitions.complex ? 2 : 1;
        const int64_t row = ((int64_t)ring_index * 2 + set) * partitions.outputs +
                            slot * partitions.group_outputs + channel;
        const T *ready =
            (const T *)memory.partitions.y + (row * partitions.quantum + offset) * reals;
        for (int r = 0; r < reals; r++) y[r] += ready[r];
    }
};

// Blocks are [slot][output].
template <typename T>
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bank_emit_kernel(const __grid_constant__ cuda_queued_layout layout,
                     const __grid_constant__ cuda_queued_memory memory,
                     const __grid_constant__ cuda_bank_quantum quantum)
{
    const cuda_partition_layout &partitions = layout.partitions;
    const int reals = partitions.complex ? 2 : 1, job = blockIdx.x / partitions.group_outputs;
    const int64_t number = quantum.emitted[job] >> 1,
                  channel = blockIdx.x - (int64_t)job * partitions.group_outputs;
    const cuda_bank_slot &slot = quantum.slots[number];
    T *y = (T *)(quantum.y + number * quantum.y_pitch) +
           (channel * quantum.block + quantum.first) * reals;
    const int ring_index = (int)(quantum.frame / partitions.quantum % partitions.ring_quanta);
    for (int i = threadIdx.x; i < partitions.quantum; i += blockDim.x) {
        const uint64_t frame = quantum.frame + i;
        const bool over = frame >= slot.fade_end;
        const int set = over ? 1 - slot.set : slot.set;
        const slot_output<T> output = {number, channel, frame, i, ring_index};
        const affected_output at = {quantum.frame, frame, channel,
                                    number * partitions.group_inputs};
        T own[2] = {0, 0}, incoming[2] = {0, 0};
        bool affected = false;
        if (slot.filter[set].first_path) {
            output.add_to(layout, memory, set, own);
            affected = is_affected(layout, memory, slot.filter[set], at);
        }
        if (frame >= slot.fade_begin && !over) {
            output.add_to(layout, memory, 1 - set, incoming);
            blend(layout, {slot.fade_begin, slot.fade}, frame, own, incoming);
            affected = affected || is_affected(layout, memory, slot.filter[1 - set], at);
        }
        for (int r = 0; r < reals; r++)
            if (affected) set_nan(&y[i * reals + r]);
            else y[i * reals + r] = own[r];
    }
}

// Rows of `words` numbers of eight bytes, `pitch` apart.
struct cleared_rows {
    uint64_t *at;
    int64_t words, pitch;
    int rows;
};

enum { MAX_CLEARED = 3 + 3 * CUDA_MAX_SEGMENTS };

struct cleared_slot {
    int n;
    cleared_rows part[MAX_CLEARED];
};

constexpr int CLEARING_BLOCKS = 64; // of a part

// Blocks are [part][CLEARING_BLOCKS].
__global__ void __launch_bounds__(CUDA_THREADS, 1)
    bank_clear_kernel(const __grid_constant__ cleared_slot slot)
{
    const cleared_rows &part = slot.part[blockIdx.x / CLEARING_BLOCKS];
    const int64_t first = (int64_t)(blockIdx.x % CLEARING_BLOCKS) * CUDA_THREADS + threadIdx.x;
    for (int row = 0; row < part.rows; row++)
        for (int64_t i = first; i < part.words; i += CLEARING_BLOCKS * CUDA_THREADS)
            part.at[row * part.pitch + i] = 0;
}

// Adds the part of a slot of an array [rows][slots][bytes of a slot].
void add_cleared(cleared_slot *cleared, void *array, const cuda_partition_layout *layout, int slot,
                 int rows, int64_t bytes)
{
    const int64_t words = bytes / (int64_t)sizeof(uint64_t);
    assert(cleared->n < MAX_CLEARED && bytes % (int64_t)sizeof(uint64_t) == 0);
    cleared->part[cleared->n++] = {(uint64_t *)array + slot * words, words, layout->groups * words,
                                   rows};
}

// Threads that move the frames of a quantum.
int frame_threads(const cuda_queued_layout *layout)
{
    return power_of_two(layout->partitions.quantum, CUDA_THREADS);
}
} // namespace

cudaError_t cuda_bank_load_kernels(const cuda_queued_layout *layout)
{
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        using T = decltype(scalar);
        cudaError_t error = load_kernel(bank_clear_kernel);
        if (error == cudaSuccess) error = load_kernel(bank_take_kernel<T>);
        return error == cudaSuccess ? load_kernel(bank_emit_kernel<T>) : error;
    });
}

cudaError_t cuda_bank_take(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                           const cuda_bank_quantum *quantum, const cuda_partition_target *target)
{
    const int threads = frame_threads(layout);
    const kernel_grid grid = {(int64_t)quantum->n_taken * layout->partitions.group_inputs, threads,
                              threads * sizeof(uint64_t)};
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        return issue_kernel(*target, 0, grid, bank_take_kernel<decltype(scalar)>, *layout, *memory,
                            *quantum);
    });
}

cudaError_t cuda_bank_emit(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                           const cuda_bank_quantum *quantum, const cuda_partition_target *target)
{
    const kernel_grid grid = {(int64_t)quantum->n_emitted * layout->partitions.group_outputs,
                              frame_threads(layout), 0};
    return with_scalar(layout->partitions.f64, [=](auto scalar) {
        return issue_kernel(*target, 0, grid, bank_emit_kernel<decltype(scalar)>, *layout, *memory,
                            *quantum);
    });
}

cudaError_t cuda_bank_clear(const cuda_queued_layout *layout, const cuda_queued_memory *memory,
                            int slot)
{
    const cuda_partition_layout *partitions = &layout->partitions;
    const cuda_partition_memory *of = &memory->partitions;
    const int64_t scalar = partitions->f64 ? 8 : 4, sample = scalar * (partitions->complex ? 2 : 1),
                  inputs = partitions->group_inputs, outputs = partitions->group_outputs;
    cleared_slot cleared = {};
    add_cleared(&cleared, of->samples, partitions, slot, 1, inputs * partitions->window * sample);
    add_cleared(&cleared, memory->nonfinite_until, partitions, slot, 1, inputs * 8);
    add_cleared(&cleared, memory->affected_until, partitions, slot, 1, inputs * 8);
    for (int i = 0; i < partitions->n_segments; i++) {
        const cuda_segment *segment = &partitions->segment[i];
        const int64_t spectrum = 2 * scalar * segment->points;
        add_cleared(&cleared, of->segment[i].spectra, partitions, slot, segment->quanta,
                    inputs * segment->partitions * spectrum / segment->quanta);
        add_cleared(&cleared, of->segment[i].sums, partitions, slot, 2, outputs * spectrum);
        if (i)
            add_cleared(&cleared, of->segment[i].out, partitions, slot, 4,
                        outputs * segment->hop * sample);
    }
    return queue(bank_clear_kernel, (int64_t)cleared.n * CLEARING_BLOCKS, dim3(CUDA_THREADS), 0,
                 cleared);
}
