// SPDX-License-Identifier: MIT
// Layers in all directions: a table of hostile shapes and many random ones against the oracle,
// gradients against finite differences and against the transpose identity <gy, A x> = <A' gy, x>.
// (The promises of the calls are in test_layer_calls.c.)
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "support/reference_layer.h"

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
    {"small-map",
     {.rank = 2,
      .in_channels = 80,
      .out_channels = 100,
      .kernel = {3, 3},
      .size = {7, 7},
      .pad_begin = {1, 1},
      .pad_end = {1, 1},
      .activation = PARTITA_RELU}},
    {"small-maps-of-groups",
     {.rank = 2, .in_channels = 280, .out_channels = 200, .groups = 2, .size = {7, 5}}},
    {"kernel-as-large-as-image",
     {.rank = 2, .in_channels = 3, .out_channels = 4, .kernel = {9, 11}, .size = {9, 11}}},
    {"padding-beyond-kernel",
     {.rank = 2,
      .op = PARTITA_CORRELATE,
      .out_channels = 2,
      .kernel = {2, 3},
      .size = {4, 5},
      .pad_begin = {7, 9},
      .pad_end = {8, 6}}},
    {"kernel-beyond-image",
     {.rank = 2, .kernel = {7, 9}, .size = {2, 3}, .pad_begin = {6, 8}, .pad_end = {6, 8}}},
    {"cropped",
     {.rank = 2, .kernel = {3, 3}, .size = {20, 20}, .pad_begin = {-4, -2}, .pad_end = {-3, -6}}},
    {"stride-above-kernel",
     {.rank = 2, .in_channels = 2, .kernel = {2, 3}, .size = {17, 19}, .stride = {5, 4}}},
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
     {.rank = 2,
      .kernel = {3, 3},
      .size = {4, 4},
      .dilation = {9, 7},
      .pad_begin = {18, 14},
      .pad_end = {18, 14}}},
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
    {"row",
     {.rank = 2,
      .in_channels = 2,
      .out_channels = 2,
      .kernel = {1, 7},
      .size = {1, 3000},
      .pad_end = {0, 6}}},
    {"column",
     {.rank = 2,
      .in_channels = 2,
      .out_channels = 2,
      .kernel = {7, 1},
      .size = {3000, 1},
      .stride = {2, 1}}},
    {"batch",
     {.rank = 2,
      .batch = 37,
      .in_channels = 2,
      .out_channels = 3,
      .kernel = {2, 2},
      .size = {3, 4}}},
    {"line",
     {.rank = 1,
      .in_channels = 12,
      .out_channels = 9,
      .kernel = {130},
      .size = {700},
      .pad_begin = {129}}},
    {"line-many-taps",
     {.rank = 1,
      .in_channels = 2,
      .out_channels = 2,
      .kernel = {700},
      .size = {900},
      .pad_end = {5}}},
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
    struct partita_problem suited = layer_suited(c->engine, c->problem),
                           problem = typed(&suited, c->type);
    struct random random = random_start(c->name);
    struct layer layer;
    layer_open(
        &layer, &problem,
        &(struct partita_options){.engine = c->engine, .threads = 2, .directions = LAYER_ALL},
        &random);
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
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suited(c->engine, &drawn);
        struct partita_problem problem = typed(&suited, c->type);
        struct layer layer;
        if (!layer_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}

static double dot(const struct layer *layer, enum layer_array a, enum layer_array b)
{
    double sum = 0;
    for (size_t i = 0; i < layer->n[a]; i++)
        sum += layer_sample(layer, a, i) * layer_sample(layer, b, i);
    return sum;
}

// <gy, A x> = <A' gy, x> and, A being linear in the taps, = <gw, w>. Sums of all products, each of
// rms 1/27 at most: what their norm allows times the gate of each array.
static void transpose_identity(void **state)
{
    const struct layer_case *c = *state;
    struct random random = random_start("transpose");
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suited(c->engine, &drawn);
        struct partita_problem problem = typed(&suited, c->type);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        if (!layer_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
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

// The loss sum gy*y of a shifted input or tap, against the gradient: the loss is linear in each of
// them, so that a central difference has rounding errors alone.
static void finite_differences(void **state)
{
    const struct layer_case *c = *state;
    static const enum layer_array moved[] = {LAYER_X, LAYER_W, LAYER_BIAS},
                                  gradient[] = {LAYER_GX, LAYER_GW, LAYER_GB};
    struct random random = random_start("differences");
    for (int i = 0; i < layer_repeats(RANDOM_PROBLEMS); i++) {
        struct partita_problem drawn = layer_random(&random),
                               suited = layer_suited(c->engine, &drawn);
        struct partita_problem problem = typed(&suited, PARTITA_F64);
        problem.activation = PARTITA_LINEAR;
        struct layer layer;
        if (!layer_served(c->engine, &problem)) continue;
        layer_open(
            &layer, &problem,
            &(struct partita_options){.engine = c->engine, .threads = 1, .directions = LAYER_ALL},
            &random);
        layer_run(&layer);
        for (int d = 0; d < 3; d++) {
            size_t at = random_below(&random, layer.n[moved[d]]);
            double *value = (double *)layer.array[moved[d]] + at, kept = *value, loss[2], size = 0;
            for (int side = 0; side < 2; side++) {
                *value = kept + (side ? 0.5 : -0.5);
                partita_filter_destroy(layer.filter);
                assert_ok(partita_filter_create_biased(layer.plan, layer.array[LAYER_W],
                                                       layer.array[LAYER_BIAS], &layer.filter));
                assert_ok(partita_forward(layer.plan, layer.filter, layer.array[LAYER_Y],
                                          layer.array[LAYER_X], NULL));
                loss[side] = dot(&layer, LAYER_GY, LAYER_Y);
                size = dot(&layer, LAYER_GY, LAYER_GY) + dot(&layer, LAYER_Y, LAYER_Y);
            }
            *value = kept;
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
    static const char *const engines[] = {
        "cpu/direct",       "cpu/gemm",    "cpu/winograd",       "cpu/tiles",
        "cpu/depthwise",    "cuda/direct", "cuda/direct-plain",  "cuda/direct-halo",
        "cuda/winograd",    "cuda/tiles",  "cuda/tiles-complex", "cuda/tiles-gauss",
        "cuda/tiles-fused",
    };
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    enum { N_ENGINES_OF_LAYERS = sizeof engines / sizeof *engines };
    static struct layer_case cases[N_ENGINES_OF_LAYERS][2][N_PROBLEMS + N_RANDOM];
    static struct CMUnitTest tests[N_ENGINES_OF_LAYERS * 2 * (N_PROBLEMS + N_RANDOM + 2)];
    static char names[N_RANDOM][16];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_ENGINES_OF_LAYERS; e++) {
        if (!layer_engine_is_here(engines[e])) continue;
        for (size_t t = 0; t < (layer_is_brief() ? 1 : 2); t++) {
            const char *type = partita_type_name(types[t]);
            struct layer_case *c = cases[e][t];
            for (size_t i = 0; i < N_PROBLEMS; i++, c++) {
                const struct partita_problem problem = typed(&problems[i].problem, types[t]);
                if (layer_is_brief() && layer_products(&problem) > SMALL) continue;
                *c = (struct layer_case){engines[e], problems[i].name, types[t],
                                         &problems[i].problem};
                if (!layer_served(engines[e], &problem)) continue;
                tests[n++] = named_test(against_oracle, c, "%s/%s-%s", engines[e], c->name, type);
            }
            for (size_t i = 0; i < N_RANDOM; i++, c++) {
                snprintf(names[i], sizeof names[i], "random-%zu", i);
                *c = (struct layer_case){engines[e], names[i], types[t], NULL};
                tests[n++] = named_test(random_problems, c, "%s/%s-%s", engines[e], c->name, type);
            }
            tests[n++] = named_test(transpose_identity, &cases[e][t][0], "%s/transpose-identity-%s",
                                    engines[e], type);
        }
        if (!layer_is_brief())
            tests[n++] = named_test(finite_differences, &cases[e][1][0], "%s/finite-differences",
                                    engines[e]);
    }
    return run_test_list(tests, n);
}
