// SPDX-License-Identifier: MIT
// What is played, written to a file while it plays. Until it is finished it has a temporary name
// and a header that says "until the end", so that even a killed program leaves a file that can be
// read.
#ifndef PARTITA_APPS_LIVE_RECORDER_H
#define PARTITA_APPS_LIVE_RECORDER_H

#include <stdint.h>

#include "cli/options.h"
#include "io/audio.h"
#include "live/chain/ring.h"

struct recorder;

// Creates settings->record; of take 2 and later, NAME-2.wav and so on.
bool recorder_open(struct recorder **ret_recorder, const struct settings *settings, size_t channels,
                   double rate, int take, struct fault *fault);

// Where frames of float[channels] go.
struct ring *recorder_ring(struct recorder *recorder);

// Whether all could be written so far; else why not.
bool recorder_check(const struct recorder *recorder, struct fault *fault);

// Writes what is left and completes the file; it is there under its name then, also when the disk
// was full before the end: the fault says how much it holds. The ring stays: the audio thread may
// still put into it.
bool recorder_finish(struct recorder *recorder, struct sample_counts *ret_counts,
                     struct fault *fault);

// Removes what was written. The ring stays.
void recorder_discard(struct recorder *recorder);

// Releases it; what was written and not finished is removed. Nobody puts into the ring any more.
// NULL is allowed.
void recorder_close(struct recorder *recorder);

#endif
