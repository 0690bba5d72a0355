// SPDX-License-Identifier: MIT
// Direct FIR filters on streams in blocks of 1024 frames, one thread: every type, a decimator and
// resamplers, against liquid-dsp and the peak of fused multiply-adds.
#include "ours/ours.h"
#include "peers/peers.h"

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

static const struct workload cases[] = {
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

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .threads = 1, .open = ours_stream},
    {.name = "auto", .threads = 1, .open = ours_stream},
    {.name = "liquid-dsp", .threads = 1, .open = peer_liquid_fir},
    {.name = "fma-peak", .threads = 1, .open = peer_fma_peak},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_fir",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 21,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
