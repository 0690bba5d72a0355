// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels around those of a quantum (kernels.h), which
// read and write arrays of samples. A call is processed in steps of at most a quantum. In every
// step take stores the frames; forward, products and inverse follow, which do nothing unless the
// frames complete a quantum; and emit writes the outputs.
//
// The state of a stream, its position included, is on the device, so that a graph in which calls
// are captured continues the stream with every launch: advance moves the position after each step.
// For arrays of the host there is one such graph, of a step; its kernels read and write pinned
// memory, and so does the host.
//
// All slots of a bank are computed as a stream with a group of channels for each slot. Its steps
// are whole quanta, and the table of its slots comes to the device with the inputs of a call,
// together with lists of the slots that have work.
#ifndef PARTITA_CUDA_FRAMES_H
#define PARTITA_CUDA_FRAMES_H

#include "kernels.h"

enum { CUDA_CHANNELS = 128 }; // of a launch that reads or writes arrays of the caller's

// A part of a call's frames.
struct cuda_step {
    int64_t x_first, y_first; // samples before it in the arrays
    int n;                    // frames
    int wait, due;            // frames before the first output; outputs
    bool silent;              // inputs are zeros
    // Of a bank: outputs of slots without a filter become zeros.
    const struct cuda_slot *slots; // NULL: of a stream
    uint64_t frame;                // the first one
};

struct cuda_position {
    struct cuda_quantum quantum; // the current one, and the filters
    struct cuda_step step;       // the current one, when it was taken
    uint64_t frame;              // the next
    int last;                    // frames of the step before
    unsigned swap;               // number of the swap in progress; 0: none
    struct cuda_swap next;
    uint64_t free_quantum; // the first in which another swap may begin
};

// The arrays of `count` channels.
struct cuda_channels {
    int64_t count;
    const uint32_t *slots; // of a bank: a list of 2 * slot + set, whose channels they are
    // From slot i * pitch bytes on, [channel][samples]. NULL: arrays of a stream's channels from
    // `first` on are anywhere.
    char *base;
    int64_t pitch, samples;
    int first;
    char *at[CUDA_CHANNELS];
};

// In a graph that reads steps from pinned memory `step` is the largest.
CUDA_C cudaError_t cuda_frames_take(const struct cuda_partition_layout *layout,
                                    const struct cuda_partition_memory *memory,
                                    const struct cuda_step *step, const struct cuda_channels *x);
CUDA_C cudaError_t cuda_frames_emit(const struct cuda_partition_layout *layout,
                                    const struct cuda_partition_memory *memory,
                                    const struct cuda_step *step, const struct cuda_channels *y);

enum cuda_position_event {
    CUDA_START,   // the stream begins, with the swap's filter
    CUDA_REPLACE, // only the filter is replaced, and no swap is in progress
    CUDA_POST,    // the stream shall swap to a filter
    CUDA_ADVANCE, // a step was computed; there is no swap
};
CUDA_C cudaError_t cuda_position_change(const struct cuda_partition_layout *layout,
                                        const struct cuda_partition_memory *memory,
                                        enum cuda_position_event event,
                                        const struct cuda_swap *swap);

#endif
