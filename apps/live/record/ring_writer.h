// SPDX-License-Identifier: MIT
// A thread that empties a ring into a file, so that the audio thread need not know of files.
#ifndef PARTITA_APPS_LIVE_RING_WRITER_H
#define PARTITA_APPS_LIVE_RING_WRITER_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct ring_writer;

// Writes n items taken from the ring, on the writer's thread.
typedef bool ring_writer_put(void *user, const void *items, size_t n, struct fault *fault);

// Starts the thread. After a failure it goes on emptying the ring, into nothing.
bool ring_writer_start(struct ring_writer **ret_writer, struct ring *ring, ring_writer_put *put,
                       void *user, struct fault *fault);

// Whether all went well so far; else why not.
bool ring_writer_check(const struct ring_writer *writer, struct fault *fault);

// Writes what is left in the ring, ends the thread and tells whether all went well. The ring is no
// longer put into.
bool ring_writer_stop(struct ring_writer *writer, struct fault *fault);

#endif
