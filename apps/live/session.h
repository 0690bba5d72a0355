// SPDX-License-Identifier: MIT
// A session of `partita live`: devices, filters, audio chain and output files.
#ifndef PARTITA_APPS_LIVE_SESSION_H
#define PARTITA_APPS_LIVE_SESSION_H

#include <stdio.h>

#include "cli/options.h"
#include "config/network.h"
#include "config/scenes.h"
#include "control/remote.h"
#include "live/chain/chain.h"
#include "live/console/lines.h"
#include "live/device/device.h"
#include "live/filters/filter_set.h"
#include "live/record/recorder.h"
#include "restart.h"

struct session {
    const struct settings *settings;
    struct audio_device in, out;
    struct device_format format;
    struct filter_set *filters;
    struct chain *chain;
    struct device_stream *stream;
    struct recorder *recorder;
    FILE *calls_file; // of --calls
    struct ring *calls;
    struct lines lines;            // JSON on standard output
    const struct remotes *remotes; // the caller's
    struct network ports; // of the first filter, for names and connections of JACK; may be empty
    struct live_state state;
    struct scenes *scenes; // of --scene, or without a path; the caller's
    int scene, next_scene; // indices; scene is -1 if the one that plays is not among them
    uint64_t scene_ticket; // request for the filter of next_scene; 0: none
    double next_look;      // at the file of the scenes, s
    double seen;           // when it had been written at the last look
    // Outcome.
    bool no_device;        // session_open failed, but the device may appear or become free
    bool lost;             // the device was lost
    bool ending;           // the user has ended it
    bool recording_failed; // already reported
    struct sample_counts recorded;
};

// Opens devices, filters, files and the audio stream, without starting it. take: number of the
// recording, from 1 on. Resolves times in `settings` at the rate of the device. device_initialize
// must have succeeded.
bool session_open(struct session *session, struct settings *settings, int take,
                  struct fault *fault);

// Input channels of the device: those of the filter, and behind them those of the far end.
size_t session_inputs(const struct session *session);

// Latency of both directions in seconds, as far as the device reports it.
double session_latency(const struct session *session);

// The gains, with mute and bypass: with that the input is played without the filter and the
// output's gain.
struct chain_levels session_levels(const struct session *session);

// Plays with what the state has by now: levels, fade and direction.
void session_apply_state(struct session *session);

// Fades out and ends, because the user wants it.
void session_end(struct session *session);

// Completes recording and call log; further callbacks output silence. False, with a fault, if a
// file could not be written.
bool session_finish_files(struct session *session, struct fault *fault);

// Releases everything and removes an unfinished recording. The device must be closed.
void session_close(struct session *session);

#endif
