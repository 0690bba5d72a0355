// SPDX-License-Identifier: MIT
// Times of a stream's calls, in a histogram that one thread fills and any thread may read, without
// locks.
#ifndef PARTITA_STATS_H
#define PARTITA_STATS_H

#include <stdatomic.h>

struct partita_stream_stats;

enum {
    STATS_PER_OCTAVE = 8,
    STATS_OCTAVES = 40, // of nanoseconds
    STATS_BINS = STATS_PER_OCTAVE * STATS_OCTAVES,
};

struct stats {
    atomic_ullong bin[STATS_BINS];
    atomic_ullong missed, nanoseconds, longest;
};

void stats_count(struct stats *stats, double seconds, double deadline);
void stats_read(const struct stats *stats, struct partita_stream_stats *ret);

#endif
