// SPDX-License-Identifier: MIT
// A separate queue on a device (a CUDA stream), with a graph of kernels that is recorded once and
// launched repeatedly.
#ifndef PARTITA_CUDA_QUEUE_H
#define PARTITA_CUDA_QUEUE_H

#include "device.h"

struct cuda_queue {
    cudaStream_t stream;
    cudaGraphExec_t graph;
    bool opened, running; // running: there may be queued work that has not been waited for
};

// Opens a queue of the highest priority. The caller must call cuda_queue_close, also after a
// failure.
enum partita_status cuda_queue_open(const struct partita_plan *plan, struct cuda_queue *queue);
void cuda_queue_close(const struct partita_plan *plan, struct cuda_queue *queue);

// Makes a graph of the kernels that `record` queues, without running them. The kernels must have
// been loaded before.
enum partita_status cuda_queue_record(const struct partita_plan *plan, struct cuda_queue *queue,
                                      enum partita_status (*record)(const void *context),
                                      const void *context);

// cuda_queue_launch queues the graph; cuda_queue_wait waits for all queued work. Until waiting has
// succeeded the queue counts as running.
enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue);
enum partita_status cuda_queue_wait(const struct partita_plan *plan, struct cuda_queue *queue);

// Host memory that the device can access at the same address. Releasing NULL is allowed.
enum partita_status cuda_pin(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_unpin(const struct partita_plan *plan, void *memory);

#endif
