// SPDX-License-Identifier: MIT
// Records the output to a file. Until it is finished the file is named NAME.partial, and its header
// is refreshed after each second, so that even a killed program leaves a readable file.
#ifndef PARTITA_APPS_LIVE_RECORDER_H
#define PARTITA_APPS_LIVE_RECORDER_H

#include "cli/options.h"
#include "io/audio.h"
#include "live/chain/ring.h"

struct recorder;

// False, with a fault, if the recording of this take or the call log would overwrite an impulse
// response, or both are one file, if --record has a name without a format, or if --output-format is
// not one of that format's.
bool recorder_check_options(const struct settings *settings, int take, struct fault *fault);

// Warns of recordings that earlier runs with this --record left unfinished, in any of its takes.
void recorder_report_left(const struct settings *settings);

// Creates settings->record; for take 2 and later NAME-2.wav and so on.
bool recorder_open(struct recorder **ret_recorder, const struct settings *settings, size_t channels,
                   double rate, int take, struct fault *fault);

// The ring for frames of float[channels]; ring_check says whether writing has failed.
struct ring *recorder_ring(struct recorder *recorder);

// Writes the rest of the ring and completes the file under its final name, also if writing failed,
// for example because the disk was full; the fault then says how much the file holds. The ring
// remains: the audio thread may still write to it.
bool recorder_finish(struct recorder *recorder, struct sample_counts *ret_counts,
                     struct fault *fault);

// Removes the file. The ring remains. Accepts NULL.
void recorder_discard(struct recorder *recorder);

// Releases everything; an unfinished file is removed. The ring must not be in use any more. NULL is
// allowed.
void recorder_close(struct recorder *recorder);

#endif
