// SPDX-License-Identifier: MIT
// Engines whose products take tensor cores, on a stand-in of compute capability 9.0: errors against
// sums in f64, and the arithmetic that an error budget leaves (decision 43).
#include "core/plan.h" // before the complex numbers of test.h

#include <math.h>

#include "support/layer_rig.h"

// Sums of cuda/gemm have as many terms in all directions.
static const struct partita_problem problem = {SIZE(9, 10), BATCH(2), CHANNELS(20, 20),
                                               KERNEL(3, 3), PAD(1, 1)};

static const enum layer_array results[] = {LAYER_Y, LAYER_GX, LAYER_GW};

static double predicted(const struct layer *layer, int d)
{
    const struct partita_plan *plan = layer->plan;
    return (d == 0 ? plan : d == 1 ? plan->backward_data : plan->backward_weight)->choice.error;
}

// Relative to the norm of `exact`, whose results were checked.
static double error_of(const struct layer *layer, const struct layer *exact, int d)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < layer->n[results[d]]; i++) {
        const double expected = exact->expected[results[d]][i];
        const double e = layer_sample(layer, results[d], i) - expected;
        error += e * e;
        norm += expected * expected;
    }
    return sqrt(error / norm);
}

// Without a budget errors are those of f32. Predicted errors are root mean squares: results are
// within four of them.
static void budgets(void **state)
{
    const double one = 0.6 * 0x1p-11, wide = 0.02; // error of one product; a budget far above it
    const char *engine = *state;
    struct random random = random_start(engine);
    struct layer layer, plain, rough;
    layer_open(&layer, &problem, &(struct partita_options){.engine = engine}, &random);
    layer_run(&layer);
    layer_check(&layer);
    double least = INFINITY;
    for (int d = 0; d < 3; d++) {
        assert_true(error_of(&layer, &layer, d) <= 4 * predicted(&layer, d));
        least = fmin(least, predicted(&layer, d));
    }
    // Below the error with three products there is room for multiply-adds only.
    layer_open_copy(&plain, &layer,
                    &(struct partita_options){.engine = engine, .error_budget = 0.999 * least});
    layer_open_copy(&rough, &layer,
                    &(struct partita_options){.engine = engine, .error_budget = wide});
    layer_run(&plain);
    layer_run(&rough);
    for (int d = 0; d < 3; d++) {
        const size_t bytes = layer.n[results[d]] * sizeof(float);
        assert_true(predicted(&plain, d) < predicted(&layer, d));
        assert_true(error_of(&plain, &layer, d) <= 4 * predicted(&plain, d));
        assert_memory_not_equal(plain.array[results[d]], layer.array[results[d]], bytes);
        assert_true(predicted(&rough, d) >= one && predicted(&rough, d) <= wide);
        assert_true(error_of(&rough, &layer, d) <= 4 * predicted(&rough, d));
        assert_true(error_of(&rough, &layer, d) >= one / 4);
    }
    layer_close(&plain);
    layer_close(&rough);
    layer_close(&layer);
}

int main(void)
{
    static char *const engines[] = {"cuda/winograd", "cuda/tiles:complex", "cuda/tiles:gauss",
                                    "cuda/gemm:panels"};
    enum { N = sizeof engines / sizeof *engines };
    struct CMUnitTest tests[N];
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t i = 0; i < N; i++)
        tests[i] = named_test(budgets, engines[i], "budgets: %s", engines[i]);
    return run_all(tests);
}
