// SPDX-License-Identifier: MIT
// Streams with an allowed latency of one block: cost a sample and flatness of the load, against liquid-dsp's fftfilt
// where its block holds the filter.
#include "bench.h"

#define STREAM(name_, channels_, block_, n_taps_, n_frames_)                                                           \
    {                                                                                                                  \
        .name = name_, .in_channels = channels_, .out_channels = channels_, .block = block_, .latency = block_,        \
        .n_taps = n_taps_, .n_frames = n_frames_                                                                       \
    }

static const struct workload cases[] = {
    STREAM("mono-b64-t4096", 1, 64, 4096, 65536),         STREAM("mono-b64-t65536", 1, 64, 65536, 16384),
    STREAM("mono-b256-t4096", 1, 256, 4096, 65536),       STREAM("mono-b256-t65536", 1, 256, 65536, 32768),
    STREAM("mono-b1024-t1024", 1, 1024, 1024, 262144),    STREAM("mono-b1024-t4096", 1, 1024, 4096, 262144),
    STREAM("mono-b1024-t65536", 1, 1024, 65536, 131072),  STREAM("mono-b4096-t4096", 1, 4096, 4096, 262144),
    STREAM("matrix-2x2-b256-t4096", 2, 256, 4096, 32768), STREAM("matrix-4x4-b1024-t4096", 4, 1024, 4096, 32768),
};

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .threads = 1, .open = ours_stream},
    {.name = "cpu/overlap-add", .engine = "cpu/overlap-add", .threads = 1, .open = ours_stream},
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .threads = 1, .open = ours_stream},
    {.name = "auto", .threads = 1, .open = ours_stream},
    {.name = "liquid-dsp-fftfilt", .threads = 1, .open = peer_liquid_fft},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_stream",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .per_call = true,
        .repetitions = 9,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
