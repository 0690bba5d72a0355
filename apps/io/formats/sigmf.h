// SPDX-License-Identifier: MIT
// SigMF recordings: raw samples in NAME.sigmf-data, what they are in NAME.sigmf-meta (SigMF 1.0,
// JSON). Conforming datasets only: no headers within the data, no metadata without them.
#ifndef PARTITA_APPS_SIGMF_H
#define PARTITA_APPS_SIGMF_H

#include <limits.h>

#include "container.h"

struct sigmf {
    struct encoding encoding;
    size_t channels;
    uint32_t rate; // 0: not said
    char data[PATH_MAX];
};

// Whether `path` names a recording: its .sigmf-meta, or its .sigmf-data with a .sigmf-meta beside
// it.
bool sigmf_is_recording(const char *path);

// The name of the samples of such a recording, or `path` itself if it is none.
const char *sigmf_samples(const char *path, char buffer[PATH_MAX]);

// False for the .sigmf-meta of a recording, which is written beside samples and holds none.
bool sigmf_check_output(const char *path, struct fault *fault);

// Reads the metadata of such a recording.
bool sigmf_read(const char *path, struct sigmf *ret, struct fault *fault);

// Writes the metadata beside `path` if that ends in .sigmf-data; else nothing.
bool sigmf_write(const char *path, const struct audio_info *info, struct fault *fault);

#endif
