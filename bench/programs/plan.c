// SPDX-License-Identifier: MIT
// Plan creation at estimate effort in a new process, in which neither the library nor FFTW has
// planned anything before. An item is one plan.
#include "runner/runner.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static double plan_create_seconds(const struct partita_problem *problem)
{
    struct partita_plan *plan = NULL;
    double start = bench_now();
    enum partita_status status = partita_plan_create(problem, NULL, &plan);
    double seconds = bench_now() - start;
    partita_plan_destroy(plan);
    return status == PARTITA_OK ? seconds : NAN;
}

static double plan_pass(void *state, const struct workload *w, double *calls)
{
    int ends[2];
    double seconds = NAN;
    (void)calls;
    if (pipe(ends) != 0) return NAN;
    pid_t child = fork();
    if (child == 0) {
        double measured = plan_create_seconds(state);
        _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &seconds, sizeof seconds) != sizeof seconds) seconds = NAN;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    return seconds * (double)w->n_frames;
}

static bool plan_open(struct contender *contender, const struct workload *w)
{
    struct partita_problem *problem = bench_allocate(sizeof *problem);
    *problem = (struct partita_problem){.kernel = {w->n_taps},
                                        .signal = w->signal,
                                        .taps = w->taps,
                                        .size = {w->block > 0 ? PARTITA_UNBOUNDED : w->n_frames},
                                        .block = w->block,
                                        .latency = w->latency};
    if (w->block == 0) problem->pad_begin[0] = problem->pad_end[0] = (ptrdiff_t)w->n_taps - 1;
    contender->state = problem;
    contender->pass = plan_pass;
    contender->close = free;
    return true;
}

#define STREAM(name_, type_, n_taps_)                                                              \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_taps = n_taps_,      \
        .block = 1024, .latency = 1024, .n_frames = 1024                                           \
    }
#define SIGNAL(name_, type_, n_taps_)                                                              \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_taps = n_taps_,      \
        .n_frames = 1000000                                                                        \
    }

static const struct workload cases[] = {
    STREAM("plan-stream-f32-t64", F32, 64),         STREAM("plan-stream-f32-t4096", F32, 4096),
    STREAM("plan-stream-f32-t65536", F32, 65536),   STREAM("plan-stream-f32-t60000", F32, 60000),
    STREAM("plan-stream-cf64-t65536", CF64, 65536), SIGNAL("plan-signal-f32-t1024", F32, 1024),
    SIGNAL("plan-signal-f32-t65536", F32, 65536),   SIGNAL("plan-signal-f32-t60000", F32, 60000),
    SIGNAL("plan-signal-cf64-t65536", CF64, 65536),
};

static const struct contender contenders[] = {{.name = "auto", .threads = 1, .open = plan_open}};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_plan",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .repetitions = 9,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
