// SPDX-License-Identifier: MIT
// The audio devices, behind one page: list them, choose, open a stream in both directions, be
// called back, stop. The only file that sees PortAudio is host.c.
#ifndef PARTITA_APPS_LIVE_DEVICE_H
#define PARTITA_APPS_LIVE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

// A device as the host sees it.
struct audio_device {
    int index;
    char name[192], api[48];
    size_t in_channels, out_channels;          // at most
    double rate;                               // Hz, its own
    double low_in, high_in, low_out, high_out; // latencies to ask for, s
    bool is_default_in, is_default_out;        // of its API
};

// Finds the devices. verbose: let the audio libraries print what they like. Must be undone by
// device_close. This call, device_open and device_start get some seconds each, and device_close the
// time it is told, since they never return when an audio server has died or stands still.
bool device_initialize(bool verbose, struct fault *fault);

// Whether one of them has not come back. No other may follow, what they were given must stay, and
// the program must leave by _exit or exec.
bool device_hangs(void);

size_t device_count(void);
struct audio_device device_at(size_t i);

enum device_direction { DEVICE_IN = 1, DEVICE_OUT = 2 };

// The device that `wish` means: an index, or part of "name, API" that fits one device only (or
// names one exactly). NULL: the default of the first API that has one. directions: what it must be
// able to do. *ret_may_come: whether one that is not there may come; a wish that fits several
// devices stays wrong.
bool device_choose(struct audio_device *ret, const char *wish, unsigned directions,
                   bool *ret_may_come, struct fault *fault);

// What was lost around a callback, as bits.
enum device_loss {
    DEVICE_IN_UNDERFLOW = 1,
    DEVICE_IN_OVERFLOW = 2,
    DEVICE_OUT_UNDERFLOW = 4,
    DEVICE_OUT_OVERFLOW = 8,
    N_DEVICE_LOSSES = 4,
};

// Called on the device's thread for n frames, a pointer a channel. losses: enum device_loss. False:
// this was the last.
typedef bool device_callback(void *user, float *const *out, const float *const *in, size_t n,
                             unsigned losses);

struct device_request {
    struct audio_device in, out;
    size_t in_channels, out_channels;
    double rate;
    size_t block;        // frames a call; 0: as the device likes
    const char *latency; // "low", "high" or seconds; NULL: low
    device_callback *callback;
    void *user;
};

// Whether the devices can run at the request's rate.
bool device_supports_rate(const struct device_request *request);

struct device_stream;

// What a stream really is.
struct device_format {
    double rate;                    // Hz
    double in_latency, out_latency; // s; negative: what the host says makes no sense
};

// Whether `latency` is one; else a usage error.
bool device_check_latency(const char *latency, struct fault *fault);

// *ret_may_come: whether a device that cannot be opened now, because it is busy or gone, may be
// later.
bool device_open(struct device_stream **ret_stream, const struct device_request *request,
                 struct device_format *ret_format, bool *ret_may_come, struct fault *fault);
bool device_start(struct device_stream *stream, struct fault *fault);

// False when the last callback is done with or the host says that the stream is dead. True proves
// nothing.
bool device_is_active(const struct device_stream *stream);

// Ends the stream, at once or after what is on its way is played, and PortAudio with it; NULL:
// PortAudio alone. False if that takes longer than so many seconds.
bool device_close(struct device_stream *stream, bool at_once, double seconds);

#endif
