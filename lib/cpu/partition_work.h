// SPDX-License-Identifier: MIT
// Slices of work: what each one does (partition_work.c), which ones run when (partition_run.c), and who runs them
// (partition_team.c).
#ifndef PARTITA_PARTITION_WORK_H
#define PARTITA_PARTITION_WORK_H

#include "partitioned.h"

// One slice's place: level i, a chain of its inputs' or of its outputs', and the number within it. Slices of a chain
// run in order, all inputs' chains before the outputs'; otherwise they touch nothing in common.
struct slice {
    const struct partita_stream *stream;
    size_t i, chain, number;
};

void work_slice(const struct slice *at, bool forward);

// Points the lines of an output's products at the spectra, for slices in the middle of the chain.
void work_point(const struct partita_stream *stream, size_t i, size_t output);

// Runs what the tick that has just been filled brings due.
void work_tick(struct partita_stream *stream);

// Around replacing the region, or copying it: nobody works on it in between.
void work_pause(struct partita_stream *stream);
void work_drop(struct partita_stream *stream); // a pause for which unfinished work is given up
void work_resume(struct partita_stream *stream);

static inline size_t forward_slices(const struct partita_stream *stream, size_t i)
{
    return stream->plan->shape.in_channels * ((const struct partitioned *)stream->plan->state)->work[i].forward;
}

// Of one output's chain for the current block.
static inline size_t output_slices(const struct partita_stream *stream, size_t i)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    const struct progress *progress = state->level[i].progress;
    const size_t place = place_in_pair(&partitioned->layout.level[i], progress->block);
    return partitioned->work[i].output[place] * (progress->twice ? 2 : 1);
}

#endif
