// SPDX-License-Identifier: MIT
// See ring.h. Each thread writes only its own counter, with release semantics after copying items;
// the other thread reads it with acquire semantics before it copies.
#include "ring.h"

#include <stdlib.h>
#include <string.h>

bool ring_open(struct ring *ring, size_t n, size_t item_bytes)
{
    size_t capacity = 1;
    while (capacity < n) capacity *= 2;
    ring->bytes = calloc(capacity, item_bytes);
    if (!ring->bytes) return false;
    memset(ring->bytes, 1, capacity * item_bytes); // the audio thread causes no page faults
    ring->item_bytes = item_bytes;
    ring->capacity = capacity;
    atomic_init(&ring->put, 0);
    atomic_init(&ring->taken, 0);
    return true;
}

void ring_close(struct ring *ring)
{
    free(ring->bytes);
    ring->bytes = NULL;
}

// Copies n items to index `at` on, wrapping around at the end.
static void copy_in(struct ring *r, size_t at, const unsigned char *items, size_t n)
{
    size_t from = at & (r->capacity - 1), first = r->capacity - from < n ? r->capacity - from : n;
    memcpy(r->bytes + from * r->item_bytes, items, first * r->item_bytes);
    memcpy(r->bytes, items + first * r->item_bytes, (n - first) * r->item_bytes);
}

static void copy_out(const struct ring *r, size_t at, unsigned char *items, size_t n)
{
    size_t from = at & (r->capacity - 1), first = r->capacity - from < n ? r->capacity - from : n;
    memcpy(items, r->bytes + from * r->item_bytes, first * r->item_bytes);
    memcpy(items + first * r->item_bytes, r->bytes, (n - first) * r->item_bytes);
}

bool ring_put(struct ring *ring, const void *items, size_t n)
{
    size_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    if (n > ring->capacity - (put - taken)) return false;
    copy_in(ring, put, items, n);
    atomic_store_explicit(&ring->put, put + n, memory_order_release);
    return true;
}

size_t ring_take(struct ring *ring, void *items, size_t n)
{
    size_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
    size_t there = atomic_load_explicit(&ring->put, memory_order_acquire) - taken;
    if (n > there) n = there;
    copy_out(ring, taken, items, n);
    atomic_store_explicit(&ring->taken, taken + n, memory_order_release);
    return n;
}
