// SPDX-License-Identifier: MIT
// Memory of CaffeNet's layers with 500 images, as CSV; nothing is run. Columns are bytes: the
// arrays of whole planes, real and complex, for taps, inputs (bottom) and outputs (top), as the
// tables 3.2 and 3.4 of P. Harzig, Implementation of Frequency Domain Convolution for the
// Caffe-Framework (2016), have them, and their sums out of place and in place; then the engine that
// the planner chooses on one thread, with its filter, its workspace and its operations, and those
// of cpu/tiles.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/layer.h"

enum { BATCH = 500 };

static void *count_bytes(void *total, size_t bytes)
{
    *(size_t *)total += bytes;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void release_bytes(void *total, void *memory)
{
    (void)total;
    free(memory);
}

// The operations of a call, from the plan's explanation.
static double plan_operations(const struct partita_plan *plan)
{
    char text[16384];
    partita_plan_explain(plan, text, sizeof text);
    const char *end = strstr(text, " flops"), *at = end;
    while (at && at > text && at[-1] != ' ') at--;
    return at ? strtod(at, NULL) : 0;
}

// Prints engine, filter, workspace and operations of a plan.
static void print_plan(const struct partita_problem *problem, enum partita_direction direction,
                       const char *engine)
{
    size_t bytes = 0;
    const struct partita_options options = {.threads = 1,
                                            .directions = direction,
                                            .engine = engine,
                                            .log = {.line = NULL},
                                            .allocator = {count_bytes, release_bytes, &bytes}};
    struct partita_plan *plan;
    struct partita_filter *filter = NULL;
    if (partita_plan_create(problem, &options, &plan) != PARTITA_OK) {
        printf(engine ? ",,," : ",,,,");
        return;
    }
    void *taps = bench_allocate(partita_plan_taps_count(plan) * sizeof(float));
    bytes = 0;
    if (direction != PARTITA_BACKWARD_WEIGHT) partita_filter_create(plan, taps, &filter);
    if (!engine) printf(",%s", partita_plan_engine(plan, direction));
    printf(",%zu,%zu,%.4g", bytes, partita_plan_workspace(plan, direction), plan_operations(plan));
    free(taps);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void print_layer(const struct layer_case *c)
{
    struct partita_problem problem = c->layer.problem;
    problem.batch = BATCH;
    const struct layer_sizes s = layer_sizes(&problem);
    const struct layer_axis *axis = s.axis;
    const size_t pads = 2 * (size_t)axis->pad, reach = axis->kernel - 1;
    const size_t edge = (axis->size + (pads > reach ? pads : reach) + 15) / 16 * 16; // (3.2)
    const size_t real = edge * edge * 4, bins = edge * (edge / 2 + 1) * 8;
    const size_t planes[] = {s.out * s.group_in, s.batch * s.in, s.batch * s.out};
    size_t reals = 0, complexes = 0;
    printf("%c,%s,%zu", c->name[strlen("caffenet-")], strrchr(c->name, '0') + 2, edge);
    for (int i = 0; i < 3; i++) {
        printf(",%zu,%zu", planes[i] * real, planes[i] * bins);
        reals += planes[i] * real, complexes += planes[i] * bins;
    }
    printf(",%zu,%zu", reals + complexes, complexes);
    print_plan(&problem, c->layer.direction, NULL);
    print_plan(&problem, c->layer.direction, "cpu/tiles");
    printf("\n");
}

int main(void)
{
    size_t n;
    const struct layer_case *cases = layer_cases(&n);
    printf(
        "layer,direction,fft,ws_real,ws_complex,bs_real,bs_complex,ts_real,ts_complex,out_of_place,"
        "in_place,engine,filter,workspace,operations,"
        "tiles_filter,tiles_workspace,tiles_operations\n");
    for (size_t i = 0; i < n; i++)
        if (!strncmp(cases[i].name, "caffenet-", 9) && strstr(cases[i].name, "-n400-"))
            print_layer(&cases[i]);
    return 0;
}
