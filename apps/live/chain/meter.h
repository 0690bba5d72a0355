// SPDX-License-Identifier: MIT
// Level meter of one channel: written by the audio thread, read by another.
#ifndef PARTITA_APPS_LIVE_METER_H
#define PARTITA_APPS_LIVE_METER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct meter {
    _Atomic float peak,
        square; // peak since the last reading; running mean square
};

struct level {
    float peak, rms;
};

// Adds n samples. decay: weight of these samples in the running mean, 1 - exp(-n / (rate * time)).
void meter_add(struct meter *meter, const float *x, size_t n, float decay);

// Returns the level and resets the peak. A peak that is written at the same time may be returned
// twice, but is never lost.
struct level meter_take(struct meter *meter);

// The largest peak of the last 1.5 to 1.6 seconds, in intervals of a tenth of a second.
enum { PEAK_HOLD_INTERVALS = 16 };
struct peak_hold {
    float peaks[PEAK_HOLD_INTERVALS];
    int64_t interval; // number of the last one
};

// Adds a peak at a time in seconds, which never decreases, and returns the held one.
float peak_hold_add(struct peak_hold *hold, float peak, double now);

#endif
