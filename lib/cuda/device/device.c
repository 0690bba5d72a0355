// SPDX-License-Identifier: MIT
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    // Clocks are in kHz; virtual devices may not report theirs.
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

// Keeps released memory in the pool, since later calls allocate as much: by default it returns to
// the system when a CUDA stream is waited for.
static bool keep_memory(int index)
{
    cudaMemPool_t pool;
    uint64_t kept = UINT64_MAX;
    return cudaDeviceGetDefaultMemPool(&pool, index) == cudaSuccess &&
           cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept) == cudaSuccess;
}

// Values of the driver's errors are those of the run-time's errors of the same names.
static cudaError_t find_function(const char *name, void **ret)
{
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    const unsigned version = 12000;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, ret, version, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(name, ret, cudaEnableDefault, &found);
#endif
    if (error != cudaSuccess) return error;
    return found == cudaDriverEntryPointSuccess ? cudaSuccess : cudaErrorInsufficientDriver;
}

static cudaError_t open_driver(struct cuda_driver *driver)
{
    cudaError_t error = find_function("cuCtxGetCurrent", (void **)&driver->get_current);
    if (error == cudaSuccess)
        error = find_function("cuCtxSetCurrent", (void **)&driver->set_current);
    if (error == cudaSuccess)
        error = find_function("cuDevicePrimaryCtxRetain", (void **)&driver->retain);
    return error;
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
    if (error != cudaSuccess) return cuda_missing(error, text, size);
    if (index >= (size_t)n) {
        snprintf(text, size, "cuda:%zu: the last CUDA device is cuda:%d", index, n - 1);
        return PARTITA_ERR_DEVICE;
    }
    struct cuda_device *device = calloc(1, sizeof *device);
    if (!device) return PARTITA_ERR_NOMEM;
    device->base.close = close_device;
    device->index = (int)index;
    pthread_mutex_init(&device->lock, NULL);
    if (!read_attributes(device) || !keep_memory(device->index) ||
        open_driver(&device->driver) != cudaSuccess) {
        snprintf(text, size, "cuda:%zu: %s", index, cudaGetErrorString(cudaGetLastError()));
        close_device(&device->base);
        return PARTITA_ERR_DEVICE;
    }
    *ret_device = device;
    return PARTITA_OK;
}

// The context is never released: the run-time, too, holds it until the process ends.
static cudaError_t own_context(struct cuda_driver *driver, int device, struct CUctx_st **ret)
{
    *ret = atomic_load(&driver->context);
    if (*ret) return cudaSuccess;
    const cudaError_t error = driver->retain(ret, device);
    if (error == cudaSuccess) atomic_store(&driver->context, *ret);
    return error;
}

// Makes the device's context current, and makes the context itself when first called. *ret_before
// is the context that was current, and *ret_changed whether it is another one.
static cudaError_t enter_context(struct cuda_driver *driver, int device,
                                 struct CUctx_st **ret_before, bool *ret_changed)
{
    struct CUctx_st *own;
    *ret_changed = false;
    cudaError_t error = own_context(driver, device, &own);
    if (error == cudaSuccess) error = driver->get_current(ret_before);
    if (error != cudaSuccess || *ret_before == own) return error;
    *ret_changed = true;
    return driver->set_current(own);
}

static _Thread_local struct cuda_thread own_thread = {.stream = cudaStreamPerThread};

const struct cuda_thread *cuda_thread(void)
{
    return &own_thread;
}

void cuda_thread_set(const struct cuda_thread *thread)
{
    own_thread = *thread;
}

// Also on a lost device: what is released is that device's.
enum partita_status cuda_enter_queue(const struct partita_plan *plan, struct cuda_scope *ret_scope)
{
    struct cuda_device *device = cuda_device_of(plan);
    *ret_scope = (struct cuda_scope){.plan = plan, .thread = own_thread};
    own_thread = (struct cuda_thread){.stream = cudaStreamPerThread};
    const enum partita_status status =
        CU(plan,
           enter_context(&device->driver, device->index, &ret_scope->context, &ret_scope->changed));
    return status == PARTITA_OK ? cuda_device_status(plan) : status;
}

enum partita_status cuda_enter(const struct partita_plan *plan, struct cuda_scope *ret_scope)
{
    const enum partita_status entered = cuda_enter_queue(plan, ret_scope);
    ret_scope->mode = cudaStreamCaptureModeRelaxed;
    const enum partita_status status =
        CU(plan, cudaThreadExchangeStreamCaptureMode(&ret_scope->mode));
    ret_scope->exchanged = status == PARTITA_OK;
    return entered == PARTITA_OK ? status : entered;
}

// What fails here has failed before, or is the caller's context's: it is not reported.
void cuda_leave(const struct cuda_scope *scope)
{
    enum cudaStreamCaptureMode mode = scope->mode;
    own_thread = scope->thread;
    if (scope->exchanged && cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess)
        cudaGetLastError();
    if (scope->changed) cuda_device_of(scope->plan)->driver.set_current(scope->context);
}

enum partita_status cuda_allocate(const struct partita_plan *plan, size_t bytes, void **ret_memory)
{
    *ret_memory = NULL;
    return CU(plan, cudaMallocAsync(ret_memory, bytes ? bytes : 1, cuda_thread()->stream));
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
