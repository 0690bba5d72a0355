// SPDX-License-Identifier: MIT
// One impulse response for live filtering: read, checked against the channels and rate of the
// devices, without the lead that resampling adds.
#ifndef PARTITA_APPS_LIVE_RESPONSE_H
#define PARTITA_APPS_LIVE_RESPONSE_H

#include "convolve/taps.h"
#include "io/formats/sofa.h"

struct filter_set_request;

// Channels and rate that a response must match.
struct response_shape {
    size_t in_channels, out_channels;
    uint32_t rate;
};

struct response {
    const char *path;
    struct taps taps;
    size_t onset;      // see struct filter_info
    bool diagonal;     // from each input only to the output of the same number
    bool spread;       // one response from one input to all outputs
    struct sofa *sofa; // of a SOFA file; whoever takes it sets this to NULL
    int pair;          // of the SOFA file
};

// The channels of a run whose first response is `ir`.
bool response_choose_shape(struct response_shape *ret, const struct settings *settings,
                           const char *ir, const struct filter_set_request *request,
                           struct fault *fault);

// The sample rate of a response; 0 if it has none or cannot be read.
double response_rate(const struct settings *settings, const char *ir);

bool response_load(struct response *ret, const struct settings *settings, const char *ir,
                   const struct response_shape *shape, const struct sofa_direction *direction,
                   struct fault *fault);

// The response of a SOFA file in another direction.
bool response_turn(struct response *ret, const char *path, const struct sofa *sofa,
                   const struct sofa_direction *direction, struct fault *fault);

void response_release(struct response *response);

// The taps from an input to an output; NULL: none.
const float *response_taps(const struct response *response, size_t out, size_t in);

#endif
