// SPDX-License-Identifier: MIT
// Whole signals convolved with filters, on one thread and two, against SciPy. Every pass is a whole
// call: planning, transforming the taps and allocating the workspace included, as in the peer's
// call. For batches of sequences, as sequence models have them, filters are transformed beforehand
// by both; an item is then a multiply-add of the direct sums.
#include "ours/ours.h"
#include "peers/peers.h"

#include <string.h>

static bool open_ours(struct contender *contender, const struct workload *w)
{
    if (w->layer == NULL) return ours_signal(contender, w);
    const bool slow = contender->engine != NULL && strcmp(contender->engine, "cpu/direct") == 0;
    return !slow && ours_layer(contender, w);
}

static bool open_parts(struct contender *contender, const struct workload *w)
{
    return w->imposed.taps && ours_signal(contender, w);
}

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .open = open_ours},
    {.name = "cpu/overlap-add", .engine = "cpu/overlap-add", .open = open_ours},
    {.name = "cpu/overlap-add:steps", .engine = "cpu/overlap-add:steps", .open = open_ours},
    {.name = "cpu/overlap-add:4-steps", .engine = "cpu/overlap-add:4-steps", .open = open_ours},
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .open = open_ours},
    {.name = "cpu/blocks", .engine = "cpu/blocks", .open = open_ours},
    {.name = "cpu/blocks:divisions", .engine = "cpu/blocks:divisions", .open = open_parts},
    {.name = "cpu/blocks:private-divisions",
     .engine = "cpu/blocks:private-divisions",
     .open = open_parts},
    {.name = "auto", .open = open_ours},
    {.name = "scipy-oaconvolve", .threads = 1, .open = peer_scipy_oaconvolve},
    {.name = "scipy-fftconvolve", .threads = 1, .open = peer_scipy_fftconvolve},
    {.name = "scipy-rfft", .threads = 1, .open = peer_scipy_rfft},
    {.name = "scipy-correlate", .threads = 1, .open = peer_scipy_correlate},
};

int main(int argc, char **argv)
{
    size_t n;
    const struct workload *cases = signal_cases(&n);
    const struct suite suite = {
        .program = "bench_signal",
        .cases = cases,
        .n_cases = n,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 7,
        .thread_counts = {1, 2},
    };
    return bench_main(argc, argv, &suite);
}
