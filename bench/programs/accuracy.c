// SPDX-License-Identifier: MIT
// The errors of our algorithms for layers, as table 4 of A. Lavin & S. Gray, Fast Algorithms for
// Convolutional Neural Networks (2015), has theirs: forward on layers of VGG-E, samples and weights
// uniform in [-1, 1), compared with sums in float64 over the whole result. White-box: tile sizes
// are imposed as the measuring planner imposes them, whatever the error budget is. Prints CSV;
// `tile` is the edge of the transformed tile: 4 for Winograd's F(2x2, 3x3), 5 for F(3x3, 3x3), to 8
// for F(6x6, 3x3), the size of FFT tiles, 0 without tiles. Rows of LAYER-f16 and LAYER-bf16 have
// samples, weights and results in these types, whose rounding is part of the error.
#include "workloads/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage.h"
#include "planner/planner.h"
#include "planner/wisdom.h"

static const char *const layers[] = {"vgg-1.2", "vgg-2.2", "vgg-3.2", "vgg-4.2", "vgg-5"};
static const size_t tiles[] = {0, 4, 5, 6, 7, 8, 16, 32};

struct accuracy_arrays {
    struct layer_sizes sizes;
    float *x, *w, *y;
    // The same arrays for a run: these, or in f16 or bf16.
    const void *run_x, *run_w;
    void *run_y;
    double *expected;
};

static float *accuracy_noise(size_t n, uint64_t seed)
{
    float *samples = bench_allocate(n * sizeof *samples);
    bench_noise(samples, n, false, seed);
    for (size_t i = 0; i < n; i++) samples[i] *= 2;
    return samples;
}

// expected += tap times the samples of one plane of x that it multiplies; the tap is in row r,
// column q; stride 1.
static void accuracy_add_tap(double *expected, const float *x, double tap,
                             const struct layer_sizes *s, size_t r, size_t q)
{
    const struct layer_axis *row = &s->axis[0], *column = &s->axis[1];
    const ptrdiff_t down = (ptrdiff_t)r - row->pad, across = (ptrdiff_t)q - column->pad;
    const ptrdiff_t width = (ptrdiff_t)column->size, columns = (ptrdiff_t)column->out;
    const ptrdiff_t first = across < 0 ? -across : 0,
                    last = width - across < columns ? width - across : columns;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)row->out; i++) {
        if (i + down < 0 || i + down >= (ptrdiff_t)row->size) continue;
        const float *from = x + (i + down) * width + across;
        double *to = expected + i * columns;
        for (ptrdiff_t k = first; k < last; k++) to[k] += tap * (double)from[k];
    }
}

// For one image, one group, two axes.
static void accuracy_expect(const struct accuracy_arrays *a)
{
    const struct layer_sizes *s = &a->sizes;
    for (size_t k = 0; k < s->out; k++)
        for (size_t c = 0; c < s->in; c++)
            for (size_t r = 0; r < s->taps; r++)
                accuracy_add_tap(a->expected + k * s->outputs, a->x + c * s->plane,
                                 (double)a->w[(k * s->in + c) * s->taps + r], s,
                                 r / s->axis[1].kernel, r % s->axis[1].kernel);
}

static void accuracy_print(const char *layer, const struct partita_plan *plan,
                           const struct accuracy_arrays *a)
{
    double largest = 0, error = 0, norm = 0;
    for (size_t i = 0; i < a->sizes.out * a->sizes.outputs; i++) {
        const double difference = (double)a->y[i] - a->expected[i];
        largest = fmax(largest, fabs(difference));
        error += difference * difference;
        norm += a->expected[i] * a->expected[i];
    }
    printf("%s,%s,%zu,%.3g,%.3g\n", layer, plan->engine->name, plan->choice.transform, largest,
           sqrt(error / norm));
    fflush(stdout);
}

// Runs engine i with one size of tiles and prints its errors; prints nothing if it has no such
// tiles. Returns false without memory.
static bool accuracy_try_engine(const char *layer, const struct partita_plan *plan, size_t i,
                                size_t tile, const struct accuracy_arrays *a)
{
    const struct partita_options options = {.threads = 1, .error_budget = 1};
    struct partita_plan trial = *plan;
    struct partita_filter *filter = NULL;
    struct cost_model model;
    wisdom_cost_model(NULL, plan->isa, &model);
    estimate_engine(plan, &options, &model, i, tile, &trial.choice);
    if (!trial.choice.applicable || trial.choice.transform != tile) return true;
    trial.engine = plan->engines[i];
    trial.state = NULL;
    const struct request request = estimate_request(&trial, &options, &model, trial.engine, tile);
    bool ok = plan_create_state(&trial, &request) == PARTITA_OK &&
              partita_filter_create(&trial, a->run_w, &filter) == PARTITA_OK;
    if (ok) {
        void *workspace = bench_allocate(plan_workspace(&trial));
        const struct operands operands = {.to = a->run_y, .from = {a->run_x}};
        trial.engine->bounded.run(&trial, filter, &operands, workspace);
        if (trial.shape.half) plan_widen (&trial)(a->y, a->run_y, a->sizes.out * a->sizes.outputs);
        accuracy_print(layer, &trial, a);
        free(workspace);
    }
    partita_filter_destroy(filter);
    plan_destroy_state(&trial);
    return ok;
}

static bool accuracy_try_engines(const char *layer, const struct partita_problem *problem,
                                 const struct accuracy_arrays *a)
{
    const struct partita_options options = {.threads = 1, .directions = PARTITA_FORWARD};
    struct partita_plan *plan;
    bool ok = partita_plan_create(problem, &options, &plan) == PARTITA_OK;
    for (size_t i = 0; ok && plan->engines[i]; i++)
        for (size_t t = 0; ok && t < sizeof tiles / sizeof *tiles; t++)
            ok = accuracy_try_engine(layer, plan, i, tiles[t], a);
    if (ok) partita_plan_destroy(plan);
    return ok;
}

static void *accuracy_narrow(const float *samples, size_t n, enum half type)
{
    void *half = bench_allocate(n * sizeof(uint16_t));
    kernels_select(cpu_detect(), false)->narrow[type](half, samples, n);
    return half;
}

static bool accuracy_run_half(const char *layer, const struct partita_problem *problem,
                              struct accuracy_arrays *a, enum half type)
{
    const struct layer_sizes *s = &a->sizes;
    struct partita_problem half = *problem;
    char name[48];
    void *x = accuracy_narrow(a->x, s->in * s->plane, type);
    void *w = accuracy_narrow(a->w, s->out * s->in * s->taps, type);
    half.signal = half.taps = type == HALF_F16 ? PARTITA_F16 : PARTITA_BF16;
    snprintf(name, sizeof name, "%s-%s", layer, partita_type_name(half.signal));
    a->run_x = x, a->run_w = w;
    a->run_y = bench_allocate(s->out * s->outputs * sizeof(uint16_t));
    const bool ok = accuracy_try_engines(name, &half, a);
    free(x);
    free(w);
    free(a->run_y);
    return ok;
}

static bool accuracy_run_layer(const char *layer, const struct partita_problem *problem)
{
    struct accuracy_arrays a = {.sizes = layer_sizes(problem)};
    const struct layer_sizes *s = &a.sizes;
    a.x = accuracy_noise(s->in * s->plane, 1);
    a.w = accuracy_noise(s->out * s->in * s->taps, 2);
    a.y = bench_allocate(s->out * s->outputs * sizeof *a.y);
    a.expected = bench_allocate(s->out * s->outputs * sizeof *a.expected);
    accuracy_expect(&a);
    a.run_x = a.x, a.run_w = a.w, a.run_y = a.y;
    const bool ok = accuracy_try_engines(layer, problem, &a) &&
                    accuracy_run_half(layer, problem, &a, HALF_F16) &&
                    accuracy_run_half(layer, problem, &a, HALF_BF16);
    free(a.x);
    free(a.w);
    free(a.y);
    free(a.expected);
    return ok;
}

int main(void)
{
    size_t n;
    struct layer_case *cases = layer_cases(&n);
    bool ok = true;
    printf("layer,engine,tile,largest_error,relative_l2\n");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char name[48];
        snprintf(name, sizeof name, "%s-n1-forward", layers[i]);
        for (size_t k = 0; k < n; k++)
            if (strcmp(cases[k].name, name) == 0)
                ok &= accuracy_run_layer(layers[i], &cases[k].layer.problem);
    }
    free(cases);
    return ok ? 0 : 1;
}
