// SPDX-License-Identifier: MIT
// The interface between C and CUDA for streams of cuda/partitioned that are queued: the state of
// such a stream, its position included, is on the device, so that a graph in which calls are
// captured continues the stream with every launch. A call is processed in steps of at most a
// quantum. A step runs six kernels: take stores the frames; forward, products and inverse
// (kernels.h) do nothing unless the frames complete a quantum; emit writes the outputs, and advance
// moves the position.
#ifndef PARTITA_CUDA_QUEUED_H
#define PARTITA_CUDA_QUEUED_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_CHANNELS = 128 }; // of a launch that reads or writes arrays of the caller's

struct cuda_queued_layout {
    struct cuda_partition_layout partitions;
    int64_t history; // frames that are kept of each input, whole quanta
    // Frames by which outputs are behind the inputs, for the heads' taps and for the partitions'.
    int64_t latency, delay;
    int64_t span, stride;
    bool complex_taps;
    // The order of the heads' sums: struct fir_order, FIR_SEGMENT, and the rows of a chunk.
    int lanes, short_lanes, sum_taps, rows;
};

// A filter that replaces another; number 0: none.
struct cuda_queued_swap {
    struct cuda_paths filter;
    uint64_t fade;
    unsigned number;
};

struct cuda_queued_position {
    struct cuda_quantum quantum; // the current one
    uint64_t frame;              // the next
    int last;                    // frames of the step before
    int set;                     // of the stream's own filter
    struct cuda_queued_swap swap, next;
    uint64_t fade_begin, fade_end; // frames
    uint64_t free_quantum;         // the first in which another swap may begin
};

// All on the device except `settled`.
struct cuda_queued_memory {
    struct cuda_partition_memory partitions; // with its own x, a ring of `history` frames, and y
    struct cuda_queued_position *position;
    unsigned char *nonfinite; // [inputs][history] whether a sample was not finite, and is stored
                              // as 0
    uint64_t *nonfinite_until, *affected_until; // [inputs] as in struct history
    unsigned *settled; // pinned: the number of the last swap that is complete
};

// The caller's arrays of some channels.
struct cuda_channels {
    void *at[CUDA_CHANNELS];
};

// A part of a call's frames.
struct cuda_queued_step {
    int64_t x_first, y_first; // samples before it in the caller's arrays
    int n;                    // frames
    int wait, due;            // frames before the first output; outputs
    bool silent;              // inputs are zeros
};

cudaError_t cuda_queued_load_kernels(const struct cuda_queued_layout *layout);

// Queue kernels on the stream of the call. start: the begin of a stream; or with `keep` only the
// filter is replaced, and no swap is in progress. post: a filter that the stream shall swap to.
// take and emit: `count` channels from `first` on.
cudaError_t cuda_queued_start(const struct cuda_queued_layout *layout,
                              const struct cuda_queued_memory *memory,
                              const struct cuda_paths *filter, bool keep);
cudaError_t cuda_queued_post(const struct cuda_queued_layout *layout,
                             const struct cuda_queued_memory *memory,
                             const struct cuda_queued_swap *swap);
cudaError_t cuda_queued_take(const struct cuda_queued_layout *layout,
                             const struct cuda_queued_memory *memory,
                             const struct cuda_queued_step *step, const struct cuda_channels *x,
                             int first, int count);
cudaError_t cuda_queued_emit(const struct cuda_queued_layout *layout,
                             const struct cuda_queued_memory *memory,
                             const struct cuda_queued_step *step, const struct cuda_channels *y,
                             int first, int count);
cudaError_t cuda_queued_advance(const struct cuda_queued_layout *layout,
                                const struct cuda_queued_memory *memory, int n);

#ifdef __cplusplus
}
#endif

#endif
