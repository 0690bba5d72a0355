// SPDX-License-Identifier: MIT
// Transforms that the three convolutions of a training step share (options.saved_limit): in
// whichever order they come, x, taps and gy are transformed once each, which kernels count here,
// and the results are those of the oracle. Layers on equal tiles that read one x transform it once
// together. Also what is refused, and when the planner shares.
#include "cpu/tiles/tiles.h" // before the complex numbers of test.h
#include "planner/planner.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/layer_rig.h"

// Kernels that count the pairs of lines that are transformed, and otherwise are those of the plan.
static const struct kernels *original;
static struct kernels counting;
static atomic_size_t forward_pairs, inverse_pairs;

static void count_split(const struct tile_spectrum *a, const struct tile_spectrum *b, const void *z,
                        const uint32_t *pair, size_t n_bins)
{
    atomic_fetch_add(&forward_pairs, 1);
    original->tile_split(a, b, z, pair, n_bins);
}

static void count_join(void *z, const uint32_t *pair, size_t n_bins, const struct tile_spectrum *a,
                       const struct tile_spectrum *b, double scale)
{
    atomic_fetch_add(&inverse_pairs, 1);
    original->tile_join(z, pair, n_bins, a, b, scale);
}

struct counts {
    size_t forward, inverse;
};

static struct counts take_counts(void)
{
    return (struct counts){atomic_exchange(&forward_pairs, 0), atomic_exchange(&inverse_pairs, 0)};
}

static void count_kernels(struct partita_plan *plan)
{
    original = plan->kernels;
    counting = *original;
    counting.tile_split = count_split;
    counting.tile_join = count_join;
    plan->kernels = plan->backward_data->kernels = plan->backward_weight->kernels = &counting;
}

// Makes all directions of a plan share the tiles of these parameters; false if forward has none.
static bool share(struct layer *layer, const struct tiles_params *params)
{
    struct partita_plan *plan = layer->plan;
    struct partita_plan *const gradients[] = {plan->backward_data, plan->backward_weight};
    struct cost_model model;
    struct tiles tiles;
    cost_model_default(&model, plan->isa);
    const struct request request = estimate_request(plan, &(struct partita_options){0}, &model,
                                                    plan->engine, params->transform);
    if (!tiles_layout(&request, params, &tiles)) return false;
    struct tiles_params made = *params;
    made.batch = tiles.batch;
    made.oc_chunk = tiles.oc_chunk < tiles.out ? tiles.oc_chunk : SIZE_MAX;
    partita_filter_destroy(layer->filter);
    layer->filter = NULL;
    plan_destroy_state(plan);
    plan->choice.transform = params->transform;
    plan->choice.hop = tiles.batch;
    plan->choice.shared = tiles_shared_bytes(&tiles, false);
    plan->choice.worker = tiles_worker_bytes(&tiles);
    estimate_store(&plan->choice, &made, sizeof made);
    assert_ok(plan_create_state(plan, &request));
    plan->shares = true;
    for (int i = 0; i < 2; i++) {
        plan_destroy_state(gradients[i]);
        gradients[i]->state = NULL;
        assert_ok(plan->engine->bounded.cached_plan(plan, gradients[i], gradients[i]));
    }
    return true;
}

static void make_filter(struct layer *layer)
{
    partita_filter_destroy(layer->filter);
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
}

// One of the three calls, with a workspace of exactly the size that it needs.
static void run_direction(struct layer *layer, int direction, struct partita_saved *saved)
{
    const struct partita_plan *plan = layer->plan;
    void **a = layer->array;
    const struct partita_call call = {
        .saved = saved,
        .workspace =
            guarded_alloc(partita_plan_workspace(plan, (enum partita_direction)direction), 0)};
    if (direction == PARTITA_FORWARD)
        assert_ok(partita_forward(plan, layer->filter, a[LAYER_Y], a[LAYER_X], &call));
    else if (direction == PARTITA_BACKWARD_DATA)
        assert_ok(partita_backward_data(plan, layer->filter, a[LAYER_GX], a[LAYER_GY], &call));
    else assert_ok(partita_backward_weight(plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], &call));
    guarded_free(call.workspace);
}

static const int orders[6][3] = {{1, 2, 4}, {1, 4, 2}, {2, 4, 1}, {4, 2, 1}, {2, 1, 4}, {4, 1, 2}};

static void run_step(struct layer *layer, const int order[3], struct partita_saved *saved)
{
    for (int i = 0; i < 3; i++) run_direction(layer, order[i], saved);
    assert_ok(
        partita_backward_bias(layer->plan, layer->array[LAYER_GB], layer->array[LAYER_GY], NULL));
}

static const struct partita_problem problems[] = {
    {SIZE(23, 29), CORRELATE, BATCH(4), CHANNELS(3, 9), KERNEL(5, 3), PAD(2, 1), RELU},
    {SIZE(31, 28), BATCH(3), CHANNELS(6, 8), GROUPS(2), KERNEL(4, 5), STRIDE(2, 3), DILATION(1, 2),
     PAD_BEGIN(3, 0), PAD_END(0, 4)},
    {SIZE(13, 9), CHANNELS(3, 2), KERNEL(11, 9), PAD_BEGIN(10, 8)},
    {SIZE(211), BATCH(2), CHANNELS(2, 3), KERNEL(37)},
    {SIZE(7, 9, 11), CHANNELS(3, 10), KERNEL(2, 3, 2), PAD_BEGIN(1, 1, 1)},
    {SIZE(7, 6), CHANNELS(300, 2), KERNEL(2, 2)},
    {SIZE(19, 18), CORRELATE, BATCH(2), CHANNELS(35, 21), KERNEL(3, 4), STRIDE(3, 2),
     DILATION(2, 3), PAD_BEGIN(2, 4), PAD_END(-1, 3)},
    {SIZE(12, 9), BATCH(2), CHANNELS(20, 40), KERNEL(5, 4), PAD(2, 2), .channels_last = true},
};

struct shared_case {
    size_t problem;
    enum partita_type type;
};

// All orders of the calls of a step: results within their gates, the same bits in every order, with
// any number of threads and without saved transforms; and every array is transformed once.
static void check_step(struct layer *layer, const struct partita_options *options,
                       const struct tiles_params *params)
{
    struct partita_saved *saved;
    struct layer other;
    layer_open_copy(&other, layer, options);
    assert_true(share(&other, params));
    other.plan->threads = other.plan->backward_data->threads = 3;
    other.plan->backward_weight->threads = 3;
    count_kernels(other.plan);
    take_counts();
    make_filter(&other);
    const struct counts w = take_counts();
    make_filter(layer);
    run_step(layer, orders[0], NULL);
    layer_check(layer);
    run_direction(&other, PARTITA_FORWARD, NULL);
    const struct counts x = take_counts();
    run_direction(&other, PARTITA_BACKWARD_DATA, NULL);
    const struct counts gy = take_counts();
    run_direction(&other, PARTITA_BACKWARD_WEIGHT, NULL);
    const struct counts gw = take_counts();
    assert_ok(partita_backward_data(other.plan, NULL, other.array[LAYER_GX], other.array[LAYER_GY],
                                    &(struct partita_call){.taps = other.array[LAYER_W]}));
    assert_memory_equal(layer->array[LAYER_GX], other.array[LAYER_GX],
                        layer->n[LAYER_GX] * partita_type_size(layer->problem.signal));
    take_counts();
    assert_int_equal(gw.forward, x.forward + gy.forward);
    assert_true(w.forward && x.forward && gy.forward);
    assert_ok(partita_saved_create(other.plan, &saved));
    for (int i = 0; i < 6; i++) {
        for (int k = LAYER_Y; k < LAYER_ARRAYS; k++)
            memset(other.array[k], 0xff, other.n[k] * partita_type_size(other.problem.signal));
        make_filter(&other);
        run_step(&other, orders[i], saved);
        const struct counts step = take_counts();
        assert_int_equal(step.forward, w.forward + x.forward + gy.forward);
        assert_int_equal(step.inverse, x.inverse + gy.inverse + gw.inverse);
        layer_same_bits(layer, &other);
    }
    partita_saved_destroy(saved);
    layer_close(&other);
}

static void every_order(void **state)
{
    const struct shared_case *c = *state;
    static const size_t transforms[] = {6, 14, 27, 40}, blocks[] = {16, 48}, parts[] = {8, 1 << 20};
    struct partita_problem problem = problem_of_type(&problems[c->problem], c->type);
    const struct partita_options options = {
        .engine = "cpu/tiles", .threads = 1, .directions = LAYER_ALL};
    struct random random = random_start("shared");
    struct layer layer;
    layer_open(&layer, &problem, &options, &random);
    int n_made = 0;
    for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
        for (int product = TILES_COMPLEX; product <= TILES_TRANSPOSED;
             product += TILES_TRANSPOSED) {
            const struct tiles_params params = {.transform = transforms[i],
                                                .batch = blocks[i % 2],
                                                .oc_chunk = parts[i / 2],
                                                .product = (enum tiles_product)product};
            if (!share(&layer, &params)) continue;
            n_made++;
            check_step(&layer, &options, &params);
        }
    assert_true(n_made >= 2);
    layer_close(&layer);
}

// Random layers.
static void random_layers(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    const struct partita_options options = {
        .engine = "cpu/tiles", .threads = 2, .directions = LAYER_ALL};
    struct random random = random_start("shared-random");
    for (int i = 0; i < 20; i++) {
        const struct partita_problem drawn = layer_random(&random),
                                     problem = problem_of_type(&drawn, type);
        if (!layer_is_served("cpu/tiles", &problem)) continue;
        struct layer layer;
        struct tiles_params params;
        layer_open(&layer, &problem, &options, &random);
        estimate_load(&layer.plan->choice, &params, sizeof params);
        params.product = random_below(&random, 2) ? TILES_COMPLEX : TILES_TRANSPOSED;
        if (layer.plan->backward_data && layer.plan->backward_weight && share(&layer, &params))
            check_step(&layer, &options, &params);
        layer_close(&layer);
    }
}

// A sample that is not finite reaches the same results with saved transforms as without.
static void not_finite(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    const struct partita_problem problem = problem_of_type(&problems[0], type);
    const struct partita_options options = {
        .engine = "cpu/tiles", .threads = 1, .directions = LAYER_ALL};
    const struct tiles_params params = {
        .transform = 14, .batch = 48, .oc_chunk = 1 << 20, .product = TILES_COMPLEX};
    struct random random = random_start("not finite");
    for (int i = 0; i < 6; i++) {
        struct layer layer, other;
        struct partita_saved *saved;
        layer_open(&layer, &problem, &options, &random);
        const enum layer_array array = i % 2 ? LAYER_GY : LAYER_X;
        const double huge = type == PARTITA_F64 ? 1e300 : 1e37;
        const double value = i < 2 ? NAN : i < 4 ? -INFINITY : huge;
        const size_t at = random_below(&random, layer.n[array]);
        if (type == PARTITA_F64) ((double *)layer.array[array])[at] = value;
        else ((float *)layer.array[array])[at] = (float)value;
        layer_open_copy(&other, &layer, &options);
        assert_true(share(&layer, &params) && share(&other, &params));
        make_filter(&layer);
        make_filter(&other);
        run_step(&layer, orders[0], NULL);
        assert_ok(partita_saved_create(other.plan, &saved));
        for (int k = 0; k < 6; k++) {
            run_step(&other, orders[k], saved);
            layer_same_bits(&layer, &other);
        }
        partita_saved_destroy(saved);
        layer_close(&other);
        layer_close(&layer);
    }
}

// Two layers read one x: the second one borrows the transforms of the first, and leaves them as
// they are. Its results have the same bits as with transforms of its own.
static void branches(void **state)
{
    const enum partita_type type = *(const enum partita_type *)*state;
    static const size_t transforms[] = {14, 40};
    struct partita_problem problem = problem_of_type(&problems[0], type), wider = problem;
    const struct partita_options options = {
        .engine = "cpu/tiles", .threads = 2, .directions = LAYER_ALL};
    struct random random = random_start("branches");
    wider.out_channels = 21;
    wider.activation = PARTITA_LINEAR;
    for (int i = 0; i < 4; i++) {
        const struct tiles_params params = {.transform = transforms[i % 2],
                                            .batch = 16,
                                            .oc_chunk = SIZE_MAX,
                                            .product = i < 2 ? TILES_COMPLEX : TILES_TRANSPOSED};
        struct layer first, second, other;
        struct partita_saved *saved;
        layer_open(&first, &problem, &options, &random);
        layer_open(&second, &wider, &options, &random);
        assert_true(share(&first, &params) && share(&second, &params));
        make_filter(&first);
        make_filter(&second);
        memcpy(second.array[LAYER_X], first.array[LAYER_X],
               first.n[LAYER_X] * partita_type_size(type));
        layer_open_copy(&other, &second, &options);
        assert_true(share(&other, &params));
        make_filter(&other);
        run_step(&other, orders[0], NULL);
        count_kernels(first.plan);
        count_kernels(second.plan);
        take_counts();
        run_direction(&second, PARTITA_BACKWARD_DATA, NULL);
        const size_t gy = take_counts().forward;
        assert_ok(partita_saved_create(first.plan, &saved));
        void *kept = second.array[LAYER_X];
        second.array[LAYER_X] = first.array[LAYER_X];
        for (int step = 0; step < 2; step++) {
            run_direction(&first, PARTITA_FORWARD, saved);
            assert_true(take_counts().forward > 0);
            run_direction(&second, PARTITA_FORWARD, saved);
            assert_int_equal(take_counts().forward, 0);
            run_direction(&second, PARTITA_BACKWARD_WEIGHT, saved);
            assert_int_equal(take_counts().forward, gy);
            if (step) second.array[LAYER_X] = NULL; // is that of the first
            run_direction(&second, PARTITA_BACKWARD_WEIGHT, saved);
            run_direction(&first, PARTITA_BACKWARD_DATA, saved);
            take_counts();
            run_direction(&first, PARTITA_BACKWARD_WEIGHT, saved);
            assert_int_equal(take_counts().forward, 0);
        }
        second.array[LAYER_X] = kept;
        assert_ok(partita_backward_bias(second.plan, second.array[LAYER_GB], second.array[LAYER_GY],
                                        NULL));
        layer_same_bits(&other, &second);
        partita_saved_destroy(saved);
        layer_close(&other);
        layer_close(&second);
        layer_close(&first);
    }
}

static void *fail_when_asked(void *user, size_t bytes)
{
    return *(bool *)user ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

// What is refused writes nothing, and the log names the field.
static void refusals(void **state)
{
    (void)state;
    struct random random = random_start("refusals");
    struct log_lines lines;
    bool fails = false;
    const struct partita_options options = {
        .engine = "cpu/tiles",
        .directions = LAYER_ALL,
        .log = log_into(&lines),
        .allocator = {.allocate = fail_when_asked, .release = release, .user = &fails}};
    const struct tiles_params params = {.transform = 14, .batch = 48, .oc_chunk = 64},
                              longer = {.transform = 27, .batch = 48, .oc_chunk = 64};
    struct layer layer, other, branch;
    struct partita_saved *saved;
    layer_open(&layer, &problems[0], &options, &random);
    layer_open(&other, &problems[0], &options, &random);
    layer_open(&branch, &problems[0], &options, &random);
    assert_true(share(&layer, &params) && share(&other, &longer) && share(&branch, &params));
    make_filter(&layer);
    make_filter(&other);
    make_filter(&branch);
    void **a = layer.array, *gw = a[LAYER_GW], *x = a[LAYER_X], *gy = a[LAYER_GY];
    assert_ok(partita_saved_create(layer.plan, &saved));
    const struct {
        const struct partita_plan *plan;
        struct partita_saved *saved;
        void *x;
        enum partita_status status;
        const char *log;
    } calls[] = {
        {layer.plan, saved, NULL, PARTITA_ERR_STATE, "call.saved: no call has filled it"},
        {branch.plan, saved, x, PARTITA_ERR_STATE, "call.saved: no call has filled it"},
        {other.plan, saved, x, PARTITA_ERR_ARG, "call.saved: of another plan"},
        {branch.plan, saved, branch.array[LAYER_X], PARTITA_ERR_ARG, "x: not the array of"},
        {layer.plan, saved, other.array[LAYER_X], PARTITA_ERR_ARG, "x: not the array of"},
        {layer.plan, saved, NULL, PARTITA_ERR_STATE, "call.saved: no call has filled it"},
        {branch.plan, saved, NULL, PARTITA_ERR_STATE, "call.saved: no call has filled it"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct partita_call call = {.saved = calls[i].saved};
        if (i == 3) assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], x, &call));
        fails = i == 5; // a forward that failed has half-written transforms
        if (fails)
            assert_int_equal(partita_forward(layer.plan, layer.filter, a[LAYER_Y], x, &call),
                             PARTITA_ERR_NOMEM);
        fails = false;
        memset(gw, 0x55, layer.n[LAYER_GW] * sizeof(float));
        log_into(&lines);
        assert_int_equal(partita_backward_weight(calls[i].plan, gw, calls[i].x, gy, &call),
                         calls[i].status);
        assert_non_null(strstr(lines.text, calls[i].log));
        for (size_t k = 0; k < layer.n[LAYER_GW]; k++)
            assert_int_equal(((uint32_t *)gw)[k], 0x55555555);
    }
    assert_int_equal(partita_backward_data(branch.plan, branch.filter, a[LAYER_GX], gy,
                                           &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_ARG);
    partita_saved_destroy(saved);
    layer_close(&branch);
    layer_close(&other);
    layer_close(&layer);
}

// The planner shares where transforms dominate and their memory is allowed, and not elsewhere.
static void planned(void **state)
{
    (void)state;
    const struct partita_problem problem = {SIZE(24, 24),     CORRELATE,    BATCH(4),
                                            CHANNELS(16, 16), KERNEL(9, 9), PAD(4, 4)};
    const struct partita_problem narrow = {SIZE(24, 24),    CORRELATE,    BATCH(4),
                                           CHANNELS(1, 16), KERNEL(9, 9), PAD(4, 4)};
    const struct partita_problem small = {SIZE(6, 6), CHANNELS(2, 2), KERNEL(1, 1)};
    struct log_lines lines;
    struct partita_options options = {.directions = LAYER_ALL, .filter_uses = 1, .threads = 2};
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_false(plan->shares);
    partita_plan_destroy(plan);
    options.saved_limit = 1 << 30;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_true(plan->shares);
    const size_t bytes = partita_saved_bytes(plan);
    assert_true(bytes > 0 && bytes <= options.saved_limit);
    partita_plan_destroy(plan);
    struct random random = random_start("planned");
    struct layer layer;
    layer_open(&layer, &problem, &options, &random);
    struct partita_saved *saved;
    assert_ok(partita_saved_create(layer.plan, &saved));
    run_step(&layer, orders[0], saved);
    layer.transform = 40 * 40;
    layer_check(&layer);
    partita_saved_destroy(saved);
    layer_close(&layer);
    for (options.saved_limit = bytes; options.saved_limit >= 1000; options.saved_limit /= 4) {
        assert_ok(partita_plan_create(&problem, &options, &plan));
        assert_true(!plan->shares || partita_saved_bytes(plan) <= options.saved_limit);
        partita_plan_destroy(plan);
    }
    const struct partita_problem *const alone[] = {&small, &narrow};
    for (int i = 0; i < 2; i++) {
        assert_ok(partita_plan_create(alone[i], &options, &plan));
        assert_false(plan->shares);
        partita_plan_destroy(plan);
    }
    options = (struct partita_options){.saved_limit = 1, .log = log_into(&lines)};
    const struct partita_problem stream = {STREAM(64), KERNEL(9), LATENCY(PARTITA_UNBOUNDED)};
    assert_int_equal(partita_plan_create(&stream, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "options.saved_limit"));
}

int main(void)
{
    enum { N_PROBLEMS = sizeof problems / sizeof *problems };
    static struct shared_case cases[2][N_PROBLEMS];
    static enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    static struct CMUnitTest tests[2 * (N_PROBLEMS + 3) + 2];
    size_t n = 0;
    for (int f64 = 0; f64 < 2; f64++) {
        const char *name = f64 ? "f64" : "f32";
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            cases[f64][i] = (struct shared_case){i, types[f64]};
            tests[n++] =
                named_test(every_order, &cases[f64][i], "every order: %s: problem %zu", name, i);
        }
        tests[n++] = named_test(random_layers, &types[f64], "random layers: %s", name);
        tests[n++] = named_test(branches, &types[f64], "branches: %s", name);
        tests[n++] = named_test(not_finite, &types[f64], "not finite: %s", name);
    }
    tests[n++] = named_test(refusals, NULL, "refusals");
    tests[n++] = named_test(planned, NULL, "planned");
    return run_test_list(tests, n);
}
