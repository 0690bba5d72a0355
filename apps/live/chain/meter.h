// SPDX-License-Identifier: MIT
// Level of one channel: measured by the audio thread, read by another.
#ifndef PARTITA_APPS_LIVE_METER_H
#define PARTITA_APPS_LIVE_METER_H

#include <stdatomic.h>
#include <stddef.h>

struct meter {
    _Atomic float peak,
        square; // largest magnitude since it was last taken; running mean of squares
};

struct level {
    float peak, rms;
};

// Adds n samples. decay: share of the running mean that n samples replace, 1 - exp(-n / (rate *
// time)).
void meter_add(struct meter *meter, const float *x, size_t n, float decay);

// What was measured; the peak starts anew. A peak that comes in at this very moment may be told
// twice, never lost.
struct level meter_take(struct meter *meter);

#endif
