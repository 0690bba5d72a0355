// SPDX-License-Identifier: MIT
// The time of every callback as a line "frame,seconds" of a file, as tools/load-plot.sh draws them.
#ifndef PARTITA_APPS_LIVE_CALL_LOG_H
#define PARTITA_APPS_LIVE_CALL_LOG_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct call_log;

bool call_log_open(struct call_log **ret_log, const char *path, struct fault *fault);

// Where struct call_time go.
struct ring *call_log_ring(struct call_log *log);

// Writes what is left and closes the file. The ring stays: the audio thread may still put into it.
bool call_log_finish(struct call_log *log, struct fault *fault);

// Releases it, finished or not. Nobody puts into the ring any more. NULL is allowed.
void call_log_close(struct call_log *log);

#endif
