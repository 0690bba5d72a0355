// SPDX-License-Identifier: MIT
// Layers in all directions: a table of difficult shapes and many random ones against the oracle,
// gradients against finite differences and against the transpose identity <gy, A x> = <A' gy, x>.
// The properties of calls are tested in test_layer_calls.c.
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "support/reference_layer.h"

static const struct named_problem problems[] = {
    {"one", {SIZE(1, 1)}},
    {"one-by-one", {SIZE(7, 5), BATCH(3), CHANNELS(19, 13)}},
    {"pointwise", {SIZE(6, 6), BATCH(5), CHANNELS(20, 13), RELU}},
    {"pointwise-groups", {SIZE(4, 5), CORRELATE, BATCH(2), CHANNELS(24, 12), GROUPS(6)}},
    {"pointwise-many-channels", {SIZE(2, 4), BATCH(2), CHANNELS(600, 33), RELU}},
    {"pointwise-in-place", {SIZE(9, 47), CHANNELS(272, 24), RELU}},
    {"pointwise-maps", {SIZE(7, 7), BATCH(8), CHANNELS(514, 257), RELU}},
    {"pointwise-maps-of-groups", {SIZE(4, 5), BATCH(20), CHANNELS(512, 512), GROUPS(2), RELU}},
    {"pointwise-gradient-of-maps", {SIZE(3, 5), BATCH(3), CHANNELS(257, 515)}},
    {"pointwise-sums-in-place", {SIZE(20, 28), BATCH(2), CHANNELS(272, 24), RELU}},
    {"pointwise-strided", {SIZE(9, 8), BATCH(2), CHANNELS(9, 6), STRIDE(2, 3), PAD_BEGIN(1, -1)}},
    {"same-3x3", {SIZE(14, 14), BATCH(2), CHANNELS(5, 9), KERNEL(3, 3), PAD(1, 1)}},
    {"many-channels",
     {SIZE(6, 7), CORRELATE, BATCH(2), CHANNELS(70, 67), KERNEL(3, 3), PAD(1, 1), RELU}},
    {"one-by-one-crowded", {SIZE(64, 64), CHANNELS(3, 40)}}, // planes whole pages apart
    {"small-map", {SIZE(7, 7), CHANNELS(80, 100), KERNEL(3, 3), PAD(1, 1), RELU}},
    {"small-maps-of-groups", {SIZE(7, 5), CHANNELS(280, 200), GROUPS(2)}},
    {"kernel-as-large-as-image", {SIZE(9, 11), CHANNELS(3, 4), KERNEL(9, 11)}},
    {"padding-beyond-kernel",
     {SIZE(4, 5), CORRELATE, OUTPUTS(2), KERNEL(2, 3), PAD_BEGIN(7, 9), PAD_END(8, 6)}},
    {"kernel-beyond-image", {SIZE(2, 3), KERNEL(7, 9), PAD(6, 8)}},
    {"cropped", {SIZE(20, 20), KERNEL(3, 3), PAD_BEGIN(-4, -2), PAD_END(-3, -6)}},
    {"phases-by-parts",
     {SIZE(41, 43), BATCH(5), CHANNELS(3, 9), KERNEL(3, 3), STRIDE(2, 2), PAD(1, 1)}},
    {"phases-of-other-boxes", {SIZE(1, 79), BATCH(99), CHANNELS(2, 4), KERNEL(1, 2), STRIDE(1, 3)}},
    {"phases-by-parts-pointwise", {SIZE(40, 43), BATCH(5), CHANNELS(3, 9), STRIDE(2, 2)}},
    {"phases-by-parts-of-two",
     {SIZE(28, 28), BATCH(9), CHANNELS(2, 3), KERNEL(3, 3), STRIDE(2, 2), PAD(1, 1)}},
    {"stride-above-kernel", {SIZE(17, 19), CHANNELS(2, 1), KERNEL(2, 3), STRIDE(5, 4)}},
    {"stride-above-size", {SIZE(6, 5), KERNEL(2, 2), STRIDE(40, 50)}},
    {"stride-dilation-common",
     {SIZE(31, 29), CHANNELS(2, 3), KERNEL(4, 5), STRIDE(6, 4), DILATION(4, 6), PAD_BEGIN(5, 11),
      PAD_END(2, 3)}},
    {"dilation-beyond-image", {SIZE(4, 4), KERNEL(3, 3), DILATION(9, 7), PAD(18, 14)}},
    {"caffenet-1", {SIZE(35, 39), CORRELATE, CHANNELS(3, 10), KERNEL(11, 11), STRIDE(4, 4)}},
    {"depthwise", {SIZE(13, 12), BATCH(2), CHANNELS(6, 6), GROUPS(6), KERNEL(5, 5), PAD(2, 2)}},
    {"depthwise-multiplied", {SIZE(9, 9), CHANNELS(3, 12), GROUPS(3), KERNEL(3, 3), STRIDE(2, 2)}},
    {"large-map", {SIZE(61, 130), CORRELATE, CHANNELS(3, 4), KERNEL(3, 3), PAD(1, 1)}},
    {"row", {SIZE(1, 3000), CHANNELS(2, 2), KERNEL(1, 7), PAD_END(0, 6)}},
    {"column", {SIZE(3000, 1), CHANNELS(2, 2), KERNEL(7, 1), STRIDE(2, 1)}},
    {"batch", {SIZE(3, 4), BATCH(37), CHANNELS(2, 3), KERNEL(2, 2)}},
    {"line", {SIZE(700), CHANNELS(12, 9), KERNEL(130), PAD_BEGIN(129)}},
    {"line-many-taps", {SIZE(900), CHANNELS(2, 2), KERNEL(700), PAD_END(5)}},
    {"line-stride-dilation",
     {SIZE(333), BATCH(2), CHANNELS(8, 8), KERNEL(9), STRIDE(3), DILATION(5), PAD_BEGIN(20),
      PAD_END(-7)}},
    {"volume",
     {SIZE(6, 7, 8), BATCH(2), CHANNELS(3, 5), KERNEL(3, 2, 3), PAD_BEGIN(1, 0, 2),
      PAD_END(1, 1, 0)}},
    {"volume-strided",
     {SIZE(7, 9, 8), CORRELATE, CHANNELS(4, 4), GROUPS(2), KERNEL(2, 3, 2), STRIDE(2, 3, 1),
      DILATION(1, 2, 3), PAD_BEGIN(1, 2, 3), PAD_END(0, 2, 1)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct layer_case {
    const char *engine, *name;
    enum partita_type type;
    const struct partita_problem *problem;
};

static void against_oracle(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem suited = layer_suit_engine(c->engine, c->problem),
                           problem = problem_of_type(&suited, c->type);
    struct random random = random_start(c->name);
    const struct partita_options options = {.engine = c->engine,
                                            .threads = 2,
                                            .directions = LAYER_ALL,
                                            .filter_uses = (unsigned)random_below(&random, 2)};
    struct layer layer;
    layer_open(&layer, &problem, &options, &random);
    // The name may be followed by a variant's.
    assert_int_equal(strlen(partita_plan_engine(layer.plan, PARTITA_FORWARD)),
                     strcspn(c->engine, ":"));
    assert_memory_equal(partita_plan_engine(layer.plan, PARTITA_FORWARD), c->engine,
                        strcspn(c->engine, ":"));
    layer_run(&layer);
    layer_check_inputs(&layer);
    layer_check(&layer);
    layer_close(&layer);
}

enum { RANDOM_PROBLEMS = 30 };

static void random_problems(void **state)
{
    const struct layer_case *c = *state;
    struct random random = random_start(c->name);
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suit_engine(c->engine, &drawn);
        struct partita_problem problem = problem_of_type(&suited, c->type);
        struct layer layer;
        if (!layer_is_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}

static void transpose_identity(void **state)
{
    const struct layer_case *c = *state;
    struct random random = random_start("transpose");
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suit_engine(c->engine, &drawn);
        struct partita_problem problem = problem_of_type(&suited, c->type);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        if (!layer_is_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
        layer_check_transpose(&layer, gate_direct(c->type, layer.n[LAYER_Y] + layer.n[LAYER_W]));
        layer_close(&layer);
    }
}

// The loss, the sum of gy*y, with one input or tap changed, against the gradient. The loss is
// linear in each of them, so that a central difference has only rounding errors.
static void finite_differences(void **state)
{
    const struct layer_case *c = *state;
    static const enum layer_array moved[] = {LAYER_X, LAYER_W, LAYER_BIAS},
                                  gradient[] = {LAYER_GX, LAYER_GW, LAYER_GB};
    struct random random = random_start("differences");
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suit_engine(c->engine, &drawn);
        struct partita_problem problem = problem_of_type(&suited, PARTITA_F64);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        if (!layer_is_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
        layer_run(&layer);
        for (int d = 0; d < 3; d++) {
            size_t at = random_below(&random, layer.n[moved[d]]);
            double *value = (double *)layer.array[moved[d]] + at, original = *value, loss[2],
                   size = 0;
            for (int side = 0; side < 2; side++) {
                *value = original + (side ? 0.5 : -0.5);
                partita_filter_destroy(layer.filter);
                assert_ok(filter_with_bias(layer.plan, layer.array[LAYER_W],
                                           layer.array[LAYER_BIAS], &layer.filter));
                assert_ok(partita_forward(layer.plan, layer.filter, layer.array[LAYER_Y],
                                          layer.array[LAYER_X], NULL));
                loss[side] = layer_dot(&layer, LAYER_GY, LAYER_Y);
                size = layer_dot(&layer, LAYER_GY, LAYER_GY) + layer_dot(&layer, LAYER_Y, LAYER_Y);
            }
            *value = original;
            double expected = layer_sample(&layer, gradient[d], at);
            double gate = gate_direct(PARTITA_F64, layer.n[LAYER_Y] + layer.n[LAYER_W]) *
                          (size + fabs(expected));
            if (!(fabs(loss[1] - loss[0] - expected) <= gate))
                fail_msg("difference %.17g, gradient %.17g", loss[1] - loss[0], expected);
        }
        layer_close(&layer);
    }
}

enum { N_RANDOM = 8, SMALL = 400000 }; // multiply-adds

int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_F16, PARTITA_BF16};
    enum { N_TYPES = sizeof types / sizeof *types };
    static struct layer_case cases[N_LAYER_ENGINES][N_TYPES][N_PROBLEMS + N_RANDOM];
    static struct CMUnitTest tests[N_LAYER_ENGINES * N_TYPES * (N_PROBLEMS + N_RANDOM + 2)];
    static char names[N_RANDOM][16];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_LAYER_ENGINES; e++) {
        if (!layer_has_engine(layer_engines[e])) continue;
        for (size_t t = 0; t < (layer_is_brief() ? 1 : N_TYPES); t++) {
            const char *type = partita_type_name(types[t]);
            if (half_is(types[t]) && layer_on_stand_in()) continue; // test_device_half.c
            struct layer_case *c = cases[e][t];
            for (size_t i = 0; i < N_PROBLEMS; i++, c++) {
                const struct partita_problem problem =
                    problem_of_type(&problems[i].problem, types[t]);
                if (layer_is_brief() && layer_products(&problem) > SMALL) continue;
                *c = (struct layer_case){layer_engines[e], problems[i].name, types[t],
                                         &problems[i].problem};
                if (!layer_is_served(layer_engines[e], &problem)) continue;
                tests[n++] =
                    named_test(against_oracle, c, "%s/%s-%s", layer_engines[e], c->name, type);
            }
            for (size_t i = 0; i < N_RANDOM; i++, c++) {
                snprintf(names[i], sizeof names[i], "random-%zu", i);
                *c = (struct layer_case){layer_engines[e], names[i], types[t], NULL};
                tests[n++] =
                    named_test(random_problems, c, "%s/%s-%s", layer_engines[e], c->name, type);
            }
            if (half_is(types[t])) continue; // rounded results
            tests[n++] = named_test(transpose_identity, &cases[e][t][0], "%s/transpose-identity-%s",
                                    layer_engines[e], type);
        }
        if (!layer_is_brief())
            tests[n++] = named_test(finite_differences, &cases[e][1][0], "%s/finite-differences",
                                    layer_engines[e]);
    }
    return run_test_list(tests, n);
}
