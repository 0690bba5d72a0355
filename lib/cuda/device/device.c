// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void close_device(struct device *device)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    cuda_gpu_close(cuda->gpu);
    pthread_mutex_destroy(&cuda->lock);
    free(cuda);
}

void cuda_device_set_rates(struct cuda_device *device, const struct cuda_gpu_rates *rates,
                           const char *origin)
{
    device->rates = *rates;
    snprintf(device->base.rates, sizeof device->base.rates,
             "launch %.3g s, host_graph %.3g s, graph %.3g s, pass %.3g s, bytes %.3g /s, "
             "fma %.3g /s, tf32 %.3g; %s",
             rates->launch, rates->host_graph, rates->graph, rates->pass, rates->bytes, rates->fma,
             rates->tf32, origin);
}

enum partita_status cuda_device_open(size_t index, char *text, size_t size,
                                     struct cuda_device **ret_device)
{
    int n = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess) return cuda_missing(error, text, size);
    if (index >= (size_t)n) {
        snprintf(text, size, "cuda:%zu: the last CUDA device is cuda:%d", index, n - 1);
        return PARTITA_ERR_DEVICE;
    }
    struct cuda_gpu *gpu = cuda_gpu_open((int)index, text, size);
    if (!gpu) return *text ? PARTITA_ERR_DEVICE : PARTITA_ERR_NOMEM;
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device) {
        cuda_gpu_close(gpu);
        return PARTITA_ERR_NOMEM;
    }
    // Threads only copy between pageable arrays and pinned buffers, which more than a few do no
    // faster: they share the memory's bandwidth.
    *device = (struct cuda_device){
        .base = {.queues = true, .max_threads = 8, .close = close_device}, .gpu = gpu};
    memcpy(device->base.name, gpu->name, sizeof device->base.name);
    memcpy(device->base.key, gpu->key, sizeof device->base.key);
    cuda_device_set_rates(device, &gpu->rates,
                          gpu->listed ? "measured on another GPU of this name" : "assumed");
    pthread_mutex_init(&device->lock, NULL);
    *ret_device = device;
    return PARTITA_OK;
}

// Also on a lost device: what is released is that device's.
enum partita_status cuda_enter_queue(const struct partita_plan *plan, void *queue,
                                     struct cuda_scope *ret_scope)
{
    struct cuda_device *device = cuda_device_of(plan);
    *ret_scope = (struct cuda_scope){
        .plan = plan, .thread = *cuda_thread(), .mode = cudaStreamCaptureModeRelaxed};
    cuda_thread_set(&(struct cuda_thread){.stream = queue ? queue : cudaStreamPerThread});
    enum partita_status entered = CU(plan, cuda_gpu_enter(device->gpu, &ret_scope->context));
    if (entered == PARTITA_OK) entered = cuda_device_status(plan);
    if (queue) return entered;
    const enum partita_status status =
        CU(plan, cudaThreadExchangeStreamCaptureMode(&ret_scope->mode));
    ret_scope->exchanged = status == PARTITA_OK;
    return entered == PARTITA_OK ? status : entered;
}

enum partita_status cuda_enter(const struct partita_plan *plan, struct cuda_scope *ret_scope)
{
    return cuda_enter_queue(plan, NULL, ret_scope);
}

// What fails here has failed before: it is not reported.
void cuda_leave(const struct cuda_scope *scope)
{
    enum cudaStreamCaptureMode mode = scope->mode;
    cuda_thread_set(&scope->thread);
    if (scope->exchanged && cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        cudaGetLastError();
    cuda_gpu_leave(&scope->context);
}

enum partita_status cuda_allocate(const struct partita_plan *plan, size_t bytes, void **ret_memory)
{
    cudaMemPool_t pool;
    *ret_memory = NULL;
    const enum partita_status status = CU(plan, cuda_gpu_pool(cuda_device_of(plan)->gpu, &pool));
    if (status != PARTITA_OK) return status;
    return CU(plan,
              cudaMallocFromPoolAsync(ret_memory, bytes ? bytes : 1, pool, cuda_thread()->stream));
}

void cuda_release(const struct partita_plan *plan, void *memory)
{
    if (memory) CU(plan, cudaFreeAsync(memory, cuda_thread()->stream));
}

static enum partita_status memory_of_byte(const struct partita_plan *plan, const char *byte,
                                          enum cuda_memory *ret)
{
    struct cudaPointerAttributes attributes;
    const enum partita_status status = CU(plan, cudaPointerGetAttributes(&attributes, byte));
    if (status != PARTITA_OK) return status;
    if (attributes.type == cudaMemoryTypeManaged ||
        (attributes.type == cudaMemoryTypeDevice &&
         attributes.device == cuda_device_of(plan)->gpu->index))
        *ret = CUDA_ON_DEVICE;
    else *ret = attributes.type == cudaMemoryTypeUnregistered ? CUDA_PAGEABLE : CUDA_REACHABLE;
    return status;
}

// Somebody may have pinned a part of it.
enum partita_status cuda_memory_of(const struct partita_plan *plan, const void *array, size_t bytes,
                                   enum cuda_memory *ret)
{
    *ret = CUDA_PAGEABLE;
    if (!array) return PARTITA_OK;
    enum partita_status status = memory_of_byte(plan, array, ret);
    if (status == PARTITA_OK && *ret == CUDA_REACHABLE && bytes)
        status = memory_of_byte(plan, (const char *)array + bytes - 1, ret);
    return status;
}

enum partita_status cuda_copy(const struct partita_plan *plan, void *to, const void *from,
                              size_t bytes)
{
    return CU(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cuda_thread()->stream));
}

enum partita_status cuda_wait(const struct partita_plan *plan)
{
    return CU(plan, cudaStreamSynchronize(cuda_thread()->stream));
}

// Also after a failure: what was queued reads the caller's array.
enum partita_status cuda_upload(const struct partita_plan *plan, const void *from, size_t bytes,
                                void **ret_copy)
{
    enum partita_status status = cuda_allocate(plan, bytes, ret_copy);
    if (status != PARTITA_OK) return status;
    status = cuda_copy(plan, *ret_copy, from, bytes);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}
