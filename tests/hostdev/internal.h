// SPDX-License-Identifier: MIT
// What the parts of hostdev know of each other. One lock, taken in runtime.c, is held around all of
// it.
#ifndef HOSTDEV_INTERNAL_H
#define HOSTDEV_INTERNAL_H

#include <pthread.h>

#include "hostdev.h"

enum {
    SHARED_BYTES = 227 << 10,  // of a block, at most, as on compute capability 9.0
    SHARED_DEFAULT = 48 << 10, // without asking
    MOST_THREADS = 1024,       // of a block
};

// Says what rule was broken, and ends the process.
_Noreturn void hostdev_break(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct hostdev_index {
    unsigned x, y, z;
};

// As in cuda_runtime.h.
struct hostdev_kernel {
    struct hostdev_index grid, block;
    size_t shared_bytes;
    void (*run)(void *call);
    void (*release)(void *call);
    void *call;
};

// What is queued until somebody waits for it.
struct operation {
    enum { COPY, SET, ALLOCATE, RELEASE, KERNEL, CALL, GRAPH, RECORD, WAIT } kind;
    cudaStream_t stream;
    pthread_t owner; // of cudaStreamPerThread there is one each
    void *to;
    const void *from;
    size_t bytes;
    int value;
    struct hostdev_kernel kernel;
    cudaGraphExec_t graph;
    uint64_t ticket; // of an event's record, and of what waits for it
    bool done;
    struct operation *next;
};

// runtime.c. Counts a call and takes the lock; whether the call is to fail, and how. call_end() is
// to follow.
cudaError_t call_begin(void);
cudaError_t call_end(cudaError_t error);

// runtime.c: a call that queues an operation; with the lock held, whether the device is lost.
cudaError_t queue(cudaStream_t stream, const struct operation *operation);
bool device_lost(void);

// queue.c, with the lock held: queues an operation; carries one out; releases it; carries out what
// waits in a stream, or in all (NULL); where orders are drawn, something that waits; events that
// were not released.
void queue_append(const struct operation *operation);
void carry_out(const struct operation *operation);
void operation_free(struct operation *operation);
void queue_drain(cudaStream_t stream);
void queue_stir(void);
size_t queue_work(void); // operations that have not happened, other than giving and taking memory
size_t event_count(void);

// stream.c, with the lock held: whether a stream is being recorded and took the operation over;
// runs and releases what was recorded; streams, graphs and pinned memory that were not released.
bool stream_records(cudaStream_t stream, struct operation *operation);
bool stream_is_recording(cudaStream_t stream);
void stream_spoil(cudaStream_t stream); // what it was to record failed
void graph_run(cudaGraphExec_t graph);
void graph_release(cudaGraphExec_t graph);
size_t stream_count(void);
bool pinned_contains(const void *pointer);

// runtime.c: what the template in cuda_runtime.h queues a kernel with.
cudaError_t hostdev_launch(const struct hostdev_kernel *kernel, const void *symbol,
                           size_t parameter_bytes, cudaStream_t stream);

// runtime.c: what other libraries' functions, which queue work of their own, are counted and queued
// with. `run` happens when a kernel would, `release` in any case.
cudaError_t hostdev_count(void);
cudaError_t hostdev_queue(cudaStream_t stream, void (*run)(void *call), void (*release)(void *call),
                          void *call);

// fiber.c: called by the kernels where they say __syncthreads().
void hostdev_barrier(const char *file, int line);

// fiber.c: runs task(i) for all i < n as fibers, none of which passes a barrier before all have
// reached it. `shuffle` orders the n numbers anew for each stretch between barriers.
void fiber_run(unsigned n, void (*task)(unsigned i), void (*resume)(unsigned i),
               void (*shuffle)(unsigned *order, unsigned n));

// launch.c: runs a kernel to its end; a number below n where orders are drawn, else 0.
void launch_run(const struct hostdev_kernel *kernel);
size_t order_draw(size_t n);

// memory.c: device memory.
void *memory_map(size_t bytes);            // NULL: none left
void memory_limit(size_t bytes);           // how much there is; 0: as at first
void memory_unmap(void *memory);           // checks what lies around it
bool memory_contains(const void *pointer); // any byte of an allocation
void memory_check(const void *pointer,
                  size_t bytes); // a range within one allocation or outside of all
void memory_open(void);          // the device runs: memory can be touched
void memory_close(void);
size_t memory_count(void);

#endif
