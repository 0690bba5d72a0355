// SPDX-License-Identifier: MIT
// A stream set up to run, see stream_rig.h.

#include "stream_rig.h"

enum { MAX_CHANNELS = 8 };

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

void run_open(struct run *run, const struct stream_case *c, const struct partita_problem *problem, size_t n_frames,
              struct random *random)
{
    *run = (struct run){.problem = *problem, .n_frames = n_frames};
    run->problem.signal = c->types->signal;
    run->problem.taps = c->types->taps;
    if (!problem->latency) run->problem.latency = PARTITA_UNBOUNDED;
    run->in = or_one(problem->in_channels);
    run->out = or_one(problem->out_channels);
    run->stride = or_one(problem->stride[0]);
    run->sample_bytes = partita_type_size(run->problem.signal);
    run->n_outputs = (n_frames + run->stride - 1) / run->stride;
    size_t n_taps = run->out * (run->in / or_one(problem->groups)) * or_one(problem->kernel[0]);
    run->x = malloc(run->in * n_frames * run->sample_bytes);
    run->w = malloc(n_taps * partita_type_size(run->problem.taps));
    random_samples(random, run->problem.signal, run->x, run->in * n_frames);
    random_samples(random, run->problem.taps, run->w, n_taps);
    assert_ok(partita_plan_create(&run->problem, &(struct partita_options){.engine = c->engine}, &run->plan));
    assert_ok(partita_filter_create(run->plan, run->w, &run->filter));
    assert_ok(partita_stream_open(run->plan, run->filter, &run->stream));
}

void run_close(struct run *run)
{
    partita_stream_close(run->stream);
    partita_filter_destroy(run->filter);
    partita_plan_destroy(run->plan);
    free(run->x);
    free(run->w);
}

size_t cut_next(const struct cut *cut, struct random *random, size_t left)
{
    size_t n = cut->random ? random_below(random, cut->most + 1) : cut->most;
    return n < left ? n : left;
}

void run_feed(struct run *run, struct partita_stream *stream, void *y, const struct cut *cut, struct random *random)
{
    size_t taken = 0, given = 0;
    while (taken < run->n_frames) {
        size_t n = cut_next(cut, random, run->n_frames - taken);
        const void *x_at[MAX_CHANNELS];
        void *y_at[MAX_CHANNELS];
        for (size_t c = 0; c < run->in; c++) x_at[c] = (char *)run->x + (c * run->n_frames + taken) * run->sample_bytes;
        for (size_t c = 0; c < run->out; c++) y_at[c] = (char *)y + (c * run->n_outputs + given) * run->sample_bytes;
        size_t due = (taken + n + run->stride - 1) / run->stride - given;
        assert_int_equal(partita_stream_output_frames(stream, n), due);
        partita_stream_process(stream, y_at, x_at, n);
        taken += n;
        given += due;
    }
}

const struct cut cut_whole = {"whole", SIZE_MAX, false};

void *run_output(const struct run *run)
{
    return guarded_alloc(run->out * run->n_outputs * run->sample_bytes, type_is_f64(run->problem.signal) ? 8 : 4);
}

size_t run_output_bytes(const struct run *run)
{
    return run->out * run->n_outputs * run->sample_bytes;
}

void run_check(const struct run *run, const void *y)
{
    size_t late = partita_plan_latency(run->plan) / run->stride, n = run->n_outputs;
    double complex *expected = calloc(run->out * n, sizeof *expected), *now = malloc(run->out * n * sizeof *now);
    reference_stream(&run->problem, run->n_frames, now, run->x, run->w);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = late; p < n; p++) expected[k * n + p] = now[k * n + p - late];
    }
    struct partita_problem sized = run->problem;
    double gate = plan_gate(run->plan, &sized, run->out * n);
    double error = error_against(run->problem.signal, y, expected, run->out * n, typical_output(&sized));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = 0; p < late && p < n; p++) {
            assert_true(reference_sample(run->problem.signal, y, k * n + p) == 0);
        }
    }
    free(expected);
    free(now);
}

// Long enough for several blocks of any size the planner may like, and for a history kept in a long line to come round.
static size_t enough_frames(const struct partita_plan *plan)
{
    return 3 * (plan->choice.transform + plan->choice.hop) + 8000;
}

size_t run_frames(const struct stream_case *c, const struct partita_problem *problem)
{
    struct run probe;
    struct random random = random_start("probe");
    run_open(&probe, c, problem, 1, &random);
    size_t n = enough_frames(probe.plan);
    run_close(&probe);
    return n;
}
