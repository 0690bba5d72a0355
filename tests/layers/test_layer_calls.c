// SPDX-License-Identifier: MIT
// Properties of the calls of layers: the same bits for any number of threads, workspace of the
// stated size and within its limit, NaN in the right outputs, bias and activation with any engine,
// refusals that leave results unchanged.
#include "cpu/conv/passes.h" // before the complex numbers of test.h

#include "support/allocators.h"
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

#include "support/reference_layer.h"

struct layer_case {
    const char *engine;
    enum partita_type type;
};

// Several boxes in every direction, chunks of channels, chunks of boxes in the gradient of the
// taps.
static const struct partita_problem busy[] = {
    {SIZE(20, 45), BATCH(3), CHANNELS(33, 70), KERNEL(3, 3), PAD(1, 1), RELU},
    {SIZE(33, 60), CORRELATE, BATCH(9), CHANNELS(3, 6), GROUPS(3), KERNEL(5, 4), STRIDE(2, 3),
     PAD(2, 1)},
    {SIZE(5000), CHANNELS(8, 8), KERNEL(64), PAD_BEGIN(63)},
    {SIZE(9, 10), CHANNELS(20, 150), KERNEL(3, 3)},
    // Several maps whose sizes are no multiples of a vector, more channels than one task
    // transforms.
    {SIZE(12, 12), BATCH(5), CHANNELS(32, 256), KERNEL(3, 3), PAD(1, 1)},
    {SIZE(9, 9), BATCH(2), CHANNELS(40, 256), KERNEL(3, 3)},
    {SIZE(7, 7), BATCH(17), CHANNELS(256, 270), RELU},
};
enum { N_BUSY = sizeof busy / sizeof *busy };

static struct partita_problem busy_problem(int i, const struct layer_case *c)
{
    struct partita_problem suited = layer_suit_engine(c->engine, &busy[i]),
                           p = problem_of_type(&suited, c->type);
    if (!layer_on_stand_in()) return p;
    p.batch = (p.batch + 3) / 4;
    if (p.groups <= 1) {
        p.in_channels = (p.in_channels + 3) / 4;
        p.out_channels = (p.out_channels + 3) / 4;
    }
    return p;
}

static void any_threads_same_bits(void **state)
{
    const struct layer_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = busy_problem(i, c);
        struct random random = random_start("threads");
        if (!layer_is_served(c->engine, &problem)) continue;
        struct layer first;
        layer_open(&first, &problem, &(struct partita_options){.engine = c->engine, .threads = 1},
                   &random);
        layer_run(&first);
        for (int threads = 2; threads <= 1 + layer_repeats(7); threads++) {
            layer_check_copy(&first,
                             &(struct partita_options){.engine = c->engine, .threads = threads});
        }
        layer_close(&first);
    }
}

static void workspace_exact(void **state)
{
    const struct layer_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = busy_problem(i, c);
        struct random random = random_start("workspace");
        if (!layer_is_served(c->engine, &problem)) continue;
        struct layer layer, other;
        struct partita_options options = {.engine = c->engine, .threads = 3};
        layer_open(&layer, &problem, &options, &random);
        layer_run(&layer);
        layer_open_copy(&other, &layer, &options);
        layer_check_workspace(&layer, &other);
        layer_close(&other);
        layer_close(&layer);
    }
}

static void workspace_limit_is_kept(void **state)
{
    const struct layer_case *c = *state;
    static const struct partita_problem small = {SIZE(14, 40), BATCH(2), CHANNELS(7, 10),
                                                 KERNEL(3, 3)};
    struct partita_problem suited = layer_suit_engine(c->engine, &small),
                           problem = problem_of_type(&suited, c->type);
    if (layer_on_stand_in()) problem.size[1] = 5;
    struct random random = random_start("limit");
    const struct partita_options options = {
        .engine = c->engine, .threads = 2, .directions = LAYER_ALL};
    const struct layer_limits limits = {64, (size_t)1 << 26, 3, 0};
    assert_true(layer_check_limits(&problem, &options, &limits, &random) > 5);
}

// A NaN or an infinity in the padding or outside the box never reaches a sum. With transforms of
// tiles a NaN reaches only sums of its tiles. relu keeps NaN and replaces negative values by 0.
static void relu_and_nan(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem problem = {SIZE(5, 30), KERNEL(3, 3), PAD(1, 1), RELU};
    problem = problem_of_type(&problem, c->type);
    struct random random = random_start("relu");
    struct layer layer;
    layer_open(&layer, &problem, &(struct partita_options){.engine = c->engine}, &random);
    sample_put(c->type, layer.array[LAYER_X], 2 * 30 + 29, (double)NAN);
    layer_run(&layer);
    const size_t edge = layer_edge(&layer);
    const bool pairs = layer_transforms_pairs(&layer);
    int n_nan = 0, n_zero = 0;
    for (size_t i = 0; i < layer.n[LAYER_Y]; i++) {
        double y = layer_sample(&layer, LAYER_Y, i);
        bool meets = i / 30 >= 1 && i / 30 <= 3 && i % 30 >= 28,
             near = pairs || (edge ? i % 30 + edge > 29 : meets);
        assert_true(isnan(y) ? near : y >= 0 && !meets);
        n_nan += isnan(y);
        n_zero += y == 0;
    }
    assert_true(n_nan >= 6 && n_nan <= (edge ? 5 * (int)edge * (pairs ? 2 : 1) : 6));
    assert_true(edge > 8 || n_zero > 20);
    layer_close(&layer);
}

// Engines that compute y without a bias have it added afterwards; an engine without gradients has
// only forward.
static void bias_of_other_engines(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem problem = {LENGTH(500), BATCH(2), CHANNELS(2, 3), KERNEL(40), RELU};
    problem = problem_of_type(&problem, c->type);
    struct random random = random_start("bias");
    static const char *const others[] = {"cpu/overlap-add", "cpu/overlap-save"};
    for (int e = 0; e < 2; e++) {
        struct layer layer;
        layer_open(&layer, &problem, &(struct partita_options){.engine = others[e]}, &random);
        void **a = layer.array;
        assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL));
        if (e == 0) {
            assert_string_equal(partita_plan_engine(layer.plan, PARTITA_BACKWARD_DATA), "");
            assert_int_equal(partita_plan_workspace(layer.plan, PARTITA_BACKWARD_WEIGHT), 0);
            assert_int_equal(
                partita_backward_data(layer.plan, layer.filter, a[LAYER_GX], a[LAYER_GY], NULL),
                PARTITA_ERR_UNSUPPORTED);
            assert_int_equal(
                partita_backward_weight(layer.plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], NULL),
                PARTITA_ERR_UNSUPPORTED);
        }
        double *expected = malloc(layer.n[LAYER_Y] * sizeof *expected);
        reference_layer_forward(&problem, expected, layer.expected[LAYER_X],
                                layer.expected[LAYER_W], layer.expected[LAYER_BIAS]);
        double error = 0, norm = 0, gate = gate_transform(c->type, 1024);
        for (size_t i = 0; i < layer.n[LAYER_Y]; i++) {
            double off = layer_sample(&layer, LAYER_Y, i) - expected[i];
            error += off * off;
            norm += expected[i] * expected[i];
        }
        assert_true(error <= gate * gate * norm);
        free(expected);
        layer_close(&layer);
    }
}

// Taps of a single use are packed only for forward, for any planned directions; filters have them
// for every planned direction.
static void once_packs_forward_alone(void **state)
{
    (void)state;
    struct random random = random_start("once");
    size_t once[2], filter[2];
    for (int all = 0; all < 2; all++) {
        struct meter meter = {0};
        struct layer layer;
        struct partita_filter *more;
        const struct partita_options options = {.threads = 2,
                                                .directions = all ? 0 : PARTITA_FORWARD,
                                                .allocator = meter_allocator(&meter)};
        layer_open(&layer, &busy[3], &options, &random);
        void **a = layer.array;
        meter.bytes_allocated = 0;
        assert_ok(partita_filter_create(layer.plan, a[LAYER_W], &more));
        filter[all] = meter.bytes_allocated;
        assert_ok(partita_forward(layer.plan, more, a[LAYER_Y], a[LAYER_X], NULL));
        partita_filter_destroy(more);
        void *y = malloc(layer.n[LAYER_Y] * sizeof(float));
        meter.bytes_allocated = 0;
        assert_ok(partita_forward(layer.plan, NULL, y, a[LAYER_X],
                                  &(struct partita_call){.taps = a[LAYER_W]}));
        once[all] = meter.bytes_allocated;
        assert_memory_equal(y, a[LAYER_Y], layer.n[LAYER_Y] * sizeof(float));
        free(y);
        layer_close(&layer);
    }
    // The filter of backward data is another one, perhaps of another engine.
    assert_true(filter[0] > 0 && filter[1] > filter[0]);
    assert_int_equal(once[0], once[1]);
}

static void argument_errors(void **state)
{
    (void)state;
    struct random random = random_start("arguments");
    struct layer a, b;
    layer_open(&a, &busy[1], NULL, &random);
    layer_open(&b, &busy[1], NULL, &random);
    void **p = a.array;
    char *odd = (char *)p[LAYER_X] + 1;
    assert_int_equal(partita_backward_data(NULL, a.filter, p[LAYER_GX], p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, NULL, p[LAYER_GX], p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, b.filter, p[LAYER_GX], p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, NULL, p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], NULL, NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], odd, NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_data(a.plan, a.filter, p[LAYER_GX], p[LAYER_GY],
                                           &(struct partita_call){.workspace = odd}),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(NULL, p[LAYER_GW], p[LAYER_X], p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, NULL, p[LAYER_X], p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], NULL, p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], odd, p[LAYER_GY], NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(a.plan, p[LAYER_GW], p[LAYER_X], NULL, NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(NULL, p[LAYER_GB], p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(a.plan, NULL, p[LAYER_GY], NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_bias(a.plan, p[LAYER_GB], odd, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_plan_workspace(NULL, PARTITA_FORWARD), 0);
    assert_int_equal(partita_plan_workspace(a.plan, (enum partita_direction)3), 0);
    assert_string_equal(partita_plan_engine(NULL, PARTITA_FORWARD), "");
    layer_close(&a);
    layer_close(&b);
}

// Directions that are not planned are refused; directions that cannot be planned are refused with
// the reason.
static void directions(void **state)
{
    (void)state;
    static float x[2 * 100], w[2 * 3], y[100];
    struct log_lines lines;
    struct partita_plan *plan = (struct partita_plan *)1;
    struct partita_filter *filter;
    struct partita_problem problem = {LENGTH(100), CHANNELS(2, 1), KERNEL(3), PAD_END(2)};
    struct partita_options options = {.directions = PARTITA_BACKWARD_DATA, .log = log_into(&lines)};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_string_equal(partita_plan_engine(plan, PARTITA_FORWARD), "");
    assert_true(partita_plan_explain(plan, NULL, 0) > 0);
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_int_equal(partita_forward(plan, filter, y, x, NULL), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(partita_forward(plan, NULL, y, x, &(struct partita_call){.taps = w}),
                     PARTITA_ERR_UNSUPPORTED);
    assert_ok(partita_backward_data(plan, filter, x, y, NULL));
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_UNSUPPORTED);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(lines.n_lines, 3); // of the directions that were not planned
    plan = (struct partita_plan *)1;
    options.log = log_into(&lines);
    options.engine = "cpu/overlap-add";
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "gradient"));
    options.engine = NULL;
    options.log = log_into(&lines);
    options.directions = 8;
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "directions"));
    options.log = log_into(&lines);
    options.directions = PARTITA_BACKWARD_WEIGHT;
    problem.signal = PARTITA_CF32;
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "cf32"));
    assert_ptr_equal(plan, (struct partita_plan *)1);
}

static void streams_and_complex(void **state)
{
    (void)state;
    static float x[200], w[6], y[200];
    struct log_lines lines;
    struct partita_plan *plan;
    struct partita_filter *filter = (struct partita_filter *)1;
    struct partita_problem problem = {LENGTH(PARTITA_UNBOUNDED), KERNEL(3)};
    struct partita_options options = {.log = log_into(&lines)};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_int_equal(filter_with_bias(plan, w, w, &filter), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "bias"));
    assert_ptr_equal(filter, (struct partita_filter *)1);
    assert_int_equal(partita_backward_bias(plan, y, x, NULL), PARTITA_ERR_STATE);
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_STATE);
    partita_plan_destroy(plan);
    problem = (struct partita_problem){LENGTH(50), .signal = PARTITA_CF32, .taps = PARTITA_F32,
                                       KERNEL(3)};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_int_equal(partita_backward_bias(plan, y, x, NULL), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(partita_backward_weight(plan, w, x, y, NULL), PARTITA_ERR_UNSUPPORTED);
    partita_plan_destroy(plan);
    problem = (struct partita_problem){SIZE(5, 5), .signal = PARTITA_CF32, .taps = PARTITA_CF32};
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "complex problems have one axis, this has 2"));
}

// A crop of an input of more than 2^31 samples that begins after index 2^31; pages that are not
// read take no memory. Also planning only, where every array is that large.
static void beyond_32_bits(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 40 };
    const size_t width = ((size_t)1 << 30) + COLUMNS, n = ROWS * width;
    float *x = mmap(NULL, n * sizeof *x, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x == MAP_FAILED) skip();
    const struct partita_problem far = {SIZE(ROWS, width), CORRELATE, KERNEL(2, 3),
                                        PAD_BEGIN(0, -(ptrdiff_t)(width - COLUMNS))};
    struct partita_problem near = far;
    near.size[1] = COLUMNS;
    near.pad_begin[1] = 0;
    // One engine, so that sums have one order: the time of the whole input may decide between
    // others.
    const struct partita_options options = {.threads = 1, .engine = "cpu/direct"};
    struct random random = random_start("far");
    struct layer layer;
    layer_open(&layer, &near, &options, &random);
    layer_run(&layer);
    for (size_t row = 0; row < ROWS; row++)
        memcpy(x + row * width + width - COLUMNS, (float *)layer.array[LAYER_X] + row * COLUMNS,
               COLUMNS * sizeof *x);
    struct partita_plan *plan;
    struct partita_filter *filter;
    float y[(ROWS - 1) * (COLUMNS - 2)], gw[2 * 3];
    assert_ok(partita_plan_create(&far, &options, &plan));
    assert_ok(filter_with_bias(plan, layer.array[LAYER_W], layer.array[LAYER_BIAS], &filter));
    assert_int_equal(sizeof y, layer.n[LAYER_Y] * sizeof *y);
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    assert_memory_equal(y, layer.array[LAYER_Y], sizeof y);
    assert_ok(partita_backward_weight(plan, gw, x, layer.array[LAYER_GY], NULL));
    assert_memory_equal(gw, layer.array[LAYER_GW], sizeof gw);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    layer_close(&layer);
    munmap(x, n * sizeof *x);
    const struct partita_problem large = {SIZE(100, 1000, 1000), BATCH(100000),
                                          CHANNELS(1000, 1000), KERNEL(3, 3, 3), STRIDE(2, 1, 3)};
    const size_t limit = (size_t)1 << 24;
    assert_ok(partita_plan_create(
        &large, &(struct partita_options){.threads = 1, .workspace_limit = limit}, &plan));
    for (int d = 1; d <= 4; d *= 2) {
        size_t bytes = partita_plan_workspace(plan, (enum partita_direction)d);
        assert_true(bytes > 0 && bytes <= limit);
    }
    partita_plan_destroy(plan);
}

// Large results are written past the caches, by forward and by backward data: the same bits.
static void past_caches_same_bits(void **state)
{
    (void)state;
    enum { HEIGHT = 9, WIDTH = 64, CHANNELS = 14, SAMPLES = CHANNELS * HEIGHT * WIDTH };
    static _Alignas(CONV_BLOCK_BYTES) float y[2][SAMPLES];
    const struct partita_problem problem = {SIZE(HEIGHT, WIDTH), CHANNELS(CHANNELS, CHANNELS),
                                            KERNEL(3, 3), PAD(1, 1)};
    const enum partita_direction directions[] = {PARTITA_FORWARD, PARTITA_BACKWARD_DATA};
    struct random random = random_start("past");
    struct layer layer;
    for (int d = 0; d < 2; d++) {
        const struct partita_options options = {.engine = "cpu/gemm",
                                                .directions = (unsigned)directions[d]};
        layer_open(&layer, &problem, &options, &random);
        const struct partita_plan *plan = d ? layer.plan->backward_data : layer.plan;
        struct partita_filter *filter; // without a bias, which is added in y
        assert_ok(partita_filter_create(layer.plan, layer.array[LAYER_W], &filter));
        struct conv_passes *passes = plan->state;
        for (int past = 0; past < 2; past++) {
            memset(y[past], 0xff, sizeof y[past]);
            for (size_t i = 0; i < passes->n; i++) passes->layout[i].past_caches = past;
            const void *x = layer.array[d ? LAYER_GY : LAYER_X];
            assert_ok(d ? partita_backward_data(layer.plan, filter, y[past], x, NULL)
                        : partita_forward(layer.plan, filter, y[past], x, NULL));
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        partita_filter_destroy(filter);
        layer_close(&layer);
    }
}

static const struct promise promises[] = {
    {"any-threads-same-bits", any_threads_same_bits},     {"workspace-exact", workspace_exact},
    {"workspace-limit-is-kept", workspace_limit_is_kept}, {"relu-and-nan", relu_and_nan},
    {"bias-of-other-engines", bias_of_other_engines},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_F16, PARTITA_BF16};
    enum { N_TYPES = sizeof types / sizeof *types };
    static struct layer_case cases[N_LAYER_ENGINES][N_TYPES];
    static struct CMUnitTest tests[N_LAYER_ENGINES * N_TYPES * N_PROMISES + 6];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_LAYER_ENGINES; e++) {
        if (!layer_has_engine(layer_engines[e])) continue;
        for (size_t t = 0; t < (layer_is_brief() ? 1 : N_TYPES); t++) {
            const struct partita_problem one =
                problem_of_type(&(struct partita_problem){SIZE(5, 30), KERNEL(3, 3)}, types[t]);
            if (half_is(types[t]) &&
                (layer_on_stand_in() || !layer_is_served(layer_engines[e], &one)))
                continue;
            cases[e][t] = (struct layer_case){layer_engines[e], types[t]};
            for (size_t i = 0; i < N_PROMISES; i++) {
                if (promises[i].run == bias_of_other_engines &&
                    (strncmp(layer_engines[e], "cpu/", 4) != 0 || half_is(types[t])))
                    continue;
                tests[n++] = named_test(promises[i].run, &cases[e][t], "%s/%s-%s", layer_engines[e],
                                        promises[i].name, partita_type_name(types[t]));
            }
        }
    }
    if (layer_has_engine("cpu/direct")) { // independent of the engine
        tests[n++] = named_test(beyond_32_bits, NULL, "beyond-32-bits");
        tests[n++] = named_test(once_packs_forward_alone, NULL, "once-packs-forward-alone");
        tests[n++] = named_test(argument_errors, NULL, "argument-errors");
        tests[n++] = named_test(directions, NULL, "directions");
        tests[n++] = named_test(past_caches_same_bits, NULL, "past-caches-same-bits");
        tests[n++] = named_test(streams_and_complex, NULL, "streams-and-complex");
    }
    return run_test_list(tests, n);
}
