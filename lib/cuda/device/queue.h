// SPDX-License-Identifier: MIT
// A queue of its own on a device (a CUDA stream), and on it a graph of kernels that is recorded
// once and launched again and again.
#ifndef PARTITA_CUDA_QUEUE_H
#define PARTITA_CUDA_QUEUE_H

#include "device.h"

struct cuda_queue {
    cudaStream_t stream;
    cudaGraphExec_t graph;
    bool opened, running; // running: something was queued that nobody has waited for
};

// Opens a queue of the highest priority. cuda_queue_close is to follow, also after a failure.
enum partita_status cuda_queue_open(const struct partita_plan *plan, struct cuda_queue *queue);
void cuda_queue_close(const struct partita_plan *plan, struct cuda_queue *queue);

// Makes a graph of what `record` queues, without running it: kernels, which are to be loaded
// before.
enum partita_status cuda_queue_record(const struct partita_plan *plan, struct cuda_queue *queue,
                                      enum partita_status (*record)(const void *context),
                                      const void *context);

// Queues the graph, and waits for all that was queued; until that has succeeded the queue counts as
// running.
enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue);
enum partita_status cuda_queue_wait(const struct partita_plan *plan, struct cuda_queue *queue);

// Memory of the host that the device uses as well, under the same address. NULL is allowed in
// release.
enum partita_status cuda_pin(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_unpin(const struct partita_plan *plan, void *memory);

#endif
