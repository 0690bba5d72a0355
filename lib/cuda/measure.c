// SPDX-License-Identifier: MIT
#include "measure.h"

#include <math.h>

#include "base/clock.h"
#include "base/sizes.h"
#include "cuda/device/device.h"
#include "cuda/device/fft.h"
#include "cuda/device/filter.h"
#include "cuda/device/queue.h"
#include "cuda/device/rates.h"

enum {
    COPIED = 2 << 20, // bytes for each processor: beyond the caches
    SIDE = 16,        // of a matrix, for each processor: several thread blocks each
    POINTS = 4096,    // of a transform: three passes
    PASSES = 3,
    WAVES = 4, // of transforms that occupy all threads
    BEST_OF = 3,
    MAX_RUNS = 1024,
};

static const double MIN_SECONDS = 2e-3; // of one timing, beside which waiting does not count

struct measurement {
    struct partita_plan
        plan; // device, log, and a problem in f32: the fields that functions of plans read here
    struct cuda_fft fft;
    struct cuda_queue queue;
    struct cuda_product product;
    struct cuda_windows windows;
    size_t transforms, copied;
    void *from, *to;
    double host_seconds; // in which the host queued graphs
};

typedef enum partita_status measure_run_fn(struct measurement *m);

static enum partita_status measure_run_copy(struct measurement *m)
{
    return CU(&m->plan,
              cudaMemcpyAsync(m->to, m->from, m->copied, cudaMemcpyDefault, cuda_thread()->stream));
}

static enum partita_status measure_run_product(struct measurement *m)
{
    return CU(&m->plan, cuda_launch_product(&m->product, cuda_device_of(&m->plan)->gpu->processors,
                                            m->to, m->from, m->from));
}

static enum partita_status measure_run_transforms(struct measurement *m)
{
    return CU(&m->plan, cuda_launch_windows(&m->fft.params, m->to, &m->windows,
                                            (int64_t)m->transforms, m->from));
}

static enum partita_status measure_run_graph(struct measurement *m)
{
    const double start = clock_seconds();
    const enum partita_status status = cuda_queue_launch(&m->plan, &m->queue);
    m->host_seconds += clock_seconds() - start;
    return status == PARTITA_OK ? cuda_queue_wait(&m->plan, &m->queue) : status;
}

static enum partita_status time_runs(struct measurement *m, measure_run_fn *run, int n,
                                     double *ret_seconds)
{
    enum partita_status status = PARTITA_OK;
    m->host_seconds = 0;
    const double start = clock_seconds();
    for (int i = 0; i < n && status == PARTITA_OK; i++) status = run(m);
    if (status == PARTITA_OK) status = cuda_wait(&m->plan);
    *ret_seconds = clock_seconds() - start;
    return status;
}

// Seconds of one run, as many of which are timed as take long enough: the least of some timings,
// since others may use the machine. The first run brings the kernel to the device.
static enum partita_status measure_seconds(struct measurement *m, measure_run_fn *run,
                                           double *ret_seconds)
{
    double seconds = 0, best = INFINITY;
    int n = 1;
    enum partita_status status = time_runs(m, run, 1, &seconds);
    while (status == PARTITA_OK) {
        status = time_runs(m, run, n, &seconds);
        if (seconds >= MIN_SECONDS || n >= MAX_RUNS) break;
        n *= 2;
    }
    for (int i = 0; i < BEST_OF && status == PARTITA_OK; i++) {
        best = fmin(best, seconds);
        status = time_runs(m, run, n, &seconds);
    }
    *ret_seconds = fmin(best, seconds) / n;
    m->host_seconds /= n;
    return status;
}

// Square matrices; as A and B the same one.
static void set_product(struct measurement *m, size_t side)
{
    const struct cuda_matrices matrices = {.pitch = (int64_t)side};
    m->product = (struct cuda_product){.element = CUDA_F32,
                                       .batch = 1,
                                       .rows = (int64_t)side,
                                       .columns = (int64_t)side,
                                       .terms = (int64_t)side,
                                       .a = matrices,
                                       .b = matrices,
                                       .c = matrices,
                                       .chunks = 1};
}

static enum partita_status measure_products(struct measurement *m, size_t side,
                                            struct cuda_gpu_rates *rates)
{
    const int processors = cuda_device_of(&m->plan)->gpu->processors;
    double seconds;
    set_product(m, side);
    enum partita_status status = measure_seconds(m, measure_run_product, &seconds);
    if (status != PARTITA_OK) return status;
    rates->fma = cuda_product_slots(&m->product, processors) * processors / seconds;
    if (!(rates->tf32 > 0)) return status;
    // With tensor cores the slots are a part that is inversely proportional to their rate, and a
    // part that is not.
    m->product.arithmetic = CUDA_TF32_THREE;
    m->product.tf32_rate = 1;
    const double at_one = cuda_product_slots(&m->product, processors);
    m->product.tf32_rate = 2;
    const double part = 2 * (at_one - cuda_product_slots(&m->product, processors));
    m->product.tf32_rate = rates->tf32;
    status = measure_seconds(m, measure_run_product, &seconds);
    const double left = seconds * rates->fma / processors - (at_one - part);
    if (status == PARTITA_OK && left > 0) rates->tf32 = part / left;
    return status;
}

static enum partita_status queue_product_of(void *context)
{
    return measure_run_product(context);
}

// A graph of the smallest product.
static enum partita_status measure_graph(struct measurement *m, struct cuda_gpu_rates *rates)
{
    enum partita_status status = cuda_queue_open(&m->plan, &m->queue);
    if (status == PARTITA_OK) status = cuda_queue_make(&m->plan, &m->queue, queue_product_of, m);
    if (status == PARTITA_OK) status = measure_seconds(m, measure_run_graph, &rates->graph);
    rates->host_graph = m->host_seconds;
    return status;
}

static enum partita_status measure_rates(struct measurement *m, size_t side,
                                         struct cuda_gpu_rates *rates)
{
    double copy, waves;
    set_product(m, 16);
    enum partita_status status = measure_seconds(m, measure_run_product, &rates->launch);
    if (status == PARTITA_OK) status = measure_graph(m, rates);
    if (status == PARTITA_OK) status = measure_seconds(m, measure_run_copy, &copy);
    if (status == PARTITA_OK) status = measure_seconds(m, measure_run_transforms, &waves);
    if (status != PARTITA_OK) return status;
    rates->bytes = 2 * (double)m->copied / copy;
    rates->pass = waves / (WAVES * PASSES);
    return measure_products(m, side, rates);
}

// Memory, tables and timings; everything is released, whatever is returned.
static enum partita_status measure_device(struct measurement *m, struct cuda_gpu_rates *rates)
{
    const struct cuda_device *device = cuda_device_of(&m->plan);
    const size_t processors = (size_t)device->gpu->processors;
    size_t side = 64;
    while (side < SIDE * processors && side < 8192) side *= 2;
    m->copied = size_min(COPIED * processors, device->gpu->memory / 64);
    m->transforms = WAVES * processors * CUDA_FULL_THREADS * CUDA_FFT_POINTS / POINTS;
    m->windows = cuda_row_windows(POINTS, false);
    m->windows.count = 1;
    m->windows.hop = m->windows.length = POINTS;
    const size_t spectra = m->transforms * POINTS * 2 * sizeof(float);
    const size_t bytes = size_max(size_max(m->copied, spectra), side * side * sizeof(float));
    enum partita_status status = cuda_fft_create(&m->plan, POINTS, 1, false, &m->fft);
    if (status == PARTITA_OK) status = cuda_allocate(&m->plan, bytes, &m->from);
    if (status == PARTITA_OK) status = cuda_allocate(&m->plan, bytes, &m->to);
    // Small numbers, not zeros, with which a GPU takes less power and has a higher clock.
    if (status == PARTITA_OK)
        status = CU(&m->plan, cudaMemsetAsync(m->from, 0x3c, bytes, cuda_thread()->stream));
    if (status == PARTITA_OK) status = cuda_wait(&m->plan);
    if (status == PARTITA_OK) status = measure_rates(m, side, rates);
    cuda_queue_close(&m->plan, &m->queue);
    cuda_release(&m->plan, m->from);
    cuda_release(&m->plan, m->to);
    cuda_fft_destroy(&m->plan, &m->fft);
    return status;
}

// With gpu->measuring locked.
static enum partita_status measure_once(struct cuda_device *device, const struct partita_log *log)
{
    struct cuda_gpu *gpu = device->gpu;
    struct measurement m = {.plan = {.device = &device->base, .log = *log}};
    struct cuda_gpu_rates rates = gpu->rates;
    struct cuda_scope scope;
    if (gpu->is_measured) return PARTITA_OK;
    enum partita_status status = cuda_enter(&m.plan, &scope);
    if (status == PARTITA_OK) status = measure_device(&m, &rates);
    cuda_leave(&scope);
    gpu->is_measured = status == PARTITA_OK;
    if (gpu->is_measured) gpu->measured = rates;
    return status;
}

enum partita_status cuda_measure(struct device *device, const struct partita_log *log)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    pthread_mutex_lock(&cuda->gpu->measuring);
    const enum partita_status status = measure_once(cuda, log);
    pthread_mutex_unlock(&cuda->gpu->measuring);
    if (status == PARTITA_OK) cuda_device_set_rates(cuda, &cuda->gpu->measured, "measured");
    return status == PARTITA_ERR_NOMEM ? PARTITA_OK : status;
}
