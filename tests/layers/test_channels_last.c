// SPDX-License-Identifier: MIT
// Layers with problem.channels_last, with each engine of the CPU that serves them: against the
// oracle; the same bits as channels first after a transposition, where sums have the same order and
// the planner takes the same algorithm; samples that are not finite or that overflow; threads,
// workspaces, limits and saved transforms; and what is refused. Random problems of the other tests
// of layers have channels last as well.
#include "core/plan.h"
#include "cpu/depthwise/depthwise.h"
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "support/allocators.h"

// Channels below, at and above the lanes of a vector, in whole and in part of a group's.
static const struct named_problem problems[] = {
    {"one-by-one", {SIZE(7, 5), BATCH(3), CHANNELS(40, 33)}},
    {"one-by-one-vectors", {SIZE(9, 47), BATCH(2), CHANNELS(272, 80), RELU}},
    {"one-by-one-crowded", {SIZE(16, 16), CHANNELS(8, 1024)}}, // rows whole pages apart
    {"one-by-one-groups", {SIZE(5, 3), BATCH(3), CHANNELS(48, 96), GROUPS(3)}},
    {"same-3x3", {SIZE(13, 10), CHANNELS(35, 18), KERNEL(3, 3), PAD(1, 1), RELU}},
    {"one-channel", {SIZE(20, 21), CORRELATE, CHANNELS(1, 16), KERNEL(3, 3), PAD(1, 1)}},
    {"to-one-channel", {SIZE(20, 21), CHANNELS(17, 1), KERNEL(5, 5), PAD(2, 2)}},
    {"small-maps", {SIZE(3, 4), BATCH(5), CHANNELS(34, 48), KERNEL(3, 3), PAD(1, 1), RELU}},
    {"groups", {SIZE(13, 12), CHANNELS(36, 54), GROUPS(3), KERNEL(3, 3), STRIDE(2, 2), PAD(1, 1)}},
    {"stride-dilation",
     {SIZE(31, 29), CHANNELS(6, 17), KERNEL(4, 5), STRIDE(3, 2), DILATION(2, 4), PAD_BEGIN(5, 11),
      PAD_END(2, 3)}},
    {"sums-beyond-the-cache", {SIZE(32, 32), CHANNELS(4, 72), KERNEL(3, 3), PAD(1, 1)}},
    {"cropped", {SIZE(20, 20), CHANNELS(5, 17), KERNEL(3, 3), PAD_BEGIN(-4, -2), PAD_END(-3, -6)}},
    {"depthwise",
     {SIZE(13, 12), BATCH(2), CHANNELS(40, 40), GROUPS(40), KERNEL(7, 7), PAD(3, 3), RELU}},
    // Vectors of adjacent channels: the last ones with some before them, fewer than lanes, rows in
    // two parts, and padding that no tap leaves.
    {"depthwise-small",
     {SIZE(13, 14), CHANNELS(33, 33), GROUPS(33), KERNEL(3, 5), PAD(1, 2), RELU}},
    {"depthwise-stride",
     {SIZE(15, 13), BATCH(2), CHANNELS(33, 33), GROUPS(33), KERNEL(3, 3), STRIDE(2, 2), PAD(1, 1)}},
    {"depthwise-long-rows", {SIZE(5, 300), CHANNELS(9, 9), GROUPS(9), KERNEL(3, 3), PAD(4, 4)}},
    {"depthwise-large", {SIZE(12, 14), CHANNELS(18, 18), GROUPS(18), KERNEL(11, 11), PAD(5, 5)}},
    {"depthwise-multiplied",
     {SIZE(9, 9), BATCH(3), CHANNELS(18, 54), GROUPS(18), KERNEL(3, 3), STRIDE(2, 2)}},
    {"line", {SIZE(200), CORRELATE, CHANNELS(17, 3), KERNEL(30), PAD_BEGIN(29)}},
    {"line-one-channel", {SIZE(700), BATCH(2), CHANNELS(1, 33), KERNEL(40), PAD(20)}},
    {"line-groups",
     {SIZE(3000), BATCH(2), CHANNELS(45, 36), GROUPS(9), KERNEL(50), STRIDE(3), PAD(49), RELU}},
    {"line-short", {SIZE(60), CHANNELS(20, 20), GROUPS(20), KERNEL(20), PAD(10)}},
    {"line-depthwise",
     {SIZE(5000), CORRELATE, CHANNELS(37, 37), GROUPS(37), KERNEL(60), DILATION(2), PAD(60)}},
    {"volume", {SIZE(4, 5, 6), BATCH(2), CHANNELS(19, 7), KERNEL(3, 2, 3), PAD(1, 0, 2)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const char *const serving[] = {"cpu/direct", "cpu/gemm",      "cpu/winograd",
                                      "cpu/tiles",  "cpu/depthwise", "cpu/overlap-save"};
enum { N_SERVING = sizeof serving / sizeof *serving };

struct last_case {
    const char *engine;
    enum partita_type type;
    const struct partita_problem *problem;
};

// cpu/direct filters signals with channels first path by path. A transform of cpu/tiles has two
// channels, or of an odd number of them with channels first one channel at several positions. With
// AVX2 cpu/gemm sums fewer channels of one tap in registers where it reads them in the array.
static bool has_same_sums(const struct last_case *c)
{
    const struct partita_problem *p = c->problem;
    const bool many = p->in_channels > 86 || p->out_channels > 86;
    if (!strcmp(c->engine, "cpu/gemm") && many && p->kernel[0] * p->kernel[1] <= 1) return false;
    if (!strcmp(c->engine, "cpu/tiles"))
        return p->in_channels / or_one(p->groups) % 2 + p->out_channels / or_one(p->groups) % 2 ==
               0;
    return strcmp(c->engine, "cpu/direct") != 0;
}

// The array of a layer with channels last, in the order of channels first.
static void *first_order(const struct layer *last, enum layer_array array)
{
    const struct partita_problem *p = &last->problem;
    const bool inputs = array == LAYER_X || array == LAYER_GX;
    const size_t bytes = partita_type_size(p->signal), n = last->n[array];
    const size_t channels = or_one(inputs ? p->in_channels : p->out_channels);
    const size_t plane = n / or_one(p->batch) / channels;
    char *ret = malloc(n * bytes + 1);
    for (size_t i = 0; i < n; i++) {
        const size_t item = i / plane / channels, channel = i / plane % channels;
        const size_t from = (item * plane + i % plane) * channels + channel;
        memcpy(ret + i * bytes, (const char *)last->array[array] + from * bytes, bytes);
    }
    return ret;
}

// The same layer with channels first; its plan is of the same engine.
static void open_first(struct layer *first, const struct layer *last,
                       const struct partita_options *options)
{
    struct layer moved = *last;
    moved.problem.channels_last = false;
    for (int i = 0; i < LAYER_Y; i++)
        if (i == LAYER_X || i == LAYER_GY) moved.array[i] = first_order(last, (enum layer_array)i);
    layer_open_copy(first, &moved, options);
    free(moved.array[LAYER_X]);
    free(moved.array[LAYER_GY]);
}

// Whether two plans of a direction have the same algorithm with the same sizes. Winograd's tiles
// have another price with channels last; rows of planes, and few taps of cpu/gemm along the
// outputs, are summed only with channels first. With channels last a task of backward weight of
// cpu/overlap-save has several groups: with fewer tasks its blocks are summed in more parts, whose
// price may make longer or shorter ones cheaper.
static bool same_algorithm(const struct partita_plan *a, const struct partita_plan *b)
{
    const bool same = a->choice.variant == b->choice.variant &&
                      a->choice.flops == b->choice.flops && a->choice.hop == b->choice.hop;
    const char *engine = a->engine->name;
    if (!strcmp(engine, "cpu/overlap-save") && a->direction == PARTITA_BACKWARD_WEIGHT &&
        a->shape.groups > 1)
        return false;
    assert_true(same || !strcmp(engine, "cpu/winograd") || !strcmp(engine, "cpu/depthwise") ||
                (!strcmp(engine, "cpu/gemm") && a->direction == PARTITA_BACKWARD_WEIGHT));
    return same;
}

// NaN with any bits are the same.
static void check_same(const struct layer *last, const struct layer *first)
{
    static const enum layer_array results[] = {LAYER_Y, LAYER_GX, LAYER_GW};
    const struct partita_plan *compared[] = {last->plan, last->plan->backward_data,
                                             last->plan->backward_weight};
    const struct partita_plan *other[] = {first->plan, first->plan->backward_data,
                                          first->plan->backward_weight};
    for (int i = 0; i < 3; i++) {
        if (!same_algorithm(compared[i], other[i])) continue;
        const enum layer_array array = results[i];
        struct layer moved = *last;
        moved.array[array] = array == LAYER_GW ? last->array[array] : first_order(last, results[i]);
        for (size_t k = 0; k < last->n[array]; k++) {
            const double a = layer_sample(&moved, array, k), b = layer_sample(first, array, k);
            if (!(a == b || (isnan(a) && isnan(b))))
                fail_msg("result %d, sample %zu: %.17g, with channels first %.17g", i, k, a, b);
        }
        if (array != LAYER_GW) free(moved.array[array]);
    }
}

// Executes both layers, in which sample `at` of x and of gy is `value`, unless that is 0.
static void compare_layouts(struct layer *last, const struct partita_options *options, double value)
{
    struct layer first;
    const enum partita_type type = last->problem.signal;
    if (value != 0) {
        sample_put(type, last->array[LAYER_X], last->n[LAYER_X] / 3, value);
        sample_put(type, last->array[LAYER_GY], last->n[LAYER_GY] / 2, value);
    }
    open_first(&first, last, options);
    layer_run(last);
    layer_run(&first);
    check_same(last, &first);
    layer_close(&first);
}

static struct partita_problem problem_of(const struct last_case *c)
{
    const struct partita_problem suited = layer_suit_engine(c->engine, c->problem);
    struct partita_problem p = problem_of_type(&suited, c->type);
    p.channels_last = true;
    return p;
}

static void against_oracle(void **state)
{
    const struct last_case *c = *state;
    const struct partita_problem p = problem_of(c);
    const struct partita_options options = {
        .engine = c->engine, .threads = 1, .directions = LAYER_ALL};
    struct random random = random_start("oracle");
    struct layer layer;
    layer_open(&layer, &p, &options, &random);
    layer_assert_engine(partita_plan_engine(layer.plan, PARTITA_FORWARD), c->engine);
    layer_run(&layer);
    layer_check_inputs(&layer);
    layer_check(&layer);
    if (has_same_sums(c)) compare_layouts(&layer, &options, 0);
    const struct partita_options two = {.engine = c->engine, .threads = 2, .directions = LAYER_ALL};
    if (c->type == PARTITA_F64) layer_check_copy(&layer, &two);
    struct layer other;
    layer_open_copy(&other, &layer, &options);
    layer_check_workspace(&layer, &other);
    layer_close(&other);
    layer_close(&layer);
}

// Samples that are not finite reach what they reach with channels first, and so do sums of
// transforms that overflow.
static void special_samples(void **state)
{
    const struct last_case *c = *state;
    const struct partita_problem p = problem_of(c);
    const double values[] = {INFINITY, NAN, c->type == PARTITA_F32 ? 0x1p126 : 0x1p1020};
    const struct partita_options options = {
        .engine = c->engine, .threads = 1, .directions = LAYER_ALL};
    for (int i = 0; i < 3; i++) {
        struct random random = random_start("special");
        struct layer layer;
        layer_open(&layer, &p, &options, &random);
        compare_layouts(&layer, &options, values[i]);
        layer_close(&layer);
    }
}

static void limits(void **state)
{
    const struct last_case *c = *state;
    const struct partita_problem p = problem_of(c);
    const struct partita_options options = {
        .engine = c->engine, .threads = 1, .directions = LAYER_ALL};
    struct random random = random_start("limits");
    // Transforms of edges up to 64 along two axes; direct sums have a smaller gate.
    const struct layer_limits limits = {
        .first = 1 << 12, .end = 1 << 22, .factor = 8, .transform = 64 * 64};
    assert_true(layer_check_limits(&p, &options, &limits, &random) > 0);
}

static void saved_transforms(void **state)
{
    struct random random = random_start("saved");
    const struct partita_options options = {
        .engine = "cpu/tiles", .threads = 2, .directions = LAYER_ALL};
    const struct partita_problem p = {SIZE(20, 21), CHANNELS(18, 20), KERNEL(7, 7),
                                      PAD(3, 3),    BATCH(2),         .channels_last = true};
    struct layer layer, first;
    (void)state;
    layer_open(&layer, &p, &options, &random);
    open_first(&first, &layer, &options);
    layer_run_saved(&layer, true);
    layer_run_saved(&first, true);
    check_same(&layer, &first);
    layer_close(&first);
    layer_close(&layer);
}

struct refusal {
    const char *name;
    struct partita_problem problem;
    const char *engine, *line;
    enum partita_status status;
};

static const struct refusal refusals[] = {
    {"stream",
     {STREAM(64), CHANNELS(2, 2), .channels_last = true},
     NULL,
     "not of streams",
     PARTITA_ERR_ARG},
    {"complex",
     {LENGTH(9), TYPES(CF32, CF32), CHANNELS(2, 2), .channels_last = true},
     NULL,
     "not of cf32",
     PARTITA_ERR_ARG},
    {"up",
     {LENGTH(9), CHANNELS(2, 2), UP(2), .channels_last = true},
     NULL,
     "problem.up = 2",
     PARTITA_ERR_ARG},
    {"engine",
     {LENGTH(900), CHANNELS(2, 2), KERNEL(99), .channels_last = true},
     "cpu/overlap-add",
     "needs channels first",
     PARTITA_ERR_UNSUPPORTED},
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

static void keep_line(void *user, const char *text)
{
    snprintf(user, 200, "%s", text);
}

static void refuses(void **state)
{
    const struct refusal *r = *state;
    char line[200] = "";
    const struct partita_options options = {.engine = r->engine, .log = {keep_line, line}};
    struct partita_plan *plan = NULL;
    assert_int_equal(partita_plan_create(&r->problem, &options, &plan), r->status);
    if (!strstr(line, r->line)) fail_msg("\"%s\" lacks \"%s\"", line, r->line);
}

// A single channel has no layout: engines that need channels first serve it.
static void one_channel_is_either(void **state)
{
    const struct partita_problem p = {LENGTH(5000), KERNEL(999), .channels_last = true};
    struct partita_plan *plan;
    (void)state;
    assert_ok(
        partita_plan_create(&p, &(struct partita_options){.engine = "cpu/overlap-save"}, &plan));
    partita_plan_destroy(plan);
}

// Small depthwise kernels without gaps are summed in vectors of adjacent channels.
static void adjacent_channels_are_chosen(void **state)
{
    const struct partita_problem p = {SIZE(28, 28), CHANNELS(64, 64), GROUPS(64),
                                      KERNEL(3, 3), PAD(1, 1),        .channels_last = true};
    struct partita_plan *plan;
    char text[20000];
    (void)state;
    assert_ok(partita_plan_create(&p, &(struct partita_options){.engine = "cpu/depthwise"}, &plan));
    partita_plan_explain(plan, text, sizeof text);
    if (plan->isa >= CPU_AVX2) assert_non_null(strstr(text, "vectors of adjacent channels"));
    partita_plan_destroy(plan);
}

// Samples of 16 bits in vectors of adjacent channels: sums are those of f32 to the bit, and rounded
// once, whatever rows a task widens.
static void adjacent_channels_round_f32(void **state)
{
    static const struct partita_problem layers[] = {
        {SIZE(41, 14), BATCH(2), CHANNELS(33, 33), KERNEL(3, 5), PAD(1, 2), RELU},
        {SIZE(37, 29), BATCH(2), CHANNELS(48, 48), KERNEL(7, 7), STRIDE(2, 2), PAD(3, 3)},
        {SIZE(20, 200), CHANNELS(48, 48), KERNEL(3, 3), PAD(1, 1)},
        {SIZE(40, 20), CHANNELS(17, 17), KERNEL(5, 3), PAD_BEGIN(-4, -2), PAD_END(-3, -6)}};
    const enum partita_type type = *(const enum partita_type *)*state;
    const struct partita_options options = {
        .engine = "cpu/depthwise", .threads = 2, .directions = LAYER_ALL};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct random random = random_start("adjacent");
        struct partita_problem p = problem_of_type(&layers[i], type);
        p.channels_last = true, p.groups = p.in_channels;
        struct layer half, wide;
        layer_open(&half, &p, &options, &random);
        p = problem_of_type(&p, PARTITA_F32);
        layer_open(&wide, &p, &options, &random);
        for (int a = 0; a < LAYER_Y; a++)
            for (size_t k = 0; k < half.n[a]; k++)
                sample_put(PARTITA_F32, wide.array[a], k,
                           layer_sample(&half, (enum layer_array)a, k));
        partita_filter_destroy(wide.filter);
        assert_ok(
            filter_with_bias(wide.plan, wide.array[LAYER_W], wide.array[LAYER_BIAS], &wide.filter));
        layer_run(&half);
        layer_run(&wide);
        if (half.plan->isa == CPU_AVX512)
            assert_int_equal(half.plan->choice.variant, DEPTHWISE_CHANNELS);
        for (int a = LAYER_Y; a <= LAYER_GX; a++)
            for (size_t k = 0; k < half.n[a]; k++)
                if (((const uint16_t *)half.array[a])[k] !=
                    half_bits(type, layer_sample(&wide, (enum layer_array)a, k)))
                    fail_msg("layer %zu, array %d, sample %zu: %g, not %g", i, a, k,
                             layer_sample(&half, (enum layer_array)a, k),
                             layer_sample(&wide, (enum layer_array)a, k));
        layer_close(&wide);
        layer_close(&half);
    }
}

int main(void)
{
    static enum partita_type half_types[] = {PARTITA_F16, PARTITA_BF16};
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_BF16};
    static struct last_case cases[N_SERVING * N_PROBLEMS * 3];
    static struct CMUnitTest tests[3 * N_SERVING * N_PROBLEMS * 3 + N_REFUSALS + 5];
    struct last_case *c = cases;
    size_t n = 0;
    for (size_t e = 0; e < N_SERVING; e++)
        for (size_t t = 0; t < 3; t++)
            for (size_t i = 0; i < N_PROBLEMS; i++, c++) {
                const char *type = partita_type_name(types[t]), *name = problems[i].name;
                *c = (struct last_case){serving[e], types[t], &problems[i].problem};
                const struct partita_problem p = problem_of(c);
                if (t == 1 && (i % 2 || layer_is_brief())) continue; // every other one is enough
                // Pairs of channels, whose number may be odd, by the engines that sum them.
                if (t == 2 && (i % 2 || e > 1 || layer_is_brief())) continue;
                if (!layer_is_served(serving[e], &p)) continue;
                tests[n++] = named_test(against_oracle, c, "%s/%s-%s", serving[e], name, type);
                if (t != 1 && i % 2 == 0) continue; // the type is of no account
                if (has_same_sums(c))
                    tests[n++] = named_test(special_samples, c, "%s/special-%s", serving[e], name);
                if (i % 4 == 1)
                    tests[n++] = named_test(limits, c, "%s/limits-%s", serving[e], name);
            }
    tests[n++] = named_test(saved_transforms, NULL, "saved transforms");
    tests[n++] = named_test(one_channel_is_either, NULL, "one channel is either");
    tests[n++] = named_test(adjacent_channels_are_chosen, NULL, "adjacent channels are chosen");
    for (int i = 0; i < 2; i++)
        tests[n++] =
            named_test(adjacent_channels_round_f32, &half_types[i],
                       "adjacent channels of %s round f32", partita_type_name(half_types[i]));
    for (size_t i = 0; i < N_REFUSALS; i++)
        tests[n++] = named_test(refuses, (void *)&refusals[i], "refuses %s", refusals[i].name);
    return run_test_list(tests, n);
}
