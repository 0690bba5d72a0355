// SPDX-License-Identifier: MIT
// Samples of 16 bits on a device: every result of a layer has the bits of the same layer in f32,
// rounded once to the nearest even. (That layer agrees with the oracle: test_layers.c.)
#include "core/plan.h" // before the complex numbers of test.h

#include <math.h>

#include "device/arrays.h"
#include "support/layer_rig.h"

struct format {
    const char *name;
    enum partita_type type;
    int fraction, min_exponent; // bits after the point; exponent of the smallest normal number
};

static const struct format formats[] = {{"f16", PARTITA_F16, 10, -14},
                                        {"bf16", PARTITA_BF16, 7, -126}};

static const struct half_problem {
    const char *name;
    struct partita_problem problem;
    double scale; // of inputs: results of some are denormal numbers
} problems[] = {
    {"strided", STRIDED_LAYER, 1},
    {"pointwise", POINTWISE_LAYER, 1},
    {"depthwise", DEPTHWISE_LAYER, 1},
    {"line", {LENGTH(300), BATCH(3), CHANNELS(4, 6), GROUPS(2), KERNEL(130), PAD_BEGIN(129)}, 1},
    {"volume", {SIZE(5, 6, 7), CORRELATE, CHANNELS(3, 4), KERNEL(2, 3, 2), DILATION(1, 2, 1)}, 1},
    {"denormal", {SIZE(6, 7), CHANNELS(3, 4), KERNEL(3, 3)}, 0x1p-9},
};
enum {
    N_FORMATS = sizeof formats / sizeof *formats,
    N_PROBLEMS = sizeof problems / sizeof *problems
};

struct half_case {
    const struct format *format;
    const struct half_problem *half;
    const char *engine;
};

// The nearest number of a format, ties to even, and its bits. Infinity does not occur.
static double round_half(const struct format *f, double value, uint16_t *ret_bits)
{
    const double magnitude = fabs(value);
    const int exponent = magnitude < ldexp(1, f->min_exponent) ? f->min_exponent : ilogb(magnitude);
    const double unit = ldexp(1, exponent - f->fraction), n = nearbyint(magnitude / unit);
    // Denormal numbers and their carries into the exponent count units from 0 on.
    const unsigned bits = (unsigned)n + ((unsigned)(exponent - f->min_exponent) << f->fraction);
    *ret_bits = (uint16_t)(bits | (signbit(value) ? 0x8000u : 0));
    return copysign(n * unit, value);
}

// The arrays of a layer in 16 bits: inputs are rounded in place, results become those of f32.
static uint16_t *half_of(const struct format *f, struct layer *layer, int array)
{
    float *value = layer->array[array];
    uint16_t *half = malloc((layer->n[array] + 1) * sizeof *half);
    for (size_t i = 0; i < layer->n[array]; i++)
        value[i] = (float)round_half(f, (double)value[i], &half[i]);
    return half;
}

static void scale_inputs(struct layer *layer, double scale)
{
    for (int a = 0; a < LAYER_Y; a++)
        for (size_t i = 0; i < layer->n[a]; i++) ((float *)layer->array[a])[i] *= (float)scale;
}

struct half_layer {
    struct partita_plan *plan;
    struct partita_filter *filter;
    void *array[LAYER_ARRAYS];
};

// All directions, with taps and bias packed when the filter is made, and again by an update. The
// queue NULL: the calls wait. `added`: to what the arrays hold, forward only without an activation.
static void run_half(struct half_layer *half, cudaStream_t queue, bool added, size_t largest)
{
    void **a = half->array, *workspace = NULL;
    size_t bytes = 0;
    for (unsigned d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2)
        bytes = partita_plan_workspace(half->plan, (enum partita_direction)d) > bytes
                    ? partita_plan_workspace(half->plan, (enum partita_direction)d)
                    : bytes;
    if (queue) workspace = array_allocate(DEVICE, bytes + 63 + largest);
    struct partita_call call = {.workspace = workspace, .queue = queue};
    assert_ok(partita_plan_prepare(half->plan));
    assert_ok(filter_with_bias(half->plan, a[LAYER_W], a[LAYER_BIAS], &half->filter));
    if (!added) assert_ok(partita_forward(half->plan, half->filter, a[LAYER_Y], a[LAYER_X], &call));
    assert_ok(partita_filter_update(half->filter, a[LAYER_W], a[LAYER_BIAS], &call));
    call.accumulate = added && !half->plan->shape.relu;
    if (call.accumulate || !added)
        assert_ok(partita_forward(half->plan, half->filter, a[LAYER_Y], a[LAYER_X], &call));
    call.accumulate = added;
    assert_ok(partita_backward_data(half->plan, half->filter, a[LAYER_GX], a[LAYER_GY], &call));
    assert_ok(partita_backward_weight(half->plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], &call));
    assert_ok(partita_backward_bias(half->plan, a[LAYER_GB], a[LAYER_GY], &call));
    if (queue) assert_int_equal(cudaStreamSynchronize(queue), cudaSuccess);
    partita_filter_destroy(half->filter);
    array_release(DEVICE, workspace);
}

// Draws numbers for a result's array, and stores the bits of their sums with the results, which are
// the layer's values.
static void add_numbers(const struct format *f, const struct layer *layer, int array,
                        uint16_t *numbers, uint16_t *sums)
{
    struct random random = random_start("numbers");
    for (size_t i = 0; i < layer->n[array]; i++) {
        float drawn;
        random_samples(&random, PARTITA_F32, &drawn, 1);
        const float number = (float)round_half(f, (double)drawn, &numbers[i]);
        round_half(f, (double)(number + ((float *)layer->array[array])[i]), &sums[i]);
    }
}

static void same_as_rounded(void **state)
{
    const struct half_case *c = *state;
    const struct partita_options options = {
        .engine = c->engine, .device = "cuda:0", .directions = LAYER_ALL};
    struct random random = random_start("half");
    struct layer layer;
    struct half_layer half;
    uint16_t *bits[LAYER_ARRAYS], *home[LAYER_ARRAYS];
    layer_open(&layer, &c->half->problem, &options, &random);
    scale_inputs(&layer, c->half->scale);
    for (int i = 0; i < LAYER_Y; i++) bits[i] = half_of(c->format, &layer, i);
    partita_filter_destroy(layer.filter);
    assert_ok(
        filter_with_bias(layer.plan, layer.array[LAYER_W], layer.array[LAYER_BIAS], &layer.filter));
    layer_run(&layer);
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++) bits[i] = half_of(c->format, &layer, i);
    const struct partita_problem problem = problem_of_type(&c->half->problem, c->format->type);
    assert_ok(partita_plan_create(&problem, &options, &half.plan));
    // Arrays of the host; of the device; and these on a queue; the same, added to other numbers.
    cudaStream_t queue;
    assert_int_equal(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking), cudaSuccess);
    for (int i = 0; i < 6; i++) {
        const int on_device = i % 3;
        const bool added = i >= 3;
        size_t largest = 0;
        for (int a = 0; a < LAYER_ARRAYS; a++) {
            const size_t bytes = layer.n[a] * sizeof **home;
            home[a] = malloc(bytes + 1);
            if (a < LAYER_Y) memcpy(home[a], bits[a], bytes);
            else memset(home[a], 0xff, bytes);
            if (a >= LAYER_Y && added) add_numbers(c->format, &layer, a, home[a], bits[a]);
            largest = bytes > largest ? bytes : largest;
            half.array[a] = on_device ? device_copy(home[a], bytes, 0) : home[a];
        }
        run_half(&half, on_device == 2 ? queue : NULL, added, largest);
        for (int a = 0; a < LAYER_ARRAYS; a++) {
            const size_t bytes = layer.n[a] * sizeof **home;
            if (on_device) {
                assert_int_equal(cudaMemcpy(home[a], half.array[a], bytes, cudaMemcpyDefault),
                                 cudaSuccess);
                array_release(DEVICE, half.array[a]);
            }
            if (a != LAYER_Y || !added || !half.plan->shape.relu)
                assert_memory_equal(home[a], bits[a], bytes);
            free(home[a]);
        }
    }
    cudaStreamDestroy(queue);
    partita_plan_destroy(half.plan);
    layer_close(&layer);
    for (int i = 0; i < LAYER_ARRAYS; i++) free(bits[i]);
}

// Every value of 16 bits through a layer that multiplies by 1. A sum begins with 0, to which -0
// adds nothing.
static void all_values(void **state)
{
    const struct format *f = *state;
    enum { ALL = 1 << 16 };
    const struct partita_problem problem = {LENGTH(ALL), .signal = f->type, KERNEL(1)};
    const uint16_t infinity = (uint16_t)(0x7fff >> f->fraction << f->fraction);
    struct partita_plan *plan;
    struct partita_filter *filter;
    uint16_t one, *x = malloc(ALL * sizeof *x), *y = malloc(ALL * sizeof *y);
    round_half(f, 1, &one);
    for (unsigned i = 0; i < ALL; i++) x[i] = (uint16_t)i;
    const struct partita_options options = {.engine = "cuda/gemm", .device = "cuda:0"};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, &one, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    for (unsigned i = 0; i < ALL; i++) {
        const bool nan = (i & 0x7fff) > infinity;
        if (nan) assert_true((y[i] & 0x7fff) > infinity);
        else assert_int_equal(y[i], i == 0x8000 ? 0 : i);
    }
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    free(x);
    free(y);
}

// Host arrays in micro-batches give the same bits. Gradients of taps, which are sums of all items,
// are not split: partial sums would be rounded.
static void micro_batches(void **state)
{
    const struct format *f = *state;
    const struct partita_problem problem = {SIZE(6, 7),   BATCH(7),          CHANNELS(3, 4),
                                            KERNEL(3, 3), .signal = f->type, .taps = f->type};
    enum { X = 7 * 3 * 42, Y = 7 * 4 * 20, W = 4 * 3 * 9 };
    struct partita_options options = {
        .engine = "cuda/gemm", .device = "cuda:0", .directions = LAYER_ALL};
    struct random random = random_start("micro-batches");
    static uint16_t x[X], y[2][Y], gx[2][X], w[W];
    float value[X];
    random_samples(&random, PARTITA_F32, value, X);
    for (int i = 0; i < X; i++) round_half(f, (double)value[i], &x[i]);
    memcpy(w, x, sizeof w);
    for (int i = 0; i < 2; i++) {
        struct partita_plan *plan;
        struct partita_filter *filter;
        assert_ok(partita_plan_create(&problem, &options, &plan));
        assert_ok(partita_filter_create(plan, w, &filter));
        assert_ok(partita_forward(plan, filter, y[i], x, NULL));
        assert_ok(partita_backward_data(plan, filter, gx[i], x, NULL));
        if (i) assert_non_null(plan->micro_batch);
        if (i) assert_non_null(plan->backward_data->micro_batch);
        assert_null(plan->backward_weight->micro_batch);
        partita_filter_destroy(filter);
        partita_plan_destroy(plan);
        options.workspace_limit = 6000;
    }
    assert_memory_equal(y[0], y[1], sizeof *y);
    assert_memory_equal(gx[0], gx[1], sizeof *gx);
}

// Engines without storage of 16 bits say so.
static void refusals(void **state)
{
    const struct format *f = *state;
    static const char *const engines[] = {"cuda/direct", "cuda/overlap-save"};
    const struct partita_problem problem = {LENGTH(90), .signal = f->type, KERNEL(3)};
    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) {
        struct log_lines lines;
        struct partita_plan *plan = NULL;
        const struct partita_options options = {
            .device = "cuda:0", .engine = engines[e], .log = log_into(&lines)};
        assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
        assert_non_null(strstr(lines.text, f->name));
    }
}

int main(void)
{
    static const char *const engines[] = {"cuda/gemm:panels", "cuda/winograd", "cuda/tiles:complex",
                                          "cuda/tiles:gauss", "cuda/tiles:fused"};
    enum { N_HALF_ENGINES = sizeof engines / sizeof *engines };
    static struct half_case cases[N_FORMATS][N_PROBLEMS][N_HALF_ENGINES];
    static struct CMUnitTest tests[N_FORMATS * (N_PROBLEMS * N_HALF_ENGINES + 3)];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t f = 0; f < N_FORMATS; f++) {
        tests[n++] = named_test(all_values, &formats[f], "%s: all values", formats[f].name);
        tests[n++] = named_test(micro_batches, &formats[f], "%s: micro-batches", formats[f].name);
        tests[n++] = named_test(refusals, &formats[f], "%s: refusals", formats[f].name);
        for (size_t i = 0; i < N_PROBLEMS * N_HALF_ENGINES; i++) {
            const struct half_problem *half = &problems[i / N_HALF_ENGINES];
            struct half_case *c = &cases[f][i / N_HALF_ENGINES][i % N_HALF_ENGINES];
            *c = (struct half_case){&formats[f], half, engines[i % N_HALF_ENGINES]};
            if (!layer_is_served(c->engine, &half->problem)) continue;
            tests[n++] = named_test(same_as_rounded, c, "%s: %s by %s", formats[f].name, half->name,
                                    c->engine);
        }
    }
    return run_test_list(tests, n);
}
