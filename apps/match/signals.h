// SPDX-License-Identifier: MIT
// The channels of one or several inputs as rows of floats, of which memory holds some frames.
#ifndef PARTITA_APPS_SIGNALS_H
#define PARTITA_APPS_SIGNALS_H

#include "io/audio.h"

struct signals {
    struct audio_reader **in;
    size_t n_in, n, pitch; // n: rows, which are pitch samples apart
    bool may_end;          // an input that ends before the frames that it promises is no fault
    float *x, *chunk;      // x: frames `from` to `to` - 1
    uint64_t from, to;
};

// Makes room for rows of `pitch` samples, and keeps their frames.
bool signals_reserve(struct signals *signals, size_t pitch, struct fault *fault);

// Makes x hold the frames from .. to - 1, none of which is before those that it holds. Fewer if the
// inputs end, where they may.
bool signals_hold(struct signals *signals, uint64_t from, uint64_t to, struct fault *fault);

// Closes the inputs, too.
void signals_release(struct signals *signals);

#endif
