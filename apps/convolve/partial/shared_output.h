// SPDX-License-Identifier: MIT
// The result of several processes (processes/processes.h), each of which computes its range of one
// file and writes it at its place. They advance in rounds: at the end of each all have written the
// same number of their frames, or those that they have left, and agree that none has failed. So the
// progress of all is one number. Without OUT the rounds do only that.
//
// The first process creates the file, its header and its records, and gives it its name. All
// functions but the last are collective.
#ifndef PARTITA_APPS_SHARED_OUTPUT_H
#define PARTITA_APPS_SHARED_OUTPUT_H

#include "io/audio.h"
#include "processes/processes.h"
#include "shard_record.h"

struct shared_output {
    struct processes *processes;
    struct resume *resume;        // NULL: no --resume
    struct shard_record progress; // of all: `done` frames of each process before this run
    size_t round; // frames; a multiple of those that come at once, so that no process waits for one
                  // that is between two rounds
    // Private:
    struct audio_writer *out;  // of the first process
    struct audio_writer *part; // of every process; NULL: there is no OUT
    struct sample_counts *all; // of every process
    size_t channels, in_round; // in_round: frames of the present round
    uint64_t rounds_done, rounds_left;
};

// `processes`, `resume`, `progress` and `round` must be set. path: OUT; NULL: there is none. part:
// of this process. info: of OUT; info->first is the number of the first frame that this run writes.
// *ret_writer is for shared_output_write alone.
bool shared_output_create(struct shared_output *output, struct audio_writer **ret_writer,
                          const char *path, const struct shard_record *part,
                          const struct audio_info *info, struct fault *fault);

bool shared_output_write(struct shared_output *output, enum partita_type type, const void *frames,
                         size_t n, struct fault *fault);

// After the last frame. *ret_out: in the first process the file, ready to be finished; else NULL.
bool shared_output_finish(struct shared_output *output, struct audio_writer **ret_out,
                          struct sample_counts *ret_counts, struct fault *fault);

void shared_output_release(struct shared_output *output);

#endif
