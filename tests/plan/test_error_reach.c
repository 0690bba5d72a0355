// SPDX-License-Identifier: MIT
// options.error_reach: a passage a million times louder leaves the results alone that are further
// from those that depend on it. Their error, relative to themselves, is that of a quiet signal.
#include "core/plan.h"

#include "support/test.h"

#include <math.h>
#include <stdio.h>

// Errors of sums and transforms of these sizes are below 5e-7 (test.h has the reasons), and a
// transform that held the loud passage too would leave 1e-2.
static const double LIMIT = 1e-6;
enum { LOUD = 1000000, N = 24000, FIRST = 9000, END = 12000 };

struct reach_case {
    const char *engine; // NULL: the planner's choice
    size_t taps, reach;
    bool transformed; // the planner has no reason to sum directly
};

static float x[N], w[4096], y[N];

static void fill(const struct reach_case *c)
{
    struct random random = random_start("reach");
    random_samples(&random, PARTITA_F32, x, N);
    random_samples(&random, PARTITA_F32, w, c->taps);
    for (size_t i = FIRST; i < END; i++) x[i] *= (float)LOUD;
}

// Error of outputs [first, end) of the causal filter, relative to their norm; y is `late` behind.
static double error_between(const struct reach_case *c, size_t first, size_t end, size_t late)
{
    double error = 0, norm = 0;
    for (size_t i = first; i < end; i++) {
        double sum = 0;
        for (size_t k = 0; k < c->taps && k <= i; k++) sum += (double)w[k] * (double)x[i - k];
        error += pow((double)y[i + late] - sum, 2);
        norm += sum * sum;
    }
    assert_true(norm > 0);
    return sqrt(error / norm);
}

static void check_choice(const struct reach_case *c, const struct partita_plan *plan)
{
    assert_true(plan->choice.transform < c->reach);
    if (c->transformed) assert_true(plan->choice.transform > 0);
}

static void check_passages(const struct reach_case *c, size_t late)
{
    const size_t before = FIRST - c->reach + 1, after = END - 1 + c->taps - 1 + c->reach;
    assert_true(c->reach <= FIRST && after + late < N);
    const double first = error_between(c, 0, before, late);
    const double last = error_between(c, after, N - late, late);
    if (!(first < LIMIT && last < LIMIT))
        fail_msg("relative errors %g before and %g after the loud passage", first, last);
}

static void signals(void **state)
{
    const struct reach_case *c = *state;
    const struct partita_problem problem = {LENGTH(N), KERNEL(c->taps),
                                            PAD_BEGIN((ptrdiff_t)c->taps - 1)};
    const struct partita_options options = {
        .engine = c->engine, .error_reach = c->reach, .threads = 2};
    struct partita_plan *plan;
    struct partita_filter *filter;
    fill(c);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    check_choice(c, plan);
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    check_passages(c, 0);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void streams(void **state)
{
    const struct reach_case *c = *state;
    const struct partita_problem problem = {STREAM(64), KERNEL(c->taps), LATENCY(2048)};
    const struct partita_options options = {.engine = c->engine, .error_reach = c->reach};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    fill(c);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    check_choice(c, plan);
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    partita_stream_process(stream, (float *[]){y}, (const float *[]){x}, N);
    check_passages(c, partita_plan_latency(plan));
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// One output of a square layer with as many output as input channels and the same size.
static double layer_output(const struct partita_problem *layer, const float *image,
                           const float *taps, const size_t at[3])
{
    const size_t planes = layer->in_channels, side = layer->size[0], kernel = layer->kernel[0];
    double sum = 0;
    for (size_t c = 0; c < planes; c++)
        for (size_t i = 0; i < kernel * kernel; i++) {
            const size_t row = at[1] + i / kernel - kernel / 2,
                         col = at[2] + i % kernel - kernel / 2;
            if (row < side && col < side)
                sum += (double)taps[((at[0] * planes + c) * kernel * kernel) + i] *
                       (double)image[(c * side + row) * side + col];
        }
    return sum;
}

enum { SIDE = 48, PLANES = 16 };

// The left half of every row is loud.
static void layers(void **state)
{
    const size_t reach = (size_t)(uintptr_t)*state;
    enum { SAMPLES = PLANES * SIDE * SIDE, TAPS = PLANES * PLANES * 9, QUIET = SIDE / 2 };
    static float image[SAMPLES], taps[TAPS], result[SAMPLES];
    const struct partita_problem problem = {SIZE(SIDE, SIDE), CHANNELS(PLANES, PLANES),
                                            KERNEL(3, 3), PAD(1, 1), CORRELATE};
    const struct partita_options options = {.error_reach = reach, .directions = PARTITA_FORWARD};
    struct random random = random_start("layers");
    struct partita_plan *plan;
    struct partita_filter *filter;
    random_samples(&random, PARTITA_F32, image, SAMPLES);
    random_samples(&random, PARTITA_F32, taps, TAPS);
    for (size_t i = 0; i < SAMPLES; i++)
        if (i % SIDE < QUIET) image[i] *= (float)LOUD;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_true(plan->choice.transform < reach);
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_forward(plan, filter, result, image, NULL));
    double error = 0, norm = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        const size_t at[3] = {i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE};
        if (at[2] < QUIET + reach) continue; // QUIET is the last column that depends on a loud one
        const double expected = layer_output(&problem, image, taps, at);
        error += pow((double)result[i] - expected, 2);
        norm += expected * expected;
    }
    if (!(sqrt(error / norm) < 4 * LIMIT)) // cpu/winograd's own errors are up to 2e-6
        fail_msg("%s: relative error %g", plan->engine->name, sqrt(error / norm));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// Item 0 is loud. With so many items, and an odd number of channels, cpu/tiles has transforms that
// two items share.
static void items(void **state)
{
    enum { ITEMS = 40, EDGE = 24, DEPTH = 3, ITEM = DEPTH * EDGE * EDGE, TAPS = 9 * 49 };
    static float images[ITEMS * ITEM], taps[TAPS], result[ITEMS * ITEM];
    const struct partita_problem problem = {
        SIZE(EDGE, EDGE), CHANNELS(DEPTH, DEPTH), KERNEL(7, 7), PAD(3, 3), CORRELATE, BATCH(ITEMS)};
    const struct partita_options options = {.error_reach = 1000, .directions = PARTITA_FORWARD};
    struct random random = random_start("items");
    struct partita_plan *plan;
    struct partita_filter *filter;
    (void)state;
    random_samples(&random, PARTITA_F32, images, ITEMS * ITEM);
    random_samples(&random, PARTITA_F32, taps, TAPS);
    for (size_t i = 0; i < ITEM; i++) images[i] *= (float)LOUD;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_forward(plan, filter, result, images, NULL));
    for (size_t item = 1; item < ITEMS; item++) {
        double error = 0, norm = 0;
        for (size_t i = 0; i < ITEM; i += 7) { // some outputs of each row
            const size_t at[3] = {i / EDGE / EDGE, i / EDGE % EDGE, i % EDGE};
            const double expected = layer_output(&problem, images + item * ITEM, taps, at);
            error += pow((double)result[item * ITEM + i] - expected, 2);
            norm += expected * expected;
        }
        if (!(sqrt(error / norm) < 4 * LIMIT))
            fail_msg("%s: relative error %g of item %zu", plan->engine->name, sqrt(error / norm),
                     item);
    }
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void engines_without_such_transforms_are_refused(void **state)
{
    const struct partita_problem problem = {LENGTH(N), KERNEL(300)};
    struct log_lines lines;
    struct partita_plan *plan;
    const struct partita_options options = {
        .engine = *state, .error_reach = 300, .log = log_into(&lines)};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "error_reach"));
}

// A choice that was measured within a reach is remembered for that reach alone.
static void measured_choices_are_kept_apart(void **state)
{
    (void)state;
    const struct partita_problem problem = {LENGTH(4000), KERNEL(300)};
    struct partita_options options = {.effort = PARTITA_MEASURE, .error_reach = 1};
    assert_ok(partita_wisdom_create(&options.wisdom));
    for (int i = 0; i < 3; i++) {
        struct partita_plan *plan;
        if (i == 2) options.error_reach = 0;
        assert_ok(partita_plan_create(&problem, &options, &plan));
        assert_int_equal(plan->remembered, i < 2);
        partita_plan_destroy(plan);
        options.effort = PARTITA_ESTIMATE;
    }
    partita_wisdom_destroy(options.wisdom);
}

// Explain says what the bound costs, if it costs anything.
static void price_is_explained(void **state)
{
    (void)state;
    static char text[1 << 16];
    static const struct partita_problem problems[] = {
        {LENGTH(N), KERNEL(3000)}, {LENGTH(N), KERNEL(3)}, {STREAM(64), KERNEL(3000)}};
    for (int i = 0; i < 3; i++)
        for (int bounded = 0; bounded < 2; bounded++) {
            const struct partita_options options = {.error_reach = (size_t)bounded};
            struct partita_plan *plan;
            assert_ok(partita_plan_create(&problems[i], &options, &plan));
            assert_in_range(partita_plan_explain(plan, text, sizeof text), 1, sizeof text - 1);
            const char *line = strstr(text, "error_reach 1: takes ");
            assert_int_equal(line != NULL, bounded && i != 1);
            if (line) assert_true(strtod(line + 21, NULL) > 1);
            partita_plan_destroy(plan);
        }
}

// Without the bound longer transforms exceed the error budget, and so does every engine.
static void price_of_the_only_choice(void **state)
{
    (void)state;
    const struct partita_problem problem = {STREAM(64), KERNEL(65536)};
    const struct partita_options options = {.error_reach = 1024, .error_budget = 2.5e-7};
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_null(plan->unbounded.engine);
    assert_true(plan->unbounded.times == 0);
    partita_plan_destroy(plan);
}

static const struct reach_case signal_cases[] = {
    {NULL, 9, 1, false},
    {NULL, 300, 1, false},
    {NULL, 300, 1024, true},
    {NULL, 300, 8192, true},
    {NULL, 3000, 5000, true},
    {"cpu/direct", 300, 1, false},
    {"cpu/overlap-save", 300, 400, true},
    {"cpu/overlap-save", 300, 2049, true},
    {"cpu/overlap-add", 300, 2049, true},
    {"cpu/blocks", 300, 129, true},
    {"cpu/blocks", 300, 2049, true},
};
static const struct reach_case stream_cases[] = {
    {NULL, 300, 1, false},
    {NULL, 300, 1025, true},
    {"cpu/overlap-save", 300, 1025, true},
    {"cpu/partitioned", 3000, 200, true},
    {"cpu/partitioned", 3000, 4096, true},
};
enum {
    N_SIGNALS = sizeof signal_cases / sizeof *signal_cases,
    N_STREAMS = sizeof stream_cases / sizeof *stream_cases
};

int main(void)
{
    struct CMUnitTest tests[N_SIGNALS + N_STREAMS + 9];
    size_t n = 0;
    for (size_t i = 0; i < N_SIGNALS; i++)
        tests[n++] = named_test(signals, &signal_cases[i], "signal-%zu-%s", i,
                                signal_cases[i].engine ? signal_cases[i].engine : "any");
    for (size_t i = 0; i < N_STREAMS; i++)
        tests[n++] = named_test(streams, &stream_cases[i], "stream-%zu-%s", i,
                                stream_cases[i].engine ? stream_cases[i].engine : "any");
    for (uintptr_t reach = 1; reach <= 16; reach *= 4)
        tests[n++] = named_test(layers, (void *)reach, "layer-%zu", (size_t)reach);
    tests[n++] = named_test(items, NULL, "items");
    tests[n++] = named_test(engines_without_such_transforms_are_refused, "cpu/overlap-save",
                            "refused-overlap-save");
    tests[n++] =
        named_test(engines_without_such_transforms_are_refused, "cpu/overlap-add", "refused-add");
    tests[n++] =
        named_test(measured_choices_are_kept_apart, NULL, "measured-choices-are-kept-apart");
    tests[n++] = named_test(price_is_explained, NULL, "price-is-explained");
    tests[n++] = named_test(price_of_the_only_choice, NULL, "price-of-the-only-choice");
    return run_test_list(tests, n);
}
