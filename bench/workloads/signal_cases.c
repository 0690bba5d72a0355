// SPDX-License-Identifier: MIT
// The cases of bench_signal.
#include "workloads/layer.h"

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
    {.name = "parts-19x152-of-12464-x-6232",
     .n_frames = 12464,
     .n_taps = 6232,
     .imposed = {19, 152, false},
     .extra = true},
    {.name = "parts-16384x49152-of-1M-x-1M",
     .n_frames = 1 << 20,
     .n_taps = 1 << 20,
     .imposed = {16384, 49152, false},
     .extra = true},
};

const struct workload *signal_cases(size_t *ret_n)
{
    *ret_n = sizeof cases / sizeof *cases;
    return cases;
}
