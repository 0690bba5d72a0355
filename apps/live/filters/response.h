// SPDX-License-Identifier: MIT
// One impulse response as live filters take it: read, checked against the devices' channels and
// rate, without the silence that resampling puts in front.
#ifndef PARTITA_APPS_LIVE_RESPONSE_H
#define PARTITA_APPS_LIVE_RESPONSE_H

#include "convolve/taps.h"

struct filter_set_request;

// Channels and rate that a response must fit.
struct response_shape {
    size_t in_channels, out_channels;
    uint32_t rate;
};

struct response {
    const char *path;
    struct taps taps;
    size_t channels;     // of the file
    size_t first;        // taps left out at the start
    size_t length;       // taps used
    size_t onset;        // see struct filter_set_filter
    bool diagonal;       // every input to its own output
    bool spread;         // one response and one input, for all outputs
    char shortfall[160]; // what the file lacks of what its header promises; empty: nothing
};

// Channels of a run whose first response is `path`.
bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *path, const struct filter_set_request *request,
                           struct fault *fault);

// The sample rate of a file, 0 if it does not say or cannot be read.
double response_rate(const struct settings *settings, const char *path);

bool response_load(struct response *ret, const struct settings *settings, const char *path,
                   const struct response_shape *shape, struct fault *fault);
void response_release(struct response *response);

// The taps from an input to an output; NULL: none.
const float *response_taps(const struct response *response, size_t out, size_t in);

#endif
