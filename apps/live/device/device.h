// SPDX-License-Identifier: MIT
// Audio devices: list them, choose one, open a full-duplex stream with a callback, close it. Only
// device.c includes PortAudio.
#ifndef PARTITA_APPS_LIVE_DEVICE_H
#define PARTITA_APPS_LIVE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"

// A device as PortAudio describes it.
struct audio_device {
    int index;
    char name[192], api[48];
    size_t in_channels, out_channels;          // at most
    double rate;                               // Hz, the default
    double low_in, high_in, low_out, high_out; // suggested latencies, s
    bool is_default_in, is_default_out;        // the default of its API
    bool is_jack, is_alsa;                     // of this API, which has features of its own
};

struct settings;

// Starts PortAudio as the settings of `partita live` or `partita devices` say and finds the
// devices; device_close ends it. PortAudio's calls may never return if an audio server has died or
// is stopped. Therefore this call, device_open and device_start have a time limit of some seconds,
// and device_close has the given one. timed_call_hangs says whether one has not returned in time.
// Then no other may follow, and its arguments must stay allocated.
bool device_initialize(const struct settings *settings, struct fault *fault);

size_t device_count(void);
struct audio_device device_at(size_t i);

// Finds the devices of the settings; both have the same API, and are one device if possible.
// *ret_may_come, on failure: whether such devices may appear later. Fails also if the settings need
// JACK and the device is another.
bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault);

// What was lost around a callback, as bits.
enum device_loss {
    DEVICE_IN_UNDERFLOW = 1,
    DEVICE_IN_OVERFLOW = 2,
    DEVICE_OUT_UNDERFLOW = 4,
    DEVICE_OUT_OVERFLOW = 8,
    N_DEVICE_LOSSES = 4,
};

// Called on the audio thread for n frames, one pointer per channel. losses: bits of enum
// device_loss. False: this was the last call.
typedef bool device_callback(void *user, float *const *out, const float *const *in, size_t n,
                             unsigned losses);

struct device_request {
    struct audio_device in, out;
    size_t in_channels, out_channels;
    double rate;
    size_t block;        // frames per call; 0: the device chooses
    const char *latency; // "low", "high" or seconds; NULL: low
    device_callback *callback;
    void *user;
};

// Whether the devices can run at the request's rate. *ret_refuses: whether that rate is what they
// lack.
bool device_supports_rate(const struct device_request *request, bool *ret_refuses);

struct device_stream;

// The actual properties of an open stream.
struct device_format {
    double rate;                    // Hz
    double in_latency, out_latency; // s; negative: PortAudio reports an impossible value
};

// Checks the value of --name, and that of --latency. False: a usage error.
bool device_check_name(const char *name, struct fault *fault);
bool device_check_latency(const char *latency, struct fault *fault);

// *ret_may_come, on failure: whether it may succeed later, because the device is busy or absent.
bool device_open(struct device_stream **ret_stream, const struct device_request *request,
                 struct device_format *ret_format, bool *ret_may_come, struct fault *fault);
bool device_start(struct device_stream *stream, struct fault *fault);

// Gives the audio thread real-time priority, which PortAudio does only for JACK. The audio thread
// itself makes no system call for it. False: there has been no callback, or the system does not
// permit it. Threads: the control thread, while the stream runs.
bool device_raise_priority(struct device_stream *stream);

// False after the last callback, or if PortAudio reports that the stream has stopped. True even if
// an audio server has died.
bool device_is_active(const struct device_stream *stream);

// Closes the stream, at once or after its buffers are played, and ends PortAudio. stream NULL: only
// ends PortAudio. False if it takes longer than the time limit.
bool device_close(struct device_stream *stream, bool at_once, double seconds);

#endif
