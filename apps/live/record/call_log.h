// SPDX-License-Identifier: MIT
// Writes the time of every callback to a file, as a line "frame,seconds" (docs/live.md draws it).
#ifndef PARTITA_APPS_LIVE_CALL_LOG_H
#define PARTITA_APPS_LIVE_CALL_LOG_H

#include "base/fault.h"
#include "live/chain/ring.h"

struct call_log;

bool call_log_open(struct call_log **ret_log, const char *path, struct fault *fault);

// The ring for struct call_time.
struct ring *call_log_ring(struct call_log *log);

// Writes the rest of the ring and closes the file. The ring remains: the audio thread may still
// write to it.
bool call_log_finish(struct call_log *log, struct fault *fault);

// Releases everything, finished or not. The ring must not be in use any more. NULL is allowed.
void call_log_close(struct call_log *log);

#endif
