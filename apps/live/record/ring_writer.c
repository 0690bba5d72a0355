// SPDX-License-Identifier: MIT
// See ring_writer.h. The thread polls the ring every 10 ms: a wake-up would cost the audio thread a
// system call.
#include "ring_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 4096, PAUSE_NANOSECONDS = 10000000 };

struct ring_writer {
    struct ring *ring;
    ring_writer_put *put;
    void *user;
    void *items;
    pthread_t thread;
    atomic_bool stop, failed;
    struct fault fault; // valid when `failed` is set
};

// Writes all items that are in the ring.
static void drain_ring(struct ring_writer *w)
{
    for (size_t n; (n = ring_take(w->ring, w->items, ITEMS)) > 0;) {
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

bool ring_writer_start(struct ring_writer **ret_writer, struct ring *ring, ring_writer_put *put,
                       void *user, struct fault *fault)
{
    struct ring_writer *w = calloc(1, sizeof *w);
    if (w)
        *w = (struct ring_writer){
            .ring = ring, .put = put, .user = user, .items = calloc(ITEMS, ring->item_bytes)};
    if (!w || !w->items || pthread_create(&w->thread, NULL, ring_writer_thread, w)) {
        if (w) free(w->items);
        free(w);
        return fault_set(fault, "cannot start a thread for writing");
    }
    *ret_writer = w;
    return true;
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
    pthread_join(writer->thread, NULL);
    bool good = ring_writer_check(writer, fault);
    free(writer->items);
    free(writer);
    return good;
}
