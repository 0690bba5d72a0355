// SPDX-License-Identifier: MIT
// The interface between C and CUDA for banks of cuda/partitioned: all slots are computed together,
// as a stream with a group of channels for each slot. What changes from call to call comes to the
// device with the inputs: the table of the slots, and lists of those that have work. A call has
// whole quanta, and each runs five kernels: bank_take stores the frames, then come forward,
// products and inverse (kernels.h), and bank_emit writes the outputs.
#ifndef PARTITA_CUDA_BANK_H
#define PARTITA_CUDA_BANK_H

#include "queued.h"

#ifdef __cplusplus
extern "C" {
#endif

// The work of a quantum beside that of kernels.h. Arrays are in the device's memory.
struct cuda_bank_quantum {
    uint64_t frame; // the first one
    int64_t first;  // frames of the call before it
    const struct cuda_bank_slot *slots;
    const uint32_t *taken, *emitted; // slots, as 2 * slot + set
    int n_taken, n_emitted;
    // Of slot i from i * x_pitch bytes on [group_inputs][block], and likewise the outputs. Those of
    // slots that are emitted without a filter become zeros.
    const char *x;
    char *y;
    int64_t x_pitch, y_pitch, block;
};

cudaError_t cuda_bank_load_kernels(const struct cuda_queued_layout *layout);

// Each has one node.
cudaError_t cuda_bank_take(const struct cuda_queued_layout *layout,
                           const struct cuda_queued_memory *memory,
                           const struct cuda_bank_quantum *quantum,
                           const struct cuda_partition_target *target);
cudaError_t cuda_bank_emit(const struct cuda_queued_layout *layout,
                           const struct cuda_queued_memory *memory,
                           const struct cuda_bank_quantum *quantum,
                           const struct cuda_partition_target *target);

// Clears what a slot had as its input, on the stream of the call.
cudaError_t cuda_bank_clear(const struct cuda_queued_layout *layout,
                            const struct cuda_queued_memory *memory, int slot);

#ifdef __cplusplus
}
#endif

#endif
