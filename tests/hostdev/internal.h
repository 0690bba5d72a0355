// SPDX-License-Identifier: MIT
// Internal interface of hostdev. One lock in runtime.c protects all state.
#ifndef HOSTDEV_INTERNAL_H
#define HOSTDEV_INTERNAL_H

#include <pthread.h>

#include "hostdev.h"

enum {
    SHARED_BYTES = 227 << 10,  // maximum of a block, as on compute capability 9.0
    SHARED_DEFAULT = 48 << 10, // without cudaFuncSetAttribute
    MAX_THREADS = 1024,        // of a block
    WARP_LANES = 32,
    DEVICES = 2, // alike, each with its own memory
    ALL_DEVICES = -1,
};

// Reports a violated rule and ends the process.
_Noreturn void hostdev_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct hostdev_index {
    unsigned x, y, z;
};

extern struct hostdev_index threadIdx, blockIdx, blockDim, gridDim; // of the running thread

// As in cuda_runtime.h.
struct hostdev_kernel {
    struct hostdev_index grid, block;
    size_t shared_bytes;
    void (*run)(void *call);
    void (*release)(void *call);
    void *call;
};

// Queued until a caller waits for it.
struct operation {
    enum { COPY, SET, ALLOCATE, RELEASE, KERNEL, CALL, GRAPH, RECORD, WAIT } kind;
    cudaStream_t stream;
    pthread_t owner; // each thread has its own cudaStreamPerThread on each device
    int device;      // the stream's
    void *to;
    const void *from;
    size_t bytes;
    int value;
    struct hostdev_kernel kernel;
    cudaGraphExec_t graph;
    uint64_t ticket; // of an event's record and of the waits for it
    bool done;
    struct operation *next;
};

// runtime.c: counts a call and locks; returns the error with which the call must fail. call_end
// unlocks and returns its argument.
cudaError_t call_begin(void);
void call_begin_uncounted(void);
cudaError_t call_end(cudaError_t error);

// runtime.c: a call that queues an operation. device_lost needs the lock.
cudaError_t queue(cudaStream_t stream, const struct operation *operation);
bool device_lost(void);

// runtime.c, with the lock held: refuses what a device would refuse.
cudaError_t launch_check(const struct hostdev_kernel *kernel, const void *symbol,
                         size_t parameter_bytes);

// runtime.c, with the lock held: what hostdev_used counts.
void count_allocation(void);
void count_wait(void);

// runtime.c: a figure of the devices, or the one that the environment has in its place (hostdev.h).
int device_figure(const char *name, int usual);

// runtime.c: an error for a device that does not exist.
cudaError_t of_device(cudaError_t error, int device);

// pool.c, with the lock held: bytes of a pool were allocated or released; a wait has ended.
void pool_take(cudaMemPool_t pool, size_t bytes);
void pool_give_back(cudaMemPool_t pool, size_t bytes);
void pool_waited(void);

// driver.c: the calling thread's current device, whose context is made current as well.
int device_current(void);

// queue.c, with the lock held. queue_drain runs all operations of a stream, or of all (NULL).
// queue_run_any runs a random operation where orders are random. event_count counts events that
// were not released.
void queue_append(const struct operation *operation);
void operation_run(const struct operation *operation);
void operation_free(struct operation *operation);
void queue_drain(cudaStream_t stream);
void queue_run_any(void);
size_t queue_work(void); // operations that have not run, without allocations and releases
size_t event_count(void);

// graph.c, with the lock held. graph_append adds an operation at the end. graph_count counts graphs
// that were not released.
cudaGraphExec_t graph_new(void);
cudaGraph_t graph_of(cudaGraphExec_t recorded);
void graph_append(cudaGraphExec_t graph, struct operation *operation);
void graph_run(cudaGraphExec_t graph);
void graph_release(cudaGraphExec_t graph);
size_t graph_count(void);

// counters.c, with the lock held: what hostdev_work counts.
void count_work(const struct operation *operation);
void count_interval(void);

// stream.c, with the lock held. stream_device: of cudaStreamPerThread the current device.
// stream_records returns whether a recording stream took the operation. stream_recording_failed: an
// operation for the stream failed. stream_count counts streams, graphs and pinned memory that were
// not released.
int stream_device(cudaStream_t stream);
bool stream_records(cudaStream_t stream, struct operation *operation);
bool stream_is_recording(cudaStream_t stream);
// Whether a capture forbids what cannot be captured: allocations, releases, waits; and work of this
// thread on a stream that is not captured. If so, the capture has failed.
bool stream_capture_forbids(void);
bool stream_capture_forbids_work(cudaStream_t stream);
void stream_recording_failed(cudaStream_t stream);
size_t stream_count(void);
bool pinned_contains(const void *pointer);

// runtime.c: queues a kernel for the template in cuda_runtime.h.
cudaError_t hostdev_launch(const struct hostdev_kernel *kernel, const void *symbol,
                           size_t parameter_bytes, cudaStream_t stream);

// runtime.c: count and queue calls of other libraries that run on the device. `run` is called when
// a kernel would run, `release` in any case.
cudaError_t hostdev_count(void);
bool hostdev_recording(cudaStream_t stream);
cudaError_t hostdev_queue(cudaStream_t stream, void (*run)(void *call), void (*release)(void *call),
                          void *call);

// fiber.c: __syncthreads of kernels.
void hostdev_barrier(const char *file, int line);

// fiber.c: runs task(i) for all i < n as fibers, none of which passes a barrier before all have
// reached it. `shuffle` gives the order of the fibers from one barrier to the next; `resume` is
// called before a fiber goes on.
void fiber_run(unsigned n, void (*task)(unsigned i), void (*resume)(unsigned i),
               void (*shuffle)(unsigned *order, unsigned n));

// fiber.c: what all threads of a warp do together. The last one to call it calls `work` with every
// lane's `mine`; then they go on.
void fiber_gather(void (*work)(void *const lane[WARP_LANES]), void *mine);

// launch.c: runs a kernel. order_draw returns a number below n where orders are random, else 0.
void launch_run(const struct hostdev_kernel *kernel);
size_t order_draw(size_t n);

// memory.c: device memory. memory_device: the device of the allocation that the pointer is in; -1:
// none. memory_open makes the memory of one device, or of all, accessible and that of others
// inaccessible.
// NULL: not enough memory. `pool`: to which the memory is given back; NULL: none.
void *memory_map(int device, size_t bytes, cudaMemPool_t pool);
void memory_limit(size_t bytes); // sets the size of the memory; 0: the initial size
void memory_unmap(void *memory); // checks the bytes around it
int memory_device(const void *pointer);
void memory_open(int device);
void memory_close(void);

// Aborts unless the range lies within one allocation or outside all.
void memory_check(const void *pointer, size_t bytes);
size_t memory_count(void);

#endif
