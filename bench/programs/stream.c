// SPDX-License-Identifier: MIT
// Streams: cost of a sample and flatness of the load. Every call takes one block and returns its
// result without added delay, except in the cases called delayed, which allow one block. Filters up
// to a minute long are compared with engines made for them and with textbook methods, after their
// history has filled.
#include "ours/ours.h"
#include "peers/peers.h"

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
    {.name = "cpu/partitioned-morph",
     .engine = "cpu/partitioned",
     .threads = 1,
     .open = ours_stream_morph},
    {.name = "streams-mixed", .engine = "cpu/partitioned", .threads = 1, .open = ours_stream_mixed},
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
    size_t n;
    const struct workload *cases = stream_cases(&n);
    const struct suite suite = {
        .program = "bench_stream",
        .cases = cases,
        .n_cases = n,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .per_call = true,
        .repetitions = 9,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
