// SPDX-License-Identifier: MIT
// Converts taps to another sample rate, with the same frequency response.
#ifndef PARTITA_APPS_RESAMPLE_H
#define PARTITA_APPS_RESAMPLE_H

#include <partita/problem.h>

#include "base/fault.h"

struct resample_request {
    enum partita_type type;
    size_t channels;
    double rate_in, rate_out; // Hz
};

struct resampled {
    void *frames; // interleaved; the caller releases it with memory_free
    size_t n;     // frames, including the lead and the same number at the end
    size_t lead;  // frames before the original start, which the interpolation filter adds
};

// Resamples n interleaved frames and multiplies them by rate_in / rate_out: the filter's response
// is a sum over taps, whose number changes.
bool resample_taps(struct resampled *ret, const struct resample_request *request,
                   const void *frames, size_t n, struct fault *fault);

#endif
