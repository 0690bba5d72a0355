// SPDX-License-Identifier: MIT
// A separate queue on a device (a CUDA stream), and a graph of kernels that is made once and
// launched again and again.
#ifndef PARTITA_CUDA_QUEUE_H
#define PARTITA_CUDA_QUEUE_H

#include "device.h"

struct cuda_queue {
    cudaStream_t stream;
    cudaGraphExec_t exec;
    bool opened, running; // running: there may be queued work that has not been waited for
};

// Work that is queued on the stream of the thread (cuda_thread).
typedef enum partita_status cuda_queue_fn(void *context);

// Opens a queue of the highest priority. The caller must call cuda_queue_close, also after a
// failure.
enum partita_status cuda_queue_open(const struct partita_plan *plan, struct cuda_queue *queue);
void cuda_queue_close(const struct partita_plan *plan, struct cuda_queue *queue);

// Makes the queue that of the calling thread, until cuda_leave. Kernels whose blocks need much
// shared memory have been loaded.
void cuda_queue_use(const struct cuda_queue *queue);

// cuda_queue_load loads the kernels of some work, because neither capturing nor a call of process
// may do so. cuda_queue_make also captures the work into the graph.
enum partita_status cuda_queue_load(cuda_queue_fn *work, void *context);
enum partita_status cuda_queue_make(const struct partita_plan *plan, struct cuda_queue *queue,
                                    cuda_queue_fn *work, void *context);

// cuda_queue_launch queues the graph; cuda_queue_wait waits for all queued work. Until waiting has
// succeeded the queue counts as running.
enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue);
enum partita_status cuda_queue_wait(const struct partita_plan *plan, struct cuda_queue *queue);

// Host memory that the device can access at the same address. Releasing NULL is allowed.
enum partita_status cuda_pin(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_unpin(const struct partita_plan *plan, void *memory);

#endif
