// SPDX-License-Identifier: MIT
// The cases of bench_stream and bench_fir.
#include "workloads/workload.h"

#define DELAYED(name_, channels_, block_, n_taps_, n_frames_)                                      \
    {                                                                                              \
        .name = "delayed-" name_, .in_channels = channels_, .out_channels = channels_,             \
        .block = block_, .latency = block_, .n_taps = n_taps_, .n_frames = n_frames_               \
    }

#define PROMPT(name_, channels_, block_, n_taps_, n_timed_)                                        \
    {                                                                                              \
        .name = name_, .in_channels = channels_, .out_channels = channels_, .block = block_,       \
        .n_taps = n_taps_, .warm = n_taps_, .n_frames = (n_taps_) + (n_timed_), .repetitions = 5   \
    }

// Gigabytes of taps, and minutes for the oracle.
#define LARGE(name_, channels_, block_, n_taps_, n_timed_)                                         \
    {                                                                                              \
        .name = name_, .in_channels = channels_, .out_channels = channels_, .block = block_,       \
        .n_taps = n_taps_, .warm = n_taps_, .n_frames = (n_taps_) + (n_timed_), .repetitions = 3,  \
        .extra = true                                                                              \
    }

static const struct workload streams[] = {
    DELAYED("mono-b64-t4096", 1, 64, 4096, 65536),
    DELAYED("mono-b64-t65536", 1, 64, 65536, 16384),
    DELAYED("mono-b256-t4096", 1, 256, 4096, 65536),
    DELAYED("mono-b256-t65536", 1, 256, 65536, 32768),
    DELAYED("mono-b1024-t1024", 1, 1024, 1024, 262144),
    DELAYED("mono-b1024-t4096", 1, 1024, 4096, 262144),
    DELAYED("mono-b1024-t65536", 1, 1024, 65536, 131072),
    DELAYED("mono-b4096-t4096", 1, 4096, 4096, 262144),
    DELAYED("matrix-2x2-b256-t4096", 2, 256, 4096, 32768),
    DELAYED("matrix-4x4-b1024-t4096", 4, 1024, 4096, 32768),
    PROMPT("mono-b64-t65536", 1, 64, 65536, 2000000),
    PROMPT("mono-b64-t480000", 1, 64, 480000, 2000000),
    PROMPT("mono-b256-t480000", 1, 256, 480000, 2000000),
    PROMPT("zero-b32-t480000", 1, 32, 480000, 2000000),
    PROMPT("zero-b32-t2880000", 1, 32, 2880000, 2000000),
    PROMPT("matrix-16x16-b64-t48000", 16, 64, 48000, 192000),
    PROMPT("matrix-16x16-b256-t48000", 16, 256, 48000, 192000),
    LARGE("matrix-64x64-b64-t48000", 64, 64, 48000, 16384),
    LARGE("matrix-64x64-b256-t48000", 64, 256, 48000, 16384),
    {BENCH_BANK("channels-128-b64-t96000", 128, 64, 96000, 96000), .repetitions = 5, .extra = true},
};

// 16 blocks stay in the L2 cache, as the buffers of a live stream do.
#define FIR(name_, signal_, taps_, n_taps_, stride_)                                               \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##signal_, .taps = PARTITA_##taps_, .n_taps = n_taps_,    \
        .stride = stride_, .n_frames = 16384, .block = 1024                                        \
    }

// Blocks hold whole periods of the stride. The filter has 24 taps for each frame of the input.
#define RESAMPLER(name_, up_, stride_, block_)                                                     \
    {                                                                                              \
        .name = name_, .n_taps = 24 * (up_), .up = up_, .stride = stride_,                         \
        .n_frames = 16 * (block_), .block = block_                                                 \
    }

static const struct workload filters[] = {
    FIR("direct-f32-t16", F32, F32, 16, 1),
    FIR("direct-f32-t64", F32, F32, 64, 1),
    FIR("direct-f32-t256", F32, F32, 256, 1),
    FIR("direct-f32-t1024", F32, F32, 1024, 1),
    FIR("direct-f64-t16", F64, F64, 16, 1),
    FIR("direct-f64-t64", F64, F64, 64, 1),
    FIR("direct-f64-t256", F64, F64, 256, 1),
    FIR("direct-f64-t1024", F64, F64, 1024, 1),
    FIR("direct-cf32-real-t16", CF32, F32, 16, 1),
    FIR("direct-cf32-real-t64", CF32, F32, 64, 1),
    FIR("direct-cf32-real-t256", CF32, F32, 256, 1),
    FIR("direct-cf32-complex-t16", CF32, CF32, 16, 1),
    FIR("direct-cf32-complex-t64", CF32, CF32, 64, 1),
    FIR("direct-cf32-complex-t256", CF32, CF32, 256, 1),
    FIR("direct-f32-t256-stride8", F32, F32, 256, 8),
    RESAMPLER("resampler-4-to-1", 4, 1, 1024),
    RESAMPLER("resampler-3-to-2", 3, 2, 1024),
    RESAMPLER("resampler-160-to-147", 160, 147, 1029),
};

const struct workload *stream_cases(size_t *ret_n)
{
    *ret_n = sizeof streams / sizeof *streams;
    return streams;
}

const struct workload *fir_cases(size_t *ret_n)
{
    *ret_n = sizeof filters / sizeof *filters;
    return filters;
}
