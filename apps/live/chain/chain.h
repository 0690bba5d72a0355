// SPDX-License-Identifier: MIT
// What the audio thread does with every call: input, filter, mix, guard, limiter, output, and the
// counts of it. Nothing in here allocates, locks, prints or blocks; everything it tells or is told
// is an atomic or a ring.
#ifndef PARTITA_APPS_LIVE_CHAIN_H
#define PARTITA_APPS_LIVE_CHAIN_H

#include <partita/partita.h>

#include "base/fault.h"
#include "live/device/device.h"
#include "meter.h"
#include "ring.h"

struct chain;

// Time of one call, for those who collect it.
struct call_time {
    uint64_t frame; // its first
    float seconds;
};

struct chain_request {
    struct partita_stream *stream; // f32, no latency
    size_t in_channels, out_channels;
    double rate;
    uint64_t duration; // frames to play, or UINT64_MAX
    float wet, dry;    // factors of filtered and of plain input
    bool limiter;
    struct ring *record; // of float[out_channels]; NULL: none
    struct ring *calls;  // of struct call_time; NULL: none
};

// What has happened so far.
struct chain_counts {
    uint64_t calls, frames;
    uint64_t xruns;                 // calls around which anything was lost
    uint64_t lost[N_DEVICE_LOSSES]; // calls with that loss, in the order of enum device_loss
    uint64_t bad_in, bad_out;       // samples that were no number, played as 0
    uint64_t limited;               // frames
    uint64_t unrecorded;            // frames the record ring had no room for
    bool ended;                     // the last call is over
};

// Time of calls as shares of what their frames last; percentiles are upper bounds within 9 %.
struct chain_load {
    uint64_t calls, late;
    double mean, p99, p999, worst;
};

bool chain_open(struct chain **ret_chain, const struct chain_request *request, struct fault *fault);
void chain_close(struct chain *chain);

// One call: n frames, a pointer a channel; `in` NULL is silence. losses: enum device_loss. False
// after the last frame to play; what lies behind it in the call is silence. Real-time safe.
// Threads: the audio thread.
device_callback chain_process;

// New factors, reached along a line of 20 ms. Threads: one that controls.
void chain_set_levels(struct chain *chain, float wet, float dry);

// Fades out in the same way and then ends.
void chain_end(struct chain *chain);

// From the next call on there is silence and nothing is counted or put into a ring: for a device
// that was given up and comes back to life before it is closed. A call that is under way goes on.
void chain_detach(struct chain *chain);

// Threads: any for counts and load, one for levels.
struct chain_counts chain_counts(const struct chain *chain);
struct chain_load chain_load(const struct chain *chain);
struct level chain_take_in_level(struct chain *chain, size_t channel);
struct level chain_take_out_level(struct chain *chain, size_t channel);

#endif
