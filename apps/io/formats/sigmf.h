// SPDX-License-Identifier: MIT
// SigMF recordings (SigMF 1.x): raw samples in NAME.sigmf-data, their description in
// NAME.sigmf-meta, JSON; or both in an archive NAME.sigmf (tar). NAME.sigmf-meta, NAME.sigmf-data,
// the archive, and NAME or NAME.sigmf without a file of that name all stand for the recording.
//
// Of the core namespace these fields are used: datatype, sample_rate, num_channels, dataset,
// metadata_only, sha512, trailing_bytes, offset; sample_start, header_bytes, frequency, datetime
// and global_index of captures; sample_start and sample_count of annotations. All others are copied
// to an output as they are.
#ifndef PARTITA_APPS_SIGMF_H
#define PARTITA_APPS_SIGMF_H

#include <jansson.h>
#include <limits.h>

#include "container.h"
#include "io/bytes/temp.h"

struct sigmf {
    json_t *root;        // the metadata
    char meta[PATH_MAX]; // their file, for messages
    struct encoding encoding;
    size_t channels;
    double rate; // Hz; 0: unknown
    char data[PATH_MAX];
    struct source_part part; // of `data`, which holds the samples
    const char *sha512;      // of the samples, in hexadecimal digits; NULL: not stated
};

// Whether `path` names a recording.
bool sigmf_is_recording(const char *path);

// The files of the recording: its samples and its metadata; both are `path` itself if it names no
// recording.
const char *sigmf_samples(const char *path, char buffer[PATH_MAX]);

// As temp_differs, for inputs that may be such recordings.
bool sigmf_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault);
const char *sigmf_metadata(const char *path, char buffer[PATH_MAX]);

// False, with a fault, if `path` cannot be an output: for a .sigmf-meta, which is written beside
// the samples, for an archive, and for samples beside which the metadata of another dataset stand.
bool sigmf_check_output(const char *path, struct fault *fault);

// Whether metadata are written beside the output `path`.
bool sigmf_describes(const char *path);

// Whether the file of metadata `meta`, if there is one, may be replaced by metadata of `data`: it
// describes `data` or, without core:dataset, the file of its own name if that is `data`.
bool sigmf_may_replace(const char *meta, const char *data);

// Reads the metadata of a recording. On success sigmf_release frees them.
bool sigmf_read(const char *path, struct sigmf *ret, struct fault *fault);
void sigmf_release(struct sigmf *sigmf);

// The results begin .. end-1 of a filter of reach + 1 taps, counted at `up` times the rate of the
// samples; result i depends on samples (i - reach) / up .. i / up. zero: the result that the
// options --first and --last count from.
struct sigmf_use {
    int64_t begin, end, reach, up, zero;
};

// False, with a fault that names a range which would do, if captures of the samples that these
// results depend on differ in frequency. frames: of the recording, which may be NULL.
bool sigmf_check_captures(const struct sigmf *sigmf, const struct sigmf_use *use, uint64_t frames,
                          struct fault *fault);

// The metadata and the position of the samples in an archive. *ret_text, of *ret_length bytes, are
// the metadata, which the caller frees; `ret_meta` is their name.
bool sigmf_archive_metadata(const char *path, char **ret_text, size_t *ret_length,
                            char ret_meta[PATH_MAX], struct fault *fault);
// name: of the samples.
bool sigmf_archive_samples(const char *path, const char *name, struct source_part *ret,
                           struct fault *fault);

// Metadata as text, which the caller frees. NULL: out of memory, or `root` is NULL.
char *sigmf_text(const json_t *root);

// If `path` ends in .sigmf-data, writes the metadata, which temp_commit puts beside it. frames: of
// the output.
bool sigmf_write(struct temp *meta, const char *path, const struct audio_info *info,
                 uint64_t frames, struct fault *fault);

#endif
