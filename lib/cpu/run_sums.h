// SPDX-License-Identifier: MIT
// Gradients of taps summed in runs: each run has sums of its own, the first in the caller's array; they are added in a
// binary tree at the end, so that the order does not depend on threads (decision 4).
#ifndef PARTITA_RUN_SUMS_H
#define PARTITA_RUN_SUMS_H

#include "../engine.h"

struct run_sums {
    const struct partita_plan *plan; // of backward weight
    char *first, *others;            // sums of run 0; of runs 1 and up, `bytes` apart
    size_t runs, bytes;
};

static inline char *run_sums_of(const struct run_sums *sums, size_t run)
{
    return run ? sums->others + (run - 1) * sums->bytes : sums->first;
}

// Adds all runs into the first.
void run_sums_add(const struct run_sums *sums);

#endif
