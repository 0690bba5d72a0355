// SPDX-License-Identifier: MIT
// Sums of runs, see run_sums.h.
#include "run_sums.h"

#include "../thread.h"

enum { PIECE = 4096 }; // taps of the gradient added by one task

static size_t taps_of(const struct run_sums *sums)
{
    const struct shape *shape = &sums->plan->shape;
    return shape->out_channels * shape->group_in * shape_taps(shape);
}

// A stretch of the taps: neighbours first, then neighbours of sums of two, and so on.
static void add_piece(void *context, size_t task, int worker)
{
    const struct run_sums *sums = context;
    const size_t from = task * PIECE, left = taps_of(sums) - from, n = left < PIECE ? left : PIECE;
    const size_t at = from * sums->plan->shape.scalar_bytes;
    (void)worker;
    for (size_t step = 1; step < sums->runs; step *= 2)
        for (size_t run = 0; run + step < sums->runs; run += 2 * step)
            sums->plan->kernels->add(run_sums_of(sums, run) + at, run_sums_of(sums, run + step) + at, n);
}

void run_sums_add(const struct run_sums *sums)
{
    struct run_sums call = *sums;
    if (sums->runs > 1) thread_loop(sums->plan->threads, (taps_of(sums) + PIECE - 1) / PIECE, add_piece, &call);
}
