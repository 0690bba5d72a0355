// SPDX-License-Identifier: MIT
// A lock-free queue from one thread to another: the audio thread writes, another thread reads.
#ifndef PARTITA_APPS_LIVE_RING_H
#define PARTITA_APPS_LIVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct ring {
    unsigned char *bytes;
    size_t item_bytes, capacity; // items, a power of two
    atomic_size_t put, taken;    // items since the start; the difference is the fill level
};

// Allocates space for at least n items.
bool ring_open(struct ring *ring, size_t n, size_t item_bytes);
void ring_close(struct ring *ring);

// Adds all n items or, if they do not fit, none. Real-time safe. Threads: the writer.
bool ring_put(struct ring *ring, const void *items, size_t n);

// Removes up to n items, returns how many. Threads: the reader.
size_t ring_take(struct ring *ring, void *items, size_t n);

#endif
