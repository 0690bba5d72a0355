// SPDX-License-Identifier: MIT
// --resume: OUT is written to OUT.partial, whose progress is saved in the record OUT.partial.range,
// so that a run that was stopped can be continued. Both files are gone once OUT is complete. The
// progress file exists before the first sample is written, and OUT.partial is locked (flock) while
// a run writes it.
#ifndef PARTITA_APPS_RESUME_H
#define PARTITA_APPS_RESUME_H

#include "io/audio.h"
#include "shard_record.h"

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

// At most once a second: waits until the `written` frames of this run are on the disk and saves the
// progress.
bool resume_save(struct resume *resume, const struct shard_record *record,
                 struct audio_writer *writer, uint64_t written, struct fault *fault);

// The same in two steps, for a file that several processes write: whether a second has passed, and
// saving the progress of frames that are on the disk.
bool resume_is_due(const struct resume *resume);
bool resume_record(struct resume *resume, const struct shard_record *progress, struct fault *fault);

// Frees everything and unlocks. Removes an empty OUT.partial of a run that failed before its first
// sample.
void resume_release(struct resume *resume);

#endif
