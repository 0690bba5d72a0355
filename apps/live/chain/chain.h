// SPDX-License-Identifier: MIT
// The audio thread's processing of every callback: input, removal of echoes, filter, mix, removal
// of non-finite samples, limiter, output, meters and counts. It never allocates, locks, prints or
// blocks, and communicates through atomics and rings only.
#ifndef PARTITA_APPS_LIVE_CHAIN_H
#define PARTITA_APPS_LIVE_CHAIN_H

#include <partita/partita.h>

#include "base/fault.h"
#include "live/device/device.h"
#include "meter.h"
#include "ring.h"

struct chain;

// The time of one call, for the call log.
struct call_time {
    uint64_t frame; // the first frame of the call
    float seconds;
};

// Gains: of the input, then of the filtered and the unfiltered input in the output. cancel: the
// part of the residual in what is filtered; the rest is the microphone's.
struct chain_levels {
    float input, wet, dry, cancel;
};

// Frames by which residuals are late.
enum { CHAIN_CANCEL_BLOCK = 256 };

struct chain_request {
    struct partita_stream *stream; // f32, without latency
    size_t in_channels, out_channels;
    // The last inputs are what loudspeakers play, and are not filtered: echoes of them, up to
    // cancel_taps frames long, are removed from the inputs before them. 0: none.
    size_t far_channels, cancel_taps;
    double rate;
    uint64_t duration; // frames to play, or UINT64_MAX
    struct chain_levels levels;
    bool limiter;
    struct ring *record; // of float[out_channels]; NULL: none
    struct ring *calls;  // of struct call_time; NULL: none
};

// What a call with a loss is counted as: the loss, in the order of enum device_loss, or
// CHAIN_SEVERAL if several are reported at once, which is one event. JACK reports each as a loss of
// both directions.
enum { CHAIN_SEVERAL = N_DEVICE_LOSSES, N_CHAIN_LOSSES };

// Counts since the start.
struct chain_counts {
    uint64_t calls, frames;
    uint64_t xruns; // calls with any loss, the sum of lost
    uint64_t lost[N_CHAIN_LOSSES];
    uint64_t nonfinite_in, nonfinite_out; // NaN and infinite samples, replaced by 0
    uint64_t limited;                     // frames that the limiter attenuated
    uint64_t unrecorded;                  // frames that did not fit into the record ring
    bool ended;                           // the last call has returned
};

bool chain_open(struct chain **ret_chain, const struct chain_request *request, struct fault *fault);
void chain_close(struct chain *chain);

// Processes one call of n frames, with one pointer per channel; `in` NULL means silence. losses:
// bits of enum device_loss. Returns false with the last frame to play; the rest of that call is
// silence. Real-time safe. Threads: the audio thread.
device_callback chain_process;

// Sets new gains, reached by a linear ramp of 20 ms. Threads: the control thread.
void chain_set_levels(struct chain *chain, const struct chain_levels *levels);

// Fades out with the same ramp, then ends.
void chain_end(struct chain *chain);

// From the next call on it outputs silence and neither counts nor writes to rings: for a device
// that was given up as lost and calls again before it is closed. A call in progress is not
// affected.
void chain_detach(struct chain *chain);

// load: the times of calls relative to the duration of their frames. Threads: any.
struct chain_counts chain_counts(const struct chain *chain);
struct partita_stream_stats chain_load(const struct chain *chain);

// What is removed from an input, in dB: erle of struct partita_adaptive_stats. Threads: any.
float chain_erle(const struct chain *chain, size_t channel);

// The level of a channel at the last update, for display. Threads: one, which updates often.
void chain_update_levels(struct chain *chain, double now);
struct level chain_level(const struct chain *chain, bool out, size_t channel);

#endif
