// SPDX-License-Identifier: MIT
// Sums of runs, see run_sums.h.
#include "run_sums.h"

#include "base/thread.h"
#include "kernels/kernels.h"

enum { PIECE = 4096 }; // taps of the gradient added by one task

static size_t taps_of(const struct run_sums *sums)
{
    const struct shape *shape = &sums->plan->shape;
    return shape->out_channels * shape->group_in * shape_taps(shape);
}

// Neighbours first, then neighbours of sums of two, and so on.
void run_sums_tree(const struct kernels *kernels, char *first, char *others, size_t bytes,
                   size_t runs, size_t n)
{
    for (size_t step = 1; step < runs; step *= 2)
        for (size_t run = 0; run + step < runs; run += 2 * step)
            kernels->add(run ? others + (run - 1) * bytes : first,
                         others + (run + step - 1) * bytes, n);
}

// A stretch of the taps.
static void add_piece(void *context, size_t task, int worker)
{
    const struct run_sums *sums = context;
    const size_t from = task * PIECE, left = taps_of(sums) - from, n = left < PIECE ? left : PIECE;
    const size_t at = from * sums->plan->shape.scalar_bytes;
    (void)worker;
    run_sums_tree(sums->plan->kernels, sums->first + at, sums->others + at, sums->bytes, sums->runs,
                  n);
}

void run_sums_add(const struct run_sums *sums)
{
    struct run_sums call = *sums;
    if (sums->runs > 1)
        thread_loop(sums->plan->threads, (taps_of(sums) + PIECE - 1) / PIECE, add_piece, &call);
}
