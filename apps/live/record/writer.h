// SPDX-License-Identifier: MIT
// A thread that empties a ring into a file, so that the audio thread need not know of files.
#ifndef PARTITA_APPS_LIVE_WRITER_H
#define PARTITA_APPS_LIVE_WRITER_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct writer;

// Writes n items taken from the ring, on the writer's thread.
typedef bool writer_put(void *user, const void *items, size_t n, struct fault *fault);

// Starts the thread. After a failure it goes on emptying the ring, into nothing.
bool writer_start(struct writer **ret_writer, struct ring *ring, writer_put *put, void *user,
                  struct fault *fault);

// Whether all went well so far; else why not.
bool writer_check(const struct writer *writer, struct fault *fault);

// Writes what is left in the ring, ends the thread and tells whether all went well. The ring is no
// longer put into.
bool writer_stop(struct writer *writer, struct fault *fault);

#endif
