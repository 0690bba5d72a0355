// SPDX-License-Identifier: MIT
// Copies between pageable host memory and the device through two pinned buffers: the device copies
// one while the host fills or empties the other, with the plan's number of threads. (decision 27)
#ifndef PARTITA_CUDA_STAGING_H
#define PARTITA_CUDA_STAGING_H

#include "device.h"

enum {
    CUDA_STAGING_BUFFERS = 2,
    CUDA_STAGING_BYTES = 4 << 20, // of a buffer
};

// Events of a pipeline of micro-batches, two of each (bounded_call.c).
enum cuda_staging_event { CUDA_ARRIVED, CUDA_COMPUTED, CUDA_LEFT, CUDA_STAGING_EVENTS };

// The buffers of one call at a time; later calls use them again.
struct cuda_staging {
    struct cuda_staging *next; // list of a device's idle ones
    size_t bytes;              // of a buffer
    char *pinned;              // both buffers
    cudaEvent_t copied[CUDA_STAGING_BUFFERS];
    bool busy[CUDA_STAGING_BUFFERS]; // a copy was queued and has not been waited for
    int next_buffer;
    cudaStream_t in, out; // for copies to and from the device, concurrent with the thread's stream
    cudaEvent_t event[CUDA_STAGING_EVENTS][2];
};

// Borrows an idle one of the device, or makes a new one. Give it back when all work that was queued
// with it is done; giving back NULL is allowed. Threads: any.
enum partita_status cuda_staging_borrow(const struct partita_plan *plan, struct cuda_staging **ret);
void cuda_staging_give_back(const struct partita_plan *plan, struct cuda_staging *staging);

// Releases all of the plan's device; no work may be in progress.
void cuda_staging_close(const struct partita_plan *plan);

// Makes one with buffers of `bytes` bytes; releases everything after a failure.
enum partita_status cuda_staging_create(const struct partita_plan *plan, size_t bytes,
                                        struct cuda_staging **ret);
void cuda_staging_destroy(const struct partita_plan *plan, struct cuda_staging *staging);

// Queues copies of `from`, in pageable memory, to the device; `from` is no longer read when the
// call returns. staging NULL: `from` is not pageable, and one copy is queued.
enum partita_status cuda_stage_in(const struct partita_plan *plan, struct cuda_staging *staging,
                                  cudaStream_t stream, void *to, const void *from, size_t bytes);

// Copies from the device to `to`, in pageable memory, after all queued work of the stream; complete
// when the call returns. staging NULL: `to` is not pageable, and one copy is queued.
enum partita_status cuda_stage_out(const struct partita_plan *plan, struct cuda_staging *staging,
                                   cudaStream_t stream, void *to, const void *from, size_t bytes);

#endif
