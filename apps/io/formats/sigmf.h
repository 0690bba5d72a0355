// SPDX-License-Identifier: MIT
// SigMF recordings: raw samples in NAME.sigmf-data, their description in NAME.sigmf-meta (SigMF
// 1.0, JSON). Only conforming datasets: no headers within the data, no metadata without data.
#ifndef PARTITA_APPS_SIGMF_H
#define PARTITA_APPS_SIGMF_H

#include <limits.h>

#include "base/sha512.h"
#include "container.h"
#include "io/bytes/temp.h"

struct sigmf {
    struct encoding encoding;
    size_t channels;
    uint32_t rate; // Hz; 0: unknown
    char data[PATH_MAX];
    char sha512[SHA512_TEXT]; // of the samples, in lower case; empty: not stated
};

// Whether `path` names a recording: its .sigmf-meta, or its .sigmf-data beside a .sigmf-meta.
bool sigmf_is_recording(const char *path);

// The name of the recording's samples, or `path` itself if it names no recording.
const char *sigmf_samples(const char *path, char buffer[PATH_MAX]);

// False, with a fault, if `path` cannot be an output: for a .sigmf-meta, which is written beside
// the samples, and for samples beside which the metadata of another dataset stand.
bool sigmf_check_output(const char *path, struct fault *fault);

// Reads the metadata of a recording.
bool sigmf_read(const char *path, struct sigmf *ret, struct fault *fault);

// If `path` ends in .sigmf-data, writes the metadata, which temp_commit puts beside it.
bool sigmf_write(struct temp *meta, const char *path, const struct audio_info *info,
                 struct fault *fault);

#endif
