// SPDX-License-Identifier: MIT
// See ring.h. Each thread changes only its own counter, with release semantics after it has copied
// or written items; the other thread reads it with acquire semantics before. The ring's thread
// looks every 10 ms: a wake-up would cost the audio thread a system call.
#include "ring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_ITEMS = 4096, PAUSE_NANOSECONDS = 10000000 };

struct ring {
    unsigned char *bytes;
    size_t item_bytes, capacity; // items, a power of two
    atomic_size_t put, taken;    // items since the start; the difference is the fill level
    ring_write *write;
    void *user;
    pthread_t thread;
    bool runs;
    atomic_bool stop, failed;
    struct fault fault; // valid when `failed` is set
};

// Writes all items that are in the ring, in pieces that do not wrap around.
static void drain(struct ring *r)
{
    for (size_t taken = atomic_load_explicit(&r->taken, memory_order_relaxed), n;; taken += n) {
        const size_t from = taken & (r->capacity - 1), left = r->capacity - from;
        atomic_store_explicit(&r->taken, taken, memory_order_release);
        n = atomic_load_explicit(&r->put, memory_order_acquire) - taken;
        if (!n) return;
        if (n > left) n = left;
        if (n > MAX_ITEMS) n = MAX_ITEMS;
        if (atomic_load_explicit(&r->failed, memory_order_relaxed)) continue;
        if (!r->write(r->user, r->bytes + from * r->item_bytes, n, &r->fault))
            atomic_store_explicit(&r->failed, true, memory_order_release);
    }
}

static void *ring_thread(void *argument)
{
    struct ring *r = argument;
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    while (!atomic_load_explicit(&r->stop, memory_order_acquire)) {
        drain(r);
        nanosleep(&pause, NULL);
    }
    drain(r);
    return NULL;
}

bool ring_open(struct ring **ret_ring, size_t n, size_t item_bytes, ring_write *write, void *user,
               struct fault *fault)
{
    struct ring *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    *r = (struct ring){.item_bytes = item_bytes, .capacity = 1, .write = write, .user = user};
    while (r->capacity < n) r->capacity *= 2;
    r->bytes = calloc(r->capacity, item_bytes);
    if (r->bytes) {
        memset(r->bytes, 1, r->capacity * item_bytes); // the audio thread causes no page faults
        r->runs = pthread_create(&r->thread, NULL, ring_thread, r) == 0;
        if (!r->runs) fault_set(fault, "cannot start a thread for writing");
    } else fault_set(fault, "out of memory for %zu times %zu bytes", n, item_bytes);
    if (r->runs) {
        *ret_ring = r;
        return true;
    }
    ring_close(r);
    return false;
}

bool ring_put(struct ring *ring, const void *items, size_t n)
{
    struct ring *r = ring;
    const size_t put = atomic_load_explicit(&r->put, memory_order_relaxed),
                 taken = atomic_load_explicit(&r->taken, memory_order_acquire),
                 at = put & (r->capacity - 1), left = r->capacity - at, first = left < n ? left : n;
    if (n > r->capacity - (put - taken)) return false;
    memcpy(r->bytes + at * r->item_bytes, items, first * r->item_bytes);
    memcpy(r->bytes, (const unsigned char *)items + first * r->item_bytes,
           (n - first) * r->item_bytes);
    atomic_store_explicit(&r->put, put + n, memory_order_release);
    return true;
}

bool ring_check(const struct ring *ring, struct fault *fault)
{
    if (!atomic_load_explicit(&ring->failed, memory_order_acquire)) return true;
    *fault = ring->fault;
    return false;
}

bool ring_stop(struct ring *ring, struct fault *fault)
{
    atomic_store_explicit(&ring->stop, true, memory_order_release);
    if (ring->runs) pthread_join(ring->thread, NULL);
    ring->runs = false;
    return ring_check(ring, fault);
}

void ring_close(struct ring *ring)
{
    struct fault ignored;
    if (!ring) return;
    ring_stop(ring, &ignored);
    free(ring->bytes);
    free(ring);
}
