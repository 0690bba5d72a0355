// SPDX-License-Identifier: MIT
// A factor that goes to its next value along a line: a step in it would be heard as a click.
#ifndef PARTITA_APPS_LIVE_RAMP_H
#define PARTITA_APPS_LIVE_RAMP_H

#include <stddef.h>

struct ramp {
    float value, target, step;
    size_t left; // frames until target
};

// Makes `target` the value in `frames` frames from now, from wherever it is.
static inline void ramp_aim(struct ramp *r, float target, size_t frames)
{
    r->target = target;
    r->left = frames;
    if (frames) r->step = (target - r->value) / (float)frames;
    else r->value = target;
}

// The next n values.
static inline void ramp_run(struct ramp *r, float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r->left) r->value = --r->left ? r->value + r->step : r->target;
        values[i] = r->value;
    }
}

#endif
