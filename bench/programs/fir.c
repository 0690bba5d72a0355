// SPDX-License-Identifier: MIT
// Direct FIR filters on streams in blocks of 1024 frames, one thread: every type, a decimator and
// resamplers, against liquid-dsp and the peak of fused multiply-adds.
#include "ours/ours.h"
#include "peers/peers.h"

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .threads = 1, .open = ours_stream},
    {.name = "auto", .threads = 1, .open = ours_stream},
    {.name = "liquid-dsp", .threads = 1, .open = peer_liquid_fir},
    {.name = "fma-peak", .threads = 1, .open = peer_fma_peak},
};

int main(int argc, char **argv)
{
    size_t n;
    const struct workload *cases = fir_cases(&n);
    const struct suite suite = {
        .program = "bench_fir",
        .cases = cases,
        .n_cases = n,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .prepare = ours_calibrate,
        .repetitions = 21,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
