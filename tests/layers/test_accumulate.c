// SPDX-License-Identifier: MIT
// call.accumulate: an array becomes the sum of what it held and of the result of the same call
// without it, bit by bit, in every direction, engine and type; also where a sample is not finite, a
// transform overflows, x is read from saved transforms and taps are used once. Refusals and
// failures leave the array as it was. (That the results agree with the oracle: test_layers.c.)
#include "core/plan.h" // before the complex numbers of test.h

#include "support/allocators.h"
#include "support/layer_rig.h"

#include <math.h>

#include <partita/advanced.h>

struct accumulate_case {
    const char *engine;
    enum partita_type type;
};

static const struct partita_problem problems[] = {
    {SIZE(20, 25), BATCH(3), CHANNELS(19, 34), KERNEL(3, 3), PAD(1, 1)},
    {SIZE(23, 30), CORRELATE, BATCH(5), CHANNELS(3, 6), GROUPS(3), KERNEL(5, 4), STRIDE(2, 3),
     PAD(2, 1), .channels_last = true},
    {SIZE(2000), CHANNELS(4, 4), KERNEL(64), PAD_BEGIN(63)},
    {SIZE(6, 7, 8), BATCH(2), CHANNELS(3, 5), KERNEL(3, 2, 3), PAD_BEGIN(1, 0, 2)},
    {SIZE(7, 7), BATCH(5), CHANNELS(256, 70)},
    {SIZE(14, 19), CHANNELS(3, 4), KERNEL(3, 3), PAD(2, 1), .boundary = PARTITA_BOUNDARY_WRAP},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, RANDOM_PROBLEMS = 8 };

static size_t result_bytes(const struct layer *layer, int result)
{
    return layer->n[result] * partita_type_size(layer->problem.signal);
}

// Bytes of workspace of a call that adds.
static size_t workspace_bytes(const struct layer *layer, int result)
{
    const enum partita_direction direction = (enum partita_direction)(1 << (result - LAYER_Y));
    const size_t plain = result == LAYER_GB ? 0 : partita_plan_workspace(layer->plan, direction);
    return (plain + 63) / 64 * 64 + result_bytes(layer, result);
}

// Bit by bit; of two bytes a NaN may be any.
static void check_sums(const struct layer *layer, enum layer_array result, const void *sums,
                       const void *expected)
{
    const enum partita_type type = layer->problem.signal;
    if (!half_is(type)) assert_memory_equal(sums, expected, result_bytes(layer, (int)result));
    for (size_t i = 0; half_is(type) && i < layer->n[result]; i++) {
        const double sum = creal(reference_sample(type, sums, i)),
                     e = creal(reference_sample(type, expected, i));
        assert_true(isnan(e) ? isnan(sum) : sum == e);
    }
}

// Fails unless a call adds the result that the layer's array holds to another array.
static void check_call(const struct layer *layer, enum layer_array result,
                       const struct partita_call *call, struct random *random)
{
    const size_t bytes = result_bytes(layer, (int)result);
    void *before = malloc(bytes + 1), *expected = malloc(bytes + 1);
    void *arrays[LAYER_ARRAYS];
    memcpy(arrays, layer->array, sizeof arrays);
    arrays[result] = guarded_alloc(bytes, 8);
    random_samples(random, layer->problem.signal, before, layer->n[result]);
    memcpy(arrays[result], before, bytes);
    layer_add(layer, result, expected, before);
    assert_ok(layer_call(layer, result, arrays, call));
    check_sums(layer, result, arrays[result], expected);
    guarded_free(arrays[result]);
    free(before);
    free(expected);
}

// The same of a layer's results, without a workspace and with one of exactly the required size.
static void check_results(const struct layer *layer, struct random *random)
{
    struct partita_call call = {.accumulate = true};
    for (int result = LAYER_Y; result < LAYER_ARRAYS; result++) {
        call.workspace = NULL;
        check_call(layer, (enum layer_array)result, &call, random);
        call.workspace = guarded_alloc(workspace_bytes(layer, result), 0);
        check_call(layer, (enum layer_array)result, &call, random);
        guarded_free(call.workspace);
    }
}

static struct partita_problem problem_for(const struct accumulate_case *c,
                                          const struct partita_problem *problem)
{
    struct partita_problem suited = layer_suit_engine(c->engine, problem),
                           p = problem_of_type(&suited, c->type);
    p.activation = PARTITA_LINEAR;
    if (!layer_on_stand_in()) return p;
    p.channels_last = false;
    p.boundary = PARTITA_BOUNDARY_ZERO;
    p.batch = (p.batch + 3) / 4;
    if (p.groups <= 1) {
        p.in_channels = (p.in_channels + 3) / 4;
        p.out_channels = (p.out_channels + 3) / 4;
    }
    return p;
}

static void sums(void **state)
{
    const struct accumulate_case *c = *state;
    struct random random = random_start("sums");
    for (int i = 0; i < N_PROBLEMS + layer_repeats(RANDOM_PROBLEMS); i++) {
        const struct partita_problem drawn = i < N_PROBLEMS ? problems[i] : layer_random(&random);
        const struct partita_problem problem = problem_for(c, &drawn);
        struct layer layer;
        if (!layer_is_served(c->engine, &problem)) continue;
        layer_open(&layer, &problem,
                   &(struct partita_options){
                       .engine = c->engine, .threads = 1 + i % 3, .directions = LAYER_ALL},
                   &random);
        layer_run(&layer);
        if (i >= N_PROBLEMS) layer_check(&layer);
        check_results(&layer, &random);
        layer_check_inputs(&layer);
        layer_close(&layer);
    }
}

// The call is run again over parts of the result, which are added once.
static void repaired(void **state)
{
    const struct accumulate_case *c = *state;
    static const struct partita_problem line = {SIZE(60, 70), BATCH(2), CHANNELS(2, 3),
                                                KERNEL(3, 3), PAD(1, 1)};
    const struct partita_problem problem = problem_for(c, &line);
    const bool f64 = type_is_f64(c->type);
    struct random random = random_start("repaired");
    struct layer layer;
    if (!layer_is_served(c->engine, &problem)) skip();
    for (int large = 0; large < 2; large++) {
        layer_open(&layer, &problem,
                   &(struct partita_options){.engine = c->engine, .directions = LAYER_ALL},
                   &random);
        for (int array = LAYER_X; array <= LAYER_GY; array++) {
            if (array != LAYER_X && array != LAYER_GY) continue;
            if (!large) {
                sample_put(c->type, layer.array[array], 75, (double)NAN);
                sample_put(c->type, layer.array[array], 3000, (double)-INFINITY);
                continue;
            }
            for (size_t i = 0; i < layer.n[array]; i++)
                sample_put(c->type, layer.array[array], i,
                           layer_sample(&layer, (enum layer_array)array, i) *
                               (f64 ? 0x1p1020 : 0x1p124));
        }
        layer_run(&layer);
        check_results(&layer, &random);
        layer_close(&layer);
    }
}

static void saved_transforms(void **state)
{
    const struct accumulate_case *c = *state;
    static const struct partita_problem maps = {SIZE(30, 40), BATCH(3), CHANNELS(4, 5),
                                                KERNEL(5, 5), PAD(2, 2)};
    const struct partita_problem problem = problem_for(c, &maps);
    struct random random = random_start("saved");
    struct partita_saved *saved;
    struct layer layer;
    layer_open(&layer, &problem,
               &(struct partita_options){.engine = c->engine, .directions = LAYER_ALL}, &random);
    assert_ok(partita_saved_create(layer.plan, &saved));
    const struct partita_call replacing = {.saved = saved};
    assert_ok(layer_call(&layer, LAYER_Y, layer.array, &replacing));
    check_call(&layer, LAYER_Y, &(struct partita_call){.accumulate = true, .saved = saved},
               &random);
    assert_ok(layer_call(&layer, LAYER_GW, layer.array, &replacing));
    const size_t plain = partita_saved_workspace(saved);
    void *workspace = guarded_alloc((plain + 63) / 64 * 64 + result_bytes(&layer, LAYER_GW), 0);
    check_call(&layer, LAYER_GW,
               &(struct partita_call){.accumulate = true, .saved = saved, .workspace = workspace},
               &random);
    guarded_free(workspace);
    partita_saved_destroy(saved);
    layer_close(&layer);
}

static void taps_of_single_use(void **state)
{
    const struct accumulate_case *c = *state;
    const struct partita_problem problem = problem_for(c, &problems[0]);
    struct random random = random_start("once");
    struct layer layer;
    if (!layer_is_served(c->engine, &problem)) skip();
    layer_open(
        &layer, &problem,
        &(struct partita_options){.engine = c->engine, .directions = LAYER_ALL, .filter_uses = 1},
        &random);
    const struct partita_call once = {.taps = layer.array[LAYER_W]};
    struct partita_call added = once;
    added.accumulate = true;
    for (int result = LAYER_Y; result <= LAYER_GX; result++) {
        assert_ok(layer_call(&layer, (enum layer_array)result, layer.array, &once));
        check_call(&layer, (enum layer_array)result, &added, &random);
    }
    layer_close(&layer);
}

// Engines of signals, complex types and rate changes: forward.
static void signals(void **state)
{
    static const struct partita_problem lines[] = {
        {LENGTH(900), BATCH(2), CHANNELS(2, 3), KERNEL(90), PAD_BEGIN(89)},
        {LENGTH(300), BATCH(2), CHANNELS(2, 3), KERNEL(41), PAD(20), UP(3), STRIDE(2)},
        {LENGTH(300), KERNEL(33), UP(7)}};
    const struct type_pair *types = *state;
    struct random random = random_start(types->name);
    for (size_t i = 0; i < N_SIGNAL_ENGINES * (sizeof lines / sizeof *lines); i++) {
        struct partita_problem problem = lines[i / N_SIGNAL_ENGINES];
        problem.signal = types->signal, problem.taps = types->taps;
        const struct partita_options options = {.engine = engine_names[i % N_SIGNAL_ENGINES],
                                                .directions = PARTITA_FORWARD};
        struct partita_plan *plan;
        struct partita_filter *filter;
        enum { MAX = 1 << 14 };
        static double x[MAX], w[MAX], y[MAX], sum[MAX], expected[MAX];
        if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) continue;
        const size_t n =
            or_one(problem.batch) * or_one(problem.out_channels) * reference_outputs(&problem, 0);
        assert_true(n * partita_type_size(types->signal) <= sizeof y);
        random_samples(&random, types->signal, x, 2 * 2 * 900);
        random_samples(&random, types->taps, w, partita_plan_taps_count(plan));
        random_samples(&random, types->signal, sum, n);
        assert_ok(partita_filter_create(plan, w, &filter));
        assert_ok(partita_forward(plan, filter, y, x, NULL));
        const size_t scalars = n * (type_is_complex(types->signal) ? 2 : 1);
        for (size_t k = 0; k < scalars; k++)
            if (type_is_f64(types->signal)) expected[k] = sum[k] + y[k];
            else ((float *)expected)[k] = ((float *)sum)[k] + ((float *)y)[k];
        assert_ok(
            partita_forward(plan, filter, sum, x, &(struct partita_call){.accumulate = true}));
        assert_memory_equal(sum, expected, n * partita_type_size(types->signal));
        partita_filter_destroy(filter);
        partita_plan_destroy(plan);
    }
}

static void unchanged_if_refused(void **state)
{
    static const struct partita_problem active = {SIZE(9, 9), CHANNELS(3, 3), KERNEL(3, 3), RELU};
    struct random random = random_start("refused");
    struct log_lines lines;
    struct layer layer;
    (void)state;
    layer_open(&layer, &active, &(struct partita_options){.log = log_into(&lines)}, &random);
    layer_run(&layer);
    const size_t bytes = result_bytes(&layer, LAYER_Y);
    void *before = malloc(bytes);
    memcpy(before, layer.array[LAYER_Y], bytes);
    assert_int_equal(
        layer_call(&layer, LAYER_Y, layer.array, &(struct partita_call){.accumulate = true}),
        PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "call.accumulate: the problem has an activation"));
    assert_int_equal(
        layer_call(&layer, LAYER_Y, layer.array, &(struct partita_call){.reserved = {true}}),
        PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "call.reserved"));
    assert_memory_equal(layer.array[LAYER_Y], before, bytes);
    // Gradients are of the sum before the activation.
    check_call(&layer, LAYER_GX, &(struct partita_call){.accumulate = true}, &random);
    // The results' part of the workspace is one of the call's arrays.
    const size_t plain = (partita_plan_workspace(layer.plan, PARTITA_BACKWARD_DATA) + 63) / 64 * 64;
    char *memory = guarded_alloc(plain + 2 * result_bytes(&layer, LAYER_GX), 0);
    void *arrays[LAYER_ARRAYS];
    memcpy(arrays, layer.array, sizeof arrays);
    arrays[LAYER_GX] = memory + plain + result_bytes(&layer, LAYER_GX) - 4;
    assert_int_equal(layer_call(&layer, LAYER_GX, arrays,
                                &(struct partita_call){.accumulate = true, .workspace = memory}),
                     PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "gx overlaps call.workspace"));
    guarded_free(memory);
    free(before);
    layer_close(&layer);
}

// Each allocation of a call fails in turn: nothing has been added.
static void unchanged_without_memory(void **state)
{
    const struct accumulate_case *c = *state;
    struct random random = random_start("memory");
    struct meter meter = {0};
    struct layer layer;
    const struct partita_problem problem = problem_for(c, &problems[0]);
    if (!layer_is_served(c->engine, &problem)) skip();
    layer_open(&layer, &problem,
               &(struct partita_options){.engine = c->engine,
                                         .directions = LAYER_ALL,
                                         .allocator = meter_allocator(&meter)},
               &random);
    sample_put(c->type, layer.array[LAYER_X], 75, (double)NAN);
    layer_run(&layer);
    const size_t bytes = result_bytes(&layer, LAYER_Y);
    void *before = malloc(bytes), *expected = malloc(bytes);
    memcpy(before, layer.array[LAYER_Y], bytes);
    layer_add(&layer, LAYER_Y, expected, before);
    for (size_t k = 1;; k++) {
        meter.fail_at = meter.n_allocated + k;
        const enum partita_status status =
            layer_call(&layer, LAYER_Y, layer.array, &(struct partita_call){.accumulate = true});
        const bool failed = meter.n_allocated >= meter.fail_at;
        meter.fail_at = 0;
        assert_int_equal(status, failed ? PARTITA_ERR_NOMEM : PARTITA_OK);
        if (!failed) break;
        assert_memory_equal(layer.array[LAYER_Y], before, bytes);
    }
    check_sums(&layer, LAYER_Y, layer.array[LAYER_Y], expected);
    free(before);
    free(expected);
    layer_close(&layer);
}

static const struct promise promises[] = {{"sums", sums},
                                          {"repaired", repaired},
                                          {"taps-of-single-use", taps_of_single_use},
                                          {"unchanged-without-memory", unchanged_without_memory}};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_F16, PARTITA_BF16};
    enum { N_TYPES = sizeof types / sizeof *types };
    static struct accumulate_case cases[N_LAYER_ENGINES * N_TYPES];
    static struct CMUnitTest tests[N_LAYER_ENGINES * N_TYPES * N_PROMISES + N_TYPE_PAIRS + 2];
    static const struct accumulate_case tiles = {"cpu/tiles", PARTITA_F32};
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    const bool cpu = layer_has_engine("cpu/direct");
    for (size_t i = 0; i < N_TYPES * N_LAYER_ENGINES; i++) {
        struct accumulate_case *c = &cases[i];
        *c = (struct accumulate_case){layer_engines[i / N_TYPES], types[i % N_TYPES]};
        if (!layer_has_engine(c->engine) || (layer_is_brief() && i % N_TYPES)) continue;
        for (size_t k = 0; k < N_PROMISES; k++)
            if (promises[k].run == sums ||
                (cpu && (promises[k].run == repaired || c->type == PARTITA_F32)))
                tests[n++] = named_test(promises[k].run, c, "%s/%s-%s", c->engine, promises[k].name,
                                        partita_type_name(c->type));
    }
    for (size_t i = 0; i < N_TYPE_PAIRS && cpu; i++)
        tests[n++] = named_test(signals, &type_pairs[i], "signals-%s", type_pairs[i].name);
    if (!cpu) return run_test_list(tests, n);
    tests[n++] = named_test(saved_transforms, &tiles, "saved-transforms");
    tests[n++] = named_test(unchanged_if_refused, NULL, "unchanged-if-refused");
    return run_test_list(tests, n);
}
