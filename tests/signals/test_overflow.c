// SPDX-License-Identifier: MIT
// Inputs near the largest float whose results are finite: spectra, and tiles in the transformed
// domain, are larger than results. Powers of two as factors of all samples change no rounding, so
// results have the bits of those of small samples, times the power. In every direction of every
// engine for bounded problems.
#include "core/plan.h"

#include "support/layer_rig.h"

#include <float.h>
#include <math.h>

struct large_case {
    const char *engine;
    struct partita_problem problem;
    unsigned directions;
    bool imposed; // parts of cpu/blocks
};

static size_t scalars_of(enum partita_type type, size_t n)
{
    return type_is_complex(type) ? 2 * n : n;
}

static double scalar_get(enum partita_type type, const void *array, size_t i)
{
    return type_is_f64(type) ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void scalar_put(enum partita_type type, void *array, size_t i, double value)
{
    if (type_is_f64(type)) ((double *)array)[i] = value;
    else ((float *)array)[i] = (float)value;
}

// A copy, each scalar times 2^exponent.
static void *times_power(enum partita_type type, const void *array, size_t n, int exponent)
{
    void *ret = malloc(n * partita_type_size(type));
    for (size_t i = 0; i < scalars_of(type, n); i++)
        scalar_put(type, ret, i, ldexp(scalar_get(type, array, i), exponent));
    return ret;
}

// Samples between 1/2 and 1, so that sums are as large as they can be. (Complex ones are near the
// diagonal.)
static void *large_samples(struct random *random, enum partita_type type, size_t n)
{
    void *ret = malloc(n * partita_type_size(type));
    random_samples(random, type, ret, n);
    for (size_t i = 0; i < scalars_of(type, n); i++)
        scalar_put(type, ret, i, 0.5 + fabs(scalar_get(type, ret, i)) / 2);
    return ret;
}

// The two operands of a direction, its result, and the bias of forward.
struct call {
    const struct partita_plan *plan;
    enum partita_direction direction;
    enum partita_type type[2]; // of the operands
    size_t n[2], n_to, n_bias;
    void *operand[2], *bias;
};

static struct call call_of(const struct partita_plan *plan, enum partita_direction direction,
                           struct random *random)
{
    const struct shape *shape = &plan->shape;
    const size_t n_x = shape->batch * shape->in_channels * shape_inputs(shape);
    const size_t n_y = shape->batch * shape->out_channels * shape_outputs(shape);
    const size_t n_w = shape_path_count(shape) * shape_taps(shape);
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT;
    const bool data = direction == PARTITA_BACKWARD_DATA;
    struct call call = {.plan = plan, .direction = direction};
    call.type[0] = shape->signal, call.type[1] = weight ? shape->signal : shape->taps;
    call.n[0] = data ? n_y : n_x, call.n[1] = weight ? n_y : n_w;
    call.n_to = weight ? n_w : data ? n_x : n_y;
    for (int i = 0; i < 2; i++) call.operand[i] = large_samples(random, call.type[i], call.n[i]);
    const bool biased = direction == PARTITA_FORWARD && !shape->complex_signal;
    call.n_bias = biased ? shape->out_channels : 0;
    if (biased) call.bias = large_samples(random, shape->signal, call.n_bias);
    return call;
}

static void call_free(struct call *call)
{
    free(call->operand[0]);
    free(call->operand[1]);
    free(call->bias);
}

// The result of the operands times 2^first and 2^second.
static void *run_scaled(const struct call *call, int first, int second)
{
    const enum partita_type type = call->plan->shape.signal;
    void *a = times_power(call->type[0], call->operand[0], call->n[0], first);
    void *b = times_power(call->type[1], call->operand[1], call->n[1], second);
    void *bias = call->bias ? times_power(type, call->bias, call->n_bias, first + second) : NULL;
    void *to = malloc(call->n_to * partita_type_size(type));
    struct partita_filter *filter = NULL;
    if (call->direction == PARTITA_BACKWARD_WEIGHT) {
        assert_ok(partita_backward_weight(call->plan, to, a, b, NULL));
    } else {
        assert_ok(filter_with_bias(call->plan, b, bias, &filter));
        if (call->direction == PARTITA_FORWARD)
            assert_ok(partita_forward(call->plan, filter, to, a, NULL));
        else assert_ok(partita_backward_data(call->plan, filter, to, a, NULL));
    }
    partita_filter_destroy(filter);
    free(a);
    free(b);
    free(bias);
    return to;
}

static double largest(enum partita_type type, const void *array, size_t n)
{
    double max = 0;
    for (size_t i = 0; i < scalars_of(type, n); i++) {
        const double magnitude = fabs(scalar_get(type, array, i));
        if (magnitude > max) max = magnitude; // gcc 12 for aarch64 cannot compile fmax here
    }
    return max;
}

static void check_power(const struct call *call, const void *small, int first, int second)
{
    const enum partita_type type = call->plan->shape.signal;
    void *expected = times_power(type, small, call->n_to, first + second);
    void *got = run_scaled(call, first, second);
    for (size_t i = 0; i < scalars_of(type, call->n_to); i++)
        if (scalar_get(type, got, i) != scalar_get(type, expected, i))
            fail_msg("direction %d, 2^%d and 2^%d, result %zu is %g, not %g", (int)call->direction,
                     first, second, i, scalar_get(type, got, i), scalar_get(type, expected, i));
    free(expected);
    free(got);
}

static void check_direction(const struct partita_plan *plan, enum partita_direction direction,
                            struct random *random)
{
    const enum partita_type type = plan->shape.signal;
    const int max = type_is_f64(type) ? DBL_MAX_EXP : FLT_MAX_EXP;
    struct call call = call_of(plan, direction, random);
    void *small = run_scaled(&call, 0, 0);
    // The largest result lies between a quarter of the largest float and half of it.
    const int total = max - 1 - ilogb(largest(type, small, call.n_to)) - 1;
    assert_true(total < max);
    check_power(&call, small, max, total - max);
    check_power(&call, small, total / 2, total - total / 2);
    free(small);
    call_free(&call);
}

static void finite_results_are_found(void **state)
{
    const struct large_case *c = *state;
    struct random random = random_start(c->engine);
    struct partita_options options = {
        .engine = c->engine, .directions = c->directions, .threads = 2};
    if (c->imposed) options.parts = (struct partita_parts){.taps = 64, .signal = 64};
    struct partita_problem problem = layer_suit_engine(c->engine, &c->problem);
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    for (unsigned direction = 1; direction <= PARTITA_BACKWARD_WEIGHT; direction *= 2)
        if (c->directions & direction)
            check_direction(plan, (enum partita_direction)direction, &random);
    partita_plan_destroy(plan);
}

enum { LONG = 5000 };

// The case that was reported: a one-shot call of two long signals.
static void one_shot_calls(void **state)
{
    (void)state;
    float *x = malloc(LONG * sizeof *x), *y = malloc(2 * LONG * sizeof *y);
    for (size_t i = 0; i < LONG; i++) x[i] = 1e17F;
    assert_ok(partita_convolve(PARTITA_F32, y, x, LONG, x, LONG, NULL, NULL));
    for (size_t i = 0; i < 2 * LONG - 1; i++) {
        const double products = (double)(i < LONG ? i + 1 : 2 * LONG - 1 - i);
        if (!(fabs((double)y[i] - 1e34 * products) < 1e34 * LONG * 1e-5))
            fail_msg("y[%zu] = %g, not %g", i, (double)y[i], 1e34 * products);
    }
    free(x);
    free(y);
}

// Results are infinite where their own sums are, and NaN where they depend on a sample that is.
static void infinite_results_stay(void **state)
{
    static const struct partita_problem problem = {LENGTH(3000), KERNEL(300), PAD(299)};
    enum { BAD = 2000, OUTPUTS = 3299 };
    const struct partita_options options = {.engine = *state};
    struct partita_plan *plan;
    struct partita_filter *filter;
    float *x = malloc(3000 * sizeof *x), w[300], *y = malloc(OUTPUTS * sizeof *y);
    for (size_t i = 0; i < 3000; i++) x[i] = ldexpf(1, 120);
    for (size_t i = 0; i < 300; i++) w[i] = 1;
    x[BAD] = NAN;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    for (size_t i = 0; i < OUTPUTS; i++) {
        size_t products = i < 300 ? i + 1 : 300;
        if (OUTPUTS - i < products) products = OUTPUTS - i;
        const bool bad = i >= BAD && i < BAD + 300;
        const double expected = products < 256 ? ldexp((double)products, 120) : (double)INFINITY;
        const bool close = fabs((double)y[i] - expected) < ldexp(1, 120) * 1e-3;
        // 256 products are the largest float and half of its last bit.
        if (bad ? !isnan(y[i]) : products != 256 && !(products < 256 ? close : isinf(y[i])))
            fail_msg("y[%zu] = %g, the sum of %zu products", i, (double)y[i], products);
    }
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    free(x);
    free(y);
}

// An engine whose runs are counted.
static const struct engine *counted;
static int n_runs;

static enum partita_status run_counted(const struct partita_plan *plan,
                                       const struct partita_filter *filter,
                                       const struct operands *operands, void *workspace)
{
    n_runs++;
    return counted->bounded.run(plan, filter, operands, workspace);
}

// Where a tap is not finite, scaling the inputs mends nothing, so there is one run: with a filter,
// after an update of it, and with taps of a single use.
static void calls_with_such_taps_run_once(void **state)
{
    static const struct partita_problem problem = {LENGTH(3000), KERNEL(300), PAD(299)};
    enum { OUTPUTS = 3299, BAD = 100 };
    const struct partita_options options = {.engine = *state};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct engine counting;
    float *x = malloc(3000 * sizeof *x), w[300], *y = malloc(OUTPUTS * sizeof *y);
    for (size_t i = 0; i < 3000; i++) x[i] = ldexpf(1, 124);
    for (size_t i = 0; i < 300; i++) w[i] = ldexpf(1, -5);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    counted = plan->engine;
    counting = *counted;
    counting.bounded.run = run_counted;
    plan->engine = &counting;
    assert_ok(partita_filter_create(plan, w, &filter));
    n_runs = 0;
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    assert_true(n_runs > 1); // the transforms overflow, the results do not
    assert_true(isfinite(y[OUTPUTS / 2]));
    for (size_t i = 0; i < 3000; i++) x[i] = 1;
    w[BAD] = NAN;
    assert_ok(partita_filter_update(filter, w, NULL, NULL));
    for (int single_use = 0; single_use < 2; single_use++) {
        n_runs = 0;
        assert_ok(partita_forward(plan, single_use ? NULL : filter, y, x,
                                  &(struct partita_call){.taps = single_use ? w : NULL}));
        assert_int_equal(n_runs, 1);
        assert_true(isnan(y[OUTPUTS / 2]));
    }
    w[BAD] = ldexpf(1, -5);
    for (size_t i = 0; i < 3000; i++) x[i] = ldexpf(1, 120);
    assert_ok(partita_filter_update(filter, w, NULL, NULL));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    assert_true(isfinite(y[OUTPUTS / 2]));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    free(x);
    free(y);
}

static const struct large_case cases[] = {
    {"cpu/direct", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3), PAD(1, 1)}, LAYER_ALL, 0},
    {"cpu/gemm", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3)}, LAYER_ALL, 0},
    {"cpu/winograd", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3)}, LAYER_ALL, 0},
    {"cpu/winograd", {SIZE(30, 30), CHANNELS(4, 6), GROUPS(2), KERNEL(5, 3), RELU}, LAYER_ALL, 0},
    {"cpu/tiles", {SIZE(40, 37), BATCH(3), CHANNELS(3, 2), KERNEL(7, 5), PAD(3, 2)}, LAYER_ALL, 0},
    {"cpu/tiles", {SIZE(40, 37), CHANNELS(3, 2), KERNEL(7, 5), STRIDE(2, 1), RELU}, LAYER_ALL, 0},
    {"cpu/depthwise",
     {SIZE(56, 56), CHANNELS(4, 4), GROUPS(4), KERNEL(21, 21), PAD(10, 10)},
     LAYER_ALL,
     0},
    {"cpu/overlap-save", {LENGTH(3000), BATCH(2), CHANNELS(2, 3), KERNEL(150)}, LAYER_ALL, 0},
    {"cpu/overlap-save", {LENGTH(3000), KERNEL(300), PAD(299), TYPES(F64, F64)}, LAYER_ALL, 0},
    {"cpu/overlap-save", {LENGTH(4000), KERNEL(300), STRIDE(7), RELU}, PARTITA_FORWARD, 0},
    {"cpu/overlap-save", {LENGTH(4000), KERNEL(300), TYPES(CF32, F32)}, PARTITA_FORWARD, 0},
    {"cpu/overlap-add", {LENGTH(4000), KERNEL(300), PAD(299)}, PARTITA_FORWARD, 0},
    {"cpu/blocks", {LENGTH(3000), BATCH(2), CHANNELS(2, 3), KERNEL(1500)}, LAYER_ALL, 0},
    {"cpu/blocks", {LENGTH(3000), KERNEL(2990), CORRELATE, PAD_BEGIN(20)}, LAYER_ALL, 0},
    {"cpu/blocks", {LENGTH(800), KERNEL(300), TYPES(CF64, CF64)}, PARTITA_FORWARD, 0},
    {"cpu/blocks", {LENGTH(800), KERNEL(300), CORRELATE}, LAYER_ALL, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

int main(void)
{
    struct CMUnitTest tests[N_CASES + 5];
    int n = 0;
    for (int i = 0; i < N_CASES; i++, n++)
        tests[n] = named_test(finite_results_are_found, &cases[i], "%s-%d", cases[i].engine, i);
    tests[n++] = named_test(one_shot_calls, NULL, "one-shot-calls");
    tests[n++] = named_test(infinite_results_stay, "cpu/overlap-save", "infinite-overlap-save");
    tests[n++] = named_test(infinite_results_stay, "cpu/blocks", "infinite-blocks");
    tests[n++] = named_test(calls_with_such_taps_run_once, "cpu/overlap-save", "taps-overlap-save");
    tests[n++] = named_test(calls_with_such_taps_run_once, "cpu/blocks", "taps-blocks");
    return run_test_list(tests, (size_t)n);
}
