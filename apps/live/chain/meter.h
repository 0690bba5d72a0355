// SPDX-License-Identifier: MIT
// Level meter of one channel: written by the audio thread, read by another.
#ifndef PARTITA_APPS_LIVE_METER_H
#define PARTITA_APPS_LIVE_METER_H

#include <stdatomic.h>
#include <stddef.h>

struct level {
    float peak, rms;
};

// Zero at first.
struct meter {
    _Atomic float peak, square; // peak since the last update; running mean square
    // Of the thread that shows levels.
    float held; // peak
    double held_until;
    struct level level;
};

// Adds n samples. decay: weight of these samples in the running mean, 1 - exp(-n / (rate * time)).
void meter_add(struct meter *meter, const float *x, size_t n, float decay);

// Updates meter->level at a time in seconds, which never decreases. A peak is held until a larger
// one comes or 1.5 seconds have passed, and is at least the RMS, which decays slowly. A peak that
// is written at the same time may count twice, but is never lost.
void meter_update(struct meter *meter, double now);

#endif
