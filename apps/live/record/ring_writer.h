// SPDX-License-Identifier: MIT
// A thread that writes the items of a ring to a file, so that the audio thread does not access
// files.
#ifndef PARTITA_APPS_LIVE_RING_WRITER_H
#define PARTITA_APPS_LIVE_RING_WRITER_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct ring_writer;

// Writes n items of the ring; called on the writer's thread.
typedef bool ring_writer_put(void *user, const void *items, size_t n, struct fault *fault);

// Starts the thread. After a failed write it discards further items.
bool ring_writer_start(struct ring_writer **ret_writer, struct ring *ring, ring_writer_put *put,
                       void *user, struct fault *fault);

// False, with the reason, if a write has failed.
bool ring_writer_check(const struct ring_writer *writer, struct fault *fault);

// Writes the rest of the ring, ends the thread and frees the writer. False, with the reason, if a
// write failed. Nothing may be added to the ring any more.
bool ring_writer_stop(struct ring_writer *writer, struct fault *fault);

#endif
