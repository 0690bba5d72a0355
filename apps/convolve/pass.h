// SPDX-License-Identifier: MIT
// One pass of a signal through a filter: from a reader, through a runner, to a writer, in bounded
// memory.
#ifndef PARTITA_APPS_PASS_H
#define PARTITA_APPS_PASS_H

#include "cli/range.h"
#include "io/audio.h"
#include "pass_threads.h"
#include "runner.h"
#include "share.h"
#include "stats.h"

struct pass {
    const struct settings *settings;
    struct audio_reader *reader;
    struct audio_writer *writer;
    struct runner *runner;
    const struct taps *taps;
    enum partita_type type;
    struct range range; // of the full result, of taps without lead
    struct share *share;
    struct stats *stats;
    size_t chunk; // frames a call at most, once run
    // Private:
    void *x, *y; // without threads
    struct pass_input input;
    struct pass_output output;
    void *ahead; // frames read before the pass, by pass_preload
    size_t n_ahead, ahead_at;
    int64_t consumed;    // input frames skipped or filtered
    int64_t origin;      // input frame at which the runner starts; negative: silence first
    int64_t skip, count; // results to throw away, then to write; count -1: not known yet
    int64_t written;
    double started, reported;
};

// Reads up to n frames ahead, to learn whether the input has so many; *ret_n is how many it has.
// Needs reader, taps, type and settings.
bool pass_preload(struct pass *pass, size_t n, size_t *ret_n, struct fault *fault);

// Runs the pass to its end. The writer is left open.
bool pass_run(struct pass *pass, struct fault *fault);

// Frees the pass's own buffers.
void pass_release(struct pass *pass);

#endif
