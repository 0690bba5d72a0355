// SPDX-License-Identifier: MIT
// Memory pools. Each device has a default pool, which everybody in the process shares; others are
// made by their users. A pool keeps memory that was released, until a wait finds more than its
// release threshold or its user trims it.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct CUmemPoolHandle_st {
    int device;
    size_t used, kept; // bytes; kept: also those in use
    uint64_t threshold;
    bool destroyed; // but in use
    struct CUmemPoolHandle_st *next;
};

static struct CUmemPoolHandle_st defaults[DEVICES], *current[DEVICES], *made;

static cudaMemPool_t default_pool(int device)
{
    defaults[device].device = device;
    return &defaults[device];
}

static cudaMemPool_t current_pool(int device)
{
    return current[device] ? current[device] : default_pool(device);
}

void pool_take(cudaMemPool_t pool, size_t bytes)
{
    pool->used += bytes;
    if (pool->kept < pool->used) pool->kept = pool->used;
}

static void release_pool(cudaMemPool_t pool)
{
    cudaMemPool_t *at = &made;
    while (*at != pool) at = &(*at)->next;
    *at = pool->next;
    free(pool);
}

void pool_give_back(cudaMemPool_t pool, size_t bytes)
{
    pool->used -= bytes;
    if (pool->destroyed && !pool->used) release_pool(pool);
}

static void keep_at_most(cudaMemPool_t pool, uint64_t bytes)
{
    const uint64_t kept = bytes > pool->used ? bytes : pool->used;
    if (pool->kept > kept) pool->kept = (size_t)kept;
}

void pool_waited(void)
{
    for (int i = 0; i < DEVICES; i++) keep_at_most(default_pool(i), defaults[i].threshold);
    for (cudaMemPool_t pool = made; pool; pool = pool->next) keep_at_most(pool, pool->threshold);
}

size_t hostdev_kept(int device)
{
    size_t sum = default_pool(device)->kept;
    for (cudaMemPool_t pool = made; pool; pool = pool->next)
        if (pool->device == device) sum += pool->kept;
    return sum;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    const cudaError_t error = of_device(call_begin(), device);
    if (error == cudaSuccess) *pool = default_pool(device);
    return call_end(error);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    const cudaError_t error = of_device(call_begin(), device);
    if (error == cudaSuccess) current[device] = pool;
    return call_end(error);
}

// Makes the current device's context, as any function of the run-time may that works on memory.
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    const int device = props->location.id;
    cudaError_t error = of_device(call_begin(), device);
    device_current();
    if (error == cudaSuccess && stream_capture_forbids()) error = cudaErrorStreamCaptureUnsupported;
    if (props->allocType != cudaMemAllocationTypePinned ||
        props->handleTypes != cudaMemHandleTypeNone ||
        props->location.type != cudaMemLocationTypeDevice)
        error = cudaErrorInvalidValue;
    if (error != cudaSuccess) return call_end(error);
    cudaMemPool_t added = malloc(sizeof *added);
    if (!added) hostdev_abort("out of memory");
    *added = (struct CUmemPoolHandle_st){.device = device, .next = made};
    *pool = made = added;
    return call_end(cudaSuccess);
}

// Releases even when it returns an error of an earlier call, as the run-time does; of a pool in use
// when its last memory is given back.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    const cudaError_t error = call_begin();
    cudaMemPool_t at = made;
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    while (at && at != pool) at = at->next;
    if (!at || pool->destroyed) hostdev_abort("a pool that does not exist");
    for (int i = 0; i < DEVICES; i++)
        if (current[i] == pool) current[i] = NULL;
    pool->destroyed = true;
    if (!pool->used) release_pool(pool);
    return call_end(error);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    const cudaError_t error = call_begin();
    if (error != cudaSuccess) return call_end(error);
    if (attribute != cudaMemPoolAttrReleaseThreshold) return call_end(cudaErrorInvalidValue);
    memcpy(&pool->threshold, value, sizeof pool->threshold);
    return call_end(cudaSuccess);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    const cudaError_t error = call_begin();
    const uint64_t attribute_value = attribute == cudaMemPoolAttrReservedMemCurrent ? pool->kept
                                     : attribute == cudaMemPoolAttrUsedMemCurrent   ? pool->used
                                                                                  : pool->threshold;
    memcpy(value, &attribute_value, sizeof attribute_value);
    return call_end(error);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    const cudaError_t error = call_begin();
    device_current();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    if (error == cudaSuccess) keep_at_most(pool, bytes);
    return call_end(error);
}

static cudaError_t map(cudaMemPool_t pool, void **memory, size_t bytes)
{
    void *mapped = memory_map(pool->device, bytes, pool);
    if (!mapped) {
        queue_drain(NULL); // releases that are queued
        mapped = memory_map(pool->device, bytes, pool);
    }
    if (!mapped) return cudaErrorMemoryAllocation;
    *memory = mapped;
    return cudaSuccess;
}

// The memory may be another owner's until the stream reaches this operation, which therefore
// overwrites it. `pool` NULL: the device's current one.
static cudaError_t allocate_from(cudaMemPool_t pool, void **memory, size_t bytes,
                                 cudaStream_t stream)
{
    cudaError_t error = call_begin();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    if (!pool) pool = current_pool(stream_device(stream));
    if (pool->destroyed) hostdev_abort("memory of a pool that was destroyed");
    if (pool->device != stream_device(stream))
        hostdev_abort("memory of a pool of another device than the stream's");
    if (error == cudaSuccess) error = map(pool, memory, bytes);
    if (error == cudaSuccess)
        queue_append(&(struct operation){
            .kind = ALLOCATE, .stream = stream, .to = *memory, .bytes = bytes, .value = 0xff});
    return call_end(error);
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream)
{
    return allocate_from(NULL, memory, bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    if (!pool) hostdev_abort("memory of no pool");
    return allocate_from(pool, memory, bytes, stream);
}
