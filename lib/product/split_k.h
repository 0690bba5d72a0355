// SPDX-License-Identifier: MIT
// Deterministic split-K: each split of a long sum has its own accumulators, which are added in a
// binary tree, so that the order of additions does not depend on threads (decision 4). For
// gradients of taps the accumulators of the first split are the caller's array.
#ifndef PARTITA_SPLIT_K_H
#define PARTITA_SPLIT_K_H

#include "core/plan.h"

struct split_k {
    const struct partita_plan *plan; // of backward weight
    char *first, *others;            // split 0; splits 1 and up, `bytes` apart
    size_t splits, bytes;
};

static inline char *split_k_sums(const struct split_k *split_k, size_t split)
{
    return split ? split_k->others + (split - 1) * split_k->bytes : split_k->first;
}

// Bytes of the gradient of all taps.
size_t split_k_bytes(const struct shape *shape);

// Number of splits, if each of `tasks` tasks is repeated for each split: enough for min_tasks
// tasks, at most max_splits, and all but the first within `capacity` bytes.
size_t split_k_count(const struct shape *shape, size_t min_tasks, size_t tasks, size_t max_splits,
                     size_t capacity);

// Adds the accumulators of all splits to those of the first, n scalars of each, in a binary tree.
void split_k_reduce_tree(const struct kernels *kernels, char *first, char *others, size_t bytes,
                         size_t splits, size_t n);

// Does this for all taps, on the plan's threads.
void split_k_reduce(const struct split_k *split_k);

#endif
