// SPDX-License-Identifier: MIT
// Whole signals convolved with filters, on one thread and two, against SciPy. Every pass is a whole
// call: planning, transforming the taps and allocating the workspace included, as in the peer's
// call. For batches of sequences, as sequence models have them, filters are transformed beforehand
// by both; an item is then a multiply-add of the direct sums.
#include "ours/ours.h"
#include "peers/peers.h"

#include <string.h>

#define LONG(name_, type_, n_taps_)                                                                \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_taps = n_taps_,      \
        .n_frames = 10000000                                                                       \
    }

#define SEQUENCES(direction_)                                                                      \
    {                                                                                              \
        {.op = PARTITA_CORRELATE,                                                                  \
         .rank = 1,                                                                                \
         .batch = 8,                                                                               \
         .in_channels = 64,                                                                        \
         .out_channels = 64,                                                                       \
         .groups = 64,                                                                             \
         .kernel = {16384},                                                                        \
         .size = {16384},                                                                          \
         .pad_begin = {16383}},                                                                    \
            direction_                                                                             \
    }
static const struct layer forward = SEQUENCES(PARTITA_FORWARD),
                          backward_data = SEQUENCES(PARTITA_BACKWARD_DATA),
                          backward_weight = SEQUENCES(PARTITA_BACKWARD_WEIGHT);

static const struct workload cases[] = {
    LONG("long-10M-x-64", F32, 64),
    LONG("long-10M-x-1024", F32, 1024),
    LONG("long-10M-x-65536", F32, 65536),
    LONG("long-cf32-10M-x-64", CF32, 64),
    LONG("long-cf32-10M-x-1024", CF32, 1024),
    LONG("long-cf32-10M-x-65536", CF32, 65536),
    LONG("long-10M-x-1M", F32, 1000000),
    {.name = "square-4M", .n_frames = 4000000, .n_taps = 4000000},
    {.name = "batch-8x64-16384-forward", .layer = &forward},
    {.name = "batch-8x64-16384-backward-data", .layer = &backward_data},
    {.name = "batch-8x64-16384-backward-weight", .layer = &backward_weight},
    {.name = "lags-1000-of-2p26",
     .n_frames = 1 << 26,
     .n_taps = 1 << 26,
     .lags = 1000,
     .repetitions = 3},
};

static bool open_ours(struct contender *contender, const struct workload *w)
{
    if (w->layer == NULL) return ours_signal(contender, w);
    const bool slow = contender->engine != NULL && strcmp(contender->engine, "cpu/direct") == 0;
    return !slow && ours_layer(contender, w);
}

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .open = open_ours},
    {.name = "cpu/overlap-add", .engine = "cpu/overlap-add", .open = open_ours},
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .open = open_ours},
    {.name = "cpu/blocks", .engine = "cpu/blocks", .open = open_ours},
    {.name = "auto", .open = open_ours},
    {.name = "scipy-oaconvolve", .threads = 1, .open = peer_scipy_oaconvolve},
    {.name = "scipy-fftconvolve", .threads = 1, .open = peer_scipy_fftconvolve},
    {.name = "scipy-rfft", .threads = 1, .open = peer_scipy_rfft},
    {.name = "scipy-correlate", .threads = 1, .open = peer_scipy_correlate},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_signal",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 7,
        .thread_counts = {1, 2},
    };
    return bench_main(argc, argv, &suite);
}
