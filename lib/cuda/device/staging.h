// SPDX-License-Identifier: MIT
// Pageable host memory to the device and back: through two pinned buffers, one of which the device
// copies while the host fills or empties the other, on as many threads as the plan has.
// (decision 27)
#ifndef PARTITA_CUDA_STAGING_H
#define PARTITA_CUDA_STAGING_H

#include "device.h"

enum {
    CUDA_STAGING_BUFFERS = 2,
    CUDA_STAGING_BYTES = 4 << 20, // of a buffer
};

// Events of a pipeline of micro-batches, two of each (pipeline.c).
enum cuda_staging_event { CUDA_ARRIVED, CUDA_COMPUTED, CUDA_LEFT, CUDA_STAGING_EVENTS };

// What one call uses, and the next one after it.
struct cuda_staging {
    struct cuda_staging *next; // idle ones of a device
    size_t bytes;              // of a buffer
    char *pinned;              // both buffers
    cudaEvent_t copied[CUDA_STAGING_BUFFERS];
    bool busy[CUDA_STAGING_BUFFERS]; // a copy was queued that nobody has waited for
    int next_buffer;
    cudaStream_t in, out; // for copies to the device, and from it, beside the thread's stream
    cudaEvent_t event[CUDA_STAGING_EVENTS][2];
};

// An idle one of the device, or a new one; given back when nothing that was queued with it is in
// progress. NULL is allowed in giving back. Any thread.
enum partita_status cuda_staging_borrow(const struct partita_plan *plan, struct cuda_staging **ret);
void cuda_staging_give_back(const struct partita_plan *plan, struct cuda_staging *staging);

// Releases those of the plan's device; nothing is in progress.
void cuda_staging_close(const struct partita_plan *plan);

// Makes one with buffers of so many bytes; what was made is released after a failure.
enum partita_status cuda_staging_create(const struct partita_plan *plan, size_t bytes,
                                        struct cuda_staging **ret);
void cuda_staging_destroy(const struct partita_plan *plan, struct cuda_staging *staging);

// Queues copies of `from`, in pageable memory, to the device; `from` is no longer read when the
// call returns. staging NULL: `from` is not pageable, and is copied at once.
enum partita_status cuda_stage_in(const struct partita_plan *plan, struct cuda_staging *staging,
                                  cudaStream_t stream, void *to, const void *from, size_t bytes);

// Copies from the device to `to`, in pageable memory, after what the stream has queued; complete
// when the call returns. staging NULL: `to` is not pageable, and one copy is queued.
enum partita_status cuda_stage_out(const struct partita_plan *plan, struct cuda_staging *staging,
                                   cudaStream_t stream, void *to, const void *from, size_t bytes);

#endif
