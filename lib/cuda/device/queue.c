// SPDX-License-Identifier: MIT
#include "queue.h"

enum partita_status cuda_queue_open(const struct partita_plan *plan, struct cuda_queue *queue)
{
    int least, greatest;
    enum partita_status status = CU(plan, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    if (status == PARTITA_OK)
        status =
            CU(plan, cudaStreamCreateWithPriority(&queue->stream, cudaStreamNonBlocking, greatest));
    queue->opened = status == PARTITA_OK;
    return status;
}

void cuda_queue_close(const struct partita_plan *plan, struct cuda_queue *queue)
{
    if (queue->running) cuda_queue_wait(plan, queue);
    if (queue->exec) CU(plan, cudaGraphExecDestroy(queue->exec));
    if (queue->graph) CU(plan, cudaGraphDestroy(queue->graph));
    if (queue->opened) CU(plan, cudaStreamDestroy(queue->stream));
    *queue = (struct cuda_queue){0};
}

enum partita_status cuda_queue_make(const struct partita_plan *plan, struct cuda_queue *queue,
                                    enum partita_status (*add)(void *context, cudaGraph_t graph),
                                    void *context)
{
    const struct cuda_thread before = *cuda_thread();
    cuda_thread_set(&(struct cuda_thread){.stream = queue->stream, .loads = true});
    enum partita_status status = add(context, NULL);
    cuda_thread_set(&before);
    if (status == PARTITA_OK) status = CU(plan, cudaGraphCreate(&queue->graph, 0));
    if (status == PARTITA_OK) status = add(context, queue->graph);
    if (status == PARTITA_OK)
        status = CU(plan, cudaGraphInstantiate(&queue->exec, queue->graph, 0));
    if (status == PARTITA_OK) status = CU(plan, cudaGraphUpload(queue->exec, queue->stream));
    return status;
}

enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue)
{
    queue->running = true;
    return CU(plan, cudaGraphLaunch(queue->exec, queue->stream));
}

enum partita_status cuda_queue_wait(const struct partita_plan *plan, struct cuda_queue *queue)
{
    const enum partita_status status = CU(plan, cudaStreamSynchronize(queue->stream));
    if (status == PARTITA_OK) queue->running = false;
    return status;
}

enum partita_status cuda_pin(const struct partita_plan *plan, size_t bytes, void **ret_memory)
{
    *ret_memory = NULL;
    return CU(plan, cudaHostAlloc(ret_memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
}

void cuda_unpin(const struct partita_plan *plan, void *memory)
{
    if (memory) CU(plan, cudaFreeHost(memory));
}
