// SPDX-License-Identifier: MIT
// Whole signals convolved with filters, on one thread and two, against SciPy. Every pass is a whole call: planning,
// transforming the taps and allocating the workspace included, as in the peer's call.
#include "bench.h"

#define LONG(name_, type_, n_taps_)                                                                                    \
    {                                                                                                                  \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_taps = n_taps_, .n_frames = 10000000     \
    }

static const struct workload cases[] = {
    LONG("long-10M-x-64", F32, 64),
    LONG("long-10M-x-1024", F32, 1024),
    LONG("long-10M-x-65536", F32, 65536),
    LONG("long-cf32-10M-x-64", CF32, 64),
    LONG("long-cf32-10M-x-1024", CF32, 1024),
    LONG("long-cf32-10M-x-65536", CF32, 65536),
    LONG("long-10M-x-1M", F32, 1000000),
    {.name = "square-4M", .n_frames = 4000000, .n_taps = 4000000},
    {.name = "lags-1000-of-2p26", .n_frames = 1 << 26, .n_taps = 1 << 26, .lags = 1000, .repetitions = 3},
};

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .open = ours_signal},
    {.name = "cpu/overlap-add", .engine = "cpu/overlap-add", .open = ours_signal},
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .open = ours_signal},
    {.name = "cpu/blocks", .engine = "cpu/blocks", .open = ours_signal},
    {.name = "auto", .open = ours_signal},
    {.name = "scipy-oaconvolve", .threads = 1, .open = peer_scipy_oaconvolve},
    {.name = "scipy-fftconvolve", .threads = 1, .open = peer_scipy_fftconvolve},
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
        .repetitions = 7,
        .thread_counts = {1, 2},
    };
    return bench_main(argc, argv, &suite);
}
