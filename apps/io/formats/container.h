// SPDX-License-Identifier: MIT
// What a signal is and how it lies in its file; which format a file name stands for, and what that
// format can hold.
#ifndef PARTITA_APPS_CONTAINER_H
#define PARTITA_APPS_CONTAINER_H

#include "io/bytes/bytes.h"
#include "io/samples/encoding.h"

enum container {
    CONTAINER_WAV = 0, // WAV and RF64: own code
    CONTAINER_NPY,
    CONTAINER_RAW,
    CONTAINER_TEXT,    // one number a line
    CONTAINER_SNDFILE, // whatever else libsndfile knows, in seekable files
};

// What a signal is and how it lies in its file.
struct audio_info {
    enum container container;
    struct encoding encoding;
    size_t channels;
    uint32_t rate;   // frames a second; 0: the file does not say
    uint64_t frames; // or SIZE_UNKNOWN
    int rank;        // of an .npy array: 1, or 2 for [channels, frames]
    // Where frames lie; formats of libsndfile and text do without.
    uint64_t offset; // first byte of the samples
    bool planar;     // channel after channel, not frame after frame
};

// What the user says about a file.
struct audio_request {
    const char *path;
    const struct encoding
        *raw;        // samples without a header, in this encoding; NULL: the file says itself
    size_t channels; // of raw samples
    uint32_t rate;   // of raw samples, .npy and text
    size_t max_channels;
    int wake_fd; // see struct source; -1: none
};

// The container that a file name stands for; *ret_known is false where the name says nothing.
enum container container_of_name(const char *path, bool *ret_known);

// The encoding nearest to `wish` that the container can hold; false for complex samples in a
// container without.
bool container_encoding(enum container container, const char *path, struct encoding wish,
                        struct encoding *ret_encoding);

// Channels within reason; false with a fault if there are none or too many.
bool container_check_channels(const char *name, uint64_t channels, size_t max_channels,
                              struct fault *fault);

#endif
