// SPDX-License-Identifier: MIT
// Slices of work: what each one does (partition_work.c), which ones run when (partition_run.c), and
// who runs them (partition_team.c).
#ifndef PARTITA_PARTITION_WORK_H
#define PARTITA_PARTITION_WORK_H

#include "partitioned.h"

// One slice's place: level i, a chain of a stage, and the number within it.
struct slice {
    const struct partita_stream *stream;
    size_t i;
    enum stage stage;
    size_t chain, number;
};

void work_slice(const struct slice *at);

// Before a level's new block: which cells hear more than silence, what its sums hold already and
// what will stay in them.
void work_prepare(const struct partita_stream *stream, size_t i);

// Points the products of a level at the spectra, by the first or the second of the block's filters.
void work_point(const struct partita_stream *stream, size_t i, size_t which,
                const struct partita_filter *filter);

// Runs what the tick that has just been filled brings due.
void work_tick(struct partita_stream *stream);

// Around replacing the region, or copying it: nobody works on it in between.
void work_pause(struct partita_stream *stream);
void work_drop(struct partita_stream *stream); // a pause for which unfinished work is given up
void work_resume(struct partita_stream *stream);

#endif
