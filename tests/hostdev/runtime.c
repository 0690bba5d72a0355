// SPDX-License-Identifier: MIT
// Functions of the CUDA run-time. Every call is counted and can be made to fail.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t n_calls, failing_call;
static struct hostdev_used used;
static cudaError_t failing_error;
static bool lost;
static size_t shared_bytes = SHARED_BYTES;
static bool pools = true;
static struct symbol {
    const void *kernel;
    size_t shared_bytes; // limit
    bool loaded;
} symbols[DEVICES][1024]; // each device loads kernels by itself

void hostdev_abort(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "hostdev: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

cudaError_t call_begin(void)
{
    pthread_mutex_lock(&lock);
    n_calls++;
    if (n_calls != failing_call) return lost ? failing_error : cudaSuccess;
    lost = failing_error == cudaErrorIllegalAddress || failing_error == cudaErrorLaunchFailure ||
           failing_error == cudaErrorNoDevice;
    return failing_error;
}

void call_begin_uncounted(void)
{
    pthread_mutex_lock(&lock);
}

cudaError_t call_end(cudaError_t error)
{
    pthread_mutex_unlock(&lock);
    return error;
}

bool device_lost(void)
{
    return lost;
}

cudaError_t queue(cudaStream_t stream, const struct operation *operation)
{
    cudaError_t error = call_begin();
    struct operation o = *operation;
    o.stream = stream;
    if (error == cudaSuccess && stream_capture_forbids_work(stream))
        error = cudaErrorStreamCaptureUnsupported;
    if (error == cudaSuccess) queue_append(&o);
    else stream_recording_failed(stream);
    queue_run_any();
    return call_end(error);
}

void hostdev_fail(size_t k, cudaError_t error)
{
    pthread_mutex_lock(&lock);
    n_calls = 0;
    used = (struct hostdev_used){0};
    failing_call = k;
    failing_error = error;
    lost = false;
    pthread_mutex_unlock(&lock);
}

void hostdev_shared(size_t bytes)
{
    pthread_mutex_lock(&lock);
    shared_bytes = bytes ? bytes : SHARED_BYTES;
    memset(symbols, 0, sizeof symbols);
    pthread_mutex_unlock(&lock);
}

void hostdev_pools(bool supported)
{
    pthread_mutex_lock(&lock);
    pools = supported;
    pthread_mutex_unlock(&lock);
}

void hostdev_unload(void)
{
    pthread_mutex_lock(&lock);
    for (int device = 0; device < DEVICES; device++)
        for (size_t i = 0; i < sizeof symbols[0] / sizeof *symbols[0]; i++)
            symbols[device][i].loaded = false;
    pthread_mutex_unlock(&lock);
}

void hostdev_memory(size_t bytes)
{
    pthread_mutex_lock(&lock);
    memory_limit(bytes);
    pthread_mutex_unlock(&lock);
}

size_t hostdev_calls(void)
{
    return n_calls;
}

struct hostdev_used hostdev_used(void)
{
    return used;
}

void count_allocation(void)
{
    used.allocations++;
}

void count_wait(void)
{
    used.waits++;
}

bool hostdev_recording(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    const bool recording = stream_is_recording(stream);
    pthread_mutex_unlock(&lock);
    return recording;
}

size_t hostdev_queued(void)
{
    pthread_mutex_lock(&lock);
    const size_t n = queue_work();
    pthread_mutex_unlock(&lock);
    return n;
}

size_t hostdev_allocations(void)
{
    pthread_mutex_lock(&lock);
    queue_drain(NULL);
    const size_t n = memory_count() + stream_count() + event_count();
    pthread_mutex_unlock(&lock);
    return n;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return call_end(call_begin());
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = DEVICES;
    return call_end(call_begin());
}

cudaError_t of_device(cudaError_t error, int device)
{
    return error == cudaSuccess && (device < 0 || device >= DEVICES) ? cudaErrorInvalidDevice
                                                                     : error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    const cudaError_t error = call_begin();
    used.properties++;
    snprintf(properties->name, sizeof properties->name, "hostdev");
    properties->totalGlobalMem = (size_t)1 << 40;
    return call_end(of_device(error, device));
}

int device_figure(const char *name, int usual)
{
    const char *asked = getenv(name);
    return asked ? atoi(asked) : usual;
}

// A small device, so that small problems fill it, without fast tensor cores.
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const int capability = device_figure("HOSTDEV_CAPABILITY", 86);
    const int values[] = {
        [cudaDevAttrClockRate] = device_figure("HOSTDEV_CLOCK", 1000000),
        [cudaDevAttrMultiProcessorCount] = device_figure("HOSTDEV_PROCESSORS", 2),
        [cudaDevAttrMemoryClockRate] = device_figure("HOSTDEV_MEMORY_CLOCK", 1000000),
        [cudaDevAttrGlobalMemoryBusWidth] = device_figure("HOSTDEV_BUS", 128),
        [cudaDevAttrComputeCapabilityMajor] = capability / 10,
        [cudaDevAttrComputeCapabilityMinor] = capability % 10,
        [cudaDevAttrSingleToDoublePrecisionPerfRatio] = 2,
        [cudaDevAttrMaxSharedMemoryPerBlockOptin] = (int)shared_bytes,
        [cudaDevAttrMemoryPoolsSupported] = pools,
    };
    const cudaError_t error = call_begin();
    *value = values[attribute];
    return call_end(of_device(error, device));
}

static struct symbol *symbol_of(const void *kernel)
{
    struct symbol *entry = symbols[device_current()];
    for (size_t i = 0; i < sizeof symbols[0] / sizeof *entry; i++) {
        if (entry[i].kernel && entry[i].kernel != kernel) continue;
        if (!entry[i].kernel) entry[i] = (struct symbol){kernel, SHARED_DEFAULT, false};
        return &entry[i];
    }
    hostdev_abort("too many kernels");
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
    const cudaError_t error = call_begin();
    struct symbol *symbol = symbol_of(kernel);
    if (error == cudaSuccess) symbol->loaded = true;
    attributes->maxDynamicSharedSizeBytes = (int)symbol->shared_bytes;
    return call_end(error);
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    const cudaError_t error = call_begin();
    (void)attribute; // the only one
    if (error != cudaSuccess) return call_end(error);
    if (value < 0 || (size_t)value > shared_bytes) return call_end(cudaErrorInvalidValue);
    size_t *limit = &symbol_of(kernel)->shared_bytes;
    // All threads share a kernel's limit.
    if ((size_t)value < *limit)
        hostdev_abort("less shared memory for a kernel that other threads may be launching");
    *limit = (size_t)value;
    return call_end(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}

const char *cudaGetErrorString(cudaError_t error)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "error %d", (int)error);
    return text;
}

static cudaError_t allocate(int device, void **memory, size_t bytes)
{
    void *mapped = memory_map(device, bytes, NULL);
    if (!mapped) {
        queue_drain(NULL); // releases that are queued
        mapped = memory_map(device, bytes, NULL);
    }
    if (!mapped) return cudaErrorMemoryAllocation;
    *memory = mapped;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const cudaError_t error = call_begin();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    return call_end(error == cudaSuccess ? allocate(device_current(), memory, bytes) : error);
}

// Releases even when it returns an error of an earlier call, as the run-time does.
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    queue_append(&(struct operation){.kind = RELEASE, .stream = stream, .to = memory});
    return call_end(error);
}

cudaError_t cudaFree(void *memory)
{
    const cudaError_t error = call_begin();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_allocation();
    if (memory)
        queue_append(
            &(struct operation){.kind = RELEASE, .stream = cudaStreamPerThread, .to = memory});
    queue_drain(NULL);
    return call_end(error);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind; // known from the pointers
    return queue(stream, &(struct operation){.kind = COPY, .to = to, .from = from, .bytes = bytes});
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const cudaError_t error = call_begin();
    (void)kind;
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_wait();
    if (error == cudaSuccess)
        queue_append(&(struct operation){
            .kind = COPY, .stream = cudaStreamPerThread, .to = to, .from = from, .bytes = bytes});
    queue_drain(NULL);
    return call_end(error);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t bytes, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    (void)kind;
    if (bytes > to_pitch || bytes > from_pitch || to_pitch > INT32_MAX || from_pitch > INT32_MAX)
        return call_end(cudaErrorInvalidValue);
    for (size_t i = 0; i < rows && error == cudaSuccess; i++)
        queue_append(&(struct operation){.kind = COPY,
                                         .stream = stream,
                                         .to = (char *)to + i * to_pitch,
                                         .from = (const char *)from + i * from_pitch,
                                         .bytes = bytes});
    return call_end(error);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return queue(stream,
                 &(struct operation){.kind = SET, .to = to, .value = value, .bytes = bytes});
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t bytes, size_t rows,
                              cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    if (bytes > pitch) return call_end(cudaErrorInvalidValue);
    for (size_t i = 0; i < rows && error == cudaSuccess; i++)
        queue_append(&(struct operation){.kind = SET,
                                         .stream = stream,
                                         .to = (char *)to + i * pitch,
                                         .value = value,
                                         .bytes = bytes});
    return call_end(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const cudaError_t error = call_begin();
    if (error == cudaSuccess && stream_capture_forbids())
        return call_end(cudaErrorStreamCaptureUnsupported);
    count_wait();
    queue_drain(stream);
    pool_waited();
    return call_end(error);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    const cudaError_t error = call_begin();
    const int device = memory_device(pointer);
    attributes->type = device >= 0                ? cudaMemoryTypeDevice
                       : pinned_contains(pointer) ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeUnregistered;
    attributes->device = device >= 0 ? device : 0;
    return call_end(error);
}

// Limit of parameters: CUDA C++ Programming Guide.
cudaError_t launch_check(const struct hostdev_kernel *kernel, const void *symbol,
                         size_t parameter_bytes)
{
    const size_t threads = (size_t)kernel->block.x * kernel->block.y * kernel->block.z;
    const uint64_t blocks = (uint64_t)kernel->grid.x * kernel->grid.y * kernel->grid.z;
    const bool possible =
        threads && threads <= MAX_THREADS && blocks && blocks < (uint64_t)1 << 31 &&
        kernel->grid.y < 65536 && kernel->grid.z < 65536 &&
        kernel->shared_bytes <= symbol_of(symbol)->shared_bytes && parameter_bytes <= 32764;
    return possible ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t hostdev_launch(const struct hostdev_kernel *kernel, const void *symbol,
                           size_t parameter_bytes, cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    struct symbol *entry = symbol_of(symbol);
    if (!entry->loaded && stream_is_recording(stream))
        hostdev_abort("a kernel is loaded while its stream is recorded");
    entry->loaded = true;
    const bool possible = launch_check(kernel, symbol, parameter_bytes) == cudaSuccess;
    const bool here = stream_device(stream) == device_current();
    pthread_mutex_unlock(&lock);
    const cudaError_t error =
        !here      ? cudaErrorInvalidResourceHandle
        : possible ? queue(stream, &(struct operation){.kind = KERNEL, .kernel = *kernel})
                   : cudaErrorInvalidValue;
    if (error != cudaSuccess) kernel->release(kernel->call);
    return error;
}

cudaError_t hostdev_count(void)
{
    return call_end(call_begin());
}

cudaError_t hostdev_queue(cudaStream_t stream, void (*run)(void *call), void (*release)(void *call),
                          void *call)
{
    const struct hostdev_kernel kernel = {.run = run, .release = release, .call = call};
    const cudaError_t error = queue(stream, &(struct operation){.kind = CALL, .kernel = kernel});
    if (error != cudaSuccess) release(call);
    return error;
}
