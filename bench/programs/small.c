// SPDX-License-Identifier: MIT
// Small work: a one-shot call of short signals, beside numpy.convolve, and planning such a signal
// or a layer in all directions, in a process that has done so before. An item is one call or one
// plan: a pass repeats it and takes the mean.
#include "peers/peers.h"
#include "runner/runner.h"
#include "workloads/layer.h"

#include <math.h>
#include <stdlib.h>

enum { SMALL_CALLS = 1000 };

static double convolve_pass(void *state, const struct workload *w, double *calls)
{
    enum partita_status status = PARTITA_OK;
    (void)state;
    (void)calls;
    const double start = bench_now();
    for (int i = 0; i < SMALL_CALLS && status == PARTITA_OK; i++)
        status = partita_convolve(w->signal, w->y, w->x, w->n_frames, w->h, w->n_taps, NULL, NULL);
    const double seconds = (bench_now() - start) / SMALL_CALLS;
    return status == PARTITA_OK ? seconds * (double)w->n_frames : NAN;
}

static void nothing_to_close(void *state)
{
    (void)state;
}

static bool convolve_open(struct contender *contender, const struct workload *w)
{
    if (w->layer != NULL) return false;
    contender->pass = convolve_pass;
    contender->close = nothing_to_close;
    contender->gate = gate_direct(w);
    return true;
}

static double plan_pass(void *state, const struct workload *w, double *calls)
{
    enum partita_status status = PARTITA_OK;
    (void)calls;
    const double start = bench_now();
    for (int i = 0; i < SMALL_CALLS && status == PARTITA_OK; i++) {
        struct partita_plan *plan = NULL;
        status = partita_plan_create(state, NULL, &plan);
        partita_plan_destroy(plan);
    }
    const double seconds = (bench_now() - start) / SMALL_CALLS;
    return status == PARTITA_OK ? seconds * (double)(w->timed * w->in_channels) : NAN;
}

static bool plan_open(struct contender *contender, const struct workload *w)
{
    struct partita_problem *problem = bench_allocate(sizeof *problem);
    *problem = w->layer != NULL ? layer_problem(w) : workload_problem(w);
    contender->state = problem;
    contender->pass = plan_pass;
    contender->close = free;
    return true;
}

#define SMALL(type_, name_, n_, m_)                                                                \
    {                                                                                              \
        .name = "small-" name_ "-" #n_ "-x-" #m_, .signal = PARTITA_##type_,                       \
        .taps = PARTITA_##type_, .n_frames = n_, .n_taps = m_                                      \
    }
#define SMALL_SIZES(type_, name_)                                                                  \
    SMALL(type_, name_, 10, 3), SMALL(type_, name_, 64, 64), SMALL(type_, name_, 1000, 32)

static const struct layer layer = {{.op = PARTITA_CORRELATE,
                                    .rank = 2,
                                    .in_channels = 64,
                                    .out_channels = 64,
                                    .kernel = {3, 3},
                                    .size = {56, 56},
                                    .pad_begin = {1, 1},
                                    .pad_end = {1, 1}},
                                   PARTITA_FORWARD};

static const struct workload cases[] = {
    SMALL_SIZES(F32, "f32"),
    SMALL_SIZES(F64, "f64"),
    SMALL_SIZES(CF32, "cf32"),
    SMALL_SIZES(CF64, "cf64"),
    {.name = "small-layer-3x3-64-56x56", .layer = &layer},
};

static const struct contender contenders[] = {
    {.name = "one-shot", .threads = 1, .open = convolve_open},
    {.name = "numpy", .threads = 1, .open = peer_numpy_convolve},
    {.name = "plan", .threads = 1, .open = plan_open},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_small",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .repetitions = 15,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
