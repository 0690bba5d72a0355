// SPDX-License-Identifier: MIT
// The stream functions of cpu/partitioned, for its table (partitioned.c).
#ifndef PARTITA_PARTITION_STREAM_H
#define PARTITA_PARTITION_STREAM_H

#include "partitioned.h"

// The stream's state cut out of an arena, or NULL while the arena only counts.
struct partitioned_stream *partitioned_stream_cut(const struct partita_plan *plan,
                                                  struct arena *arena);

enum partita_status partitioned_stream_open(struct partita_stream *stream);
void partitioned_stream_close(struct partita_stream *stream);
struct step partitioned_stream_step(struct partita_stream *stream, const struct frames *frames);
void partitioned_stream_reset(struct partita_stream *stream);
struct region partitioned_stream_region(struct partita_stream *stream);
size_t partitioned_swap_begin(struct partita_stream *stream);
size_t partitioned_swap_end(struct partita_stream *stream);

#endif
