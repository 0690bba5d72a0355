// SPDX-License-Identifier: MIT
#include "levels.h"

#include <math.h>
#include <stdlib.h>

static const double INTERVAL_SECONDS = 0.1;

struct channel_level {
    struct peak_hold hold;
    struct level level;
};

struct levels {
    size_t in_channels, out_channels;
    struct channel_level channels[];
};

float peak_hold_add(struct peak_hold *hold, float peak, double now)
{
    int64_t interval = (int64_t)floor(now / INTERVAL_SECONDS);
    int64_t first = interval - PEAK_HOLD_INTERVALS; // everything up to here is too old
    if (hold->interval > first) first = hold->interval;
    for (int64_t i = first + 1; i <= interval; i++) hold->peaks[i % PEAK_HOLD_INTERVALS] = 0;
    hold->interval = interval;
    float *present = &hold->peaks[interval % PEAK_HOLD_INTERVALS];
    *present = fmaxf(*present, peak);
    float held = 0;
    for (int i = 0; i < PEAK_HOLD_INTERVALS; i++) held = fmaxf(held, hold->peaks[i]);
    return held;
}

struct levels *levels_open(size_t in_channels, size_t out_channels)
{
    size_t n = in_channels + out_channels;
    struct levels *levels = calloc(1, sizeof *levels + n * sizeof *levels->channels);
    if (!levels) return NULL;
    levels->in_channels = in_channels;
    levels->out_channels = out_channels;
    return levels;
}

void levels_close(struct levels *levels)
{
    free(levels);
}

void levels_update(struct levels *levels, struct chain *chain, double now)
{
    for (size_t i = 0; i < levels->in_channels + levels->out_channels; i++) {
        struct channel_level *c = &levels->channels[i];
        const bool out = i >= levels->in_channels;
        struct level level = chain_take_level(chain, out, out ? i - levels->in_channels : i);
        float held = peak_hold_add(&c->hold, level.peak, now);
        c->level = (struct level){.peak = fmaxf(held, level.rms), .rms = level.rms};
    }
}

struct level levels_of(const struct levels *levels, bool out, size_t channel)
{
    return levels->channels[(out ? levels->in_channels : 0) + channel].level;
}
