// SPDX-License-Identifier: MIT
// The response between a signal that was played and its recording, for `deconvolve` and for `live
// --measure`.
#ifndef PARTITA_APPS_DECONVOLVE_H
#define PARTITA_APPS_DECONVOLVE_H

#include <jansson.h>

#include "correct/measured.h"

struct deconvolve {
    struct settings settings;
    struct measured signal, recording, response;
    size_t first;     // frame of the response
    double *channel;  // of the recording, and its response
    double unit_peak; // of the response of a path of gain 1
    json_t *list;     // what was found, for each channel of the recording
    FILE *to;         // where it is printed
    bool any;         // a channel has a response
};

// Makes response.samples and `channel`. signal, recording, response.frames and first are known.
bool deconvolve_allocate(struct deconvolve *d, struct fault *fault);

// Computes the response, and prints what was found, or adds it to the list for --json.
bool deconvolve_compute(struct deconvolve *d, struct fault *fault);

void deconvolve_release(struct deconvolve *d);

#endif
