// SPDX-License-Identifier: MIT
// A queue from one thread to one other without locks: the audio thread puts, another takes.
#ifndef PARTITA_APPS_LIVE_RING_H
#define PARTITA_APPS_LIVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct ring {
    unsigned char *bytes;
    size_t item_bytes, capacity; // items, a power of two
    atomic_size_t put, taken;    // items ever; the difference is what is in it
};

// Room for at least n items.
bool ring_open(struct ring *ring, size_t n, size_t item_bytes);
void ring_close(struct ring *ring);

// Puts all n items or, if they do not fit, none. Real-time safe. Threads: one that puts.
bool ring_put(struct ring *ring, const void *items, size_t n);

// Takes up to n items, returns how many. Threads: one that takes.
size_t ring_take(struct ring *ring, void *items, size_t n);

#endif
