// SPDX-License-Identifier: MIT
// cpu/partitioned against the oracle: every type, with latency 0 and others, tap counts around the
// boundaries of its partitions, any block, any lengths of calls, each tap, the tail up to its last
// sample.

#include "support/stream_rig.h"

#include "support/layer_rig.h"

#include <math.h>

static const char *engine;

#define LIVE .size = {PARTITA_UNBOUNDED}

static const struct named_problem problems[] = {
    {"taps-63", {STREAM(64), KERNEL(63)}},
    {"taps-64", {STREAM(64), KERNEL(64)}},
    {"taps-65", {STREAM(64), KERNEL(65)}},
    {"taps-127", {STREAM(64), KERNEL(127)}},
    {"taps-128", {STREAM(64), KERNEL(128)}},
    {"taps-129", {STREAM(64), KERNEL(129)}},
    {"taps-1000", {STREAM(64), KERNEL(1000)}},
    {"taps-5000", {STREAM(64), KERNEL(5000)}},
    {"correlate", {STREAM(64), CORRELATE, KERNEL(900)}},
    {"groups", {STREAM(64), CHANNELS(4, 6), GROUPS(2), KERNEL(300)}},
    {"matrix-3x2", {STREAM(64), CHANNELS(3, 2), KERNEL(700)}},
    {"matrix-4x4", {STREAM(64), CHANNELS(4, 4), KERNEL(1100)}},
    {"decimate-2", {STREAM(64), KERNEL(1000), STRIDE(2)}},
    {"decimate-3", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(801), STRIDE(3)}},
    {"dilation-2", {STREAM(64), KERNEL(600), DILATION(2)}},
    {"decimate-3-dilation-2", {STREAM(64), KERNEL(500), STRIDE(3), DILATION(2)}},
    {"up-2", {STREAM(64), KERNEL(3001), UP(2)}},
    {"up-3-decimate-2", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(2000), STRIDE(2), UP(3)}},
    {"block-1", {LIVE, .block = 1, .kernel = {1500}}},
    {"block-16", {LIVE, .block = 16, .kernel = {1500}}},
    {"block-48", {LIVE, .block = 48, .kernel = {1500}}},
    {"block-256", {LIVE, .block = 256, .kernel = {2500}}},
    {"block-1000", {LIVE, .block = 1000, .kernel = {2500}}},
    {"block-1024", {LIVE, .block = 1024, .kernel = {2500}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// Frames for all taps and several blocks after the first output.
static size_t live_frames(const struct stream_case *c, const struct partita_problem *problem)
{
    struct stream_rig probe;
    struct random random = random_start("probe");
    stream_rig_open_exactly(&probe, c, problem, NULL, 1, &random);
    size_t n = 2 * problem_span(problem) + 2 * partita_plan_latency(probe.plan) +
               8 * problem->block + 6000;
    stream_rig_close(&probe);
    return n;
}

static void check_latency(const struct stream_rig *rig)
{
    size_t latency = partita_plan_latency(rig->plan);
    assert_string_equal(partita_plan_engine(rig->plan, PARTITA_FORWARD), engine);
    assert_true(latency <= rig->problem.latency);
    assert_int_equal(latency % rig->stride, 0);
    assert_int_equal(partita_stream_latency(rig->stream), latency);
    const size_t frames = (problem_span(&rig->problem) + rig->up - 1) / rig->up;
    assert_int_equal(partita_stream_tail(rig->stream), latency + frames - 1);
}

// Checks one call against the oracle, then other lengths of calls for the same bits.
static void check_outputs(const struct stream_case *c, const struct partita_problem *problem,
                          const struct call_split *splits, size_t n_splits)
{
    struct random random = random_start(c->named->name);
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, problem, NULL, live_frames(c, problem), &random);
    check_latency(&rig);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    stream_rig_check_sampled(&rig, y, &random);
    stream_rig_check_splits(&rig, y, splits, n_splits, &random);
    guarded_free(y);
    stream_rig_close(&rig);
}

static void matches_oracle(void **state)
{
    static const size_t latencies[] = {0, 1, 64, 777, PARTITA_UNBOUNDED};
    const struct stream_case *c = *state;
    struct partita_problem problem = c->named->problem;
    const struct call_split splits[] = {{"up-to-3000", 3000, true},
                                        {"block", problem.block, false},
                                        {"ones", 1, false},
                                        {"up-to-70", 70, true}};
    const size_t step = layer_on_stand_in() ? 3 : 1;
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i += step) {
        problem.latency = latencies[i];
        check_outputs(c, &problem, splits, step > 1 ? 1 : i ? 2 : 4);
    }
}

static const struct named_problem very_long = {"taps-70000", {STREAM(64), KERNEL(70000)}};

static void very_long_matches_oracle(void **state)
{
    static const size_t latencies[] = {0, 2048};
    static const struct call_split splits[] = {{"up-to-3000", 3000, true}, {"block", 64, false}};
    struct partita_problem problem = very_long.problem;
    for (int i = 0; i < 2; i++) {
        problem.latency = latencies[i];
        check_outputs(*state, &problem, splits, 2);
    }
}

static double part_rms(enum partita_type type)
{
    return sqrt(type_is_complex(type) ? 2.0 / 3 : 1.0 / 3);
}

static void silence_input(struct stream_rig *rig)
{
    memset(rig->x, 0, rig->in * rig->n_frames * rig->sample_bytes);
}

// The output of an impulse at frame `at` is each of the taps and nothing else.
static void check_impulse(struct stream_rig *rig, size_t at, struct random *random)
{
    size_t first = at + partita_plan_latency(rig->plan), taps = rig->problem.kernel[0];
    double limit = stream_rig_sample_limit(rig, part_rms(rig->problem.taps));
    silence_input(rig);
    sample_put(rig->problem.signal, rig->x, at, 1);
    partita_stream_reset(rig->stream);
    char *y = stream_rig_alloc_output(rig);
    stream_rig_feed(rig, rig->stream, y, &(struct call_split){"", 700, true}, random);
    for (size_t i = 0; i < rig->n_outputs; i++) {
        bool inside = i >= first && i < first + taps;
        double complex expected =
            inside ? reference_sample(rig->problem.taps, rig->w, i - first) : 0;
        double error = cabs(reference_sample(rig->problem.signal, y, i) - expected);
        if (!(error <= limit))
            fail_msg("impulse at %zu: output %zu (tap %td) has an error of %.3g", at, i,
                     (ptrdiff_t)i - (ptrdiff_t)first, error);
    }
    guarded_free(y);
}

static void impulse_gives_the_taps(void **state)
{
    static const size_t latencies[] = {0, 100, 1500};
    const struct stream_case *c = *state;
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i += layer_on_stand_in() ? 2 : 1) {
        struct partita_problem problem = {STREAM(64), KERNEL(7001), LATENCY(latencies[i])};
        struct random random = random_start("impulse");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problem, NULL, live_frames(c, &problem), &random);
        const size_t at[] = {
            0, 1, 63, 64, 1023, 1024, 1 + random_below(&random, rig.n_frames - 9000)};
        for (size_t k = 0; k < sizeof at / sizeof *at; k += layer_on_stand_in() ? 3 : 1)
            check_impulse(&rig, at[k], &random);
        stream_rig_close(&rig);
    }
}

// A filter with a single tap delays the input by its position, for positions around every power of
// two.
static void each_tap_delays(void **state)
{
    enum { TAPS = 4500, POSITIONS = 44 };
    const struct stream_case *c = *state;
    struct random random = random_start("delays");
    struct partita_problem problem = {STREAM(64), KERNEL(TAPS)};
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &problem, NULL, live_frames(c, &problem), &random);
    double limit = stream_rig_sample_limit(&rig, part_rms(rig.problem.signal));
    char *y = stream_rig_alloc_output(&rig);
    for (size_t k = 0; k < POSITIONS; k += layer_on_stand_in() ? 4 : 1) {
        size_t border = (size_t)1 << k / 3, near = border + k % 3 - 1; // 2^i - 1, 2^i, 2^i + 1
        size_t tap = k == POSITIONS - 1 ? TAPS - 1
                     : near < TAPS      ? near
                                        : random_below(&random, TAPS);
        memset(rig.w, 0, TAPS * partita_type_size(rig.problem.taps));
        sample_put(rig.problem.taps, rig.w, tap, 1);
        stream_rig_replace_taps(&rig);
        stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 2000, true}, &random);
        for (size_t i = 0; i < rig.n_frames; i++) {
            double complex expected =
                i < tap ? 0 : reference_sample(rig.problem.signal, rig.x, i - tap);
            double error = cabs(reference_sample(rig.problem.signal, y, i) - expected);
            if (!(error <= limit))
                fail_msg("tap %zu: output %zu has an error of %.3g", tap, i, error);
        }
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

// Copies between layouts.
static void copy_strided(char *to, size_t to_step, const char *from, size_t from_step, size_t n,
                         size_t bytes)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_step * bytes, from + i * from_step * bytes, bytes);
}

// Interleaved calls with unused samples in each frame, and in place, have the bits of planar calls.
static void layouts_same_bits(void **state)
{
    enum { X_STRIDE = 3, Y_STRIDE = 5 };
    const struct stream_case *c = *state;
    struct partita_problem problem = {LIVE, .block = 48, .in_channels = 2, .out_channels = 2,
                                      .kernel = {900}};
    struct random random = random_start("layouts");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &problem, NULL, live_frames(c, &problem), &random);
    size_t n_frames = rig.n_frames, bytes = rig.sample_bytes;
    char *y = stream_rig_alloc_output(&rig), *planar = stream_rig_alloc_output(&rig);
    char *x = guarded_alloc(X_STRIDE * n_frames * bytes, 0),
         *wide = guarded_alloc(Y_STRIDE * n_frames * bytes, 0);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    for (int in_place = 0; in_place < 2; in_place++) {
        char *out = in_place ? x : wide;
        size_t step = in_place ? X_STRIDE : Y_STRIDE;
        memset(wide, 0x55, Y_STRIDE * n_frames * bytes);
        for (size_t k = 0; k < 2; k++)
            copy_strided(x + k * bytes, X_STRIDE, (char *)rig.x + k * n_frames * bytes, 1, n_frames,
                         bytes);
        partita_stream_reset(rig.stream);
        for (size_t at = 0, n; at < n_frames; at += n) {
            n = split_next(&(struct call_split){"", 150, true}, &random, n_frames - at);
            char *to = out + at * step * bytes, *from = x + at * X_STRIDE * bytes;
            partita_stream_process_strided(rig.stream, (void *[]){to, to + bytes}, step,
                                           (const void *[]){from, from + bytes}, X_STRIDE, n);
        }
        for (size_t k = 0; k < 2; k++)
            copy_strided(planar + k * n_frames * bytes, 1, out + k * bytes, step, n_frames, bytes);
        assert_memory_equal(planar, y, stream_rig_output_bytes(&rig));
        for (size_t i = 0; i < n_frames * Y_STRIDE * bytes; i++)
            assert_true(in_place || i / bytes % Y_STRIDE < 2 || wide[i] == 0x55);
    }
    guarded_free(wide);
    guarded_free(x);
    guarded_free(planar);
    guarded_free(y);
    stream_rig_close(&rig);
}

// Draining the tail in several calls has the bits of zeros as input, up to the last sample of the
// convolution, and zeros after it.
static void drains_to_the_last_sample(void **state)
{
    enum { BEYOND = 3000 };
    const struct stream_case *c = *state;
    struct partita_problem problem = {STREAM(64), KERNEL(2000)};
    for (problem.latency = 0; problem.latency <= 600; problem.latency += 300) {
        struct random random = random_start("drain");
        struct stream_rig rig;
        size_t tail = problem_span(&problem) - 1;
        stream_rig_open_exactly(&rig, c, &problem, NULL,
                                live_frames(c, &problem) + tail + problem.latency + BEYOND,
                                &random);
        tail = partita_stream_tail(rig.stream);
        size_t bytes = rig.sample_bytes, sounding = rig.n_frames - tail - BEYOND;
        memset((char *)rig.x + sounding * bytes, 0, (tail + BEYOND) * bytes);
        char *expected = stream_rig_alloc_output(&rig), *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
        stream_rig_check_sampled(&rig, expected, &random);
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, y, 0, sounding, &(struct call_split){"", 500, true},
                             &random);
        for (size_t at = sounding, n; at < rig.n_frames; at += n) {
            n = split_next(&(struct call_split){"", 200, true}, &random, rig.n_frames - at);
            partita_stream_process(rig.stream, &(void *){y + at * bytes}, NULL, n);
        }
        assert_memory_equal(y, expected, stream_rig_output_bytes(&rig));
        double limit = stream_rig_sample_limit(&rig, typical_output(&rig.problem));
        assert_true(cabs(reference_sample(rig.problem.signal, y, sounding + tail - 1)) > 0);
        for (size_t i = sounding + tail; i < rig.n_outputs; i++)
            assert_true(cabs(reference_sample(rig.problem.signal, y, i)) <= limit);
        guarded_free(expected);
        guarded_free(y);
        stream_rig_close(&rig);
    }
}

// Short filters are served like others, or refused with a reason.
static void few_taps(void **state)
{
    const struct stream_case *c = *state;
    size_t n_served = 0;
    for (size_t taps = 1; taps <= 62; taps += layer_on_stand_in() ? 15 : 1) {
        struct log_lines lines;
        struct partita_problem problem = {STREAM(64), .signal = c->types->signal,
                                          .taps = c->types->taps, .kernel = {taps},
                                          .latency = taps % 3 * 20};
        struct partita_options options = {.engine = engine, .log = log_into(&lines)};
        struct partita_plan *plan = NULL;
        set_engine_device(&options);
        enum partita_status status = partita_plan_create(&problem, &options, &plan);
        partita_plan_destroy(plan);
        if (status == PARTITA_OK) check_outputs(c, &problem, &split_whole, 1);
        else assert_true(status == PARTITA_ERR_UNSUPPORTED && strstr(lines.text, "too few"));
        n_served += status == PARTITA_OK;
    }
    assert_true(n_served > 0);
}

// It serves only streams and says so.
static void signals_are_refused(void **state)
{
    (void)state;
    struct partita_problem problem = {LENGTH(1000), KERNEL(100)};
    struct log_lines lines;
    struct partita_options options = {.engine = engine, .log = log_into(&lines)};
    struct partita_plan *plan = NULL;
    set_engine_device(&options);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(lines.text, engine));
}

static const struct promise promises[] = {
    {"impulse-gives-the-taps", impulse_gives_the_taps},
    {"each-tap-delays", each_tap_delays},
    {"layouts-same-bits", layouts_same_bits},
    {"drains-to-the-last-sample", drains_to_the_last_sample},
    {"few-taps", few_taps},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS + 1];
    static struct CMUnitTest tests[N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES) + 3];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    engine = partitioned_engine();
    for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
        struct stream_case *c = cases[t];
        const char *types = type_pairs[t].name;
        if (!rig_has_types(engine, t)) continue;
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            c[p] = (struct stream_case){engine, &type_pairs[t], &problems[p]};
            if (!rig_has_problem(t, p) || !engine_serves(engine, &problems[p].problem)) continue;
            tests[n++] = named_test(matches_oracle, &c[p], "%s-%s", problems[p].name, types);
        }
        c[N_PROBLEMS] = (struct stream_case){engine, &type_pairs[t], &very_long};
        for (size_t p = 0; p < N_PROMISES; p++)
            if (rig_has_problem(t, p))
                tests[n++] =
                    named_test(promises[p].run, &c[N_PROBLEMS], "%s-%s", promises[p].name, types);
        bool shortest = type_pairs[t].signal == PARTITA_F32,
             longest = type_pairs[t].taps == PARTITA_CF64;
        if (layer_is_brief()) continue;
        if (shortest || longest)
            tests[n++] = named_test(very_long_matches_oracle, &c[N_PROBLEMS], "%s-%s",
                                    very_long.name, types);
    }
    tests[n++] = named_test(signals_are_refused, NULL, "signals-are-refused");
    return run_test_list(tests, n);
}
