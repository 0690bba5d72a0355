// SPDX-License-Identifier: MIT
// One NVIDIA GPU as a plan sees it: its properties and its memory. Work is queued on the caller's
// queue, or without one on the calling thread's own stream, which waits for work that was queued
// earlier on the default stream. The plan's device is current between cuda_enter and cuda_leave
// only: every call into the module gives the thread's current device back.
#ifndef PARTITA_CUDA_DEVICE_H
#define PARTITA_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/plan.h"
#include "cuda/gpu/gpu.h"
#include "cuda/kernels/thread.h"
#include "status.h"

enum { // of an engine that computes every direction
    CUDA_ALL_DIRECTIONS = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT
};

struct cuda_device {
    struct device base; // first
    struct cuda_gpu *gpu;
    struct cuda_gpu_rates rates; // the GPU's, or measured ones
    atomic_uint prepared;        // directions whose kernels were loaded (queued_call.h)
    atomic_bool lost;     // a call failed other than by lack of memory; results are undefined from
                          // then on
    pthread_mutex_t lock; // protects the following member
    struct cuda_staging *idle;
};

// Opens device `index` of this process; module.c adds its engines.
enum partita_status cuda_device_open(size_t index, char *text, size_t size,
                                     struct cuda_device **ret_device);

// Sets the rates by which the device's engines estimate, and their text; `origin` says where they
// come from.
void cuda_device_set_rates(struct cuda_device *device, const struct cuda_gpu_rates *rates,
                           const char *origin);

static inline struct cuda_device *cuda_device_of(const struct partita_plan *plan)
{
    return (struct cuda_device *)plan->device;
}

static inline const struct cuda_device *cuda_device_for(const struct request *request)
{
    return (const struct cuda_device *)request->device;
}

// PARTITA_ERR_DEVICE if the device was lost earlier.
static inline enum partita_status cuda_device_status(const struct partita_plan *plan)
{
    return atomic_load(&cuda_device_of(plan)->lost) ? PARTITA_ERR_DEVICE : PARTITA_OK;
}

// State of the calling thread that cuda_leave restores.
struct cuda_scope {
    const struct partita_plan *plan;
    struct cuda_context context;
    struct cuda_thread thread;
    bool exchanged; // the capture mode was exchanged; it was `mode`
    enum cudaStreamCaptureMode mode;
};

// Makes the plan's device current for the calling thread until cuda_leave, which must follow
// whatever was returned; work is queued on the thread's own stream. Scopes may be nested. Errors:
// PARTITA_ERR_DEVICE, also if the device was lost earlier; PARTITA_ERR_NOMEM. A function that the
// library calls enters if it calls the runtime, except bounded.run and filter.pack of an engine:
// their callers have entered.
//
// cuda_enter_queue is for calls that only queue work, on the given queue; NULL: the same as
// cuda_enter. Other calls allocate and wait, which a capture forbids the thread also on other
// streams than the captured one: cuda_enter permits it, since the library's streams take no part in
// the capture.
enum partita_status cuda_enter(const struct partita_plan *plan, struct cuda_scope *ret_scope);
enum partita_status cuda_enter_queue(const struct partita_plan *plan, void *queue,
                                     struct cuda_scope *ret_scope);
void cuda_leave(const struct cuda_scope *scope);

// Allocates memory of the device from the library's own pool and releases it, in order with the
// work that the thread queued; releasing NULL is allowed.
enum partita_status cuda_allocate(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_release(const struct partita_plan *plan, void *memory);

// Where an array is: in memory that kernels of the device may use; in memory that the device can
// copy from and to by itself (pinned host memory, or another device's); or in pageable host memory.
enum cuda_memory { CUDA_ON_DEVICE, CUDA_REACHABLE, CUDA_PAGEABLE };

// The memory class of `bytes` bytes from the pointer on; NULL is CUDA_PAGEABLE.
enum partita_status cuda_memory_of(const struct partita_plan *plan, const void *array, size_t bytes,
                                   enum cuda_memory *ret);

// Queues a copy between any two classes of memory.
enum partita_status cuda_copy(const struct partita_plan *plan, void *to, const void *from,
                              size_t bytes);

// Copies an array to new memory of the device; the copy is complete when the call returns.
enum partita_status cuda_upload(const struct partita_plan *plan, const void *from, size_t bytes,
                                void **ret_copy);

// Waits for all work that the calling thread queued.
enum partita_status cuda_wait(const struct partita_plan *plan);

#endif
