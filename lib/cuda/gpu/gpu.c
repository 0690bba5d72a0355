// SPDX-License-Identifier: MIT
#include "gpu.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

// Functions of the driver, found at run time, as there may be no driver.
static struct {
    cudaError_t (*get_current)(struct CUctx_st **ret);
    cudaError_t (*set_current)(struct CUctx_st *context);
    cudaError_t (*retain)(struct CUctx_st **ret, int device);
} driver;

// GPUs that were opened once; they are never removed. The lock protects the list and the functions.
static struct cuda_gpu *gpus;
static pthread_mutex_t gpus_lock = PTHREAD_MUTEX_INITIALIZER;

// The rates of a GPU's properties; those that properties do not tell are guesses. A GPU that
// bench/gpu.sh ran on has measured ones instead. Clocks are in kHz, the bus in bits; virtual
// devices may not report them.
static void assume_rates(struct cuda_gpu *gpu, int capability, double clock, double memory_clock,
                         double bus)
{
    const double usual_clock = 1e6, usual_bus = 512;
    // f32 units of a processor: CUDA C++ Programming Guide, 17
    const int lanes = capability == 80 ? 64 : 128;
    gpu->rates = (struct cuda_gpu_rates){
        .launch = 3e-6,
        .host_graph = 5e-6,
        .graph = 1e-5,
        .pass = 5e-7,
        .bytes = 2e3 * (memory_clock > 0 ? memory_clock : usual_clock) *
                 (bus > 0 ? bus : usual_bus) / 8, // two transfers a clock
        .fma = 1e3 * lanes * gpu->processors * (clock > 0 ? clock : usual_clock)};
    // Decision 43: elsewhere three products of TF32 take longer than a multiply-add.
    if (capability == 80) gpu->rates.tf32 = 8;
    if (capability / 10 == 9) gpu->rates.tf32 = 5;
    for (size_t i = 0; i < sizeof measured_gpus / sizeof *measured_gpus; i++) {
        if (strcmp(measured_gpus[i].key, gpu->key) != 0) continue;
        gpu->rates = measured_gpus[i].rates;
        gpu->listed = true;
    }
}

static cudaError_t read_attributes(struct cuda_gpu *gpu)
{
    int major, minor, clock, memory_clock, bus, shared;
    const struct {
        int *value;
        enum cudaDeviceAttr attribute;
    } wanted[] = {
        {&gpu->processors, cudaDevAttrMultiProcessorCount},
        {&major, cudaDevAttrComputeCapabilityMajor},
        {&minor, cudaDevAttrComputeCapabilityMinor},
        {&clock, cudaDevAttrClockRate},
        {&memory_clock, cudaDevAttrMemoryClockRate},
        {&bus, cudaDevAttrGlobalMemoryBusWidth},
        {&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin},
        {&gpu->f64_share, cudaDevAttrSingleToDoublePrecisionPerfRatio},
    };
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, gpu->index);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && error == cudaSuccess; i++)
        error = cudaDeviceGetAttribute(wanted[i].value, wanted[i].attribute, gpu->index);
    if (error != cudaSuccess) return error;
    gpu->shared_bytes = (size_t)shared;
    gpu->memory = properties.totalGlobalMem;
    snprintf(gpu->name, sizeof gpu->name, "%.64s, compute capability %d.%d, %d processors, %zu MiB",
             properties.name, major, minor, gpu->processors, properties.totalGlobalMem >> 20);
    snprintf(gpu->key, sizeof gpu->key, "%.40s", properties.name);
    for (char *c = gpu->key; *c; c++)
        if (*c == ' ') *c = '-';
    assume_rates(gpu, 10 * major + minor, clock, memory_clock, bus);
    return cudaSuccess;
}

// Values of the driver's errors are those of the runtime's errors of the same names.
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

// Once in a process, since other threads read the functions without a lock. The last one says that
// all have been found.
static cudaError_t open_driver(void)
{
    if (driver.retain) return cudaSuccess;
    cudaError_t error = find_function("cuCtxGetCurrent", (void **)&driver.get_current);
    if (error == cudaSuccess)
        error = find_function("cuCtxSetCurrent", (void **)&driver.set_current);
    if (error == cudaSuccess)
        error = find_function("cuDevicePrimaryCtxRetain", (void **)&driver.retain);
    return error;
}

// Reads everything that is kept; false: text says why not.
static bool examine(struct cuda_gpu *gpu, char *text, size_t size)
{
    int pools = 0;
    cudaError_t error = read_attributes(gpu);
    if (error == cudaSuccess) error = open_driver();
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, gpu->index);
    if (error == cudaSuccess && pools) return true;
    cudaGetLastError(); // or the next call would return it again
    if (error != cudaSuccess)
        snprintf(text, size, "cuda:%d: %s", gpu->index, cudaGetErrorString(error));
    else
        snprintf(text, size,
                 "cuda:%d: the GPU or its driver has no memory pools "
                 "(cudaDevAttrMemoryPoolsSupported), which all engines need",
                 gpu->index);
    return false;
}

// With gpus_lock held.
static struct cuda_gpu *find_or_add(int index, char *text, size_t size)
{
    for (struct cuda_gpu *gpu = gpus; gpu; gpu = gpu->next)
        if (gpu->index == index) return gpu;
    struct cuda_gpu *made = calloc(1, sizeof *made);
    *text = '\0';
    if (!made) return NULL;
    made->index = index;
    if (!examine(made, text, size)) {
        free(made);
        return NULL;
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->measuring, NULL);
    made->next = gpus;
    return gpus = made;
}

struct cuda_gpu *cuda_gpu_open(int index, char *text, size_t size)
{
    pthread_mutex_lock(&gpus_lock);
    struct cuda_gpu *gpu = find_or_add(index, text, size);
    pthread_mutex_unlock(&gpus_lock);
    if (!gpu) return NULL;
    pthread_mutex_lock(&gpu->lock);
    gpu->holders++;
    pthread_mutex_unlock(&gpu->lock);
    return gpu;
}

// Releases that are still queued, also by other threads, are not waited for: the pool's memory is
// returned after the last of them (CUDA Runtime API, cudaMemPoolDestroy).
static void destroy_pool(struct cuda_gpu *gpu)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; // as in cuda_enter
    struct cuda_context context;
    cudaError_t error = cuda_gpu_enter(gpu, &context);
    if (error == cudaSuccess) {
        const bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
        error = cudaMemPoolDestroy(gpu->pool);
        gpu->pool = NULL;
        if (exchanged) cudaThreadExchangeStreamCaptureMode(&mode);
    }
    if (error != cudaSuccess) cudaGetLastError(); // its cause has been reported
    cuda_gpu_leave(&context);
}

void cuda_gpu_close(struct cuda_gpu *gpu)
{
    pthread_mutex_lock(&gpu->lock);
    if (--gpu->holders == 0 && gpu->pool) destroy_pool(gpu);
    pthread_mutex_unlock(&gpu->lock);
}

// The context is never released: the runtime, too, holds it until the process ends.
static cudaError_t own_context(struct cuda_gpu *gpu, struct CUctx_st **ret)
{
    *ret = atomic_load(&gpu->context);
    if (*ret) return cudaSuccess;
    const cudaError_t error = driver.retain(ret, gpu->index);
    if (error == cudaSuccess) atomic_store(&gpu->context, *ret);
    return error;
}

cudaError_t cuda_gpu_enter(struct cuda_gpu *gpu, struct cuda_context *ret)
{
    struct CUctx_st *context;
    *ret = (struct cuda_context){0};
    cudaError_t error = own_context(gpu, &context);
    if (error == cudaSuccess) error = driver.get_current(&ret->before);
    if (error != cudaSuccess || ret->before == context) return error;
    ret->changed = true;
    return driver.set_current(context);
}

// A failure here belongs to the caller's context: it is not reported.
void cuda_gpu_leave(const struct cuda_context *context)
{
    if (context->changed) driver.set_current(context->before);
}

static cudaError_t make_pool(int index, cudaMemPool_t *ret)
{
    const struct cudaMemPoolProps props = {
        .allocType = cudaMemAllocationTypePinned,
        .handleTypes = cudaMemHandleTypeNone,
        .location = {.type = cudaMemLocationTypeDevice, .id = index}};
    uint64_t kept = UINT64_MAX;
    cudaMemPool_t pool;
    cudaError_t error = cudaMemPoolCreate(&pool, &props);
    if (error != cudaSuccess) return error;
    error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept);
    if (error == cudaSuccess) *ret = pool;
    else cudaMemPoolDestroy(pool);
    return error;
}

cudaError_t cuda_gpu_pool(struct cuda_gpu *gpu, cudaMemPool_t *ret)
{
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&gpu->lock);
    if (!gpu->pool) error = make_pool(gpu->index, &gpu->pool);
    *ret = gpu->pool;
    pthread_mutex_unlock(&gpu->lock);
    return error;
}
