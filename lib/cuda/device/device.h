// SPDX-License-Identifier: MIT
// One NVIDIA GPU as a plan sees it: its figures, memory, and the one place where results of CUDA
// calls are looked at. Work is queued on the calling thread's own stream, which waits for what was
// queued on the default stream before.
#ifndef PARTITA_CUDA_DEVICE_H
#define PARTITA_CUDA_DEVICE_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/plan.h"

enum { // of an engine that runs every direction
    CUDA_ALL_DIRECTIONS = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT
};

struct cuda_device {
    struct device base; // first
    int index;
    int processors;       // streaming multiprocessors
    size_t shared_bytes;  // of one thread block, at most
    size_t memory;        // bytes, all of it
    double flops;         // a second: f32, two for a multiply-add
    double bytes;         // a second, from and to its memory
    int f64_share;        // f32 operations done in the time of one of f64
    atomic_bool lost;     // a call failed in a way after which nothing may be trusted
    pthread_mutex_t lock; // around what follows
    struct cuda_staging *idle;
};

// Opens device `index` of this process; what engines it has is the module's to say (module.c).
enum partita_status cuda_device_open(size_t index, char *text, size_t size,
                                     struct cuda_device **ret_device);

static inline struct cuda_device *cuda_device_of(const struct partita_plan *plan)
{
    return (struct cuda_device *)plan->device;
}

// Makes the plan's device the calling thread's. Errors: PARTITA_ERR_DEVICE, also if it was lost
// earlier.
enum partita_status cuda_enter(const struct partita_plan *plan);

// What a CUDA call returned as a status. The first failure of a device goes to the plan's log with
// its place; from then on the device is lost to the plan. Lack of memory is no such failure:
// PARTITA_ERR_NOMEM.
enum partita_status cuda_status(const struct partita_plan *plan, cudaError_t error,
                                const char *call, const char *file, int line);

#define CU(plan, call) cuda_status(plan, call, #call, __FILE__, __LINE__)

// Memory of the device, ordered after what the thread queued; NULL is allowed in release.
enum partita_status cuda_allocate(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_release(const struct partita_plan *plan, void *memory);

// Where an array is: where kernels of the device may use it; in memory from and to which the device
// copies by itself, that the caller pinned or another device's; or in pageable host memory.
enum cuda_memory { CUDA_ON_DEVICE, CUDA_REACHABLE, CUDA_PAGEABLE };

// Of `bytes` from the pointer on. Of NULL: CUDA_PAGEABLE.
enum partita_status cuda_memory_of(const struct partita_plan *plan, const void *array, size_t bytes,
                                   enum cuda_memory *ret);

// Queues a copy between any two kinds of memory.
enum partita_status cuda_copy(const struct partita_plan *plan, void *to, const void *from,
                              size_t bytes);

// Makes the plan's device the thread's and leaves a copy of an array in its memory, complete when
// the call returns.
enum partita_status cuda_upload(const struct partita_plan *plan, const void *from, size_t bytes,
                                void **ret_copy);

// Waits for all that the calling thread queued.
enum partita_status cuda_wait(const struct partita_plan *plan);

#endif
