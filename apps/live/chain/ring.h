// SPDX-License-Identifier: MIT
// A lock-free queue with a thread that writes its items to a file, so that the audio thread, which
// adds them, does not access files.
#ifndef PARTITA_APPS_LIVE_RING_H
#define PARTITA_APPS_LIVE_RING_H

#include <stddef.h>

#include "base/fault.h"

struct ring;

// Writes n items; called on the ring's thread.
typedef bool ring_write(void *user, const void *items, size_t n, struct fault *fault);

// Makes a ring of at least n items and starts the thread. After a failed write it discards further
// items.
bool ring_open(struct ring **ret_ring, size_t n, size_t item_bytes, ring_write *write, void *user,
               struct fault *fault);

// Adds all n items or, if they do not fit, none. Real-time safe. Threads: one.
bool ring_put(struct ring *ring, const void *items, size_t n);

// False, with the reason, if a write has failed.
bool ring_check(const struct ring *ring, struct fault *fault);

// Writes the rest of the ring and ends the thread, once. False, with the reason, if a write failed.
// The ring remains: what the audio thread still adds is not written.
bool ring_stop(struct ring *ring, struct fault *fault);

// Also stops. The ring must not be in use any more. Accepts NULL.
void ring_close(struct ring *ring);

#endif
