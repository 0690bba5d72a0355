// SPDX-License-Identifier: MIT
// One run of `partita live`: everything it holds, from the opened device to the sum at its end.
#ifndef PARTITA_APPS_LIVE_SESSION_H
#define PARTITA_APPS_LIVE_SESSION_H

#include "cli/options.h"
#include "live/chain/chain.h"
#include "live/console/lines.h"
#include "live/device/device.h"
#include "live/filters/filter_set.h"
#include "live/record/call_log.h"
#include "live/record/recorder.h"

struct session {
    const struct settings *settings;
    struct audio_device in, out;
    struct device_format format;
    struct filter_set *bank;
    struct chain *chain;
    struct device_stream *host;
    struct recorder *recorder;
    struct call_log *calls;
    struct lines lines; // of JSON
    // What the user changes.
    double gain; // dB
    bool mute, bypass;
    // What became of it.
    bool no_device;        // why session_open failed: the device may come or become free
    bool lost;             // the device is
    bool ending;           // asked to end
    bool recording_failed; // told once
    struct sample_counts recorded;
};

// Host, filters, files, stream; not yet started. take: of recordings, from 1 on. Host must be
// initialized.
bool session_open(struct session *session, const struct settings *settings, int take,
                  struct fault *fault);

// Seconds of both directions that the host tells of, as far as it does.
double session_latency(const struct session *session);

// Passes gain, mute and bypass on to the sound.
void session_set_levels(struct session *session);

// Completes recording and call log; what the device may still ask for is silence. False with the
// reason if one could not be written.
bool session_finish_files(struct session *session, struct fault *fault);

// Removes a recording that never began, where session_close may not be called.
void session_discard_files(struct session *session);

// Releases what is left; a recording that was not finished never began. The host must be closed.
void session_close(struct session *session);

#endif
