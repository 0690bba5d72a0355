// SPDX-License-Identifier: MIT
// Special values in cpu/partitioned: a NaN or an infinity affects only the outputs of its taps,
// tiny values have right results, skipping silence changes nothing.

#include "support/stream_rig.h"

#include "support/layer_rig.h"

#include <float.h>
#include <math.h>

static const char *engine;

static const struct named_problem problems[] = {
    {"head-alone", {STREAM(64), KERNEL(40)}},
    {"mono", {STREAM(64), KERNEL(3000)}},
    {"late", {STREAM(64), KERNEL(3000), LATENCY(500)}},
    {"latest", {STREAM(64), KERNEL(3000), LATENCY(6000)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(700)}},
    {"groups", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(1500)}},
    {"decimate", {STREAM(64), KERNEL(1200), STRIDE(3)}},
    {"dilation", {STREAM(64), KERNEL(500), DILATION(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, FRAMES = 22000 };

static const struct call_split small = {"", 400, true}, single = {"", 1, false};

// The outputs [first, end) that input frame `at` may affect.
struct reach {
    size_t first, end;
};

static struct reach reach_of(const struct stream_rig *rig, size_t at)
{
    size_t first = at + partita_plan_latency(rig->plan), end = first + problem_span(&rig->problem);
    return (struct reach){(first + rig->stride - 1) / rig->stride,
                          (end + rig->stride - 1) / rig->stride};
}

static void *outputs_split(struct stream_rig *rig, const struct call_split *split,
                           struct random *random)
{
    void *y = stream_rig_alloc_output(rig);
    partita_stream_reset(rig->stream);
    stream_rig_feed(rig, rig->stream, y, split, random);
    return y;
}

static void *outputs(struct stream_rig *rig, struct random *random)
{
    return outputs_split(rig, &small, random);
}

// Fails unless a and b have the same bits at outputs [first, end) of all channels.
static void check_same(const struct stream_rig *rig, const char *a, const char *b, size_t first,
                       size_t end, const char *what)
{
    size_t bytes = rig->sample_bytes;
    for (size_t k = 0; k < rig->out; k++) {
        for (size_t i = first; i < end && i < rig->n_outputs; i++) {
            size_t at = (k * rig->n_outputs + i) * bytes;
            if (memcmp(a + at, b + at, bytes))
                fail_msg("%s: output %zu of channel %zu", what, i, k);
        }
    }
}

// With a non-finite value at one frame of one channel, outputs out of its reach are those of 0 in
// its place. Without latency no output depends on later frames, so outputs before the reach are
// those of any number there. (With latency, blocks contain later frames, and another number rounds
// differently.)
static void check_reach(struct stream_rig *rig, size_t at, size_t channel, double value,
                        const void *clean, struct random *random)
{
    size_t i = channel * rig->n_frames + at;
    enum partita_type type = rig->problem.signal;
    double complex kept = reference_sample(type, rig->x, i);
    sample_put(type, rig->x, i, 0);
    char *zeroed = outputs(rig, random);
    sample_put(type, rig->x, i, value);
    char *touched = outputs(rig, random);
    sample_put(type, rig->x, i, kept);
    struct reach reach = reach_of(rig, at);
    check_same(rig, touched, zeroed, 0, reach.first, "before its reach");
    check_same(rig, touched, zeroed, reach.end, rig->n_outputs, "after its reach");
    if (partita_plan_latency(rig->plan) == 0)
        check_same(rig, touched, clean, 0, reach.first, "no look ahead");
    guarded_free(zeroed);
    guarded_free(touched);
}

static void special_values_stay_in_reach(void **state)
{
    static const size_t at[] = {0, 1, 63, 64, 127, 128, 1000, 4095, 4096, 9999};
    enum { N_AT = sizeof at / sizeof *at, ROUNDS = N_AT + 6 };
    const struct stream_case *c = *state;
    const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    struct random random = random_start("special");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    void *clean = outputs(&rig, &random);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t frame = round < N_AT ? at[round] : random_below(&random, FRAMES);
        check_reach(&rig, frame, random_below(&random, rig.in), values[round % 3], clean, &random);
    }
    guarded_free(clean);
    stream_rig_close(&rig);
}

// Outputs of a group without special values do not change.
static void other_groups_are_unaffected(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("groups");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &problems[5].problem, NULL, FRAMES, &random);
    char *clean = outputs(&rig, &random);
    for (size_t i = 0; i < 20; i++)
        sample_put(rig.problem.signal, rig.x, random_below(&random, FRAMES),
                   i % 2 ? (double)NAN : (double)INFINITY);
    char *y = outputs(&rig, &random);
    size_t bytes = rig.n_outputs * rig.sample_bytes;
    assert_memory_equal(y + bytes, clean + bytes, bytes);
    assert_memory_not_equal(y, clean, bytes);
    guarded_free(y);
    guarded_free(clean);
    stream_rig_close(&rig);
}

static bool is_nonfinite(double complex value)
{
    return !isfinite(creal(value)) || !isfinite(cimag(value));
}

// Marks the outputs to which a special value in channel 0 contributes by a tap, and those that it
// may affect.
static void mark_affected(const struct stream_rig *rig, bool *direct, bool *affected)
{
    for (size_t i = 0; i < rig->n_frames; i++) {
        if (!is_nonfinite(reference_sample(rig->problem.signal, rig->x, i))) continue;
        struct reach reach = reach_of(rig, i);
        size_t first = i + partita_plan_latency(rig->plan), step = rig->problem.dilation[0];
        for (size_t p = reach.first; p < reach.end && p < rig->n_outputs; p++) {
            affected[p] = true;
            if ((p * rig->stride - first) % (step ? step : 1) == 0) direct[p] = true;
        }
    }
}

// Several special values in one channel, near to and far from each other: outputs of their taps are
// not finite, the others are those of zeros.
static void many_special_values(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("many");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    size_t span = problem_span(&rig.problem), bytes = rig.sample_bytes;
    for (size_t i = 100, k = 0; i < FRAMES; k++) {
        sample_put(rig.problem.signal, rig.x, i, k % 2 ? (double)NAN : (double)INFINITY);
        i += k % 3 ? 1 + random_below(&random, 90) : span + random_below(&random, span);
    }
    bool *direct = calloc(rig.n_outputs, 1), *affected = calloc(rig.n_outputs, 1);
    mark_affected(&rig, direct, affected);
    char *y = outputs(&rig, &random), *single_frames = outputs_split(&rig, &single, &random);
    assert_memory_equal(y, single_frames,
                        stream_rig_output_bytes(&rig)); // for calls without outputs
    guarded_free(single_frames);
    for (size_t i = 0; i < FRAMES; i++)
        if (is_nonfinite(reference_sample(rig.problem.signal, rig.x, i)))
            sample_put(rig.problem.signal, rig.x, i, 0);
    char *zeroed = outputs(&rig, &random);
    stream_rig_check_sampled(&rig, zeroed, &random);
    bool all = rig.problem.groups < 2; // else only the first output depends on the first input
    for (size_t i = 0; i < rig.out * rig.n_outputs; i++) {
        size_t p = i % rig.n_outputs;
        bool depends = all || i < rig.n_outputs;
        if (direct[p] && depends && !is_nonfinite(reference_sample(rig.problem.signal, y, i)))
            fail_msg("output %zu is finite", i);
        if (!affected[p] && memcmp(y + i * bytes, zeroed + i * bytes, bytes))
            fail_msg("output %zu has changed", i);
    }
    free(direct);
    free(affected);
    guarded_free(zeroed);
    guarded_free(y);
    stream_rig_close(&rig);
}

// The largest sum of the taps' magnitudes over the outputs. Flushing denormals to zero has an error
// of at most this times the smallest normal number.
static double tap_sum(const struct stream_rig *rig)
{
    double largest = 0;
    for (size_t k = 0, per = rig->n_taps / rig->out; k < rig->out; k++) {
        double sum = 0;
        for (size_t i = 0; i < per; i++)
            sum += cabs(reference_sample(rig->problem.taps, rig->w, k * per + i));
        largest = fmax(largest, sum);
    }
    return largest;
}

// Fails unless random outputs of [first, last] are within `limit` of the oracle's.
static void check_close(const struct stream_rig *rig, const void *y, size_t first, double limit,
                        struct random *random)
{
    enum { SOME = 300 };
    size_t at[SOME], late = partita_plan_latency(rig->plan) / rig->stride;
    for (size_t i = 0; i < SOME; i++)
        at[i] = first + random_below(random, rig->n_outputs - late - first);
    double complex *expected = malloc(rig->out * SOME * sizeof *expected);
    reference_stream_at(&rig->problem, rig->n_frames, at, SOME, expected, rig->x, rig->w);
    for (size_t i = 0; i < rig->out * SOME; i++) {
        size_t from = i / SOME * rig->n_outputs + late + at[i % SOME];
        double error = cabs(reference_sample(rig->problem.signal, y, from) - expected[i]);
        if (!(error <= limit))
            fail_msg("output %zu has an error of %.3g, above %.3g", from, error, limit);
    }
    free(expected);
}

static double min_normal(const struct stream_rig *rig)
{
    return type_is_f64(rig->problem.signal) ? DBL_MIN : (double)FLT_MIN;
}

// With an input of denormals, outputs are finite and right within the error of flushing to zero.
static void denormals(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("denormals");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    double scale = min_normal(&rig) / 2;
    for (size_t i = 0; i < rig.in * FRAMES; i++)
        sample_put(rig.problem.signal, rig.x, i,
                   reference_sample(rig.problem.signal, rig.x, i) * scale);
    void *y = outputs(&rig, &random);
    check_close(&rig, y, 0, 2 * min_normal(&rig) * tap_sum(&rig), &random);
    guarded_free(y);
    stream_rig_close(&rig);
}

// A signal that decays from full scale through denormals to 0 has right and finite outputs.
static void fading_tail(void **state)
{
    enum { FADES = 6000 };
    const struct stream_case *c = *state;
    struct random random = random_start("tail");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    double decades = type_is_f64(rig.problem.signal) ? 330 : 50;
    for (size_t i = 0; i < rig.in * FRAMES; i++) {
        size_t frame = i % FRAMES;
        double gain = frame < FADES ? pow(10, -decades * (double)frame / FADES) : 0;
        sample_put(rig.problem.signal, rig.x, i,
                   reference_sample(rig.problem.signal, rig.x, i) * gain);
    }
    void *y = outputs(&rig, &random);
    double gate = plan_gate(rig.plan, &rig.problem, rig.n_taps);
    check_close(&rig, y, 0,
                4 * gate * typical_output(&rig.problem) + min_normal(&rig) * tap_sum(&rig),
                &random);
    for (size_t i = 0; i < rig.out * rig.n_outputs; i++) {
        double complex value = reference_sample(rig.problem.signal, y, i);
        assert_true(isfinite(creal(value)) && isfinite(cimag(value)));
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// Channels that are silent for long and short times, sometimes all of them together.
static void silence_changes_nothing(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("silence");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &c->named->problem, NULL, FRAMES, &random);
    size_t bytes = rig.sample_bytes;
    for (size_t k = 0; k < rig.in; k++) {
        char *x = (char *)rig.x + k * FRAMES * bytes;
        memset(x, 0, random_below(&random, 2000) * bytes);
        memset(x + 6000 * bytes, 0, 7000 * bytes);
        memset(x + 17000 * bytes, 0, random_below(&random, 5000) * bytes);
        for (size_t i = 0; i < 40; i++) {
            size_t n = random_below(&random, 300);
            memset(x + random_below(&random, FRAMES - n) * bytes, 0, n * bytes);
        }
        sample_put(rig.problem.signal, x, 9000, 1); // within the long silence
    }
    char *y = outputs(&rig, &random), *whole = stream_rig_alloc_output(&rig);
    stream_rig_check_sampled(&rig, y, &random);
    partita_stream_reset(rig.stream);
    stream_rig_feed(&rig, rig.stream, whole, &split_whole, &random);
    assert_memory_equal(y, whole, stream_rig_output_bytes(&rig));
    guarded_free(whole);
    guarded_free(y);
    stream_rig_close(&rig);
}

static const struct promise of_problems[] = {
    {"special-values-stay-in-reach", special_values_stay_in_reach},
    {"denormals", denormals},
    {"fading-tail", fading_tail},
    {"silence-leaves-no-trace", silence_changes_nothing},
    {"many-special-values", many_special_values},
};
enum { N_OF_PROBLEMS = sizeof of_problems / sizeof *of_problems };

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest tests[N_TYPE_PAIRS * (N_PROBLEMS * N_OF_PROBLEMS + 1)];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    engine = partitioned_engine();
    for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
        const char *types = type_pairs[t].name;
        if (!rig_has_types(engine, t)) continue;
        struct stream_case *c = cases[t];
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            c[p] = (struct stream_case){engine, &type_pairs[t], &problems[p]};
            if (!rig_has_problem(t, p)) continue;
            for (size_t i = 0; i < N_OF_PROBLEMS; i++)
                tests[n++] = named_test(of_problems[i].run, &c[p], "%s/%s-%s", of_problems[i].name,
                                        problems[p].name, types);
        }
        tests[n++] =
            named_test(other_groups_are_unaffected, &c[0], "other-groups-hear-nothing-%s", types);
    }
    return run_test_list(tests, n);
}
