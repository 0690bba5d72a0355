// SPDX-License-Identifier: MIT
// The shape of a signal and its layout in a file; the format that a file name implies, and the
// encodings it can store.
#ifndef PARTITA_APPS_CONTAINER_H
#define PARTITA_APPS_CONTAINER_H

#include "io/bytes/bytes.h"
#include "io/formats/tags.h"
#include "io/samples/encoding.h"

enum container {
    CONTAINER_WAV = 0, // WAV and RF64: wav_read.c, wav_write.c
    CONTAINER_NPY,
    CONTAINER_RAW,
    CONTAINER_TEXT,    // one number a line
    CONTAINER_SNDFILE, // any other format of libsndfile, in seekable files
};

struct sigmf_origin;

enum { NOTE_SIZE = 192 };

// A signal and its layout in a file.
struct audio_info {
    enum container container;
    struct encoding encoding;
    size_t channels;
    double rate;           // Hz; 0: unknown
    uint64_t frames;       // or SIZE_UNKNOWN; of a regular file never more than it holds
    int rank;              // of an .npy array: 1, 2 for [channels, frames], 3 for [out, in, frames]
    size_t outputs;        // of an .npy array of rank 3, whose channels are [out][in]; else 0
    char note[NOTE_SIZE];  // after the end: how a header was understood that contradicts its file
    bool iq;               // of a WAV: its two channels are I and Q of a complex signal
    uint32_t channel_mask; // of WAVEFORMATEXTENSIBLE: loudspeakers of the channels; 0: not stated
    const struct tags *tags; // NULL: none; audio_create copies them
    bool certain;            // of an output: it will have `frames` frames, however long inputs are
    bool dither;             // of an output: add noise before rounding to integers
    bool is_recording;       // of an output: it cannot be repeated, see temp_open
    uint64_t first;          // of an output: number of its first frame in the whole result
    // Of an output: the recording whose metadata it takes over (sigmf_carry.h); NULL: none.
    const struct sigmf_origin *origin;
    // Layout; unused by libsndfile's formats and text.
    uint64_t offset; // first byte of the samples
    bool planar;     // channel after channel instead of interleaved frames
    uint64_t plane;  // frames from one channel to the next, if planar
};

// What the user specifies for a file to read.
struct audio_request {
    const char *path;
    const struct encoding *raw; // encoding of raw samples; NULL: the file's name or header has it
    bool headed;                // the caller skips what is in front of raw samples
    size_t channels;            // of raw samples
    double rate;                // of raw samples, .npy and text
    bool is_text;               // one number a line, whatever the name implies
    uint64_t skip_lines;        // of such a file, before its first number
    size_t max_channels;
    int wake_fd; // see struct source; -1: none
};

// The container that a file name implies; *ret_known is false if it implies none.
enum container container_of_name(const char *path, bool *ret_known);

// Whether a file of that name is compressed with loss, so that other samples are read from it than
// were written.
bool container_is_lossy(const char *path);

// The sample type that a file name states by its suffix, as capture.cf32 does: the file is raw.
// False if it states none.
bool container_raw_type(const char *path, struct encoding *ret_encoding);

// The encoding closest to `requested` that the container can store; false for complex samples in a
// container of real ones.
bool container_encoding(enum container container, const char *path, struct encoding requested,
                        struct encoding *ret_encoding);

// The sample rate that the container stores for `rate`: the nearest that it can, or `rate` itself
// if it stores none.
double container_rate(enum container container, const char *path, double rate);

// False, with a fault, for 0 channels or more than max_channels.
bool container_check_channels(const char *name, uint64_t channels, size_t max_channels,
                              struct fault *fault);

#endif
