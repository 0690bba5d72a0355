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
    if (queue->graph) CU(plan, cudaGraphExecDestroy(queue->graph));
    if (queue->opened) CU(plan, cudaStreamDestroy(queue->stream));
    *queue = (struct cuda_queue){0};
}

enum partita_status cuda_queue_record(const struct partita_plan *plan, struct cuda_queue *queue,
                                      enum partita_status (*record)(const void *context),
                                      const void *context)
{
    cudaGraph_t graph = NULL;
    enum partita_status status =
        CU(plan, cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal));
    if (status != PARTITA_OK) return status;
    status = record(context);
    if (status == PARTITA_OK) status = CU(plan, cudaStreamEndCapture(queue->stream, &graph));
    else { // the queue would go on recording; that this fails too is nothing new
        cudaStreamEndCapture(queue->stream, &graph);
        cudaGetLastError();
    }
    if (status == PARTITA_OK) status = CU(plan, cudaGraphInstantiate(&queue->graph, graph, 0));
    if (status == PARTITA_OK) status = CU(plan, cudaGraphUpload(queue->graph, queue->stream));
    if (graph) CU(plan, cudaGraphDestroy(graph));
    return status;
}

enum partita_status cuda_queue_launch(const struct partita_plan *plan, struct cuda_queue *queue)
{
    queue->running = true;
    return CU(plan, cudaGraphLaunch(queue->graph, queue->stream));
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
