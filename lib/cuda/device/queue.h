// SPDX-License-Identifier: MIT
// A separate queue on a device (a CUDA stream), with a graph of kernels that is made once and
// launched again and again; banks change its parameters in between.
#ifndef PARTITA_CUDA_QUEUE_H
#define PARTITA_CUDA_QUEUE_H

#include "device.h"

enum { CUDA_QUEUE_KERNELS = 6 }; // of a graph, at most

struct cuda_queue {
    cudaStream_t stream;
    cudaGraph_t graph; // must exist as long as parameters of its nodes change
    cudaGraphExec_t exec;
    cudaGraphNode_t nodes[CUDA_QUEUE_KERNELS];
    bool opened, running; // running: there may be queued work that has not been waited for
};

// Opens a queue of the highest priority. The caller must call cuda_queue_close, also after a
// failure.
enum partita_status cuda_queue_open(const struct partita_plan *plan, struct cuda_queue *queue);
void cuda_queue_close(const struct partita_plan *plan, struct cuda_queue *queue);

// Makes the graph. The first call of `add` loads kernels (cuda_thread), because neither capturing
// nor changing parameters loads them; the second adds the nodes to the graph.
enum partita_status cuda_queue_make(const struct partita_plan *plan, struct cuda_queue *queue,
                                    enum partita_status (*add)(void *context, cudaGraph_t graph),
                                    void *context);

// cuda_queue_launch queues the graph; cuda_queue_wait waits for all queued work. Until waiting has
// succeeded the queue counts as running.
enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue);
enum partita_status cuda_queue_wait(const struct partita_plan *plan, struct cuda_queue *queue);

// Host memory that the device can access at the same address. Releasing NULL is allowed.
enum partita_status cuda_pin(const struct partita_plan *plan, size_t bytes, void **ret_memory);
void cuda_unpin(const struct partita_plan *plan, void *memory);

#endif
