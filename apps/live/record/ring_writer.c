// SPDX-License-Identifier: MIT
// See ring_writer.h. The thread polls the ring every 10 ms: a wake-up would cost the audio thread a
// system call.
#include "ring_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 4096, PAUSE_NANOSECONDS = 10000000 };

struct ring_writer {
    struct ring ring;
    ring_writer_put *put;
    void *user;
    void *items;
    pthread_t thread;
    bool runs;
    atomic_bool stop, failed;
    struct fault fault; // valid when `failed` is set
};

// Writes all items that are in the ring.
static void drain_ring(struct ring_writer *w)
{
    for (size_t n; (n = ring_take(&w->ring, w->items, ITEMS)) > 0;) {
        if (atomic_load_explicit(&w->failed, memory_order_relaxed)) continue;
        if (!w->put(w->user, w->items, n, &w->fault))
            atomic_store_explicit(&w->failed, true, memory_order_release);
    }
}

static void *ring_writer_thread(void *argument)
{
    struct ring_writer *w = argument;
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    while (!atomic_load_explicit(&w->stop, memory_order_acquire)) {
        drain_ring(w);
        nanosleep(&pause, NULL);
    }
    drain_ring(w);
    return NULL;
}

bool ring_writer_open(struct ring_writer **ret_writer, size_t n, size_t item_bytes,
                      ring_writer_put *put, void *user, struct fault *fault)
{
    struct ring_writer *w = calloc(1, sizeof *w);
    if (!w) return fault_set(fault, "out of memory");
    *w = (struct ring_writer){.put = put, .user = user, .items = calloc(ITEMS, item_bytes)};
    if (!w->items || !ring_open(&w->ring, n, item_bytes))
        fault_set(fault, "out of memory for %zu times %zu bytes", n, item_bytes);
    else if (pthread_create(&w->thread, NULL, ring_writer_thread, w))
        fault_set(fault, "cannot start a thread for writing");
    else w->runs = true;
    if (w->runs) {
        *ret_writer = w;
        return true;
    }
    ring_writer_close(w);
    return false;
}

struct ring *ring_writer_ring(struct ring_writer *writer)
{
    return &writer->ring;
}

bool ring_writer_check(const struct ring_writer *writer, struct fault *fault)
{
    if (!atomic_load_explicit(&writer->failed, memory_order_acquire)) return true;
    *fault = writer->fault;
    return false;
}

bool ring_writer_stop(struct ring_writer *writer, struct fault *fault)
{
    atomic_store_explicit(&writer->stop, true, memory_order_release);
    if (writer->runs) pthread_join(writer->thread, NULL);
    writer->runs = false;
    return ring_writer_check(writer, fault);
}

void ring_writer_close(struct ring_writer *writer)
{
    struct fault ignored;
    if (!writer) return;
    ring_writer_stop(writer, &ignored);
    ring_close(&writer->ring);
    free(writer->items);
    free(writer);
}
