// SPDX-License-Identifier: MIT
// The levels of all channels for display, with peaks that hold. The thread that reads them often,
// for a screen or several clients, takes them from the chain once.
#ifndef PARTITA_APPS_LIVE_LEVELS_H
#define PARTITA_APPS_LIVE_LEVELS_H

#include "chain.h"

// The largest peak of the last 1.5 to 1.6 seconds, in intervals of a tenth of a second.
enum { PEAK_HOLD_INTERVALS = 16 };
struct peak_hold {
    float peaks[PEAK_HOLD_INTERVALS];
    int64_t interval; // number of the last one
};

// Adds a peak at a time in seconds, which never decreases, and returns the held one.
float peak_hold_add(struct peak_hold *hold, float peak, double now);

struct levels;

// NULL: out of memory. levels_close accepts NULL.
struct levels *levels_open(size_t in_channels, size_t out_channels);
void levels_close(struct levels *levels);

// Takes the levels since the last update from the chain.
void levels_update(struct levels *levels, struct chain *chain, double now);

// The level of an input or output channel at the last update. The peak is held, and at least the
// RMS, which decays slowly.
struct level levels_of(const struct levels *levels, bool out, size_t channel);

#endif
