// SPDX-License-Identifier: MIT
// --range K/N, which computes one shard of a result, and what it has in common with --resume
// (partial/shard_record.h). Both rely on one property of the runner's segments: a sample of the
// result depends only on its position, not on where a run began.
//
// A run with --range writes OUT and beside it its record OUT.range, for `partita join`. Every run
// that gives OUT new contents first removes OUT.range.
#ifndef PARTITA_APPS_SHARD_H
#define PARTITA_APPS_SHARD_H

#include "cli/range.h"
#include "io/audio.h"
#include "partial/shard_record.h"
#include "partial/shared_output.h"
#include "taps.h"

struct shard {
    const struct settings *settings;
    bool active;                // --range or --resume was given, or there are several processes
    bool complete;              // an earlier run has computed all; there is no writer
    struct shard_record record; // record.done: what an earlier run has written
    struct range range;         // of the result that it computes
    uint64_t input_bytes;
    char *record_path; // OUT.range, with --range
    struct resume resume;
    struct shared_output
        shared; // of several processes; shared.processes->n 0: this is the only one
};

// Parses "K/N". False: a usage error.
bool shard_parse(const char *text, uint64_t *ret_k, uint64_t *ret_n, struct fault *fault);

// Before any file is opened; `settings` and shared.processes are set: false, with a fault,
// if an output of this run is one of the inputs, or cannot be a file of its own.
bool shard_begin(struct shard *shard, const char *const *inputs, int n_inputs, struct fault *fault);

// What the result of a run depends on.
struct shard_source {
    const struct audio_reader *in;
    const struct taps *taps;
    enum partita_type type; // of the computation
    const struct partita_plan *plan;
    size_t results;   // that come at once
    double bandwidth; // of a channel (channelize/); else 0
};

// Narrows the range and the number of frames to the part that this run computes, considering what
// an earlier run has written.
bool shard_open(struct shard *shard, const struct shard_source *source, struct range *range,
                uint64_t *frames, struct fault *fault);

// The range of results from up to `margin` before those of the shard to the last of the whole
// result. Returns how many are before those of the shard. Needs shard_open.
uint64_t shard_widen(const struct shard *shard, uint64_t margin, struct range *ret);

// Creates OUT, or opens OUT.partial to continue it. Without OUT *ret_writer stays NULL; then
// info->frames are those that will be passed to shard_write. It also stays NULL if the shard is
// complete.
bool shard_create(struct shard *shard, struct audio_writer **ret_writer,
                  const struct audio_info *info, struct fault *fault);

// Writes the next n frames; writer: of shard_create. With --resume saves the progress.
bool shard_write(struct shard *shard, struct audio_writer *writer, enum partita_type type,
                 const void *frames, size_t n, struct fault *fault);

// After the pass: false, with a fault, if the input has changed since shard_open.
bool shard_check_input(const struct shard *shard, const struct audio_reader *in,
                       struct fault *fault);

// Finishes OUT as audio_finish does, and its record. Also for runs without --range and --resume.
// Frees the writer, also on failure. Of several processes the first finishes OUT; all get the
// counts of all.
bool shard_finish(struct shard *shard, struct audio_writer *writer,
                  struct sample_counts *ret_counts, struct fault *fault);
void shard_release(struct shard *shard);

#endif
