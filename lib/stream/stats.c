// SPDX-License-Identifier: MIT
#include "stats.h"

#include <assert.h>
#include <math.h>
#include <partita/stream.h>

// Only one thread writes, so that reading and writing back loses nothing.
static void increase(atomic_ullong *counter, unsigned long long by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

void stats_count(struct stats *stats, double seconds, double deadline)
{
    assert(seconds >= 0);
    const unsigned long long nanoseconds = (unsigned long long)(seconds * 1e9);
    // Bins of equal ratio: STATS_PER_OCTAVE an octave from one nanosecond on.
    const double bin = seconds > 1e-9 ? STATS_PER_OCTAVE * log2(seconds * 1e9) : 0;
    increase(&stats->bin[bin < STATS_BINS - 1 ? (int)bin : STATS_BINS - 1], 1);
    increase(&stats->nanoseconds, nanoseconds);
    if (seconds > deadline) increase(&stats->missed, 1);
    if (nanoseconds > atomic_load_explicit(&stats->longest, memory_order_relaxed))
        atomic_store_explicit(&stats->longest, nanoseconds, memory_order_relaxed);
}

// The time that a share of all counted calls did not exceed.
static double percentile(const unsigned long long *bins, unsigned long long calls, double share,
                         double longest)
{
    unsigned long long below = 0;
    for (int i = 0; i < STATS_BINS; i++) {
        below += bins[i];
        const double end = 1e-9 * exp2((i + 1) / (double)STATS_PER_OCTAVE); // of the bin
        if ((double)below >= share * (double)calls) return fmin(end, longest);
    }
    return longest;
}

void stats_read(const struct stats *stats, struct partita_stream_stats *ret)
{
    unsigned long long bins[STATS_BINS], calls = 0;
    for (int i = 0; i < STATS_BINS; i++)
        calls += bins[i] = atomic_load_explicit(&stats->bin[i], memory_order_relaxed);
    const double longest =
        1e-9 * (double)atomic_load_explicit(&stats->longest, memory_order_relaxed);
    const double total =
        1e-9 * (double)atomic_load_explicit(&stats->nanoseconds, memory_order_relaxed);
    *ret = (struct partita_stream_stats){
        .calls = calls,
        .missed = atomic_load_explicit(&stats->missed, memory_order_relaxed),
        .mean = calls ? total / (double)calls : 0,
        .p50 = percentile(bins, calls, 0.5, longest),
        .p99 = percentile(bins, calls, 0.99, longest),
        .p999 = percentile(bins, calls, 0.999, longest),
        .max = longest,
    };
}
