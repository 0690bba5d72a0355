// SPDX-License-Identifier: MIT
// Streams: cost of a sample and flatness of the load. Every call takes one block and returns its
// result without added delay, except in the cases called delayed, which allow one block. Filters up
// to a minute long are compared with engines made for them and with textbook methods, after their
// history has filled.
#include "ours/ours.h"
#include "peers/peers.h"

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

static const struct workload cases[] = {
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

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .threads = 1, .open = ours_stream},
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .threads = 1, .open = ours_stream},
    {.name = "cpu/partitioned", .engine = "cpu/partitioned", .threads = 1, .open = ours_stream},
    {.name = "cpu/partitioned",
     .engine = "cpu/partitioned",
     .threads = 2,
     .open = ours_stream_parallel},
    {.name = "cpu/partitioned-whole",
     .engine = "cpu/partitioned",
     .threads = 1,
     .open = ours_stream_whole},
    {.name = "cpu/partitioned-swap",
     .engine = "cpu/partitioned",
     .threads = 1,
     .open = ours_stream_swap},
    {.name = "cpu/partitioned-16-bit",
     .engine = "cpu/partitioned",
     .threads = 1,
     .error_budget = 1e-4,
     .open = ours_stream_i16},
    {.name = "cpu/partitioned-16-bit",
     .engine = "cpu/partitioned",
     .threads = 2,
     .error_budget = 1e-4,
     .open = ours_stream_i16},
    {.name = "cuda/partitioned", .engine = "cuda/partitioned", .threads = 1, .open = ours_stream},
    {.name = "auto", .threads = 1, .open = ours_stream},
    {.name = "zita-convolver", .threads = 1, .open = peer_zita},
    {.name = "zita-convolver", .threads = 2, .open = peer_zita},
    {.name = "ffmpeg-afir", .threads = 1, .open = peer_afir},
    {.name = "textbook-uniform", .threads = 1, .open = peer_textbook_uniform},
    {.name = "textbook-two-stage", .threads = 1, .open = peer_textbook_two_stage},
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
        .prepare = ours_calibrate,
        .per_call = true,
        .repetitions = 9,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
