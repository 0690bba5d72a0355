// SPDX-License-Identifier: MIT
#include "split_k.h"

#include <assert.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "kernels/kernels.h"

enum { TASK_TAPS = 4096 }; // taps of the gradient added by one task

static size_t tap_count(const struct shape *shape)
{
    return shape->out_channels * shape->group_in * shape_taps(shape);
}

size_t split_k_bytes(const struct shape *shape)
{
    return mem_round(size_mul(size_mul(shape->out_channels, shape->group_in),
                              shape_taps(shape) * shape->scalar_bytes));
}

size_t split_k_count(const struct shape *shape, size_t min_tasks, size_t tasks, size_t max_splits,
                     size_t capacity)
{
    assert(max_splits > 0);
    return size_min(size_min(ceil_div(min_tasks, tasks), max_splits),
                    1 + capacity / split_k_bytes(shape));
}

// Adjacent splits first, then adjacent sums of two, and so on.
void split_k_reduce_tree(const struct kernels *kernels, char *first, char *others, size_t bytes,
                         size_t splits, size_t n)
{
    for (size_t step = 1; step < splits; step *= 2)
        for (size_t i = 0; i + step < splits; i += 2 * step)
            kernels->add(i ? others + (i - 1) * bytes : first, others + (i + step - 1) * bytes, n);
}

static void reduce_taps(void *context, size_t task, int worker)
{
    const struct split_k *split_k = context;
    const struct shape *shape = &split_k->plan->shape;
    const size_t from = task * TASK_TAPS, n = size_min(TASK_TAPS, tap_count(shape) - from);
    const size_t at = from * shape->scalar_bytes;
    (void)worker;
    split_k_reduce_tree(split_k->plan->kernels, split_k->first + at, split_k->others + at,
                        split_k->bytes, split_k->splits, n);
}

void split_k_reduce(const struct split_k *split_k)
{
    struct split_k call = *split_k;
    const size_t taps = tap_count(&split_k->plan->shape);
    assert(split_k->bytes >= taps * split_k->plan->shape.scalar_bytes);
    if (split_k->splits > 1)
        thread_loop(split_k->plan->threads, ceil_div(taps, TASK_TAPS), reduce_taps, &call);
}
