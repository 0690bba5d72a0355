// SPDX-License-Identifier: MIT
// The response between a signal that was played and its recording, for `deconvolve`, `identify` and
// `live --measure`.
#ifndef PARTITA_APPS_DECONVOLVE_H
#define PARTITA_APPS_DECONVOLVE_H

#include <jansson.h>

#include "correct/measured.h"

struct deconvolve {
    struct settings settings;
    struct measured signal, recording, response;
    int64_t first;    // frame of the response; of `identify` it may be negative
    double *channel;  // of the recording, and its response
    double unit_peak; // of the response of a path of gain 1
    json_t *list;     // what was found, for each channel of the recording
    FILE *to;         // where it is printed
    bool any;         // a channel has a response
};

struct deconvolve_method {
    bool (*choose_length)(struct deconvolve *d, struct fault *fault); // makes response.samples
    bool (*compute)(struct deconvolve *d, struct fault *fault);
};

struct found {
    size_t latency;      // frames; of the peak
    double level, noise; // gain of a path with that peak, and RMS of the noise beside it; 0: none
};

// Replaces d->channel, n frames of a recording, by its response to a signal.
bool deconvolve_divide(struct deconvolve *d, size_t n, const double *signal, size_t n_signal,
                       struct fault *fault);

// The peak of a response of n frames, if it is far above the rest.
struct found deconvolve_peak(const struct deconvolve *d, const double *response, size_t n);

// Prints what was found in a channel of the recording, or adds it to the list for --json with these
// further fields, which are released. latency: of the peak; NOT_GIVEN: no response.
void deconvolve_print(struct deconvolve *d, size_t channel, int64_t latency, json_t *fields,
                      const char *text);

// Makes response.samples and `channel`. signal, recording, response.frames and first are known.
bool deconvolve_allocate(struct deconvolve *d, struct fault *fault);

// Computes the response, and prints what was found, or adds it to the list for --json.
bool deconvolve_compute(struct deconvolve *d, struct fault *fault);

// Runs a command by its method; returns the exit status.
int deconvolve_run(const struct settings *settings, const struct deconvolve_method *method,
                   struct fault *fault);

void deconvolve_release(struct deconvolve *d);

#endif
