// SPDX-License-Identifier: MIT
#include "staging.h"

#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "queue.h"

// A part of a chunk below which a thread costs more than it copies.
static const size_t LEAST_PART = 256 << 10;

enum partita_status cuda_staging_create(const struct partita_plan *plan, size_t chunk,
                                        struct cuda_staging **ret)
{
    struct cuda_staging *staging = mem_allocate(&plan->allocator, sizeof *staging);
    *ret = NULL;
    if (!staging) return PARTITA_ERR_NOMEM;
    staging->chunk = chunk;
    void *pinned = NULL;
    enum partita_status status = cuda_pin(plan, CUDA_STAGING_BUFFERS * chunk, &pinned);
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
    return *ret ? PARTITA_OK : cuda_staging_create(plan, CUDA_STAGING_CHUNK, ret);
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
    if (device->idle) CU(plan, cudaSetDevice(device->index));
    while (device->idle) {
        struct cuda_staging *staging = device->idle;
        device->idle = staging->next;
        cuda_staging_destroy(plan, staging);
    }
}

// Until the last copy from or to a buffer is done.
static enum partita_status wait_for(const struct partita_plan *plan, struct cuda_staging *staging,
                                    int buffer)
{
    if (!staging->busy[buffer]) return PARTITA_OK;
    staging->busy[buffer] = false;
    return CU(plan, cudaEventSynchronize(staging->copied[buffer]));
}

static char *memory_of(const struct cuda_staging *staging, int buffer)
{
    return staging->pinned + (size_t)buffer * staging->chunk;
}

// A copy by the host.
struct host_copy {
    char *to;
    const char *from;
    size_t bytes, part;
};

static void copy_part(void *context, size_t i, int worker)
{
    const struct host_copy *copy = context;
    const size_t at = i * copy->part;
    (void)worker;
    memcpy(copy->to + at, copy->from + at, size_min(copy->part, copy->bytes - at));
}

// On the plan's threads, a part each.
static void copy_on_host(const struct partita_plan *plan, void *to, const void *from, size_t bytes)
{
    const size_t parts = size_min((size_t)plan->threads, bytes / LEAST_PART),
                 threads = parts ? parts : 1;
    struct host_copy copy = {to, from, bytes, ceil_div(bytes, threads)};
    thread_loop((int)threads, ceil_div(bytes, copy.part), copy_part, &copy);
}

// Queues a copy and marks where it ends.
static enum partita_status copy(const struct partita_plan *plan, struct cuda_staging *staging,
                                cudaStream_t stream, void *to, const void *from, size_t bytes,
                                int buffer)
{
    enum partita_status status =
        CU(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    if (status == PARTITA_OK) status = CU(plan, cudaEventRecord(staging->copied[buffer], stream));
    staging->busy[buffer] = status == PARTITA_OK;
    return status;
}

static int take_turn(struct cuda_staging *staging)
{
    const int buffer = staging->turn;
    staging->turn = (buffer + 1) % CUDA_STAGING_BUFFERS;
    return buffer;
}

enum partita_status cuda_stage_in(const struct partita_plan *plan, struct cuda_staging *staging,
                                  cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0; at < bytes && status == PARTITA_OK; at += staging->chunk) {
        const size_t n = size_min(staging->chunk, bytes - at);
        const int buffer = take_turn(staging);
        status = wait_for(plan, staging, buffer);
        if (status != PARTITA_OK) break;
        copy_on_host(plan, memory_of(staging, buffer), (const char *)from + at, n);
        status =
            copy(plan, staging, stream, (char *)to + at, memory_of(staging, buffer), n, buffer);
    }
    return status;
}

// A chunk that is on its way to the host.
struct chunk {
    void *to;
    size_t bytes;
    int buffer;
};

static enum partita_status empty(const struct partita_plan *plan, struct cuda_staging *staging,
                                 const struct chunk *chunk)
{
    const enum partita_status status = wait_for(plan, staging, chunk->buffer);
    if (status == PARTITA_OK)
        copy_on_host(plan, chunk->to, memory_of(staging, chunk->buffer), chunk->bytes);
    return status;
}

enum partita_status cuda_stage_out(const struct partita_plan *plan, struct cuda_staging *staging,
                                   cudaStream_t stream, void *to, const void *from, size_t bytes)
{
    enum partita_status status = PARTITA_OK;
    struct chunk before = {0};
    for (size_t at = 0; at < bytes && status == PARTITA_OK; at += staging->chunk) {
        const struct chunk now = {(char *)to + at, size_min(staging->chunk, bytes - at),
                                  take_turn(staging)};
        status = wait_for(plan, staging, now.buffer);
        if (status == PARTITA_OK)
            status = copy(plan, staging, stream, memory_of(staging, now.buffer),
                          (const char *)from + at, now.bytes, now.buffer);
        if (status == PARTITA_OK && before.bytes) status = empty(plan, staging, &before);
        before = now;
    }
    return status == PARTITA_OK && before.bytes ? empty(plan, staging, &before) : status;
}
