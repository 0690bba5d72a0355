// SPDX-License-Identifier: MIT
// Several threads on one stream's slices: threads of the stream's own, which run ahead of what is
// due, or the host's, which are called for what is due. The stream's thread takes over whatever is
// due and not begun, so a late helper costs time, never samples. Chains are claimed one by one and
// their slices run in order, so results are the same.
#ifndef PARTITA_PARTITION_TEAM_H
#define PARTITA_PARTITION_TEAM_H

#include "partitioned.h"

// Makes the stream's team, if the plan wants threads. Errors: PARTITA_ERR_NOMEM, also for threads.
enum partita_status team_open(struct partita_stream *stream);
void team_close(struct partita_stream *stream);

// A level's new block may be worked on.
void team_begin(struct partita_stream *stream, size_t i);

// Returns when of each level the first due[i] slices are done.
void team_run(struct partita_stream *stream, const size_t *due);

// Finishes all blocks that have begun and keeps everyone away; team_resume goes on from the levels'
// progress.
void team_pause(struct partita_stream *stream);
void team_drop(struct partita_stream *stream); // keeps everyone away without finishing
void team_resume(struct partita_stream *stream);

#endif
