// SPDX-License-Identifier: MIT
// A stream set up to run, see stream_rig.h.

#include "support/stream_rig.h"

#include "support/layer_rig.h"

enum { MAX_CHANNELS = 8 };

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

const char *const history_engines[N_HISTORY_ENGINES] = {"cpu/direct", "cpu/overlap-save",
                                                        "cpu/partitioned", "cuda/partitioned"};

const char *partitioned_engine(void)
{
    return layer_engine_is_here("cuda/partitioned") ? "cuda/partitioned" : "cpu/partitioned";
}

// Of f32, cf64 and cf32-f32 which, else -1.
static int stand_in_types(size_t types)
{
    return types == 0                        ? 0
           : types == 3 && !layer_is_brief() ? 1
           : types == 4 && !layer_is_brief() ? 2
                                             : -1;
}

bool rig_takes(const char *engine, size_t types)
{
    return layer_engine_is_here(engine) && (!layer_on_stand_in() || stand_in_types(types) >= 0);
}

bool rig_takes_problem(size_t types, size_t p)
{
    if (!layer_on_stand_in()) return !layer_is_brief() || (p + types) % 3 == 0;
    return p % 3 == (size_t)stand_in_types(types) && (!layer_is_brief() || p % 2 == 0);
}

void engine_on_its_device(struct partita_options *options)
{
    if (options->engine && !strncmp(options->engine, "cuda/", 5)) options->device = "cuda:0";
}

void run_open_exactly(struct run *run, const struct stream_case *c,
                      const struct partita_problem *problem, const struct partita_options *options,
                      size_t n_frames, struct random *random)
{
    *run = (struct run){.problem = *problem, .n_frames = n_frames};
    run->problem.signal = c->types->signal;
    run->problem.taps = c->types->taps;
    run->in = or_one(problem->in_channels);
    run->out = or_one(problem->out_channels);
    run->stride = or_one(problem->stride[0]);
    run->sample_bytes = partita_type_size(run->problem.signal);
    run->n_outputs = (n_frames + run->stride - 1) / run->stride;
    run->n_taps = run->out * (run->in / or_one(problem->groups)) * or_one(problem->kernel[0]);
    run->x = malloc(run->in * n_frames * run->sample_bytes);
    run->w = malloc(run->n_taps * partita_type_size(run->problem.taps));
    random_samples(random, run->problem.signal, run->x, run->in * n_frames);
    random_samples(random, run->problem.taps, run->w, run->n_taps);
    struct partita_options forced = options ? *options : (struct partita_options){.engine = NULL};
    forced.engine = c->engine;
    engine_on_its_device(&forced);
    assert_ok(partita_plan_create(&run->problem, &forced, &run->plan));
    assert_ok(partita_filter_create(run->plan, run->w, &run->filter));
    assert_ok(partita_stream_open(run->plan, run->filter, &run->stream));
}

void run_open(struct run *run, const struct stream_case *c, const struct partita_problem *problem,
              size_t n_frames, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (!relaxed.latency) relaxed.latency = PARTITA_UNBOUNDED;
    run_open_exactly(run, c, &relaxed, NULL, n_frames, random);
}

void run_close(struct run *run)
{
    partita_stream_close(run->stream);
    partita_filter_destroy(run->filter);
    partita_plan_destroy(run->plan);
    free(run->x);
    free(run->w);
}

void run_take_filter(struct run *run, struct partita_filter *filter)
{
    partita_stream_close(run->stream);
    partita_filter_destroy(run->filter);
    run->filter = filter;
    assert_ok(partita_stream_open(run->plan, run->filter, &run->stream));
}

void run_take_taps(struct run *run)
{
    struct partita_filter *filter;
    assert_ok(partita_filter_create(run->plan, run->w, &filter));
    run_take_filter(run, filter);
}

size_t cut_next(const struct cut *cut, struct random *random, size_t left)
{
    size_t n = cut->random ? random_below(random, cut->most + 1) : cut->most;
    return n < left ? n : left;
}

void run_feed_part(const struct run *run, struct partita_stream *stream, void *y, size_t first,
                   size_t end, const struct cut *cut, struct random *random)
{
    size_t taken = first, given = (first + run->stride - 1) / run->stride;
    const size_t unit = run->problem.whole_blocks ? run->problem.block : 1;
    while (taken < end) {
        size_t n = cut_next(cut, random, end - taken);
        if (n < end - taken) n -= n % unit;
        const void *x_at[MAX_CHANNELS];
        void *y_at[MAX_CHANNELS];
        for (size_t c = 0; c < run->in; c++)
            x_at[c] = (char *)run->x + (c * run->n_frames + taken) * run->sample_bytes;
        for (size_t c = 0; c < run->out; c++)
            y_at[c] = (char *)y + (c * run->n_outputs + given) * run->sample_bytes;
        size_t due = (taken + n + run->stride - 1) / run->stride - given;
        assert_int_equal(partita_stream_output_frames(stream, n), due);
        partita_stream_process(stream, y_at, x_at, n);
        taken += n;
        given += due;
    }
}

void run_feed(struct run *run, struct partita_stream *stream, void *y, const struct cut *cut,
              struct random *random)
{
    run_feed_part(run, stream, y, 0, run->n_frames, cut, random);
}

const struct cut cut_whole = {"whole", SIZE_MAX, false};

void *run_output(const struct run *run)
{
    return guarded_alloc(run->out * run->n_outputs * run->sample_bytes,
                         type_is_f64(run->problem.signal) ? 8 : 4);
}

size_t run_output_bytes(const struct run *run)
{
    return run->out * run->n_outputs * run->sample_bytes;
}

void run_check(const struct run *run, const void *y)
{
    size_t late = partita_plan_latency(run->plan) / run->stride, n = run->n_outputs;
    double complex *expected = calloc(run->out * n, sizeof *expected),
                   *now = malloc(run->out * n * sizeof *now);
    reference_stream(&run->problem, run->n_frames, now, run->x, run->w);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = late; p < n; p++) expected[k * n + p] = now[k * n + p - late];
    }
    struct partita_problem sized = run->problem;
    double gate = plan_gate(run->plan, &sized, run->out * n);
    double error =
        error_against(run->problem.signal, y, expected, run->out * n, typical_output(&sized));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = 0; p < late && p < n; p++) {
            assert_true(reference_sample(run->problem.signal, y, k * n + p) == 0);
        }
    }
    free(expected);
    free(now);
}

void run_check_some(const struct run *run, const void *y, struct random *random)
{
    enum { PRODUCTS = TEST_SLOWER > 1 ? 200000 : 2000000, FEWEST = TEST_SLOWER > 1 ? 60 : 200 };
    size_t n = run->n_outputs, late = partita_plan_latency(run->plan) / run->stride,
           some = PRODUCTS / run->n_taps;
    if (some < FEWEST) some = FEWEST;
    if (late >= n || some >= n - late) {
        run_check(run, y);
        return;
    }
    size_t *at = malloc(some * sizeof *at);
    for (size_t i = 0; i < some; i++)
        at[i] = i < 1 ? 0 : i < 2 ? n - late - 1 : random_below(random, n - late);
    double complex *expected = malloc(run->out * some * sizeof *expected);
    char *got = malloc(run->out * some * run->sample_bytes);
    reference_stream_at(&run->problem, run->n_frames, at, some, expected, run->x, run->w);
    for (size_t i = 0; i < run->out * some; i++) {
        size_t from = i / some * n + late + at[i % some];
        memcpy(got + i * run->sample_bytes, (const char *)y + from * run->sample_bytes,
               run->sample_bytes);
    }
    double gate = plan_gate(run->plan, &run->problem, run->out * some);
    double error = error_against(run->problem.signal, got, expected, run->out * some,
                                 typical_output(&run->problem));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t i = 0; i < run->out * late; i++)
        assert_true(reference_sample(run->problem.signal, y, i / late * n + i % late) == 0);
    free(at);
    free(expected);
    free(got);
}

// Long enough for several blocks of any size the planner may like, and for a history kept in a long
// line to come round.
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
