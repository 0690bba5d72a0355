// SPDX-License-Identifier: MIT
// What the planner chooses for the cases of the benchmarks, as CSV, with the built-in cost model of
// an instruction set and a last cache of 32 MiB on whatever machine this runs; no case is run.
// Seconds are those of a whole call or of a frame of a stream. White-box: an estimate's digits and
// sizes are not public. tests/test_choices.py compares them with tests/plan/choices-*.csv. Threads
// change no choice.
//   bench_choices c|avx2|avx512|avx512bf16|neon
// avx512bf16 is AVX-512 with products of pairs of bf16, which serve problems of bf16 alone.
#include <stdio.h>
#include <string.h>

#include "core/problem.h"
#include "planner/planner.h"
#include "workloads/network.h"

static struct cost_model model;

// As bench_layer, bench_network, bench_signal, bench_stream and bench_fir plan it.
static void print_choice(const char *name, const struct partita_problem *problem,
                         enum partita_direction direction, unsigned filter_uses)
{
    const struct partita_options options = {.filter_uses = filter_uses};
    if (model.pairs && problem->signal != PARTITA_BF16) return;
    struct partita_plan plan = {.engines = cpu_engines, .direction = direction, .isa = model.isa};
    struct estimate choice;
    const struct engine *engine = NULL;
    if (problem_canonical(problem, &plan.log, &plan.shape) == PARTITA_OK)
        engine = estimate_unbounded(&plan, &options, &model, &choice);
    printf("%s,%s,", name, engine ? engine->name : "none");
    if (!engine) {
        printf(",,,\n");
        return;
    }
    if (!engine->variants) printf("%d", choice.variant);
    else if (choice.variant >= 0) printf("%s", engine->variants[choice.variant]);
    printf(",%zu,%zu,%.4g\n", choice.transform, choice.hop, choice.seconds);
}

static void print_workloads(const struct workload *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct partita_problem problem = workload_planned(&cases[i]);
        print_choice(cases[i].name, &problem,
                     cases[i].layer ? cases[i].layer->direction : PARTITA_FORWARD, 0);
    }
}

static void print_layers(void)
{
    size_t n, picked;
    const struct layer_case *layers = layer_cases(&n), *picks = layer_pick_cases(&picked);
    for (size_t i = 0; i < n; i++) print_workloads(&layers[i].workload, 1);
    // Channels first are cases of the other list.
    for (size_t i = 0; i < picked; i++)
        if (picks[i].layer.problem.channels_last) print_workloads(&picks[i].workload, 1);
}

// The rows of all networks, which are cases of their own, in all their directions.
static void print_networks(void)
{
    size_t n;
    const struct workload *cases = network_cases(&n);
    for (size_t i = 0; i < n; i++) {
        struct workload w = cases[i];
        if (!strchr(w.name, ':')) continue;
        network_list(&w, false);
        for (size_t k = 0; k < w.n_parts; k++) {
            const struct network_part *part = &w.parts[k];
            char name[96];
            size_t d = 0;
            while (direction_names[d].direction != part->layer.direction) d++;
            snprintf(name, sizeof name, "%s-%s", w.name, direction_names[d].name);
            const struct partita_problem problem = workload_planned(&part->workload);
            print_choice(name, &problem, part->layer.direction, w.network->training);
        }
    }
}

int main(int argc, char **argv)
{
    const bool pairs = argc == 2 && !strcmp(argv[1], "avx512bf16");
    enum cpu_isa isa = pairs ? CPU_AVX512 : CPU_C;
    while (argc == 2 && !pairs && isa < CPU_ISAS && strcmp(cpu_isa_name(isa), argv[1]) != 0) isa++;
    if (argc != 2 || isa == CPU_ISAS) {
        fprintf(stderr, "usage: %s c|avx2|avx512|avx512bf16|neon\n", argv[0]);
        return 2;
    }
    cost_model_default(&model, isa);
    model.pairs = pairs;
    model.shared_bytes = (size_t)32 << 20;
    printf("case,engine,variant,transform,hop,seconds\n");
    size_t n;
    print_layers();
    print_networks();
    const struct workload *signals = signal_cases(&n);
    print_workloads(signals, n);
    const struct workload *streams = stream_cases(&n);
    print_workloads(streams, n);
    const struct workload *filters = fir_cases(&n);
    print_workloads(filters, n);
    return 0;
}
