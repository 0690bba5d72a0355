// SPDX-License-Identifier: MIT
#include "support/stream_rig.h"

#include <math.h>

#include "support/layer_rig.h"

enum { MAX_CHANNELS = 512 };

const char *const history_engines[N_HISTORY_ENGINES] = {"cpu/direct", "cpu/overlap-save",
                                                        "cpu/partitioned", "cuda/partitioned"};

const char *partitioned_engine(void)
{
    return layer_has_engine("cuda/partitioned") ? "cuda/partitioned" : "cpu/partitioned";
}

// Index among the pairs that a stand-in has: f32, cf64 and cf32-f32; -1 for others.
static int stand_in_types(size_t types)
{
    if (types == 0) return 0;
    if (layer_is_brief()) return -1;
    if (types == 3) return 1;
    return types == 4 ? 2 : -1;
}

bool rig_has_types(const char *engine, size_t types)
{
    return layer_has_engine(engine) && (!layer_on_stand_in() || stand_in_types(types) >= 0);
}

bool rig_has_problem(size_t types, size_t p)
{
    if (!layer_on_stand_in()) return !layer_is_brief() || (p + types) % 3 == 0;
    return p % 3 == (size_t)stand_in_types(types) && (!layer_is_brief() || p % 2 == 0);
}

void set_engine_device(struct partita_options *options)
{
    if (options->engine && !strncmp(options->engine, "cuda/", 5)) options->device = "cuda:0";
}

size_t stream_rig_outputs(const struct stream_rig *rig, size_t n)
{
    return (n * rig->up + rig->stride - 1) / rig->stride;
}

size_t stream_rig_latency(const struct stream_rig *rig)
{
    const size_t positions = partita_plan_latency(rig->plan) * rig->up;
    assert_int_equal(positions % rig->stride, 0);
    return positions / rig->stride;
}

void stream_rig_open_exactly(struct stream_rig *rig, const struct stream_case *c,
                             const struct partita_problem *problem,
                             const struct partita_options *options, size_t n_frames,
                             struct random *random)
{
    *rig = (struct stream_rig){.problem = *problem, .n_frames = n_frames};
    rig->problem.signal = c->types->signal;
    rig->problem.taps = c->types->taps;
    rig->in = or_one(problem->in_channels);
    rig->out = or_one(problem->out_channels);
    rig->up = or_one(problem->up);
    rig->stride = or_one(problem->stride[0]);
    rig->sample_bytes = partita_type_size(rig->problem.signal);
    rig->n_outputs = stream_rig_outputs(rig, n_frames);
    rig->n_taps = rig->out * (rig->in / or_one(problem->groups)) * or_one(problem->kernel[0]);
    rig->x = malloc(rig->in * n_frames * rig->sample_bytes);
    rig->w = malloc(rig->n_taps * partita_type_size(rig->problem.taps));
    random_samples(random, rig->problem.signal, rig->x, rig->in * n_frames);
    random_samples(random, rig->problem.taps, rig->w, rig->n_taps);
    struct partita_options forced = options ? *options : (struct partita_options){.engine = NULL};
    forced.engine = c->engine;
    set_engine_device(&forced);
    assert_ok(partita_plan_create(&rig->problem, &forced, &rig->plan));
    assert_ok(partita_filter_create(rig->plan, rig->w, &rig->filter));
    assert_ok(partita_stream_open(rig->plan, rig->filter, &rig->stream));
}

void stream_rig_open(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, size_t n_frames, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (!relaxed.latency) relaxed.latency = PARTITA_UNBOUNDED;
    stream_rig_open_exactly(rig, c, &relaxed, NULL, n_frames, random);
}

void stream_rig_close(struct stream_rig *rig)
{
    partita_stream_close(rig->stream);
    partita_filter_destroy(rig->filter);
    partita_plan_destroy(rig->plan);
    free(rig->x);
    free(rig->w);
}

void stream_rig_replace_filter(struct stream_rig *rig, struct partita_filter *filter)
{
    partita_stream_close(rig->stream);
    partita_filter_destroy(rig->filter);
    rig->filter = filter;
    assert_ok(partita_stream_open(rig->plan, rig->filter, &rig->stream));
}

void stream_rig_replace_taps(struct stream_rig *rig)
{
    struct partita_filter *filter;
    assert_ok(partita_filter_create(rig->plan, rig->w, &filter));
    stream_rig_replace_filter(rig, filter);
}

size_t split_next(const struct call_split *split, struct random *random, size_t left)
{
    size_t n = split->random ? random_below(random, split->max + 1) : split->max;
    return n < left ? n : left;
}

void stream_rig_feed_span(const struct stream_rig *rig, struct partita_stream *stream, void *y,
                          size_t first, size_t end, const struct call_split *split,
                          struct random *random)
{
    size_t taken = first, returned = stream_rig_outputs(rig, first);
    const size_t unit = rig->problem.whole_blocks ? rig->problem.block : 1;
    while (taken < end) {
        size_t n = split_next(split, random, end - taken);
        if (n < end - taken) n -= n % unit;
        assert_true(rig->in <= MAX_CHANNELS && rig->out <= MAX_CHANNELS);
        const void *x_at[MAX_CHANNELS];
        void *y_at[MAX_CHANNELS];
        for (size_t c = 0; c < rig->in; c++)
            x_at[c] = (char *)rig->x + (c * rig->n_frames + taken) * rig->sample_bytes;
        for (size_t c = 0; c < rig->out; c++)
            y_at[c] = (char *)y + (c * rig->n_outputs + returned) * rig->sample_bytes;
        size_t due = stream_rig_outputs(rig, taken + n) - returned;
        assert_int_equal(partita_stream_output_frames(stream, n), due);
        partita_stream_process(stream, y_at, x_at, n);
        taken += n;
        returned += due;
    }
}

void stream_rig_feed(const struct stream_rig *rig, struct partita_stream *stream, void *y,
                     const struct call_split *split, struct random *random)
{
    stream_rig_feed_span(rig, stream, y, 0, rig->n_frames, split, random);
}

const struct call_split split_whole = {"whole", SIZE_MAX, false};

void *stream_rig_alloc_output(const struct stream_rig *rig)
{
    return guarded_alloc(rig->out * rig->n_outputs * rig->sample_bytes,
                         type_is_f64(rig->problem.signal) ? 8 : 4);
}

size_t stream_rig_output_bytes(const struct stream_rig *rig)
{
    return rig->out * rig->n_outputs * rig->sample_bytes;
}

void stream_rig_check(const struct stream_rig *rig, const void *y)
{
    size_t latency = stream_rig_latency(rig), n = rig->n_outputs;
    double complex *expected = calloc(rig->out * n, sizeof *expected),
                   *undelayed = malloc(rig->out * n * sizeof *undelayed);
    reference_stream(&rig->problem, rig->n_frames, undelayed, rig->x, rig->w);
    for (size_t k = 0; k < rig->out; k++) {
        for (size_t p = latency; p < n; p++) expected[k * n + p] = undelayed[k * n + p - latency];
    }
    double gate = plan_gate(rig->plan, &rig->problem, rig->out * n);
    double error = error_against(rig->problem.signal, y, expected, rig->out * n,
                                 typical_output(&rig->problem));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t k = 0; k < rig->out; k++) {
        for (size_t p = 0; p < latency && p < n; p++) {
            assert_true(reference_sample(rig->problem.signal, y, k * n + p) == 0);
        }
    }
    free(expected);
    free(undelayed);
}

void stream_rig_check_sampled(const struct stream_rig *rig, const void *y, struct random *random)
{
    enum {
        PRODUCTS = TEST_SLOWER > 1 ? 200000 : 2000000,
        MIN_SAMPLES = TEST_SLOWER > 1 ? 60 : 200
    };
    size_t n = rig->n_outputs, latency = stream_rig_latency(rig), n_at = PRODUCTS / rig->n_taps;
    if (n_at < MIN_SAMPLES) n_at = MIN_SAMPLES;
    if (latency >= n || n_at >= n - latency) {
        stream_rig_check(rig, y);
        return;
    }
    size_t *at = malloc(n_at * sizeof *at);
    at[0] = 0;
    at[1] = n - latency - 1;
    for (size_t i = 2; i < n_at; i++) at[i] = random_below(random, n - latency);
    double complex *expected = malloc(rig->out * n_at * sizeof *expected);
    char *got = malloc(rig->out * n_at * rig->sample_bytes);
    reference_stream_at(&rig->problem, rig->n_frames, at, n_at, expected, rig->x, rig->w);
    for (size_t i = 0; i < rig->out * n_at; i++) {
        size_t from = i / n_at * n + latency + at[i % n_at];
        memcpy(got + i * rig->sample_bytes, (const char *)y + from * rig->sample_bytes,
               rig->sample_bytes);
    }
    double gate = plan_gate(rig->plan, &rig->problem, rig->out * n_at);
    double error = error_against(rig->problem.signal, got, expected, rig->out * n_at,
                                 typical_output(&rig->problem));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t i = 0; i < rig->out * latency; i++)
        assert_true(reference_sample(rig->problem.signal, y, i / latency * n + i % latency) == 0);
    free(at);
    free(expected);
    free(got);
}

// Enough for several blocks of any size that the planner may choose, and for a ring buffer of the
// history to wrap around.
static size_t enough_frames(const struct partita_plan *plan)
{
    return 3 * (plan->choice.transform + plan->choice.hop) + 8000;
}

size_t stream_rig_frames(const struct stream_case *c, const struct partita_problem *problem)
{
    struct stream_rig probe;
    struct random random = random_start("probe");
    stream_rig_open(&probe, c, problem, 1, &random);
    size_t n = enough_frames(probe.plan);
    stream_rig_close(&probe);
    return n;
}

void stream_rig_check_splits(const struct stream_rig *rig, const void *y,
                             const struct call_split *splits, size_t n, struct random *random)
{
    void *other = stream_rig_alloc_output(rig);
    for (size_t i = 0; i < n; i++) {
        size_t early = random_below(random, rig->n_frames);
        if (rig->problem.whole_blocks) early -= early % rig->problem.block;
        partita_stream_reset(rig->stream);
        stream_rig_feed_span(rig, rig->stream, other, 0, early, &splits[i], random);
        partita_stream_reset(rig->stream);
        memset(other, 0x55, stream_rig_output_bytes(rig));
        stream_rig_feed(rig, rig->stream, other, &splits[i], random);
        if (memcmp(y, other, stream_rig_output_bytes(rig)))
            fail_msg("latency %zu: calls of %s have other bits", rig->problem.latency,
                     splits[i].name);
    }
    guarded_free(other);
}

void stream_rig_check_continues(const struct stream_rig *rig, struct partita_stream *stream,
                                const void *y, size_t at, struct random *random)
{
    static const struct call_split split = {"", 300, true};
    char *other = stream_rig_alloc_output(rig);
    const size_t first = stream_rig_outputs(rig, at);
    memcpy(other, y, stream_rig_output_bytes(rig));
    for (size_t k = 0; k < rig->out; k++)
        memset(other + (k * rig->n_outputs + first) * rig->sample_bytes, 0x55,
               (rig->n_outputs - first) * rig->sample_bytes);
    stream_rig_feed_span(rig, stream, other, at, rig->n_frames, &split, random);
    if (memcmp(other, y, stream_rig_output_bytes(rig))) fail_msg("other bits after frame %zu", at);
    guarded_free(other);
}

void stream_rig_check_first(const struct stream_rig *rig, const void *y, void **first)
{
    const size_t bytes = stream_rig_output_bytes(rig);
    if (*first) {
        assert_memory_equal(y, *first, bytes);
        return;
    }
    *first = stream_rig_alloc_output(rig);
    memcpy(*first, y, bytes);
}

void stream_rig_check_nonfinite(const struct stream_rig *rig, const struct nonfinite *c,
                                const struct call_split *split, struct random *random)
{
    const enum partita_type type = rig->problem.signal;
    const double complex original = reference_sample(type, rig->x, c->at);
    char *y[2];
    for (int i = 0; i < 2; i++) {
        y[i] = stream_rig_alloc_output(rig);
        sample_put(type, rig->x, c->at, i ? c->value : 0);
        partita_stream_reset(rig->stream);
        stream_rig_feed(rig, rig->stream, y[i], split, random);
    }
    sample_put(type, rig->x, c->at, original);
    const size_t before = c->first * rig->sample_bytes, after = c->end * rig->sample_bytes;
    assert_memory_equal(y[1], y[0], before);
    assert_memory_equal(y[1] + after, y[0] + after, stream_rig_output_bytes(rig) - after);
    for (size_t i = c->first; i < c->end; i++)
        assert_true(isnan(creal(reference_sample(type, y[1], i))));
    for (int i = 0; i < 2; i++) guarded_free(y[i]);
}

double stream_rig_sample_limit(const struct stream_rig *rig, double rms)
{
    const size_t n = rig->plan->choice.transform;
    const enum partita_type type = rig->problem.signal;
    return 4 * (n ? gate_transform(type, n) : gate_direct(type, rig->n_taps)) * rms;
}
