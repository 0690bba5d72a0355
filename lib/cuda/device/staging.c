// SPDX-License-Identifier: MIT
#include "staging.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "queue.h"

// Bytes below which a thread costs more than it copies.
static const size_t MIN_THREAD_BYTES = 256 << 10;

enum partita_status cuda_staging_create(const struct partita_plan *plan, size_t bytes,
                                        struct cuda_staging **ret)
{
    struct cuda_staging *staging = mem_allocate(&plan->allocator, sizeof *staging);
    *ret = NULL;
    if (!staging) return PARTITA_ERR_NOMEM;
    staging->bytes = bytes;
    void *pinned = NULL;
    enum partita_status status = cuda_pin(plan, CUDA_STAGING_BUFFERS * bytes, &pinned);
    staging->pinned = pinned;
    if (status == PARTITA_OK)
        status = CU(plan, cudaStreamCreateWithFlags(&staging->in, cudaStreamNonBlocking));
    if (status == PARTITA_OK)
        status = CU(plan, cudaStreamCreateWithFlags(&staging->out, cudaStreamNonBlocking));
    for (int i = 0; i < CUDA_STAGING_BUFFERS && status == PARTITA_OK; i++)
        status = CU(plan, cudaEventCreateWithFlags(&staging->copied[i], cudaEventDisableTiming));
    for (int i = 0; i < 2 * CUDA_STAGING_EVENTS && status == PARTITA_OK; i++)
        status = CU(
            plan, cudaEventCreateWithFlags(&staging->event[i / 2][i % 2], cudaEventDisableTiming));
    if (status == PARTITA_OK) *ret = staging;
    else cuda_staging_destroy(plan, staging);
    return status;
}

void cuda_staging_destroy(const struct partita_plan *plan, struct cuda_staging *staging)
{
    for (int i = 0; i < CUDA_STAGING_BUFFERS; i++)
        if (staging->copied[i]) CU(plan, cudaEventDestroy(staging->copied[i]));
    for (int i = 0; i < 2 * CUDA_STAGING_EVENTS; i++)
        if (staging->event[i / 2][i % 2]) CU(plan, cudaEventDestroy(staging->event[i / 2][i % 2]));
    if (staging->in) CU(plan, cudaStreamDestroy(staging->in));
    if (staging->out) CU(plan, cudaStreamDestroy(staging->out));
    cuda_unpin(plan, staging->pinned);
    mem_release(&plan->allocator, staging);
}

enum partita_status cuda_staging_borrow(const struct partita_plan *plan, struct cuda_staging **ret)
{
    struct cuda_device *device = cuda_device_of(plan);
    pthread_mutex_lock(&device->lock);
    *ret = device->idle;
    if (*ret) device->idle = (*ret)->next;
    pthread_mutex_unlock(&device->lock);
    return *ret ? PARTITA_OK : cuda_staging_create(plan, CUDA_STAGING_BYTES, ret);
}

void cuda_staging_give_back(const struct partita_plan *plan, struct cuda_staging *staging)
{
    struct cuda_device *device = cuda_device_of(plan);
    if (!staging) return;
    memset(staging->busy, 0, sizeof staging->busy);
    pthread_mutex_lock(&device->lock);
    staging->next = device->idle;
    device->idle = staging;
    pthread_mutex_unlock(&device->lock);
}

void cuda_staging_close(const struct partita_plan *plan)
{
    struct cuda_device *device = cuda_device_of(plan);
    while (device->idle) {
        struct cuda_staging *staging = device->idle;
        device->idle = staging->next;
        cuda_staging_destroy(plan, staging);
    }
}

static int take_buffer(struct cuda_staging *staging)
{
    const int buffer = staging->next_buffer;
    assert(buffer >= 0 && buffer < CUDA_STAGING_BUFFERS);
    staging->next_buffer = (buffer + 1) % CUDA_STAGING_BUFFERS;
    return buffer;
}

// Until the last copy from or to a buffer is done.
static enum partita_status wait_for_buffer(const struct partita_plan *plan,
                                           struct cuda_staging *staging, int buffer)
{
    if (!staging->busy[buffer]) return PARTITA_OK;
    staging->busy[buffer] = false;
    return CU(plan, cudaEventSynchronize(staging->copied[buffer]));
}

static char *buffer_memory(const struct cuda_staging *staging, int buffer)
{
    return staging->pinned + (size_t)buffer * staging->bytes;
}

// A copy by the host.
struct host_copy {
    char *to;
    const char *from;
    size_t bytes, of_thread;
};

static void copy_of_thread(void *context, size_t i, int worker)
{
    const struct host_copy *copy = context;
    const size_t at = i * copy->of_thread;
    (void)worker;
    assert(at < copy->bytes);
    memcpy(copy->to + at, copy->from + at, size_min(copy->of_thread, copy->bytes - at));
}

// On the plan's threads.
static void copy_on_host(const struct partita_plan *plan, void *to, const void *from, size_t bytes)
{
    const size_t wanted = size_min((size_t)plan->threads, bytes / MIN_THREAD_BYTES);
    const size_t threads = size_max(wanted, 1);
    struct host_copy copy = {to, from, bytes, ceil_div(bytes, threads)};
    thread_loop((int)threads, ceil_div(bytes, copy.of_thread), copy_of_thread, &copy);
}

// A copy by the device, from or to a buffer.
struct transfer {
    void *to;
    const void *from;
    size_t bytes;
    int buffer;
    void *home; // where the content of a buffer belongs
};

static enum partita_status queue_transfer(const struct partita_plan *plan,
                                          struct cuda_staging *staging, cudaStream_t stream,
                                          const struct transfer *copy)
{
    const int buffer = copy->buffer;
    enum partita_status status =
        CU(plan, cudaMemcpyAsync(copy->to, copy->from, copy->bytes, cudaMemcpyDefault, stream));
    if (status == PARTITA_OK) status = CU(plan, cudaEventRecord(staging->copied[buffer], stream));
    staging->busy[buffer] = status == PARTITA_OK;
    return status;
}

enum partita_status cuda_stage_in(const struct partita_plan *plan, struct cuda_staging *staging,
                                  cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    if (!staging) return CU(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0; at < bytes && status == PARTITA_OK; at += staging->bytes) {
        const size_t n = size_min(staging->bytes, bytes - at);
        const int buffer = take_buffer(staging);
        void *pinned = buffer_memory(staging, buffer);
        status = wait_for_buffer(plan, staging, buffer);
        if (status != PARTITA_OK) break;
        copy_on_host(plan, pinned, (const char *)from + at, n);
        const struct transfer copy = {(char *)to + at, pinned, n, buffer, NULL};
        status = queue_transfer(plan, staging, stream, &copy);
    }
    return status;
}

static enum partita_status empty_buffer(const struct partita_plan *plan,
                                        struct cuda_staging *staging, const struct transfer *copy)
{
    const enum partita_status status = wait_for_buffer(plan, staging, copy->buffer);
    if (status == PARTITA_OK) copy_on_host(plan, copy->home, copy->to, copy->bytes);
    return status;
}

enum partita_status cuda_stage_out(const struct partita_plan *plan, struct cuda_staging *staging,
                                   cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    if (!staging) return CU(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    enum partita_status status = PARTITA_OK;
    struct transfer before = {0};
    for (size_t at = 0; at < bytes && status == PARTITA_OK; at += staging->bytes) {
        const size_t n = size_min(staging->bytes, bytes - at);
        const int buffer = take_buffer(staging);
        const struct transfer copy = {buffer_memory(staging, buffer), (const char *)from + at, n,
                                      buffer, (char *)to + at};
        status = wait_for_buffer(plan, staging, buffer);
        if (status == PARTITA_OK) status = queue_transfer(plan, staging, stream, &copy);
        if (status == PARTITA_OK && at) status = empty_buffer(plan, staging, &before);
        before = copy;
    }
    return status == PARTITA_OK && bytes ? empty_buffer(plan, staging, &before) : status;
}
