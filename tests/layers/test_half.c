// SPDX-License-Identifier: MIT
// Samples of 16 bits: conversions for every instruction set against exact arithmetic, over all
// 65536 values and around every rounding boundary; layers in f16 and bf16 against the oracle;
// refusals.
#include <stdio.h>

#include "support/kernel_check.h"
#include "support/reference_layer.h"

struct format {
    const char *name;
    enum partita_type type;
    enum half half;
    int fraction, min_exponent; // bits after the point; exponent of the smallest normal number
};

static const struct format formats[HALF_TYPES] = {{"f16", PARTITA_F16, HALF_F16, 10, -14},
                                                  {"bf16", PARTITA_BF16, HALF_BF16, 7, -126}};

// The value of 16 bits.
static double half_value(const struct format *f, uint16_t bits)
{
    const int magnitude = bits & 0x7fff, exponent = magnitude >> f->fraction,
              last = (0x7fff >> f->fraction);
    const double fraction = magnitude & ((1 << f->fraction) - 1), unit = ldexp(1, -f->fraction);
    double value = exponent == last ? (fraction != 0 ? NAN : INFINITY)
                   : exponent       ? ldexp(1 + fraction * unit, exponent - 1 + f->min_exponent)
                                    : ldexp(fraction * unit, f->min_exponent);
    return copysign(value, bits & 0x8000 ? -1 : 1);
}

// The value of 16 bits nearest to v, ties to even: v rounded to a whole number of units of its
// binade.
static double half_nearest(const struct format *f, double v)
{
    if (!isfinite(v) || v == 0) return v;
    const int exponent = ilogb(v) < f->min_exponent ? f->min_exponent : ilogb(v),
              last = 1 - f->min_exponent; // of the largest numbers
    const double rounded =
        ldexp(nearbyint(ldexp(v, f->fraction - exponent)), exponent - f->fraction);
    return fabs(rounded) >= ldexp(1, last + 1) ? copysign(INFINITY, v) : rounded;
}

static bool same_value(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static const struct kernels *kernels_here(void)
{
    return kernels_select(cpu_detect(), false);
}

enum { ALL = 1 << 16 };

static void widens_all(void **state)
{
    const struct format *f = *state;
    static uint16_t half[ALL];
    static float value[ALL];
    for (unsigned i = 0; i < ALL; i++) half[i] = (uint16_t)i;
    kernels_here()->widen[f->half](value, half, ALL);
    for (unsigned i = 0; i < ALL; i++)
        if (!same_value((double)value[i], half_value(f, half[i])))
            fail_msg("%04x: %g", i, (double)value[i]);
    for (size_t n = 0; n < 40; n++) { // every tail, and nothing after it
        float *y = guarded_alloc(n * sizeof *y, sizeof *y);
        kernels_here()->widen[f->half](y, half + 12345, n);
        for (size_t i = 0; i < n; i++)
            assert_true(same_value((double)y[i], half_value(f, half[12345 + i])));
        guarded_free(y);
    }
}

static void check_narrow(const struct format *f, const float *value, size_t n)
{
    uint16_t *half = guarded_alloc(n * sizeof *half, sizeof *half);
    kernels_here()->narrow[f->half](half, value, n);
    for (size_t i = 0; i < n; i++)
        if (!same_value(half_value(f, half[i]), half_nearest(f, (double)value[i])))
            fail_msg("%a became %a, not %a", (double)value[i], half_value(f, half[i]),
                     half_nearest(f, (double)value[i]));
    guarded_free(half);
}

// Every value, the middle between it and the next, and the f32 neighbours of both.
static void narrows_around_all(void **state)
{
    const struct format *f = *state;
    enum { AROUND = 6 };
    static float value[ALL * AROUND];
    size_t n = 0;
    for (unsigned i = 0; i < ALL; i++) {
        const double v = half_value(f, (uint16_t)i);
        const double next = (i & 0x7fff) == 0x7fff ? NAN : half_value(f, (uint16_t)(i + 1));
        // After the last finite number, the one that would follow.
        const double beyond =
            isinf(next) && isfinite(v) ? copysign(ldexp(1, 2 - f->min_exponent), v) : next;
        const float here = (float)v, middle = (float)((v + beyond) / 2);
        const float around[AROUND] = {
            here,   nextafterf(here, INFINITY),   nextafterf(here, -INFINITY),
            middle, nextafterf(middle, INFINITY), nextafterf(middle, -INFINITY)};
        for (int k = 0; k < AROUND; k++) value[n++] = around[k];
    }
    check_narrow(f, value, n);
}

static void narrows_any_bits(void **state)
{
    const struct format *f = *state;
    struct random random = random_start("bits");
    static float value[1 << 18];
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        const uint32_t bits = (uint32_t)random_bits(&random);
        memcpy(&value[i], &bits, sizeof bits);
    }
    for (size_t n = 0; n < 40; n++) check_narrow(f, value, n);
    check_narrow(f, value, sizeof value / sizeof *value);
}

struct layer_case {
    const struct format *format;
    const char *engine;
    bool tight; // with the smallest workspace limit that f32 can have
};

static const struct partita_problem problems[] = {
    {SIZE(14, 14), BATCH(2), CHANNELS(5, 9), KERNEL(3, 3), PAD(1, 1), RELU},
    {SIZE(9, 13), CORRELATE, BATCH(3), CHANNELS(200, 70), KERNEL(3, 3)},
    {SIZE(17, 20), CORRELATE, BATCH(2), CHANNELS(300, 40)},
    {SIZE(67, 300), CHANNELS(3, 10), KERNEL(11, 11), STRIDE(4, 4)},
    {SIZE(13, 12), CHANNELS(6, 6), GROUPS(6), KERNEL(5, 5), STRIDE(2, 1), DILATION(1, 2),
     PAD(2, 3)},
    {SIZE(700), CHANNELS(12, 9), KERNEL(130), PAD_BEGIN(129)},
    {SIZE(6, 7, 8), BATCH(2), CHANNELS(3, 5), KERNEL(3, 2, 3)},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// n samples of 16 bits and their values.
struct samples {
    size_t n;
    uint16_t *half;
    double *value;
};

static struct samples draw(struct random *random, const struct format *f, size_t n)
{
    struct samples s = {n, guarded_alloc(n * sizeof *s.half, sizeof *s.half),
                        malloc(n * sizeof(double))};
    float *value = malloc(n * sizeof *value);
    random_samples(random, PARTITA_F32, value, n);
    kernels_here()->narrow[f->half](s.half, value, n);
    for (size_t i = 0; i < n; i++) s.value[i] = half_value(f, s.half[i]);
    free(value);
    return s;
}

static void release(struct samples *s)
{
    guarded_free(s->half);
    free(s->value);
}

// The smallest limit, in steps of a sixteenth, with which an engine plans a layer in f32.
static size_t min_limit(struct partita_problem problem, const char *engine)
{
    struct partita_plan *plan;
    problem.signal = problem.taps = PARTITA_F32;
    for (size_t limit = 64;; limit += limit / 16) {
        const struct partita_options options = {.engine = engine,
                                                .threads = 1,
                                                .directions = PARTITA_FORWARD,
                                                .workspace_limit = limit};
        if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) continue;
        partita_plan_destroy(plan);
        return limit;
    }
}

// Rounding y has an error of u = 2^-(fraction+1) of each value, or of half the smallest denormal
// number; the sum before it has the gate of direct sums in f32.
static void layer_values(void **state)
{
    const struct layer_case *c = *state;
    const struct format *f = c->format;
    for (int i = 0; i < 2 * N_PROBLEMS; i++) {
        struct partita_problem p = problems[i / 2];
        struct random random = random_start("layer");
        p.channels_last = i % 2;
        p.signal = p.taps = f->type;
        size_t plane = 1, taps = 1, outputs = 1, size[PARTITA_MAX_RANK];
        assert_int_equal(partita_problem_output_size(&p, size), PARTITA_OK);
        for (int a = 0; a < p.rank; a++)
            plane *= p.size[a], taps *= or_one(p.kernel[a]), outputs *= size[a];
        const size_t products = or_one(p.in_channels) / or_one(p.groups) * taps;
        struct samples x = draw(&random, f, or_one(p.batch) * p.in_channels * plane),
                       w = draw(&random, f, p.out_channels * products),
                       bias = draw(&random, f, p.out_channels),
                       y = draw(&random, f, or_one(p.batch) * p.out_channels * outputs);
        struct partita_plan *plan;
        struct partita_filter *filter;
        const struct partita_options options = {.engine = c->engine,
                                                .threads = 2,
                                                .workspace_limit =
                                                    c->tight ? min_limit(p, c->engine) : 0};
        assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_OK);
        assert_string_equal(partita_plan_engine(plan, PARTITA_FORWARD), c->engine);
        if (c->tight)
            assert_in_range(partita_plan_workspace(plan, PARTITA_FORWARD), 1,
                            options.workspace_limit);
        assert_int_equal(filter_with_bias(plan, w.half, bias.half, &filter), PARTITA_OK);
        assert_int_equal(partita_forward(plan, filter, y.half, x.half, NULL), PARTITA_OK);
        reference_layer_forward(&p, y.value, x.value, w.value, bias.value);
        const double u = ldexp(1, -f->fraction - 1),
                     denormal = ldexp(1, f->min_exponent - f->fraction - 1);
        double error = 0, norm = 0;
        for (size_t k = 0; k < y.n; k++) {
            const double e = half_value(f, y.half[k]) - y.value[k];
            error += e * e;
            norm += y.value[k] * y.value[k];
        }
        const double gate =
            (u + gate_direct(PARTITA_F32, products)) * sqrt(norm) + denormal * sqrt((double)y.n);
        if (!(sqrt(error) <= gate))
            fail_msg("problem %d: error %g above %g", i, sqrt(error / norm), gate / sqrt(norm));
        partita_filter_destroy(filter);
        partita_plan_destroy(plan);
        release(&x), release(&w), release(&bias), release(&y);
    }
}

static void refusals(void **state)
{
    const struct format *f = *state;
    struct log_lines lines = {0};
    struct partita_plan *plan = NULL;
    struct partita_problem p = {SIZE(9, 9), .signal = f->type, .taps = f->type, KERNEL(3, 3)};
    struct partita_options options = {.log = log_into(&lines),
                                      .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA};
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "no gradients"));
    options.directions = 0;
    assert_int_equal(partita_plan_create(&p, &options, &plan),
                     PARTITA_OK); // only forward is served
    assert_string_equal(partita_plan_engine(plan, PARTITA_BACKWARD_WEIGHT), "");
    uint16_t array[81];
    assert_int_equal(partita_backward_bias(plan, array, array, NULL), PARTITA_ERR_UNSUPPORTED);
    partita_plan_destroy(plan);
    options.engine = "cpu/overlap-save";
    p.rank = 1;
    p.size[1] = p.kernel[1] = 0;
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, f->name));
    options.engine = NULL;
    p.taps = PARTITA_F32;
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_ARG);
    p.taps = f->type;
    p.size[0] = PARTITA_UNBOUNDED;
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "streams"));
    assert_int_equal(
        partita_correlate_normalised(f->type, array, array, 9, array + 40, 3, NULL, NULL),
        PARTITA_ERR_UNSUPPORTED);
    struct partita_spectrum *spectrum;
    assert_int_equal(partita_spectrum_create(f->type, array, 9, 0, NULL, &spectrum),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_type_size(f->type), 2);
    assert_string_equal(partita_type_name(f->type), f->name);
}

int main(void)
{
    static const char *const engines[] = {"cpu/direct", "cpu/gemm"};
    static struct layer_case cases[HALF_TYPES][2][2];
    static struct CMUnitTest tests[HALF_TYPES * 8];
    size_t n = 0;
    for (int i = 0; i < HALF_TYPES; i++) {
        void *format = (void *)(uintptr_t)&formats[i];
        tests[n++] = named_test(widens_all, format, "%s: all values widened", formats[i].name);
        tests[n++] = named_test(narrows_around_all, format, "%s: rounded around every value",
                                formats[i].name);
        tests[n++] = named_test(narrows_any_bits, format, "%s: any bits rounded", formats[i].name);
        tests[n++] = named_test(refusals, format, "%s: refusals", formats[i].name);
        for (int e = 0; e < 2; e++)
            for (int tight = 0; tight < 2; tight++) {
                struct layer_case *c = &cases[i][e][tight];
                *c = (struct layer_case){&formats[i], engines[e], tight};
                tests[n++] = named_test(layer_values, c, "%s: layers by %s%s", formats[i].name,
                                        engines[e], tight ? " in little memory" : "");
            }
    }
    return run_test_list(tests, n);
}
