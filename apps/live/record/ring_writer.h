// SPDX-License-Identifier: MIT
// A ring, and a thread that writes its items to a file, so that the audio thread does not access
// files.
#ifndef PARTITA_APPS_LIVE_RING_WRITER_H
#define PARTITA_APPS_LIVE_RING_WRITER_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct ring_writer;

// Writes n items of the ring; called on the writer's thread.
typedef bool ring_writer_put(void *user, const void *items, size_t n, struct fault *fault);

// Makes a ring of at least n items and starts the thread. After a failed write it discards further
// items.
bool ring_writer_open(struct ring_writer **ret_writer, size_t n, size_t item_bytes,
                      ring_writer_put *put, void *user, struct fault *fault);

struct ring *ring_writer_ring(struct ring_writer *writer);

// False, with the reason, if a write has failed.
bool ring_writer_check(const struct ring_writer *writer, struct fault *fault);

// Writes the rest of the ring and ends the thread, once. False, with the reason, if a write failed.
// The ring remains: what the audio thread still adds is not written.
bool ring_writer_stop(struct ring_writer *writer, struct fault *fault);

// Also stops. The ring must not be in use any more. Accepts NULL.
void ring_writer_close(struct ring_writer *writer);

#endif
