// SPDX-License-Identifier: MIT
// Samples of 16 bits: conversions for every instruction set against exact arithmetic, over all
// 65536 values and around every rounding boundary; the range of sums, samples that are not
// finite, saved transforms, refusals. (Layers against the oracle: test_layers.c.)
#include <stdio.h>

#include "support/kernel_check.h"
#include "support/layer_rig.h"
#include "support/reference_layer.h"

struct format {
    const char *name;
    enum partita_type type;
    enum half half;
    int fraction, min_exponent; // bits after the point; exponent of the smallest normal number
};

static const struct format formats[HALF_TYPES] = {{"f16", PARTITA_F16, HALF_F16, 10, -14},
                                                  {"bf16", PARTITA_BF16, HALF_BF16, 7, -126}};

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
        if (!same_value((double)value[i], half_value(f->type, half[i])))
            fail_msg("%04x: %g", i, (double)value[i]);
    for (size_t n = 0; n < 40; n++) { // every tail, and nothing after it
        float *y = guarded_alloc(n * sizeof *y, sizeof *y);
        kernels_here()->widen[f->half](y, half + 12345, n);
        for (size_t i = 0; i < n; i++)
            assert_true(same_value((double)y[i], half_value(f->type, half[12345 + i])));
        guarded_free(y);
    }
}

static void check_narrow(const struct format *f, const float *value, size_t n)
{
    uint16_t *half = guarded_alloc(n * sizeof *half, sizeof *half);
    kernels_here()->narrow[f->half](half, value, n);
    for (size_t i = 0; i < n; i++)
        if (!same_value(half_value(f->type, half[i]), half_nearest(f, (double)value[i])))
            fail_msg("%a became %a, not %a", (double)value[i], half_value(f->type, half[i]),
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
        const double v = half_value(f->type, (uint16_t)i);
        const double next = (i & 0x7fff) == 0x7fff ? NAN : half_value(f->type, (uint16_t)(i + 1));
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

static void pairs_of_rows(void **state)
{
    (void)state;
    enum { N = 70 };
    uint16_t first[N], second[N];
    for (int i = 0; i < N; i++) first[i] = (uint16_t)(i * 911), second[i] = (uint16_t) ~(i * 733);
    for (size_t step = 1; step <= 3; step++)
        for (size_t n = 0; (n + 1) * step < N; n++) {
            uint32_t *y = guarded_alloc(n * sizeof *y, sizeof *y);
            kernels_here()->pair(y, first + 1, second + 1, step, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(y[i], first[1 + i * step] | (uint32_t)second[1 + i * step] << 16);
            guarded_free(y);
        }
}

struct layer_case {
    const struct format *format;
    const char *engine;
};

static struct partita_problem served_problem(const struct layer_case *c, struct partita_problem p)
{
    p = layer_suit_engine(c->engine, &p);
    p.signal = p.taps = c->format->type;
    return p;
}

static void fill(struct layer *layer, enum layer_array array, const double *value, size_t n)
{
    for (size_t i = 0; i < layer->n[array]; i++)
        sample_put(layer->problem.signal, layer->array[array], i, value[i % n]);
}

// Sums beyond the range of f16 that end inside it are right, and results beyond it are infinite.
static void sums_have_the_range_of_f32(void **state)
{
    const struct layer_case *c = *state;
    static const double x[] = {300}, w[] = {300, -300, 300, -300, 100, -300, 300, -300, 300},
                        large[] = {300}, zero[] = {0};
    const struct partita_problem p =
        served_problem(c, (struct partita_problem){SIZE(9, 20), BATCH(2), KERNEL(3, 3), CORRELATE});
    struct random random = random_start("range");
    struct layer layer;
    for (int beyond = 0; beyond < 2; beyond++) {
        layer_open(&layer, &p, &(struct partita_options){.engine = c->engine}, &random);
        fill(&layer, LAYER_X, x, 1);
        fill(&layer, LAYER_W, beyond ? large : w, beyond ? 1 : 9);
        fill(&layer, LAYER_BIAS, zero, 1);
        partita_filter_destroy(layer.filter);
        assert_ok(filter_with_bias(layer.plan, layer.array[LAYER_W], layer.array[LAYER_BIAS],
                                   &layer.filter));
        layer_run(&layer);
        const double expected = beyond ? 9 * 90000.0 : 30000;
        uint16_t bits = half_bits(p.signal, expected);
        for (size_t i = 0; i < layer.n[LAYER_Y]; i++)
            assert_true(layer_sample(&layer, LAYER_Y, i) == half_value(p.signal, bits));
        layer_close(&layer);
    }
}

// Values that are not finite reach the results that depend on them, and no others; so do large ones
// of bf16, whose transforms overflow.
static void nonfinite_samples(void **state)
{
    const struct layer_case *c = *state;
    static const double values[] = {NAN, INFINITY, -INFINITY, 0x1p127};
    for (int i = 0; i < 8; i++) {
        const struct partita_problem p = served_problem(
            c, (struct partita_problem){SIZE(12, 30), BATCH(2), CHANNELS(2, 3), KERNEL(3, 3),
                                        PAD(1, 1), .channels_last = i % 2});
        struct random random = random_start("nonfinite");
        struct layer layer;
        layer_open(&layer, &p, &(struct partita_options){.engine = c->engine, .threads = 2},
                   &random);
        for (int a = 0; a < 2; a++) {
            const enum layer_array array = a ? LAYER_GY : LAYER_X;
            const size_t at = layer.n[array] / (a ? 3 : 2) + 7;
            sample_put(p.signal, layer.array[array], at, values[i / 2]);
            layer.expected[array][at] = layer_sample(&layer, array, at);
        }
        layer_run(&layer);
        double *expected[LAYER_ARRAYS];
        for (int k = LAYER_Y; k < LAYER_GB; k++)
            expected[k] = malloc(layer.n[k] * sizeof **expected);
        reference_layer_forward(&p, expected[LAYER_Y], layer.expected[LAYER_X],
                                layer.expected[LAYER_W], layer.expected[LAYER_BIAS]);
        reference_backward_data(&p, expected[LAYER_GX], layer.expected[LAYER_GY],
                                layer.expected[LAYER_W]);
        reference_backward_weight(&p, expected[LAYER_GW], layer.expected[LAYER_X],
                                  layer.expected[LAYER_GY]);
        for (int k = LAYER_Y; k < LAYER_GB; k++) {
            for (size_t n = 0; n < layer.n[k]; n++) {
                const double y = layer_sample(&layer, (enum layer_array)k, n), e = expected[k][n];
                // Sums of at most 2^10 products; transforms round as much as their largest sample.
                const double largest = isfinite(values[i / 2]) ? 0x1p127 * 0x1p-10 : 1;
                if (isfinite(e) ? !(fabs(y - e) <= 1024 * half_roundoff(p.signal) * largest) &&
                                      fabs(e) < half_value(p.signal, half_bits(p.signal, 0x1p15))
                                : isfinite(y))
                    fail_msg("array %d, sample %zu: %g, not %g", k, n, y, e);
            }
            free(expected[k]);
        }
        layer_close(&layer);
    }
}

// Forward's transforms of x, kept for backward weight.
static void saved_transforms(void **state)
{
    const struct format *f = *state;
    const struct layer_case c = {f, "cpu/tiles"};
    const struct partita_problem p = served_problem(
        &c, (struct partita_problem){SIZE(40, 37), BATCH(2), CHANNELS(4, 5), KERNEL(9, 9)});
    struct random random = random_start("saved");
    for (int guarded = 0; guarded < 2; guarded++) {
        struct layer layer;
        layer_open(&layer, &p, &(struct partita_options){.engine = c.engine}, &random);
        layer_run_saved(&layer, guarded);
        layer_check(&layer);
        layer_close(&layer);
    }
}

static void refusals(void **state)
{
    const struct format *f = *state;
    struct log_lines lines = {0};
    struct partita_plan *plan = NULL;
    struct partita_problem p = {SIZE(9, 9), .signal = f->type, .taps = f->type, KERNEL(3, 3)};
    struct partita_options options = {.log = log_into(&lines)};
    uint16_t array[81];
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
    static const char *const engines[] = {"cpu/direct", "cpu/gemm", "cpu/winograd", "cpu/tiles",
                                          "cpu/depthwise"};
    enum { N_HALF_ENGINES = sizeof engines / sizeof *engines };
    static struct layer_case cases[HALF_TYPES][N_HALF_ENGINES];
    static struct CMUnitTest tests[1 + HALF_TYPES * (5 + 2 * N_HALF_ENGINES)];
    size_t n = 0;
    tests[n++] = named_test(pairs_of_rows, NULL, "pairs of rows");
    for (int i = 0; i < HALF_TYPES; i++) {
        void *format = (void *)(uintptr_t)&formats[i];
        const char *name = formats[i].name;
        tests[n++] = named_test(widens_all, format, "%s: all values widened", name);
        tests[n++] = named_test(narrows_around_all, format, "%s: rounded around every value", name);
        tests[n++] = named_test(narrows_any_bits, format, "%s: any bits rounded", name);
        tests[n++] = named_test(refusals, format, "%s: refusals", name);
        tests[n++] = named_test(saved_transforms, format, "%s: saved transforms", name);
        for (int e = 0; e < N_HALF_ENGINES; e++) {
            struct layer_case *c = &cases[i][e];
            *c = (struct layer_case){&formats[i], engines[e]};
            tests[n++] = named_test(sums_have_the_range_of_f32, c, "%s: range of sums by %s", name,
                                    engines[e]);
            tests[n++] =
                named_test(nonfinite_samples, c, "%s: non-finite samples by %s", name, engines[e]);
        }
    }
    return run_test_list(tests, n);
}
