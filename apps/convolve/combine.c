// SPDX-License-Identifier: MIT
// See combine.h.
#include "combine.h"

#include <stdlib.h>

// Of one process.
struct share {
    double peak, energy, seconds;
    uint64_t frames_in, frames_out, replaced;
};

static void add_share(struct pass_stats *stats, const struct share *share)
{
    if (share->peak > stats->peak) stats->peak = share->peak;
    if (share->seconds > stats->seconds) stats->seconds = share->seconds;
    if (share->frames_in > stats->frames_in) stats->frames_in = share->frames_in;
    stats->energy += share->energy;
    stats->frames_out += share->frames_out;
    stats->replaced += share->replaced;
}

bool combine_stats(struct pass_stats *stats, struct processes *processes, struct fault *fault)
{
    const struct share sent = {stats->peak,      stats->energy,     stats->seconds,
                               stats->frames_in, stats->frames_out, stats->replaced};
    if (!processes->n) return true;
    struct share *all = calloc(processes->n, sizeof *all);
    const bool good = processes_agree(processes, all || fault_set(fault, "out of memory"), fault);
    if (good) {
        processes_exchange(processes, &sent, sizeof sent, all);
        stats->energy = 0;
        stats->frames_out = stats->replaced = 0;
        for (size_t i = 0; i < processes->n; i++) add_share(stats, &all[i]);
    }
    free(all);
    return good;
}
