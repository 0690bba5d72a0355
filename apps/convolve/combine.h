// SPDX-License-Identifier: MIT
// The statistics of several processes.
#ifndef PARTITA_APPS_COMBINE_H
#define PARTITA_APPS_COMBINE_H

#include "pass_stats.h"
#include "processes/processes.h"

// Makes the statistics of this process's range those of all, but for `written`, which is that of
// all already. Collective. The energies are added in the order of ranks.
bool combine_stats(struct pass_stats *stats, struct processes *processes, struct fault *fault);

#endif
