// SPDX-License-Identifier: MIT
// Layers in all three directions: what published comparisons of convolution algorithms measured, by
// name. The item is a multiply-add of the direct sums, whatever an algorithm does instead:
// effective GFLOP/s are 2 / ns_per_item.
//   --pick      runs only our engines, on one thread, on every layer with 1, 16 and 64 images and
//   channels first and last, or on those of --case, and reports where the planner's choice is slow
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
    {.name = "pw-simple", .threads = 1, .open = peer_pw_simple},
    {.name = "fma-peak", .threads = 1, .open = peer_fma_peak},
};
enum { N_CONTENDERS = sizeof contenders / sizeof *contenders, N_ENGINES = 7 };

// Direct sums of more multiply-adds would take seconds, and are not compared with.
static const double MAX_PICK_TERMS = 2e11;

// Of the cases reported so far: those whose choice is within 5 % and within 15 % of the fastest
// engine, and the one that is furthest behind.
static struct {
    size_t n, near, fair;
    double worst;
    char worst_case[48];
} picks;

// Compares the engine that the planner chooses with the fastest one. Minimum times exclude noise,
// which the planner cannot foresee.
static void report_pick(const struct workload *w, const struct result *results, size_t n)
{
    const char *choice = ours_layer_choice(w, 1);
    const struct result *best = NULL, *pick = NULL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(results[i].name, choice) == 0) pick = &results[i];
        if (best == NULL || results[i].min_ns < best->min_ns) best = &results[i];
    }
    if (best == NULL || pick == NULL) return;
    const double behind = pick->min_ns / best->min_ns;
    picks.n++;
    picks.near += behind <= 1.05;
    picks.fair += behind <= 1.15;
    if (behind > 1.05)
        fprintf(stderr, "%s: %s takes %.2f times as long as %s\n", w->name, pick->name, behind,
                best->name);
    if (behind <= picks.worst) return;
    picks.worst = behind;
    snprintf(picks.worst_case, sizeof picks.worst_case, "%s", w->name);
}

// Without a check: tests compare the engines, and the oracle would take longer than they do.
static bool open_pick(struct contender *contender, const struct workload *w)
{
    const struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    const bool sums =
        strcmp(contender->name, "cpu/direct") == 0 || strcmp(contender->name, "cpu/gemm") == 0;
    if (sums && (double)layer_terms(&s) > MAX_PICK_TERMS) return false;
    if (!ours_layer(contender, w)) return false;
    contender->gate = 0;
    return true;
}

static int run_picks(int argc, char **argv, struct suite suite)
{
    struct contender engines[N_ENGINES];
    size_t n;
    const struct layer_case *cases = layer_pick_cases(&n);
    struct workload *workloads = bench_allocate(n * sizeof *workloads);
    for (size_t i = 0; i < n; i++) workloads[i] = cases[i].workload;
    memcpy(engines, contenders, sizeof engines);
    for (size_t i = 0; i < N_ENGINES; i++) engines[i].open = open_pick;
    suite.cases = workloads;
    suite.n_cases = n;
    suite.contenders = engines;
    suite.n_contenders = N_ENGINES;
    suite.max_behind = 1.6;
    suite.warm_up = 1e-6; // a second pass, in memory that has been touched
    suite.report = report_pick;
    const int status = bench_main(argc, argv, &suite);
    if (picks.n > 0)
        fprintf(stderr,
                "%zu cases: the choice is within 5 %% of the fastest engine in %.1f %%, within 15 "
                "%% in %.1f %%; at worst %.2f times its time (%s)\n",
                picks.n, 100 * (double)picks.near / (double)picks.n,
                100 * (double)picks.fair / (double)picks.n, picks.worst, picks.worst_case);
    return status == 0 && picks.fair < picks.n ? 1 : status;
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
