// SPDX-License-Identifier: MIT
// Layers, signals and streams on a CUDA device, arrays of the first two resident there, against transforms by cuFFT and
// two passes of a separable filter on the same device, and for streams this machine's processors. An item is a
// multiply-add of a layer's direct sums, else a sample.
//   --tiny       sizes that a stand-in for a device can run; no figures for anybody
//   --describe   instead of running: the cases as CSV
//   --engines    instead of running: our engines, and whether they are there, as CSV
#include "gpu_cases.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE "cuda:0"

static bool ours(struct contender *contender, const struct workload *w)
{
    return w->block > 0 ? ours_stream_whole(contender, w) : ours_resident(contender, w);
}

static bool ours_cpu(struct contender *contender, const struct workload *w)
{
    return w->block > 0 && ours_stream_whole(contender, w);
}

#define OURS(name_)                                                                                                    \
    {                                                                                                                  \
        .name = name_, .engine = name_, .device = DEVICE, .threads = 1, .open = ours                                   \
    }

static const struct contender contenders[] = {
    OURS("cuda/direct"),
    OURS("cuda/direct-plain"),
    OURS("cuda/direct-constant"),
    OURS("cuda/direct-halo"),
    OURS("cuda/direct-cached"),
    OURS("cuda/separable"),
    OURS("cuda/winograd"),
    OURS("cuda/tiles"),
    OURS("cuda/overlap-save"),
    OURS("cuda/overlap-add"),
    OURS("cuda/blocks"),
    OURS("cuda/partitioned"),
    {.name = "auto", .device = DEVICE, .threads = 1, .open = ours},
    {.name = "cpu/partitioned", .engine = "cpu/partitioned", .threads = 1, .open = ours_cpu},
    {.name = "cufft-complex", .threads = 1, .open = peer_cufft_complex},
    {.name = "cufft-real", .threads = 1, .open = peer_cufft_real},
    {.name = "cufft-blocks", .threads = 1, .open = peer_cufft_blocks},
    {.name = "two-passes", .threads = 1, .open = peer_two_passes},
};
enum { N_CONTENDERS = sizeof contenders / sizeof *contenders };

// What a plan that names the engine says: the device's engines are its module's to know.
static const char *state_of(const char *engine)
{
    static char text[1 << 14];
    const struct partita_problem problem = {.kernel = {3}, .size = {50}};
    struct partita_plan *plan;
    char name[40];
    if (partita_plan_create(&problem, &(struct partita_options){.device = DEVICE}, &plan) != PARTITA_OK)
        return "no device";
    partita_plan_explain(plan, text, sizeof text);
    partita_plan_destroy(plan);
    snprintf(name, sizeof name, " %s ", engine);
    return strstr(text, name) ? "there" : "not there";
}

static void print_engines(void)
{
    printf("engine,state\n");
    for (size_t i = 0; i < N_CONTENDERS; i++)
        if (contenders[i].device && contenders[i].engine)
            printf("%s,%s\n", contenders[i].engine, state_of(contenders[i].engine));
}

int main(int argc, char **argv)
{
    const bool tiny = argc > 1 && strcmp(argv[1], "--tiny") == 0;
    const char *first = argc > 1 + tiny ? argv[1 + tiny] : "";
    struct suite suite = {.program = "bench_gpu",
                          .contenders = contenders,
                          .n_contenders = N_CONTENDERS,
                          .cold = tiny,
                          .per_call = true,
                          .raw = true,
                          .repetitions = 7,
                          .patience = 1,
                          .thread_counts = {1, 0}};
    suite.cases = gpu_cases(tiny, &suite.n_cases);
    if (strcmp(first, "--describe") == 0) gpu_cases_print(suite.cases, suite.n_cases);
    else if (strcmp(first, "--engines") == 0) print_engines();
    else return bench_main(argc - tiny, argv + tiny, &suite);
    return 0;
}
