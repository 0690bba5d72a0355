// SPDX-License-Identifier: MIT
// Layers in all directions: a table of hostile shapes and many random ones against the oracle, gradients against finite
// differences and against the transpose identity <gy, A x> = <A' gy, x>, and the promises of the calls: the same bits
// for any number of threads, workspace as large as asked for and no larger than allowed, refusals that leave results
// alone.
#include "layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "reference_layer.h"

struct named_problem {
    const char *name;
    struct partita_problem problem;
};

static const struct named_problem problems[] = {
    {"one", {.rank = 2, .size = {1, 1}}},
    {"one-by-one", {.rank = 2, .batch = 3, .in_channels = 19, .out_channels = 13, .size = {7, 5}}},
    {"same-3x3",
     {.rank = 2,
      .batch = 2,
      .in_channels = 5,
      .out_channels = 9,
      .kernel = {3, 3},
      .size = {14, 14},
      .pad_begin = {1, 1},
      .pad_end = {1, 1}}},
    {"many-channels",
     {.rank = 2,
      .op = PARTITA_CORRELATE,
      .batch = 2,
      .in_channels = 70,
      .out_channels = 67,
      .kernel = {3, 3},
      .size = {6, 7},
      .pad_begin = {1, 1},
      .pad_end = {1, 1},
      .activation = PARTITA_RELU}},
    {"kernel-as-large-as-image", {.rank = 2, .in_channels = 3, .out_channels = 4, .kernel = {9, 11}, .size = {9, 11}}},
    {"padding-beyond-kernel",
     {.rank = 2,
      .op = PARTITA_CORRELATE,
      .out_channels = 2,
      .kernel = {2, 3},
      .size = {4, 5},
      .pad_begin = {7, 9},
      .pad_end = {8, 6}}},
    {"kernel-beyond-image", {.rank = 2, .kernel = {7, 9}, .size = {2, 3}, .pad_begin = {6, 8}, .pad_end = {6, 8}}},
    {"cropped", {.rank = 2, .kernel = {3, 3}, .size = {20, 20}, .pad_begin = {-4, -2}, .pad_end = {-3, -6}}},
    {"stride-above-kernel", {.rank = 2, .in_channels = 2, .kernel = {2, 3}, .size = {17, 19}, .stride = {5, 4}}},
    {"stride-above-size", {.rank = 2, .kernel = {2, 2}, .size = {6, 5}, .stride = {40, 50}}},
    {"stride-dilation-common",
     {.rank = 2,
      .in_channels = 2,
      .out_channels = 3,
      .kernel = {4, 5},
      .size = {31, 29},
      .stride = {6, 4},
      .dilation = {4, 6},
      .pad_begin = {5, 11},
      .pad_end = {2, 3}}},
    {"dilation-beyond-image",
     {.rank = 2, .kernel = {3, 3}, .size = {4, 4}, .dilation = {9, 7}, .pad_begin = {18, 14}, .pad_end = {18, 14}}},
    {"caffenet-1",
     {.rank = 2,
      .op = PARTITA_CORRELATE,
      .in_channels = 3,
      .out_channels = 10,
      .kernel = {11, 11},
      .size = {35, 39},
      .stride = {4, 4}}},
    {"depthwise",
     {.rank = 2,
      .batch = 2,
      .in_channels = 6,
      .out_channels = 6,
      .groups = 6,
      .kernel = {5, 5},
      .size = {13, 12},
      .pad_begin = {2, 2},
      .pad_end = {2, 2}}},
    {"depthwise-multiplied",
     {.rank = 2,
      .in_channels = 3,
      .out_channels = 12,
      .groups = 3,
      .kernel = {3, 3},
      .size = {9, 9},
      .stride = {2, 2}}},
    {"large-map",
     {.rank = 2,
      .op = PARTITA_CORRELATE,
      .in_channels = 3,
      .out_channels = 4,
      .kernel = {3, 3},
      .size = {61, 130},
      .pad_begin = {1, 1},
      .pad_end = {1, 1}}},
    {"row", {.rank = 2, .in_channels = 2, .out_channels = 2, .kernel = {1, 7}, .size = {1, 3000}, .pad_end = {0, 6}}},
    {"column", {.rank = 2, .in_channels = 2, .out_channels = 2, .kernel = {7, 1}, .size = {3000, 1}, .stride = {2, 1}}},
    {"batch", {.rank = 2, .batch = 37, .in_channels = 2, .out_channels = 3, .kernel = {2, 2}, .size = {3, 4}}},
    {"line", {.rank = 1, .in_channels = 12, .out_channels = 9, .kernel = {130}, .size = {700}, .pad_begin = {129}}},
    {"line-many-taps",
     {.rank = 1, .in_channels = 2, .out_channels = 2, .kernel = {700}, .size = {900}, .pad_end = {5}}},
    {"line-stride-dilation",
     {.rank = 1,
      .batch = 2,
      .in_channels = 8,
      .out_channels = 8,
      .kernel = {9},
      .size = {333},
      .stride = {3},
      .dilation = {5},
      .pad_begin = {20},
      .pad_end = {-7}}},
    {"volume",
     {.rank = 3,
      .batch = 2,
      .in_channels = 3,
      .out_channels = 5,
      .kernel = {3, 2, 3},
      .size = {6, 7, 8},
      .pad_begin = {1, 0, 2},
      .pad_end = {1, 1, 0}}},
    {"volume-strided",
     {.rank = 3,
      .op = PARTITA_CORRELATE,
      .in_channels = 4,
      .out_channels = 4,
      .groups = 2,
      .kernel = {2, 3, 2},
      .size = {7, 9, 8},
      .stride = {2, 3, 1},
      .dilation = {1, 2, 3},
      .pad_begin = {1, 2, 3},
      .pad_end = {0, 2, 1}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct layer_case {
    const char *engine, *name;
    enum partita_type type;
    const struct partita_problem *problem;
};

static struct partita_problem typed(const struct partita_problem *problem, enum partita_type type)
{
    struct partita_problem p = *problem;
    p.signal = p.taps = type;
    return p;
}

static void against_oracle(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem problem = typed(c->problem, c->type);
    struct random random = random_start(c->name);
    struct layer layer;
    layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine, .threads = 2}, &random);
    assert_string_equal(partita_plan_engine(layer.plan), c->engine);
    layer_run(&layer);
    for (int i = 0; i < LAYER_Y; i++) // inputs are kept
        for (size_t k = 0; k < layer.n[i]; k++)
            assert_true(layer_sample(&layer, (enum layer_array)i, k) == layer.expected[i][k]);
    layer_check(&layer);
    layer_close(&layer);
}

enum { RANDOM_PROBLEMS = 30 };

static void random_problems(void **state)
{
    const struct layer_case *c = *state;
    struct random random = random_start(c->name);
    for (int i = 0; i < RANDOM_PROBLEMS; i++) {
        struct partita_problem drawn = layer_random(&random), problem = typed(&drawn, c->type);
        struct layer layer;
        layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine}, &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}

static double dot(const struct layer *layer, enum layer_array a, enum layer_array b)
{
    double sum = 0;
    for (size_t i = 0; i < layer->n[a]; i++) sum += layer_sample(layer, a, i) * layer_sample(layer, b, i);
    return sum;
}

// <gy, A x> = <A' gy, x> and, A being linear in the taps, = <gw, w>. Sums of all products, each of rms 1/27 at most:
// what their norm allows times the gate of each array.
static void transpose_identity(void **state)
{
    const struct layer_case *c = *state;
    struct random random = random_start("transpose");
    for (int i = 0; i < RANDOM_PROBLEMS; i++) {
        struct partita_problem drawn = layer_random(&random), problem = typed(&drawn, c->type);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine}, &random);
        partita_filter_destroy(layer.filter); // A has no bias
        assert_ok(partita_filter_create(layer.plan, layer.array[LAYER_W], &layer.filter));
        layer_run(&layer);
        double y = dot(&layer, LAYER_GY, LAYER_Y), x = dot(&layer, LAYER_GX, LAYER_X),
               w = dot(&layer, LAYER_GW, LAYER_W);
        double norm = sqrt(dot(&layer, LAYER_GY, LAYER_GY) * dot(&layer, LAYER_Y, LAYER_Y)) +
                      sqrt(dot(&layer, LAYER_GX, LAYER_GX) * dot(&layer, LAYER_X, LAYER_X)) +
                      sqrt(dot(&layer, LAYER_GW, LAYER_GW) * dot(&layer, LAYER_W, LAYER_W));
        double gate = gate_direct(c->type, layer.n[LAYER_Y] + layer.n[LAYER_W]) * norm;
        if (!(fabs(y - x) <= gate && fabs(y - w) <= gate))
            fail_msg("%.17g, %.17g, %.17g are not one number within %.3g", y, x, w, gate);
        layer_close(&layer);
    }
}

// The loss sum gy*y of a shifted input or tap, against the gradient: the loss is linear in each of them, so that a
// central difference has rounding errors alone.
static void finite_differences(void **state)
{
    const struct layer_case *c = *state;
    static const enum layer_array moved[] = {LAYER_X, LAYER_W, LAYER_BIAS}, gradient[] = {LAYER_GX, LAYER_GW, LAYER_GB};
    struct random random = random_start("differences");
    for (int i = 0; i < RANDOM_PROBLEMS; i++) {
        struct partita_problem drawn = layer_random(&random), problem = typed(&drawn, PARTITA_F64);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine}, &random);
        layer_run(&layer);
        for (int d = 0; d < 3; d++) {
            size_t at = random_below(&random, layer.n[moved[d]]);
            double *value = (double *)layer.array[moved[d]] + at, kept = *value, loss[2], size = 0;
            for (int side = 0; side < 2; side++) {
                *value = kept + (side ? 0.5 : -0.5);
                partita_filter_destroy(layer.filter);
                assert_ok(partita_filter_create_biased(layer.plan, layer.array[LAYER_W], layer.array[LAYER_BIAS],
                                                       &layer.filter));
                assert_ok(partita_forward(layer.plan, layer.filter, layer.array[LAYER_Y], layer.array[LAYER_X], NULL));
                loss[side] = dot(&layer, LAYER_GY, LAYER_Y);
                size = dot(&layer, LAYER_GY, LAYER_GY) + dot(&layer, LAYER_Y, LAYER_Y);
            }
            *value = kept;
            double expected = layer_sample(&layer, gradient[d], at);
            double gate = gate_direct(PARTITA_F64, layer.n[LAYER_Y] + layer.n[LAYER_W]) * (size + fabs(expected));
            if (!(fabs(loss[1] - loss[0] - expected) <= gate))
                fail_msg("difference %.17g, gradient %.17g", loss[1] - loss[0], expected);
        }
        layer_close(&layer);
    }
}

// Several boxes in every direction, parts of channels, runs of boxes in the gradient of the taps.
static const struct partita_problem busy[] = {
    {.rank = 2,
     .batch = 3,
     .in_channels = 33,
     .out_channels = 70,
     .kernel = {3, 3},
     .size = {20, 45},
     .pad_begin = {1, 1},
     .pad_end = {1, 1},
     .activation = PARTITA_RELU},
    {.rank = 2,
     .op = PARTITA_CORRELATE,
     .batch = 9,
     .in_channels = 3,
     .out_channels = 6,
     .groups = 3,
     .kernel = {5, 4},
     .size = {33, 60},
     .stride = {2, 3},
     .pad_begin = {2, 1},
     .pad_end = {2, 1}},
    {.rank = 1, .in_channels = 8, .out_channels = 8, .kernel = {64}, .size = {5000}, .pad_begin = {63}},
};
enum { N_BUSY = sizeof busy / sizeof *busy };

static void any_threads_same_bits(void **state)
{
    const struct layer_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = typed(&busy[i], c->type);
        struct random random = random_start("threads");
        struct layer first, other;
        layer_open(&first, &problem, &(struct partita_options){.engine = c->engine, .threads = 1}, &random);
        layer_run(&first);
        for (int threads = 2; threads <= 8; threads++) {
            layer_open_like(&other, &first, &(struct partita_options){.engine = c->engine, .threads = threads});
            layer_run(&other);
            layer_same_bits(&first, &other);
            layer_close(&other);
        }
        layer_close(&first);
    }
}

// A call with a guarded workspace of just the size asked for, twice: what the first left behind is no input.
static void workspace_exact(void **state)
{
    const struct layer_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = typed(&busy[i], c->type);
        struct random random = random_start("workspace");
        struct layer layer, other;
        struct partita_options options = {.engine = c->engine, .threads = 3};
        layer_open(&layer, &problem, &options, &random);
        layer_run(&layer);
        layer_open_like(&other, &layer, &options);
        void *forward = guarded_alloc(partita_plan_workspace(other.plan, PARTITA_FORWARD), 0);
        void *data = guarded_alloc(partita_plan_workspace(other.plan, PARTITA_BACKWARD_DATA), 0);
        void *weight = guarded_alloc(partita_plan_workspace(other.plan, PARTITA_BACKWARD_WEIGHT), 0);
        void **a = other.array;
        for (int again = 0; again < 2; again++) {
            assert_ok(partita_forward(other.plan, other.filter, a[LAYER_Y], a[LAYER_X], forward));
            assert_ok(partita_backward_data(other.plan, other.filter, a[LAYER_GX], a[LAYER_GY], data));
            assert_ok(partita_backward_weight(other.plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], weight));
            assert_ok(partita_backward_bias(other.plan, a[LAYER_GB], a[LAYER_GY]));
            layer_same_bits(&layer, &other);
        }
        guarded_free(forward);
        guarded_free(data);
        guarded_free(weight);
        layer_close(&other);
        layer_close(&layer);
    }
}

// Whatever the limit: within it in every direction, and right; or refused. More room never hurts.
static void workspace_limit_is_kept(void **state)
{
    const struct layer_case *c = *state;
    static const struct partita_problem small = {
        .rank = 2, .batch = 2, .in_channels = 7, .out_channels = 10, .kernel = {3, 3}, .size = {14, 40}};
    struct partita_problem problem = typed(&small, c->type);
    struct random random = random_start("limit");
    int n_planned = 0;
    for (size_t limit = 64; limit < (size_t)1 << 24; limit *= 3) {
        struct partita_options options = {.engine = c->engine,
                                          .threads = 2,
                                          .workspace_limit = limit,
                                          .directions =
                                              PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT};
        struct partita_plan *plan;
        enum partita_status status = partita_plan_create(&problem, &options, &plan);
        if (status != PARTITA_OK) {
            assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
            assert_int_equal(n_planned, 0);
            continue;
        }
        for (int d = 1; d <= 4; d *= 2) assert_true(partita_plan_workspace(plan, (enum partita_direction)d) <= limit);
        partita_plan_destroy(plan);
        struct layer layer;
        layer_open(&layer, &problem, &options, &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
        n_planned++;
    }
    assert_true(n_planned > 5);
}

// A NaN or an infinity in padding or beyond the box never reaches a sum; relu keeps NaN and turns negatives into 0.
static void relu_and_nan(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem problem = {.rank = 2,
                                      .kernel = {3, 3},
                                      .size = {5, 30},
                                      .pad_begin = {1, 1},
                                      .pad_end = {1, 1},
                                      .activation = PARTITA_RELU};
    problem = typed(&problem, c->type);
    struct random random = random_start("relu");
    struct layer layer;
    layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine}, &random);
    sample_put(c->type, layer.array[LAYER_X], 2 * 30 + 29, (double)NAN);
    layer_run(&layer);
    int n_nan = 0, n_zero = 0;
    for (size_t i = 0; i < layer.n[LAYER_Y]; i++) {
        double y = layer_sample(&layer, LAYER_Y, i);
        bool near = i / 30 >= 1 && i / 30 <= 3 && i % 30 >= 28;
        assert_true(isnan(y) ? near : y >= 0);
        n_nan += isnan(y);
        n_zero += y == 0;
    }
    assert_int_equal(n_nan, 6);
    assert_true(n_zero > 20);
    layer_close(&layer);
}

// Engines that fill y without a bias get it afterwards.
static void bias_of_other_engines(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem problem = {
        .batch = 2, .in_channels = 2, .out_channels = 3, .kernel = {40}, .size = {500}, .activation = PARTITA_RELU};
    problem = typed(&problem, c->type);
    struct random random = random_start("bias");
    static const char *const others[] = {"cpu/overlap-add", "cpu/overlap-save"};
    for (int e = 0; e < 2; e++) {
        struct layer layer;
        layer_open(&layer, &problem, &(struct partita_options){.engine = others[e]}, &random);
        assert_string_equal(partita_plan_engine_of(layer.plan, PARTITA_BACKWARD_DATA), "");
        assert_int_equal(partita_plan_workspace(layer.plan, PARTITA_BACKWARD_WEIGHT), 0);
        void **a = layer.array;
        assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL));
        assert_int_equal(partita_backward_data(layer.plan, layer.filter, a[LAYER_GX], a[LAYER_GY], NULL),
                         PARTITA_ERR_UNSUPPORTED);
        assert_int_equal(partita_backward_weight(layer.plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], NULL),
                         PARTITA_ERR_UNSUPPORTED);
        double *expected = malloc(layer.n[LAYER_Y] * sizeof *expected);
        reference_layer_forward(&problem, expected, layer.expected[LAYER_X], layer.expected[LAYER_W],
                                layer.expected[LAYER_BIAS]);
        double error = 0, norm = 0, gate = gate_transform(c->type, 1024);
        for (size_t i = 0; i < layer.n[LAYER_Y]; i++) {
            double off = layer_sample(&layer, LAYER_Y, i) - expected[i];
            error += off * off;
            norm += expected[i] * expected[i];
        }
        assert_true(error <= gate * gate * norm);
        free(expected);
        layer_close(&layer);
    }
}

static void argument_errors(void **state)
{
    (void)state;
    struct random random = random_start("arguments");
    struct layer a, b;
    layer_open(&a, &busy[1], NULL, &random);
    layer_open(&b, &busy[1], NULL, &random);
    void **p = a.array;
    char *odd = (char *)p[LAYER_X] + 1;
    assert_int_equal(partita_backward_data(NULL, a.filter, p[LAYER_GX], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, NULL, p[LAYER_GX], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, b.filter, p[LAYER_GX], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, NULL, p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], odd, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], p[LAYER_GY], odd), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(NULL, p[LAYER_GW], p[LAYER_X], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, NULL, p[LAYER_X], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], NULL, p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], odd, p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], p[LAYER_X], NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(NULL, p[LAYER_GB], p[LAYER_GY]), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(a.plan, NULL, p[LAYER_GY]), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(a.plan, p[LAYER_GB], odd), PARTITA_ERR_ARG);
    assert_int_equal(partita_plan_workspace(NULL, PARTITA_FORWARD), 0);
    assert_int_equal(partita_plan_workspace(a.plan, (enum partita_direction)3), 0);
    assert_string_equal(partita_plan_engine_of(NULL, PARTITA_FORWARD), "");
    layer_close(&a);
    layer_close(&b);
}

// What is not planned is not run; what cannot be planned is refused with the reason.
static void directions(void **state)
{
    (void)state;
    static float x[2 * 100], w[2 * 3], y[100];
    struct log_lines lines;
    struct partita_plan *plan = (struct partita_plan *)1;
    struct partita_filter *filter;
    struct partita_problem problem = {.in_channels = 2, .kernel = {3}, .size = {100}, .pad_end = {2}};
    struct partita_options options = {.directions = PARTITA_BACKWARD_DATA, .log = log_into(&lines)};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_string_equal(partita_plan_engine(plan), "");
    assert_true(partita_plan_explain(plan, NULL, 0) > 0);
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_int_equal(partita_forward(plan, filter, y, x, NULL), PARTITA_ERR_UNSUPPORTED);
    assert_ok(partita_backward_data(plan, filter, x, y, NULL));
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_UNSUPPORTED);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(lines.n_lines, 0);
    plan = (struct partita_plan *)1;
    options.engine = "cpu/overlap-save";
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "gradient"));
    options.engine = NULL;
    options.log = log_into(&lines);
    options.directions = 8;
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "directions"));
    options.log = log_into(&lines);
    options.directions = PARTITA_BACKWARD_WEIGHT;
    problem.signal = PARTITA_CF32;
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "cf32"));
    assert_ptr_equal(plan, (struct partita_plan *)1);
}

static void streams_and_complex(void **state)
{
    (void)state;
    static float x[200], w[6], y[200];
    struct log_lines lines;
    struct partita_plan *plan;
    struct partita_filter *filter = (struct partita_filter *)1;
    struct partita_problem problem = {.kernel = {3}, .size = {PARTITA_UNBOUNDED}};
    struct partita_options options = {.log = log_into(&lines)};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_int_equal(partita_filter_create_biased(plan, w, w, &filter), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "bias"));
    assert_ptr_equal(filter, (struct partita_filter *)1);
    assert_int_equal(partita_backward_bias(plan, y, x), PARTITA_ERR_STATE);
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_STATE);
    partita_plan_destroy(plan);
    problem = (struct partita_problem){.signal = PARTITA_CF32, .taps = PARTITA_F32, .kernel = {3}, .size = {50}};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_int_equal(partita_backward_bias(plan, y, x), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_UNSUPPORTED);
    partita_plan_destroy(plan);
    problem = (struct partita_problem){.signal = PARTITA_CF32, .taps = PARTITA_CF32, .rank = 2, .size = {5, 5}};
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "real types"));
}

struct promise {
    const char *name;
    CMUnitTestFunction run;
};

static const struct promise promises[] = {
    {"transpose-identity", transpose_identity},
    {"any-threads-same-bits", any_threads_same_bits},
    {"workspace-exact", workspace_exact},
    {"workspace-limit-is-kept", workspace_limit_is_kept},
    {"relu-and-nan", relu_and_nan},
    {"bias-of-other-engines", bias_of_other_engines},
};
enum { N_PROMISES = sizeof promises / sizeof *promises, N_RANDOM = 8 };

int main(void)
{
    static const char *const engines[] = {"cpu/direct"};
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    enum { N_ENGINES_OF_LAYERS = sizeof engines / sizeof *engines };
    static struct layer_case cases[N_ENGINES_OF_LAYERS][2][N_PROBLEMS + N_RANDOM];
    static struct CMUnitTest tests[N_ENGINES_OF_LAYERS * 2 * (N_PROBLEMS + N_RANDOM + N_PROMISES + 1) + 4];
    static char names[N_RANDOM][16];
    size_t n = 0;
    for (size_t e = 0; e < N_ENGINES_OF_LAYERS; e++) {
        for (size_t t = 0; t < 2; t++) {
            const char *type = partita_type_name(types[t]);
            struct layer_case *c = cases[e][t];
            for (size_t i = 0; i < N_PROBLEMS; i++, c++) {
                *c = (struct layer_case){engines[e], problems[i].name, types[t], &problems[i].problem};
                tests[n++] = named_test(against_oracle, c, "%s/%s-%s", engines[e], c->name, type);
            }
            for (size_t i = 0; i < N_RANDOM; i++, c++) {
                snprintf(names[i], sizeof names[i], "random-%zu", i);
                *c = (struct layer_case){engines[e], names[i], types[t], NULL};
                tests[n++] = named_test(random_problems, c, "%s/%s-%s", engines[e], c->name, type);
            }
            for (size_t i = 0; i < N_PROMISES; i++)
                tests[n++] =
                    named_test(promises[i].run, &cases[e][t][0], "%s/%s-%s", engines[e], promises[i].name, type);
        }
        tests[n++] = named_test(finite_differences, &cases[e][1][0], "%s/finite-differences", engines[e]);
    }
    tests[n++] = named_test(argument_errors, NULL, "argument-errors");
    tests[n++] = named_test(directions, NULL, "directions");
    tests[n++] = named_test(streams_and_complex, NULL, "streams-and-complex");
    return run_test_list(tests, n);
}
