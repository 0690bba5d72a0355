// SPDX-License-Identifier: MIT
// Which blocks are due in a quantum, and when the fade of a swap begins: for the host, which knows
// the quantum of its own streams and of banks, and for the kernels of queued streams.
#ifndef PARTITA_CUDA_PARTITIONED_SCHEDULE_H
#define PARTITA_CUDA_PARTITIONED_SCHEDULE_H

#include "kernels.h"

#ifdef __cplusplus
#define CUDA_SCHEDULE inline __host__ __device__
#else
#define CUDA_SCHEDULE static inline
#endif

// The first group for which `number` + its phase is a multiple of the quanta of a block; the others
// follow `quanta` apart.
CUDA_SCHEDULE int cuda_first_due(const struct cuda_segment *segment, uint64_t number)
{
    return (int)(-number & (uint64_t)(segment->quanta - 1));
}

CUDA_SCHEDULE int cuda_groups_due(const struct cuda_partition_layout *layout,
                                  const struct cuda_segment *segment, uint64_t number)
{
    const int first = cuda_first_due(segment, number);
    return first < layout->groups ? (layout->groups - first - 1) / segment->quanta + 1 : 0;
}

// Begins quantum `number`.
CUDA_SCHEDULE void cuda_quantum_begin(const struct cuda_partition_layout *layout, uint64_t number,
                                      struct cuda_quantum *quantum)
{
    const uint64_t x_quanta = (uint64_t)(layout->history / layout->quantum);
    quantum->number = number;
    quantum->x_from = (int64_t)(number % x_quanta) * layout->quantum;
    quantum->ring_index = (int)(number % (uint64_t)layout->ring_quanta);
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const uint64_t slots = (uint64_t)segment->partitions;
        quantum->newest[i] = (int)(((number + 1) / (uint64_t)segment->quanta + slots - 1) % slots);
    }
}

// The quantum in which the outputs of a filter are complete that is first used in quantum `number`:
// the current block of every segment has then been multiplied with it in all of its bin ranges.
CUDA_SCHEDULE uint64_t cuda_complete_quantum(const struct cuda_partition_layout *layout, int groups,
                                             uint64_t number)
{
    uint64_t last = 0;
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        // The last quantum in which a block of a group begins that is not complete before.
        const int old = (int)(number & (uint64_t)(segment->quanta - 1));
        const bool begins = old == 0 || segment->quanta - old < groups;
        const uint64_t complete = number - (uint64_t)(begins ? 0 : old) + (uint64_t)segment->start;
        if (complete > last) last = complete;
    }
    return last;
}

// Begins a swap of a slot's filter in quantum `number`.
CUDA_SCHEDULE void cuda_slot_begin_swap(const struct cuda_partition_layout *layout, int groups,
                                        uint64_t number, struct cuda_slot *slot,
                                        const struct cuda_swap *swap)
{
    const uint64_t longest = UINT64_MAX / 4; // of a fade: the end does not wrap
    const uint64_t phase = (uint64_t)slot->phase,
                   complete = cuda_complete_quantum(layout, groups, number + phase) - phase;
    slot->fade = swap->fade;
    slot->fade_begin = complete * (uint64_t)layout->quantum + (uint64_t)layout->delay;
    slot->fade_end = slot->fade_begin + (swap->fade < longest ? swap->fade : longest);
    slot->filter[1 - slot->set] = swap->filter;
}

CUDA_SCHEDULE void cuda_slot_end_swap(struct cuda_slot *slot)
{
    slot->filter[slot->set].first_path = NULL;
    slot->set = 1 - slot->set;
    slot->fade_begin = slot->fade_end = UINT64_MAX;
}

#endif
