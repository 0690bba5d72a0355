// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is missing, by what the first call says: without a driver every call fails in the same way.
static enum partita_status say_missing(cudaError_t error, char *text, size_t size)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        snprintf(text, size, "no CUDA device: driver not installed");
    else if (error == cudaErrorInsufficientDriver)
        snprintf(text, size, "no CUDA device: the driver is for CUDA %d.%d, older than %d.%d",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10);
    else snprintf(text, size, "no CUDA device: %s", cudaGetErrorString(error));
    return PARTITA_ERR_DEVICE;
}

// The figures of a device, one attribute each.
static bool read_attributes(struct cuda_device *device)
{
    int major, minor, clock, memory_clock, bus, shared;
    const int index = device->index;
    const struct {
        int *value;
        enum cudaDeviceAttr attribute;
    } wanted[] = {
        {&device->processors, cudaDevAttrMultiProcessorCount},
        {&major, cudaDevAttrComputeCapabilityMajor},
        {&minor, cudaDevAttrComputeCapabilityMinor},
        {&clock, cudaDevAttrClockRate},
        {&memory_clock, cudaDevAttrMemoryClockRate},
        {&bus, cudaDevAttrGlobalMemoryBusWidth},
        {&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin},
        {&device->f64_share, cudaDevAttrSingleToDoublePrecisionPerfRatio},
    };
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return false;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (cudaDeviceGetAttribute(wanted[i].value, wanted[i].attribute, index) != cudaSuccess)
            return false;
    const int lanes = major == 8 && minor == 0
                          ? 64
                          : 128; // f32 units of a processor: CUDA C++ Programming Guide, 17
    device->shared_bytes = (size_t)shared;
    device->memory = properties.totalGlobalMem;
    // Clocks are in kHz; virtual devices may not tell theirs.
    const double usual = 1e6;
    device->flops = 2e3 * lanes * device->processors * (clock > 0 ? clock : usual);
    device->bytes = 2e3 * (memory_clock > 0 ? memory_clock : usual) *
                    (bus > 0 ? bus / 8. : 64); // two transfers a clock
    snprintf(device->base.name, sizeof device->base.name,
             "%.64s, compute capability %d.%d, %d processors, %zu MiB", properties.name, major,
             minor, device->processors, properties.totalGlobalMem >> 20);
    snprintf(device->base.key, sizeof device->base.key, "%.40s", properties.name);
    for (char *c = device->base.key; *c; c++)
        if (*c == ' ') *c = '-';
    return true;
}

// What calls give back they will ask for again: nothing goes back to the system when a stream is
// waited for.
static bool keep_memory(int index)
{
    cudaMemPool_t pool;
    uint64_t kept = UINT64_MAX;
    return cudaDeviceGetDefaultMemPool(&pool, index) == cudaSuccess &&
           cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept) == cudaSuccess;
}

static void close_device(struct device *device)
{
    pthread_mutex_destroy(&((struct cuda_device *)device)->lock);
    free(device);
}

enum partita_status cuda_device_open(size_t index, char *text, size_t size,
                                     struct cuda_device **ret_device)
{
    int n = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess) return say_missing(error, text, size);
    if (index >= (size_t)n) {
        snprintf(text, size, "cuda:%zu: the last CUDA device is cuda:%d", index, n - 1);
        return PARTITA_ERR_DEVICE;
    }
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device) return PARTITA_ERR_NOMEM;
    device->base.close = close_device;
    device->index = (int)index;
    pthread_mutex_init(&device->lock, NULL);
    if (!read_attributes(device) || !keep_memory(device->index)) {
        snprintf(text, size, "cuda:%zu: %s", index, cudaGetErrorString(cudaGetLastError()));
        close_device(&device->base);
        return PARTITA_ERR_DEVICE;
    }
    *ret_device = device;
    return PARTITA_OK;
}

enum partita_status cuda_status(const struct partita_plan *plan, cudaError_t error,
                                const char *call, const char *file, int line)
{
    if (error == cudaSuccess) return PARTITA_OK;
    cudaGetLastError(); // or the next call would return it again
    if (error == cudaErrorMemoryAllocation) return PARTITA_ERR_NOMEM;
    if (!atomic_exchange(&cuda_device_of(plan)->lost, true))
        log_line(&plan->log, "cuda:%d: %s (%s) at %s:%d: %s", cuda_device_of(plan)->index,
                 cudaGetErrorName(error), cudaGetErrorString(error), file, line, call);
    return PARTITA_ERR_DEVICE;
}

enum partita_status cuda_enter(const struct partita_plan *plan)
{
    struct cuda_device *device = cuda_device_of(plan);
    if (atomic_load(&device->lost)) return PARTITA_ERR_DEVICE;
    return CU(plan, cudaSetDevice(device->index));
}

enum partita_status cuda_allocate(const struct partita_plan *plan, size_t bytes, void **ret_memory)
{
    *ret_memory = NULL;
    return CU(plan, cudaMallocAsync(ret_memory, bytes ? bytes : 1, cudaStreamPerThread));
}

void cuda_release(const struct partita_plan *plan, void *memory)
{
    if (memory) CU(plan, cudaFreeAsync(memory, cudaStreamPerThread));
}

static enum partita_status memory_of_byte(const struct partita_plan *plan, const char *byte,
                                          enum cuda_memory *ret)
{
    struct cudaPointerAttributes attributes;
    const enum partita_status status = CU(plan, cudaPointerGetAttributes(&attributes, byte));
    if (status != PARTITA_OK) return status;
    if (attributes.type == cudaMemoryTypeManaged ||
        (attributes.type == cudaMemoryTypeDevice &&
         attributes.device == cuda_device_of(plan)->index))
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
    return CU(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread));
}

enum partita_status cuda_wait(const struct partita_plan *plan)
{
    return CU(plan, cudaStreamSynchronize(cudaStreamPerThread));
}

// Also after a failure: what was queued reads the caller's array.
enum partita_status cuda_upload(const struct partita_plan *plan, const void *from, size_t bytes,
                                void **ret_copy)
{
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_allocate(plan, bytes, ret_copy);
    if (status != PARTITA_OK) return status;
    status = cuda_copy(plan, *ret_copy, from, bytes);
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}
