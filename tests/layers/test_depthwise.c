// SPDX-License-Identifier: MIT
// cpu/depthwise on depthwise layers, with each of its variants imposed: random and difficult
// geometry against the oracle, single samples and taps, the same bits for any number of threads,
// workspace, the choice and its explanation. Its kernels are tested in test_lanes_kernels.c,
// properties of all engines of layers in test_layers.c.
#include "core/plan.h" // before <complex.h>, which defines `complex` as a macro

#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "support/reference_layer.h"

static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
static const struct partita_options plain = {
    .engine = "cpu/depthwise", .threads = 2, .directions = LAYER_ALL};

// Edges of tiles; 1: direct sums.
static const size_t variants[] = {1, 16, 36, 64};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

// Makes a plan of one direction again with another variant; false if there is none.
static bool replan(struct partita_plan *plan, size_t transform)
{
    struct cost_model model;
    struct estimate estimate = {0};
    cost_model_default(&model, plan->isa);
    const struct request request = {.shape = &plan->shape,
                                    .direction = plan->direction,
                                    .model = &model,
                                    .transform = transform,
                                    .workspace_limit = SIZE_MAX};
    plan->engine->estimate(&request, &estimate);
    if (!estimate.applicable) return false;
    plan_destroy_state(plan);
    plan->choice = estimate;
    assert_ok(plan_create_state(plan, &request));
    return true;
}

// Imposes a variant on all directions of a layer; false if one of them does not have it.
static bool impose(struct layer *layer, size_t transform)
{
    partita_filter_destroy(layer->filter);
    struct partita_plan *plans[] = {layer->plan, layer->plan->backward_data,
                                    layer->plan->backward_weight};
    bool all = true;
    for (int i = 0; i < 3; i++) all = all && replan(plans[i], transform);
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
    return all;
}

// Executes a problem with every variant; counts those that it has.
static void all_variants(const struct partita_problem *problem, struct random *random,
                         int n_served[N_VARIANTS])
{
    struct layer layer;
    layer_open(&layer, problem, &plain, random);
    for (int i = 0; i < N_VARIANTS; i++) {
        if (!impose(&layer, variants[i])) continue;
        n_served[i]++;
        layer_run(&layer);
        layer_check(&layer);
    }
    layer_close(&layer);
}

static struct partita_problem draw(struct random *random, enum partita_type type)
{
    for (;;) {
        struct partita_problem p = {.signal = type,
                                    .taps = type,
                                    .rank = 1 + (int)random_below(random, 3),
                                    .op = (enum partita_op)random_below(random, 2),
                                    .batch = 1 + random_below(random, 5),
                                    .activation = (enum partita_activation)random_below(random, 2)};
        p.groups = p.in_channels = 1 + random_below(random, random_below(random, 3) ? 7 : 40);
        p.out_channels = p.groups * (random_below(random, 3) ? 1 : 1 + random_below(random, 3));
        const bool dense = random_below(random, 2); // without stride, for transforms
        for (int a = 0; a < p.rank; a++) {
            const size_t longest = (size_t[]){300, 40, 12}[p.rank - 1];
            p.size[a] = 1 + random_below(random, longest);
            p.kernel[a] = 1 + random_below(random, random_below(random, 3) ? 8 : longest);
            p.stride[a] = dense ? 1 : 1 + random_below(random, 4);
            p.dilation[a] = random_below(random, 2) ? 1 : 1 + random_below(random, 4);
            p.pad_begin[a] = (ptrdiff_t)random_below(random, 16) - 4;
            p.pad_end[a] = (ptrdiff_t)random_below(random, 16) - 4;
        }
        double products = (double)(p.batch * p.out_channels);
        for (int a = 0; a < p.rank; a++)
            products *= (double)(reference_outputs(&p, (size_t)a) * p.kernel[a]);
        if (products > 0 && products < 1e5) return p;
    }
}

enum { RANDOM_PROBLEMS = 30 };

static void random_geometry(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    struct random random = random_start("depthwise");
    int n_served[N_VARIANTS] = {0};
    for (int i = 0; i < RANDOM_PROBLEMS; i++) {
        struct partita_problem p = draw(&random, type);
        all_variants(&p, &random, n_served);
    }
    assert_int_equal(n_served[0], RANDOM_PROBLEMS);
    for (int i = 1; i < N_VARIANTS; i++) assert_true(n_served[i] > 0);
}

// Kernels as large as the map and larger, padding larger than the kernel, crops, several outputs a
// channel, maps of one row and of one column, more and fewer channels than lanes.
static const struct partita_problem difficult_problems[] = {
    {SIZE(9, 11), CHANNELS(3, 3), KERNEL(9, 11)},
    {SIZE(10, 11), CHANNELS(3, 3), KERNEL(31, 31), PAD(15, 15)},
    {SIZE(2, 3), KERNEL(7, 9), PAD(6, 8)},
    {SIZE(4, 5), CORRELATE, CHANNELS(2, 6), KERNEL(2, 3), PAD_BEGIN(17, 9), PAD_END(8, 26)},
    {SIZE(20, 20), CHANNELS(5, 5), KERNEL(3, 3), PAD_BEGIN(-4, -2), PAD_END(-3, -6)},
    {SIZE(3, 20), CHANNELS(4, 4), KERNEL(38, 3), PAD_BEGIN(40, 1), PAD_END(-5, 1)}, // padding alone
    {SIZE(8, 60), CORRELATE, CHANNELS(17, 17), KERNEL(5, 5), DILATION(3, 7), PAD(6, 14)},
    {SIZE(1, 90), CHANNELS(33, 33), KERNEL(1, 7), PAD_END(0, 6)},
    {SIZE(90, 1), BATCH(7), CHANNELS(2, 4), KERNEL(7, 1), PAD_BEGIN(3)},
    {SIZE(400), BATCH(3), CHANNELS(9, 9), KERNEL(30), PAD_BEGIN(29)},
    {SIZE(4, 4), KERNEL(3, 3), DILATION(9, 7), PAD(18, 14)},
    // Sums along rows, for which the estimate is the least: forward, or both.
    {SIZE(17, 29), BATCH(3), CHANNELS(19, 19), KERNEL(3, 3), PAD(1, 1)},
    {SIZE(31, 33), BATCH(2), CHANNELS(9, 9), KERNEL(3, 4), STRIDE(2, 2), PAD(1, 2)},
    {SIZE(20, 40), CHANNELS(5, 5), KERNEL(2, 5), STRIDE(1, 2), PAD_BEGIN(3, -2), PAD_END(-1, 4)},
    // Tiles in padding alone, for which planning once did not end.
    {SIZE(200), BATCH(2), CHANNELS(3, 3), KERNEL(51), PAD_BEGIN(-320), PAD_END(600)},
};
enum { N_DIFFICULT = sizeof difficult_problems / sizeof *difficult_problems };

static void difficult_geometry(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    struct random random = random_start("hostile");
    for (size_t i = 0; i < N_DIFFICULT; i++) {
        struct partita_problem p = difficult_problems[i];
        int n_served[N_VARIANTS] = {0};
        p.groups = p.in_channels;
        for (size_t op = 0; op < 2; op++) {
            p.op = (enum partita_op)op;
            p.signal = p.taps = type;
            all_variants(&p, &random, n_served);
        }
        assert_int_equal(n_served[0], 2);
        assert_true(n_served[1] + n_served[2] + n_served[3] > 0 || p.stride[1] > 1);
    }
}

// With one sample 1 and one tap 1 exactly one output, or none, is 1, in the same channel only.
static void single_sample_and_tap(void **state)
{
    const size_t transform = *(const size_t *)*state;
    const struct partita_problem p = {SIZE(5, 6),   CORRELATE,      CHANNELS(3, 3),  GROUPS(3),
                                      KERNEL(3, 4), DILATION(1, 2), PAD_BEGIN(1, 5), PAD_END(2, 1)};
    struct random random = random_start("impulse");
    struct layer layer;
    layer_open(&layer, &p, &plain, &random);
    float *x = layer.array[LAYER_X], *w = layer.array[LAYER_W], *y = layer.array[LAYER_Y];
    double *expected = malloc(layer.n[LAYER_Y] * sizeof *expected);
    memset(layer.array[LAYER_BIAS], 0, layer.n[LAYER_BIAS] * sizeof(float));
    for (size_t i = 0; i < layer.n[LAYER_X]; i++) x[i] = 0;
    for (size_t t = 0; t < 12; t++) {
        for (size_t i = 0; i < layer.n[LAYER_W]; i++) w[i] = i % 12 == t;
        assert_true(impose(&layer, transform));
        for (size_t i = 0; i < layer.n[LAYER_X]; i++) {
            double as_doubles[3 * 12], inputs[3 * 30] = {0};
            x[i] = 1;
            inputs[i] = 1;
            for (size_t k = 0; k < layer.n[LAYER_W]; k++) as_doubles[k] = w[k];
            assert_ok(partita_forward(layer.plan, layer.filter, y, x, NULL));
            reference_layer_forward(&p, expected, inputs, as_doubles, NULL);
            for (size_t k = 0; k < layer.n[LAYER_Y]; k++)
                if (!(fabs(y[k] - expected[k]) <= (transform > 1 ? 0x1p-21 : 0)))
                    fail_msg("tap %zu, sample %zu, output %zu: %g, not %g", t, i, k, (double)y[k],
                             expected[k]);
            x[i] = 0;
        }
    }
    free(expected);
    layer_close(&layer);
}

// Several blocks of lanes, iterations, boxes and tiles.
static const struct partita_problem busy = {SIZE(20, 50), BATCH(3),     CHANNELS(19, 38),
                                            GROUPS(19),   KERNEL(7, 9), PAD(3, 4)};

static void any_threads_same_bits(void **state)
{
    const size_t transform = *(const size_t *)*state;
    struct random random = random_start("threads");
    struct layer first, other;
    layer_open(&first, &busy, &(struct partita_options){.engine = "cpu/depthwise", .threads = 1},
               &random);
    assert_true(impose(&first, transform));
    layer_run(&first);
    for (int threads = 2; threads <= 8; threads++) {
        layer_open_copy(&other, &first,
                        &(struct partita_options){.engine = "cpu/depthwise", .threads = threads});
        assert_true(impose(&other, transform));
        layer_run(&other);
        layer_same_bits(&first, &other);
        layer_close(&other);
    }
    layer_check(&first);
    layer_close(&first);
}

static void workspace_exact(void **state)
{
    const size_t transform = *(const size_t *)*state;
    struct random random = random_start("workspace");
    struct layer layer, other;
    layer_open(&layer, &busy, &plain, &random);
    assert_true(impose(&layer, transform));
    layer_run(&layer);
    layer_open_copy(&other, &layer, &plain);
    assert_true(impose(&other, transform));
    layer_check_workspace(&layer, &other);
    layer_close(&other);
    layer_close(&layer);
}

static void workspace_limit(void **state)
{
    (void)state;
    struct random random = random_start("limit");
    struct partita_problem p = busy;
    p.batch = 2;
    p.size[0] = 9;
    const struct partita_options options = {
        .engine = "cpu/depthwise", .threads = 3, .directions = LAYER_ALL};
    const struct layer_limits limits = {256, (size_t)1 << 26, 4, 0};
    assert_true(layer_check_limits(&p, &options, &limits, &random) > 3);
    // Sums along rows, which take more memory than those of planes side by side.
    const struct partita_problem rows = {SIZE(28, 28), CORRELATE,    BATCH(2), CHANNELS(40, 40),
                                         GROUPS(40),   KERNEL(3, 3), PAD(1, 1)};
    assert_true(layer_check_limits(&rows, &options, &limits, &random) > 3);
}

// The built-in model chooses direct sums for a 5x5 kernel and transforms for 31x31, and the
// explanation says so.
static void choice_is_explained(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        const size_t kernel = large ? 31 : 5;
        const struct partita_problem p = {SIZE(56, 56),
                                          CORRELATE,
                                          BATCH(4),
                                          CHANNELS(64, 64),
                                          GROUPS(64),
                                          KERNEL(kernel, kernel),
                                          PAD((ptrdiff_t)kernel / 2, (ptrdiff_t)kernel / 2)};
        char text[8192];
        struct partita_plan *plan;
        assert_ok(partita_plan_create(&p, &plain, &plan));
        assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
        for (int d = 1; d <= 4; d *= 2)
            assert_string_equal(partita_plan_engine(plan, (enum partita_direction)d),
                                "cpu/depthwise");
        assert_true((strstr(text, "direct rows") || strstr(text, "vectors along rows")) == !large);
        assert_true((strstr(text, "fft 72x72, 1 tiles of 56x56 outputs") != NULL) == large);
        partita_plan_destroy(plan);
    }
}

// Sums along rows of a small kernel on a small map, with any number of threads.
static void rows_are_explained(void **state)
{
    (void)state;
    const struct partita_problem p = {SIZE(28, 28), CORRELATE,    BATCH(4), CHANNELS(33, 33),
                                      GROUPS(33),   KERNEL(3, 3), PAD(1, 1)};
    struct random random = random_start("rows");
    struct layer first, other;
    char text[8192];
    layer_open(&first, &p, &plain, &random);
    assert_true(partita_plan_explain(first.plan, text, sizeof text) < sizeof text);
    assert_true((strstr(text, "plane by plane") != NULL) == (first.plan->isa >= CPU_AVX2));
    layer_run(&first);
    layer_check(&first);
    for (int threads = 1; threads <= 3; threads += 2) {
        layer_open_copy(&other, &first,
                        &(struct partita_options){.engine = "cpu/depthwise",
                                                  .threads = threads,
                                                  .directions = LAYER_ALL});
        layer_run(&other);
        layer_same_bits(&first, &other);
        layer_check_workspace(&first, &other);
        layer_close(&other);
    }
    layer_close(&first);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct partita_problem problem;
        const char *reason;
    } others[] = {
        {{SIZE(5, 5), CHANNELS(4, 4)}, "as many groups as input channels"},
        {{SIZE(5, 5), CHANNELS(4, 4), GROUPS(2)}, "as many groups as input channels"},
        {{LENGTH(50), TYPES(CF32, CF32)}, "real types"},
        {{.size = {PARTITA_UNBOUNDED}}, "bounded signals"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct log_lines lines;
        struct partita_plan *plan;
        const struct partita_options options = {
            .engine = "cpu/depthwise", .directions = PARTITA_FORWARD, .log = log_into(&lines)};
        assert_int_equal(partita_plan_create(&others[i].problem, &options, &plan),
                         PARTITA_ERR_UNSUPPORTED);
        assert_non_null(strstr(lines.text, others[i].reason));
    }
}

int main(void)
{
    static const struct promise of_types[] = {{"random", random_geometry},
                                              {"hostile", difficult_geometry}},
                                of_variants[] = {{"one-meets-one", single_sample_and_tap},
                                                 {"any-threads-same-bits", any_threads_same_bits},
                                                 {"workspace-exact", workspace_exact}};
    static const size_t both[] = {1, 36};
    static struct CMUnitTest tests[2 * 2 + 3 * 2 + 4];
    size_t n = 0;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 2; i++)
            tests[n++] = named_test(of_types[i].run, &types[t], "%s-%s", of_types[i].name,
                                    partita_type_name(types[t]));
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < 2; w++)
            tests[n++] = named_test(of_variants[i].run, &both[w], "%s-%s", of_variants[i].name,
                                    w ? "fft" : "direct");
    tests[n++] = named_test(workspace_limit, NULL, "workspace-limit");
    tests[n++] = named_test(choice_is_explained, NULL, "choice-in-words");
    tests[n++] = named_test(rows_are_explained, NULL, "rows-in-words");
    tests[n++] = named_test(refusals, NULL, "refusals");
    return run_test_list(tests, n);
}
