// SPDX-License-Identifier: MIT
// A gain that moves linearly to its next value; a step would be audible as a click.
#ifndef PARTITA_APPS_LIVE_RAMP_H
#define PARTITA_APPS_LIVE_RAMP_H

#include <stddef.h>

struct ramp {
    float value, target, step;
    size_t left; // frames until target
};

// Moves from the current value to `target` within `frames` frames.
static inline void ramp_set_target(struct ramp *r, float target, size_t frames)
{
    r->target = target;
    r->left = frames;
    if (frames) r->step = (target - r->value) / (float)frames;
    else r->value = target;
}

// Writes the next n values.
static inline void ramp_next(struct ramp *r, float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r->left) r->value = --r->left ? r->value + r->step : r->target;
        values[i] = r->value;
    }
}

#endif
