// SPDX-License-Identifier: MIT
// What a run did: levels, counts, delays, speed; as lines for people or as JSON for programs.
#ifndef PARTITA_APPS_STATS_H
#define PARTITA_APPS_STATS_H

#include <stdio.h>

#include "cli/options.h"
#include "io/samples/samples.h"

struct stats {
    double peak, energy; // largest magnitude, sum of squared magnitudes of the result
    uint64_t frames_in, frames_out, tail;
    size_t in_channels, out_channels, taps, latency;
    uint32_t rate;
    uint64_t replaced; // invalid samples of IN set to 0
    struct sample_counts written;
    const char *engine, *type;
    bool truncated, interrupted;
    double seconds;
    struct partita_stream_stats calls; // calls 0: nothing was timed call by call
    size_t call_frames;                // the largest call
};

// Adds n samples of a type to peak and energy.
void stats_measure(struct stats *stats, enum partita_type type, const void *x, size_t n);

void stats_print(const struct stats *stats, FILE *to);

// False if it cannot be written.
bool stats_print_json(const struct stats *stats, const struct settings *settings, FILE *to);

#endif
