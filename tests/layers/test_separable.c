// SPDX-License-Identifier: MIT
// problem.separable: cuda/separable against the oracle, forward and backward data, at every edge of
// its tiles; taps that are separable and taps that are not; other engines, which ignore the field.
#include "core/plan.h"

#include "support/layer_rig.h"
#include "support/reference_layer.h"

#include <math.h>
#include <stdio.h>

static const struct named_problem problems[] = {
    {"one-tap", {.size = {3, 5}}},
    {"3x3-same", {.kernel = {3, 3}, .size = {70, 20}, .pad_begin = {1, 1}, .pad_end = {1, 1}}},
    {"17x17-same", {.kernel = {17, 17}, .size = {66, 67}, .pad_begin = {8, 8}, .pad_end = {8, 8}}},
    {"4x1", {.kernel = {4, 1}, .size = {30, 129}}},
    {"1x5", {.kernel = {1, 5}, .size = {30, 9}, .pad_begin = {0, 4}}},
    {"32x2", {.kernel = {32, 2}, .size = {40, 64}, .pad_end = {20, 1}}},
    {"7x30-correlated",
     {.op = PARTITA_CORRELATE, .kernel = {7, 30}, .size = {9, 90}, .pad_begin = {3, 0}}},
    {"cropped", {.kernel = {5, 6}, .size = {40, 80}, .pad_begin = {-3, 5}, .pad_end = {4, -7}}},
    {"channels",
     {.batch = 2,
      .in_channels = 3,
      .out_channels = 3,
      .groups = 3,
      .kernel = {5, 9},
      .size = {21, 65},
      .pad_begin = {2, 4},
      .pad_end = {2, 4},
      .activation = PARTITA_RELU}},
    {"larger-than-map",
     {.kernel = {12, 12}, .size = {3, 2}, .pad_begin = {11, 11}, .pad_end = {11, 11}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct separable_case {
    const struct named_problem *named;
    enum partita_type type;
};

// The arrays of a problem, in its type and as doubles.
enum array { X, W, BIAS, GY, Y, GX, ARRAYS };

struct layer_arrays {
    struct partita_problem problem;
    size_t n[ARRAYS];
    void *array[ARRAYS];
    double *exact[ARRAYS];
};

static void draw(struct layer_arrays *a, const struct partita_problem *problem,
                 enum partita_type type)
{
    struct random random = random_start("separable");
    struct shape shape;
    a->problem = *problem;
    a->problem.rank = 2;
    a->problem.signal = a->problem.taps = type;
    a->problem.separable = true;
    assert_ok(problem_canonical(&a->problem, &(struct partita_log){0}, &shape));
    const size_t x = shape.batch * shape.in_channels * shape_inputs(&shape);
    const size_t y = shape.batch * shape.out_channels * shape_outputs(&shape);
    const size_t n[ARRAYS] = {x, shape.out_channels * shape_taps(&shape), shape.out_channels, y, y,
                              x};
    const size_t columns = shape.axis[1].kernel, rows = shape.axis[0].kernel;
    memcpy(a->n, n, sizeof n);
    for (int i = 0; i < ARRAYS; i++) {
        a->array[i] = guarded_alloc(n[i] * partita_type_size(type), partita_type_size(type));
        a->exact[i] = malloc(n[i] * sizeof(double));
        if (i < Y && i != W) random_samples(&random, type, a->array[i], n[i]);
    }
    for (size_t c = 0; c < shape.out_channels; c++) {
        double factors[64];
        random_samples(&random, PARTITA_F64, factors, rows + columns);
        for (size_t t = 0; t < rows * columns; t++)
            sample_put(type, a->array[W], c * rows * columns + t,
                       factors[t / columns] * factors[rows + t % columns]);
    }
    for (int i = 0; i < Y; i++)
        for (size_t k = 0; k < n[i]; k++)
            a->exact[i][k] = creal(reference_sample(type, a->array[i], k));
}

static void release(struct layer_arrays *a)
{
    for (int i = 0; i < ARRAYS; i++) {
        guarded_free(a->array[i]);
        free(a->exact[i]);
    }
}

static struct partita_plan *plan_by(const struct partita_problem *problem, const char *engine)
{
    struct partita_plan *plan = NULL;
    const struct partita_options options = layer_options(&(struct partita_options){
        .engine = engine, .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA});
    assert_ok(partita_plan_create(problem, &options, &plan));
    return plan;
}

static void run(const struct layer_arrays *a, const struct partita_plan *plan)
{
    struct partita_filter *filter;
    assert_ok(filter_with_bias(plan, a->array[W], a->array[BIAS], &filter));
    assert_ok(partita_forward(plan, filter, a->array[Y], a->array[X], NULL));
    assert_ok(partita_backward_data(plan, filter, a->array[GX], a->array[GY], NULL));
    partita_filter_destroy(filter);
}

// Twice the gate of direct sums: rounding errors of the taps and of their factors.
static void check(struct layer_arrays *a)
{
    const struct partita_problem *p = &a->problem;
    const size_t products =
        (size_t)(p->kernel[0] ? p->kernel[0] : 1) * (p->kernel[1] ? p->kernel[1] : 1) + 1;
    reference_layer_forward(p, a->exact[Y], a->exact[X], a->exact[W], a->exact[BIAS]);
    reference_backward_data(p, a->exact[GX], a->exact[GY], a->exact[W]);
    for (int i = Y; i < ARRAYS; i++) {
        double error = 0, norm = 0;
        for (size_t k = 0; k < a->n[i]; k++) {
            const double off = creal(reference_sample(p->signal, a->array[i], k)) - a->exact[i][k];
            error += off * off;
            norm += a->exact[i][k] * a->exact[i][k];
        }
        const double gate = gate_for_outputs(2 * gate_direct(p->signal, products), a->n[i]);
        norm = fmax(norm, (double)products / 81 * (double)a->n[i]);
        if (!(sqrt(error / norm) <= gate))
            fail_msg("array %d: error %.3g, gate %.3g", i, sqrt(error / norm), gate);
    }
}

static void against_oracle(void **state)
{
    const struct separable_case *c = *state;
    struct layer_arrays a;
    draw(&a, &c->named->problem, c->type);
    struct partita_plan *plan = plan_by(&a.problem, "cuda/separable");
    run(&a, plan);
    check(&a);
    partita_plan_destroy(plan);
    release(&a);
}

// Other engines use the taps as they are.
static void other_engines(void **state)
{
    struct layer_arrays a;
    draw(&a, &problems[N_PROBLEMS - 2].problem, PARTITA_F32);
    struct partita_plan *plan = plan_by(&a.problem, *state);
    run(&a, plan);
    check(&a);
    partita_plan_destroy(plan);
    release(&a);
}

// A NaN reaches the outputs that depend on it and no others; there are no products after the last
// tap.
static void nan_stays_near(void **state)
{
    (void)state;
    enum { SIZE = 40, KERNEL = 6, AT = 21 };
    const struct partita_problem problem = {
        .op = PARTITA_CORRELATE, .kernel = {KERNEL, KERNEL}, .size = {SIZE, SIZE}};
    struct layer_arrays a;
    draw(&a, &problem, PARTITA_F32);
    ((float *)a.array[X])[AT * SIZE + AT] = NAN;
    struct partita_plan *plan = plan_by(&a.problem, "cuda/separable");
    run(&a, plan);
    const size_t outputs = SIZE - KERNEL + 1;
    for (size_t i = 0; i < outputs * outputs; i++) {
        const size_t row = i / outputs, column = i % outputs;
        const bool meets = row <= AT && AT < row + KERNEL && column <= AT && AT < column + KERNEL;
        assert_int_equal(!isfinite(((float *)a.array[Y])[i]), meets);
    }
    partita_plan_destroy(plan);
    release(&a);
}

// Taps that differ from separable ones by more than rounding are refused, with the channel; zeros
// and one rounding are accepted.
static void taps_must_be_separable(void **state)
{
    (void)state;
    struct log_lines lines = {0};
    struct layer_arrays a;
    draw(&a, &problems[N_PROBLEMS - 2].problem, PARTITA_F32);
    struct partita_plan *plan;
    struct partita_filter *filter = NULL;
    struct partita_options options = layer_options(&(struct partita_options){
        .engine = "cuda/separable", .directions = PARTITA_FORWARD, .log = log_into(&lines)});
    assert_ok(partita_plan_create(&a.problem, &options, &plan));
    float *w = a.array[W];
    const size_t path = a.n[W] / 3;
    w[path + 7] *= 1 + 1e-3f;
    assert_int_equal(partita_filter_create(plan, w, &filter), PARTITA_ERR_ARG);
    assert_null(filter);
    assert_non_null(strstr(lines.text, "channel 1 "));
    memset(w + path, 0, path * sizeof *w);
    assert_ok(partita_filter_create(plan, w, &filter));
    partita_filter_destroy(filter);
    w[5] = NAN;
    assert_int_equal(partita_filter_create(plan, w, &filter), PARTITA_ERR_ARG);
    partita_plan_destroy(plan);
    release(&a);
}

// Problems that it refuses, with the reason.
static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct partita_problem problem;
        enum partita_direction direction;
        const char *reason;
    } cases[] = {
        {{SIZE(9, 9), KERNEL(3, 3)}, PARTITA_FORWARD, "does not promise"},
        {{SIZE(9, 9), KERNEL(3, 3), .separable = true}, PARTITA_BACKWARD_WEIGHT, "gradients"},
        {{SIZE(9, 99), KERNEL(3, 33), .separable = true}, PARTITA_FORWARD, "up to 32"},
        {{SIZE(9, 9), KERNEL(3, 3), STRIDE(2, 1), .separable = true}, PARTITA_FORWARD, "stride"},
        {{SIZE(9, 9), OUTPUTS(2), KERNEL(3, 3), .separable = true}, PARTITA_FORWARD, "one channel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines = {0};
        struct partita_plan *plan;
        const struct partita_options options = layer_options(&(struct partita_options){
            .engine = "cuda/separable", .directions = cases[i].direction, .log = log_into(&lines)});
        assert_int_equal(partita_plan_create(&cases[i].problem, &options, &plan),
                         PARTITA_ERR_UNSUPPORTED);
        assert_non_null(strstr(lines.text, cases[i].reason));
    }
}

int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    static struct separable_case cases[2][N_PROBLEMS];
    struct CMUnitTest tests[2 * N_PROBLEMS + 8];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    if (!layer_has_engine("cuda/separable")) {
        tests[n++] = named_test(other_engines, "cpu/direct", "separable: cpu/direct");
        tests[n++] = named_test(other_engines, "cpu/depthwise", "separable: cpu/depthwise");
        return run_test_list(tests, n);
    }
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            cases[t][i] = (struct separable_case){&problems[i], types[t]};
            tests[n++] = named_test(against_oracle, &cases[t][i], "cuda/separable/%s-%s",
                                    problems[i].name, partita_type_name(types[t]));
        }
    tests[n++] = named_test(other_engines, "cuda/direct", "separable: cuda/direct");
    tests[n++] = named_test(nan_stays_near, NULL, "cuda/separable/nan-stays-near");
    tests[n++] = named_test(taps_must_be_separable, NULL, "cuda/separable/promise");
    tests[n++] = named_test(refusals, NULL, "cuda/separable/refusals");
    return run_test_list(tests, n);
}
