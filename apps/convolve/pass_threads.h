// SPDX-License-Identifier: MIT
// Files are read ahead of a pass and written behind it, each by a thread of its own: the system
// copies samples and waits for disks while the filter works. Readers and writers are used by one
// thread at a time, in the order of a pass without threads, so bytes and notes are the same. Pipes
// are left alone: there a frame must not wait for others.
#ifndef PARTITA_APPS_PASS_THREADS_H
#define PARTITA_APPS_PASS_THREADS_H

#include "io/audio.h"
#include "relay.h"
#include "share.h"

struct pass_input {
    struct relay relay;
    pthread_t thread;
    bool running, failed;
    struct fault fault;
    struct audio_reader *reader;
    enum partita_type type;
    size_t chunk;    // frames a buffer
    uint64_t wanted; // frames, or SIZE_UNKNOWN: to the end
};

struct pass_output {
    struct relay relay;
    pthread_t thread;
    bool running, failed;
    struct fault fault;
    struct audio_writer *writer;
    struct share *share;
    enum partita_type type;
    uint64_t written;
};

// Begin with the fields below `fault` set. frame_bytes of a buffer of `capacity` frames. Where a
// thread cannot be had they return false, and the caller goes on without.
bool pass_input_begin(struct pass_input *input, size_t frame_bytes);
bool pass_output_begin(struct pass_output *output, size_t frame_bytes, size_t capacity);

// The next frames as the reader gave them, *ret_n of them, 0 at the end; false if reading failed.
// They are the caller's until the next call.
bool pass_input_next(struct pass_input *input, void **ret_frames, size_t *ret_n,
                     struct fault *fault);

// A buffer of `capacity` frames; NULL if writing has failed, for which pass_output_end has the
// words.
void *pass_output_room(struct pass_output *output);
void pass_output_send(struct pass_output *output, void *frames, size_t n);

// End the threads, after which reader and writer are the caller's again. Of outputs all that were
// sent are written first, `good` provided; false if writing failed. Safe where nothing runs.
void pass_input_end(struct pass_input *input);
bool pass_output_end(struct pass_output *output, bool good, struct fault *fault);

#endif
