// SPDX-License-Identifier: MIT
// Quiet images beside a loud one of the same batch, and quiet output channels beside a loud one:
// the error of each plane alone, not of the whole result. plan.h: a rounding error is relative to
// the largest values that share a transform, in f32 about 1e-6 of the largest results; two items of
// a batch, or two output channels, may share a transform of tiles. With error_reach no error
// reaches other items. Engines of separate sums disturb nothing.
#include "support/layer_rig.h"
#include "support/reference.h"

#include <math.h>
#include <stdio.h>

enum { ITEMS = 5, CHANNELS_OF_ALL = 5, SIZE_OF_ALL = 40, LOUD_ITEM = 2, LOUD_CHANNEL = 1 };

// The header's figure, of the largest results. The bounds of transforms (3 u sqrt(log2 n), of tiles
// of up to 64 x 64) and of Winograd (2e-6 of the root mean square, which for the sums of random
// samples here is below a third of the largest) lie below it.
static const double SHARED = 1e-6;
// Of a plane's own norm, as in test_error_reach.c; Winograd's own budget is 2e-6.
static const double OWN = 2e-6;
static const double FACTOR = 1e6;

struct plane_case {
    const char *engine;
    size_t kernel;
    bool channel; // a loud output channel; else a loud image
    bool alone;   // planes share nothing
    size_t reach; // options.error_reach
};

// Errors of all planes of a result [item][channel][n].
struct plane_errors {
    size_t n;                       // samples of a plane
    double largest;                 // magnitude of all results
    double worst_shared, worst_own; // of quiet planes: root mean square of the error over the
                                    // largest result, and over that of the plane
};

static void measure_plane(struct plane_errors *errors, const float *y, const double complex *exact)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < errors->n; i++) {
        error += pow((double)y[i] - creal(exact[i]), 2);
        norm += pow(creal(exact[i]), 2);
    }
    const double shared = sqrt(error / (double)errors->n) / errors->largest;
    errors->worst_shared = fmax(errors->worst_shared, shared);
    errors->worst_own = fmax(errors->worst_own, sqrt(error / norm));
}

static void scale(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] *= (float)FACTOR;
}

static struct plane_errors measure(const struct plane_case *c,
                                   const struct partita_problem *problem)
{
    const size_t plane = SIZE_OF_ALL * SIZE_OF_ALL, path = c->kernel * c->kernel;
    const size_t n_x = ITEMS * CHANNELS_OF_ALL * plane;
    const size_t paths =
        CHANNELS_OF_ALL * CHANNELS_OF_ALL / (problem->groups ? problem->groups : 1);
    const struct partita_options options = {
        .engine = c->engine, .directions = PARTITA_FORWARD, .error_reach = c->reach};
    struct random random = random_start("loud planes");
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct plane_errors errors = {.n = plane};
    float *x = malloc(n_x * sizeof *x), *y = malloc(n_x * sizeof *y);
    float *w = malloc(paths * path * sizeof *w);
    double complex *exact = malloc(n_x * sizeof *exact);
    random_samples(&random, PARTITA_F32, x, n_x);
    random_samples(&random, PARTITA_F32, w, paths * path);
    const size_t taps = paths / CHANNELS_OF_ALL * path; // of an output channel
    if (c->channel) scale(w + LOUD_CHANNEL * taps, taps);
    else scale(x + LOUD_ITEM * CHANNELS_OF_ALL * plane, CHANNELS_OF_ALL * plane);
    reference_forward(problem, exact, x, w);
    assert_ok(partita_plan_create(problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    for (size_t i = 0; i < n_x; i++) errors.largest = fmax(errors.largest, fabs(creal(exact[i])));
    for (size_t k = 0; k < ITEMS * CHANNELS_OF_ALL; k++) {
        const size_t at = c->channel ? k % CHANNELS_OF_ALL : k / CHANNELS_OF_ALL;
        if (at == (c->channel ? LOUD_CHANNEL : LOUD_ITEM)) continue;
        measure_plane(&errors, y + k * plane, exact + k * plane);
    }
    printf("# %s: error of a quiet plane %.1e of the largest results, %.1e of its own\n",
           partita_plan_engine(plan, PARTITA_FORWARD), errors.worst_shared, errors.worst_own);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    free(x), free(y), free(w), free(exact);
    return errors;
}

static void quiet_planes(void **state)
{
    const struct plane_case *c = *state;
    const ptrdiff_t pad = (ptrdiff_t)c->kernel / 2;
    const struct partita_problem plain = {.op = PARTITA_CORRELATE,
                                          .batch = ITEMS,
                                          .in_channels = CHANNELS_OF_ALL,
                                          .out_channels = CHANNELS_OF_ALL,
                                          .size = {SIZE_OF_ALL, SIZE_OF_ALL},
                                          .kernel = {c->kernel, c->kernel},
                                          .pad_begin = {pad, pad},
                                          .pad_end = {pad, pad}};
    const struct partita_problem problem = c->engine ? layer_suit_engine(c->engine, &plain) : plain;
    const struct plane_errors errors = measure(c, &problem);
    if (!(errors.worst_shared < SHARED))
        fail_msg("an error of %g of the largest results", errors.worst_shared);
    if ((c->alone || c->reach) && !(errors.worst_own < OWN))
        fail_msg("a relative error of %g of a plane", errors.worst_own);
}

static const struct plane_case cases[] = {
    {"cpu/tiles", 9, false, false, 0},     {"cpu/tiles", 9, true, false, 0},
    {"cpu/tiles", 3, false, false, 0},     {"cpu/tiles", 3, true, false, 0},
    {"cpu/depthwise", 9, false, false, 0}, {"cpu/depthwise", 9, true, false, 0},
    {"cpu/winograd", 3, false, true, 0},   {"cpu/winograd", 3, true, true, 0},
    {"cpu/direct", 9, false, true, 0},     {"cpu/direct", 9, true, true, 0},
    {"cpu/gemm", 9, false, true, 0},       {"cpu/gemm", 9, true, true, 0},
    {NULL, 9, false, false, 1000},         {NULL, 3, false, false, 16},
};

int main(void)
{
    enum { N = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[N];
    for (size_t i = 0; i < N; i++)
        tests[i] = named_test(quiet_planes, &cases[i], "%s-%zux%zu-%s",
                              cases[i].engine ? cases[i].engine : "reach", cases[i].kernel,
                              cases[i].kernel, cases[i].channel ? "channel" : "image");
    return run_test_list(tests, N);
}
