// SPDX-License-Identifier: MIT
// The record of a shard, a small JSON file beside an output: which part of which result the output
// holds, and how much of it is written. Records are replaced atomically.
#ifndef PARTITA_APPS_SHARD_RECORD_H
#define PARTITA_APPS_SHARD_RECORD_H

#include "cli/options.h"
#include "io/audio.h"

struct shard_record {
    uint64_t key;                // hash of the command: equal keys mean equal results
    uint64_t first, end;         // samples of the result that belong into the file
    uint64_t total;              // samples of the whole result
    uint64_t done;               // samples written, of end - first
    int64_t input_time;          // time of the input's last change, ns
    uint64_t input;              // audio_reader_fingerprint
    struct sample_counts counts; // of the samples written, without the peak
    char format[ENCODING_NAME_SIZE];
};

// Writes a temporary file, syncs and renames it.
bool shard_record_write(const char *path, const struct shard_record *record, struct fault *fault);

// Parses digits, without sign or spaces. Returns what follows them, or NULL.
const char *shard_record_digits(const char *text, uint64_t *ret);

// Without the file it succeeds, with *ret_exists false.
bool shard_record_read(const char *path, struct shard_record *ret_record, bool *ret_exists,
                       struct fault *fault);

// Opens the file of a shard. channels: of raw samples. False if it does not have all frames.
bool shard_record_open(const struct shard_record *record, const char *path, int64_t channels,
                       const struct settings *settings, struct audio_reader **ret,
                       struct fault *fault);

// The name of the record beside a file, which the caller frees. NULL: out of memory.
char *shard_record_path(const char *output, struct fault *fault);

// Before an output gets new contents: removes the record beside it, and beside the file that it
// links to.
bool shard_record_discard(const char *output, struct fault *fault);

// --resume: OUT is written to OUT.partial, whose progress is saved in the record OUT.partial.range,
// so that a run that was stopped can be continued. Both files are gone once OUT is complete. The
// progress file exists before the first sample is written, and OUT.partial is locked (flock) while
// a run writes it.
struct resume {
    char *partial_path;   // OUT.partial, with symbolic links of OUT resolved; NULL: no --resume
    char *progress_path;  // OUT.partial.range
    int lock;             // descriptor of the locked OUT.partial; -1: not locked
    bool created;         // this run created OUT.partial
    double progress_time; // when the progress was last saved, in seconds
    bool shared;          // several processes write the file: parts of it are missing, but the
    uint64_t held;        // last that an earlier run has written is frame held - 1
};

// Sets the paths for the output `out`.
bool resume_begin(struct resume *resume, const char *out, struct fault *fault);

// Locks OUT.partial. If an earlier run of the same command has written it, loads its progress to
// `record`; otherwise leaves `record` unchanged. in: name of the input, for messages.
bool resume_load(struct resume *resume, struct shard_record *record, const char *in,
                 struct fault *fault);

// Saves the record as progress file, and opens OUT.partial after the frames that it counts.
bool resume_create(const struct resume *resume, const struct shard_record *record,
                   struct audio_writer **ret_writer, const char *out, const struct audio_info *info,
                   struct fault *fault);

// Whether a second has passed since the progress was last saved, and saving it: `done` frames, with
// these counts, are on the disk.
bool resume_is_due(const struct resume *resume);
bool resume_save(struct resume *resume, const struct shard_record *record, uint64_t done,
                 const struct sample_counts *counts, struct fault *fault);

// Frees everything and unlocks. Removes an empty OUT.partial of a run that failed before its first
// sample.
void resume_release(struct resume *resume);

#endif
