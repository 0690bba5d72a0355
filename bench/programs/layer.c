// SPDX-License-Identifier: MIT
// Layers in all three directions: what published comparisons of convolution algorithms measured, by
// name. The item is a multiply-add of the direct sums, whatever an algorithm does instead:
// effective GFLOP/s are 2 / ns_per_item.
//   --pick      runs only our engines, on all cases or those of --case, and reports where the
//   planner's choice is slow
//   --weights   prints the cases' multiply-adds, and how often their networks have them, as CSV and
//   runs nothing
#include "workloads/layer.h"

#include <string.h>

#include "ours/ours.h"
#include "peers/peers.h"

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .threads = 1, .open = ours_layer},
    {.name = "cpu/gemm", .engine = "cpu/gemm", .threads = 1, .open = ours_layer},
    {.name = "cpu/winograd", .engine = "cpu/winograd", .threads = 1, .open = ours_layer},
    {.name = "cpu/tiles", .engine = "cpu/tiles", .threads = 1, .open = ours_layer},
    {.name = "cpu/depthwise", .engine = "cpu/depthwise", .threads = 1, .open = ours_layer},
    // Along one axis only.
    {.name = "cpu/overlap-save", .engine = "cpu/overlap-save", .threads = 1, .open = ours_layer},
    {.name = "cpu/blocks", .engine = "cpu/blocks", .threads = 1, .open = ours_layer},
    {.name = "auto", .open = ours_layer},
    // The peers come last.
    {.name = "onednn", .open = peer_onednn},
    {.name = "onednn+reorder", .open = peer_onednn_reorder},
    {.name = "onednn-winograd", .open = peer_onednn_winograd},
    {.name = "openblas", .threads = 1, .open = peer_openblas},
    {.name = "fma-peak", .threads = 1, .open = peer_fma_peak},
};
enum { N_CONTENDERS = sizeof contenders / sizeof *contenders, N_OURS = 8 };

// Of the cases reported so far.
static struct {
    size_t n, slow;
} picks;

// Counts a case as slow if the planner's choice has less than 0.9 of the speed of our fastest
// engine. Minimum times exclude noise, which the planner cannot foresee.
static void report_pick(const struct workload *w, const struct result *results, size_t n)
{
    const struct result *best = NULL, *pick = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(results[i].name, "auto") == 0) pick = &results[i];
        else if (best == NULL || results[i].min_ns < best->min_ns) best = &results[i];
    }
    if (best == NULL || pick == NULL) return;
    picks.n++;
    const double speed = best->min_ns / pick->min_ns;
    if (speed >= 0.9) return;
    picks.slow++;
    fprintf(stderr, "%s: auto has %.2f of the speed of %s\n", w->name, speed, best->name);
}

static int run_picks(int argc, char **argv, struct suite suite)
{
    struct contender ours[N_OURS]; // with as many threads as the planner's choice
    memcpy(ours, contenders, sizeof ours);
    for (size_t i = 0; i < N_OURS; i++) ours[i].threads = 0;
    suite.contenders = ours;
    suite.n_contenders = N_OURS;
    suite.thread_counts[1] = 0;
    suite.report = report_pick;
    const int status = bench_main(argc, argv, &suite);
    if (picks.n > 0)
        fprintf(stderr, "auto has 0.9 of the speed of the fastest engine in %zu of %zu cases\n",
                picks.n - picks.slow, picks.n);
    return status == 0 && picks.slow > 0 ? 1 : status;
}

static void print_weights(const struct layer_case *cases, size_t n)
{
    printf("case,multiply_adds,network,depth\n");
    for (size_t i = 0; i < n; i++) {
        const struct layer_sizes s = layer_sizes(&cases[i].layer.problem);
        printf("%s,%zu,%s,%u\n", cases[i].name, layer_terms(&s), cases[i].network, cases[i].depth);
    }
}

int main(int argc, char **argv)
{
    size_t n;
    const struct layer_case *cases = layer_cases(&n);
    struct workload *workloads = bench_allocate(n * sizeof *workloads);
    for (size_t i = 0; i < n; i++) workloads[i] = cases[i].workload;
    const struct suite suite = {
        .program = "bench_layer",
        .cases = workloads,
        .n_cases = n,
        .contenders = contenders,
        .n_contenders = N_CONTENDERS,
        .prepare = ours_calibrate,
        .max_pass = 0.4,
        .repetitions = 5,
        .thread_counts = {1, 2},
    };
    if (argc == 2 && strcmp(argv[1], "--weights") == 0) {
        print_weights(cases, n);
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "--pick") != 0) return bench_main(argc, argv, &suite);
    argv[1] = argv[0];
    return run_picks(argc - 1, argv + 1, suite);
}
