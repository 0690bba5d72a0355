// SPDX-License-Identifier: MIT
// Taps at another sample rate, with the same frequency response.
#ifndef PARTITA_APPS_RESAMPLE_H
#define PARTITA_APPS_RESAMPLE_H

#include <partita/common.h>

#include "base/fault.h"

struct resampled {
    void *frames; // interleaved; the caller's to free
    size_t n;     // frames
    size_t lead;  // of them, so many before the taps' original start, and as many behind their end:
                 // the rise and fall of the band-limited pulses
};

// Resamples n interleaved frames of `type`, whose values are scaled by rate_in / rate_out: a
// filter's response is a sum over taps, and there are now more or fewer of them.
bool resample_taps(struct resampled *ret, enum partita_type type, const void *frames, size_t n,
                   size_t channels, uint32_t rate_in, uint32_t rate_out, struct fault *fault);

#endif
