// SPDX-License-Identifier: MIT
// What is summed in runs: each run has sums of its own, which are added in a binary tree at the
// end, so that the order does not depend on threads (decision 4). Of gradients of taps the first
// run's sums are in the caller's array.
#ifndef PARTITA_RUN_SUMS_H
#define PARTITA_RUN_SUMS_H

#include "core/plan.h"

struct run_sums {
    const struct partita_plan *plan; // of backward weight
    char *first, *others;            // sums of run 0; of runs 1 and up, `bytes` apart
    size_t runs, bytes;
};

static inline char *run_sums_of(const struct run_sums *sums, size_t run)
{
    return run ? sums->others + (run - 1) * sums->bytes : sums->first;
}

// Adds all runs into the first: `runs` arrays of n scalars, each stretch of them in the same tree.
void run_sums_tree(const struct kernels *kernels, char *first, char *others, size_t bytes,
                   size_t runs, size_t n);

// All taps of all runs, on the plan's threads.
void run_sums_add(const struct run_sums *sums);

#endif
