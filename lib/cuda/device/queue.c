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
    if (queue->opened) CU(plan, cudaStreamDestroy(queue->stream));
    *queue = (struct cuda_queue){0};
}

void cuda_queue_use(const struct cuda_queue *queue)
{
    cuda_thread_set(&(struct cuda_thread){.stream = queue->stream, .loaded = true});
}

enum partita_status cuda_queue_load(cuda_queue_fn *work, void *context)
{
    const struct cuda_thread before = *cuda_thread();
    cuda_thread_set(&(struct cuda_thread){.stream = before.stream, .loads = true});
    const enum partita_status status = work(context);
    cuda_thread_set(&before);
    return status;
}

enum partita_status cuda_queue_make(const struct partita_plan *plan, struct cuda_queue *queue,
                                    cuda_queue_fn *work, void *context)
{
    const struct cuda_thread before = *cuda_thread();
    cudaGraph_t graph = NULL;
    enum partita_status status = cuda_queue_load(work, context);
    if (status == PARTITA_OK)
        status = CU(plan, cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal));
    if (status != PARTITA_OK) return status;
    cuda_queue_use(queue);
    status = work(context);
    cuda_thread_set(&before);
    const cudaError_t ended = cudaStreamEndCapture(queue->stream, &graph);
    if (status == PARTITA_OK)
        status = cuda_status(plan, ended, "cudaStreamEndCapture", __FILE__, __LINE__);
    else cudaGetLastError(); // a failure of the work ended the capture as well
    if (status == PARTITA_OK) status = CU(plan, cudaGraphInstantiate(&queue->exec, graph, 0));
    if (graph) CU(plan, cudaGraphDestroy(graph));
    return status == PARTITA_OK ? CU(plan, cudaGraphUpload(queue->exec, queue->stream)) : status;
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
