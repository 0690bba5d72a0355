// SPDX-License-Identifier: MIT
// Statistics of a run: levels, counts, latency, speed; printed as text or as JSON.
#ifndef PARTITA_APPS_PASS_STATS_H
#define PARTITA_APPS_PASS_STATS_H

#include <stdio.h>

#include "cli/options.h"
#include "io/samples/samples.h"
#include "processes/processes.h"

struct pass_stats {
    double peak, energy; // of the result: largest magnitude, sum of squared magnitudes
    uint64_t frames_in, frames_out, tail;
    int64_t filter_peak; // see taps_peak
    size_t in_channels, out_channels, taps, latency;
    double rate;
    uint64_t replaced; // non-finite samples of IN that were set to 0
    struct sample_counts written;
    const char *engine, *type;
    bool truncated, interrupted;
    double seconds;
    bool delayed;                      // whoever waits for OUT notices latency and times of calls
    struct partita_stream_stats calls; // calls.calls 0: calls were not timed
    size_t call_frames;                // of the largest call
};

// Adds n samples to peak and energy.
void pass_stats_measure(struct pass_stats *stats, enum partita_type type, const void *x, size_t n);

void pass_stats_print(const struct pass_stats *stats, FILE *to);

// In one line if lines of peaks come before it. False if it cannot be written.
bool pass_stats_print_json(const struct pass_stats *stats, const struct settings *settings,
                           FILE *to);

// Warns of an input of `frames` frames that is empty, of an end before its end, and of samples that
// are not finite.
void pass_stats_warn(const struct pass_stats *stats, const struct settings *settings,
                     uint64_t frames);

// Makes the statistics of this process's range those of all, but for `written`, which is that of
// all already. Collective. The energies are added in the order of ranks.
bool pass_stats_combine(struct pass_stats *stats, struct processes *processes, struct fault *fault);

#endif
