// SPDX-License-Identifier: MIT
// cpu/winograd, white box: every tile size in every direction against the oracle, errors against
// its prediction and against the order that Lavin and Gray report. With PARTITA_TEST_DEVICE it is
// that device's engine, without the tests that only apply to the CPU.
#include "core/filter.h"
#include "core/plan.h"

#include "support/layer_rig.h"
#include "support/reference_layer.h"

#include <stdio.h>

#include "cpu/winograd/winograd.h"

extern const struct engine engine_winograd;

enum { N_EDGES_OF_TILES = 5 };

static const size_t edges[N_EDGES_OF_TILES] = {4, 5, 6, 7, 8}; // of devices: those that are even

// The engine under test, and its device; NULL: the CPU.
static const struct engine *subject_engine = &engine_winograd;
static struct device *subject_device;

// A plan of one direction with an imposed edge of tiles.
struct imposed {
    struct partita_plan plan;
    struct partita_filter filter;
    struct cost_model model;
};

static bool impose(struct imposed *imposed, const struct partita_problem *problem,
                   enum partita_direction direction, size_t edge)
{
    *imposed = (struct imposed){0};
    struct partita_plan *plan = &imposed->plan;
    assert_ok(problem_canonical(problem, &plan->log, &plan->shape));
    plan->engine = subject_engine;
    plan->device = subject_device;
    plan->direction = direction;
    plan->isa = cpu_detect();
    plan->kernels = kernels_select(plan->isa, plan->shape.f64);
    plan->threads = 1;
    cost_model_default(&imposed->model, plan->isa);
    const struct request request = {.shape = &plan->shape,
                                    .direction = direction,
                                    .model = &imposed->model,
                                    .device = plan->device,
                                    .transform = edge,
                                    .workspace_limit = SIZE_MAX,
                                    .error_budget = 1};
    plan->engine->estimate(&request, &plan->choice);
    if (!plan->choice.applicable) return false;
    assert_int_equal(plan->choice.transform, edge);
    assert_ok(plan_create_state(plan, &request));
    imposed->filter.plan = plan;
    return true;
}

static void release(struct imposed *imposed)
{
    const struct engine *engine = imposed->plan.engine;
    if (engine->filter.destroy) engine->filter.destroy(&imposed->filter);
    else mem_release(&imposed->plan.allocator, imposed->filter.state);
    if (imposed->plan.device) imposed->plan.device->plan_end(&imposed->plan);
    plan_destroy_state(&imposed->plan);
}

static void run(struct imposed *imposed, void *to, const void *from, const void *other)
{
    struct partita_plan *plan = &imposed->plan;
    const struct engine *engine = plan->engine;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    void *workspace = guarded_alloc(plan_workspace(plan), 0);
    if (!weight) assert_ok(filter_fill(&imposed->filter, other, NULL));
    const struct operands operands = {.to = to, .from = {from, weight ? other : NULL}};
    const struct partita_filter *filter = weight ? NULL : &imposed->filter;
    assert_ok(plan->device ? plan->device->run(plan, filter, &operands, workspace)
                           : engine->bounded.run(plan, filter, &operands, workspace));
    guarded_free(workspace);
}

#define SAME(k) KERNEL(k, k), PAD((k) / 2, (k) / 2)

static const struct named_problem problems[] = {
    {"same-3x3", {SIZE(13, 27), BATCH(2), CHANNELS(19, 21), SAME(3)}},
    {"wide-rows", {SIZE(9, 700), CHANNELS(2, 3), SAME(3)}},
    {"smaller-than-tile", {SIZE(2, 1), BATCH(5), CHANNELS(2, 3), SAME(3)}},
    {"5x5", {SIZE(14, 14), CHANNELS(4, 9), SAME(5)}},
    {"2x2", {SIZE(9, 8), CORRELATE, CHANNELS(3, 2), KERNEL(2, 2)}},
    {"7x7-as-large-as-map", {SIZE(7, 7), CHANNELS(3, 4), KERNEL(7, 7)}},
    {"1x3", {SIZE(11, 23), CHANNELS(3, 5), KERNEL(1, 3), PAD_END(0, 1)}},
    {"3x1", {SIZE(11, 23), CHANNELS(3, 5), KERNEL(3, 1), PAD_BEGIN(2, 0)}},
    {"line", {SIZE(1000), BATCH(3), CHANNELS(5, 9), KERNEL(3)}},
    {"stride-2", {SIZE(17, 16), CHANNELS(6, 7), SAME(3), STRIDE(2, 2)}},
    {"stride-4-of-11", {SIZE(35, 39), CORRELATE, CHANNELS(3, 5), KERNEL(11, 11), STRIDE(4, 4)}},
    {"stride-one-axis", {SIZE(17, 16), CHANNELS(3, 3), SAME(3), STRIDE(3, 1)}},
    {"dilation", {SIZE(17, 16), CHANNELS(3, 3), SAME(3), DILATION(2, 3)}},
    {"stride-and-dilation", {SIZE(37, 36), CHANNELS(3, 3), SAME(5), STRIDE(4, 2), DILATION(6, 3)}},
    {"groups", {SIZE(10, 11), BATCH(2), CHANNELS(12, 18), GROUPS(3), SAME(3), RELU}},
    {"cropped", {SIZE(20, 20), KERNEL(3, 3), PAD_BEGIN(-4, 5), PAD_END(-3, -6)}},
    {"few-tiles", {SIZE(6, 7), BATCH(3), CHANNELS(300, 100), SAME(3)}},
    {"small-maps", {SIZE(7, 5), BATCH(37), CHANNELS(10, 18), GROUPS(2), SAME(3), RELU}},
    {"small-maps-cropped", {SIZE(9, 8), BATCH(18), KERNEL(3, 3), PAD_BEGIN(-1, 2), PAD_END(0, -2)}},
    {"few-tiles-strided", {SIZE(13, 9), CHANNELS(48, 96), GROUPS(2), SAME(3), STRIDE(2, 2)}},
    // Splits of the output channels that share the transformed inputs, transposed and not, these in
    // two chunks.
    {"parts", {SIZE(6, 7), CHANNELS(20, 150), SAME(3)}},
    {"parts-of-groups", {SIZE(13, 15), CHANNELS(6, 300), GROUPS(2), SAME(3)}},
    {"parts-in-chunks", {SIZE(100), CHANNELS(258, 136), KERNEL(3)}},
    {"many-channels", {SIZE(6, 7), CHANNELS(300, 9), SAME(3)}},
    // Gradients of taps by all threads together: several batches of tiles, output channels in two
    // splits, groups in iterations.
    {"together", {SIZE(70, 66), CHANNELS(264, 2), GROUPS(2), SAME(3)}},
    {"together-in-pieces", {SIZE(70, 34), CHANNELS(1, 260), SAME(3)}},
    // Three axes, planes as tiles of their own and not.
    {"cube", {SIZE(7, 9, 11), BATCH(2), CHANNELS(5, 6), KERNEL(3, 3, 3), PAD(1, 1, 1), RELU}},
    {"cube-of-groups", {SIZE(5, 12, 13), CHANNELS(36, 42), GROUPS(2), KERNEL(3, 3, 3), CORRELATE}},
    {"cube-strided", {SIZE(9, 11, 8), CHANNELS(3, 4), KERNEL(3, 4, 3), STRIDE(2, 2, 1), RELU}},
    {"cube-dilated", {SIZE(13, 9, 12), CHANNELS(3, 4), KERNEL(3, 2, 3), DILATION(3, 1, 2)}},
    {"cube-smaller-than-tile", {SIZE(1, 2, 1), CHANNELS(3, 2), KERNEL(3, 3, 3), PAD(1, 1, 1)}},
    {"cube-cropped", {SIZE(9, 9, 9), KERNEL(2, 3, 2), PAD_BEGIN(-3, 2, 1), PAD_END(4, -2, 0)}},
    {"planes", {SIZE(4, 9, 10), BATCH(3), CHANNELS(4, 5), KERNEL(1, 3, 3), PAD(1, 1, 1)}},
    {"planes-strided", {SIZE(9, 9, 6), CHANNELS(4, 5), KERNEL(1, 3, 3), STRIDE(3, 1, 1), RELU}},
    {"through-planes", {SIZE(12, 3, 7), BATCH(2), CHANNELS(4, 5), KERNEL(3, 1, 1), RELU}},
    {"through-columns", {SIZE(12, 3, 17), CHANNELS(4, 5), KERNEL(3, 1, 3), PAD(1, 0, 1)}},
    {"cube-of-many", {SIZE(2, 6, 7), CHANNELS(270, 20), KERNEL(3, 3, 3), PAD(1, 1, 1)}},
    {"groups-in-turns", {SIZE(64, 64), CHANNELS(24, 24), GROUPS(24), SAME(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct layer_case {
    const struct named_problem *named;
    enum partita_type type;
    size_t edge;
};

static size_t taps_of_branch(const struct partita_problem *p, int axis)
{
    size_t kernel = or_one(p->kernel[axis]), stride = or_one(p->stride[axis]);
    size_t dilation = or_one(p->dilation[axis]), common = stride;
    while (stride % common || dilation % common) common--;
    return (kernel + stride / common - 1) / (stride / common);
}

// L2 error relative to the norm or, if that is larger, to that of random sums of as many products.
static double error_of(enum partita_type type, const void *y, const double *expected, size_t n,
                       double products)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = creal(reference_sample(type, y, i)) - expected[i];
        error += e * e;
        norm += expected[i] * expected[i];
    }
    return sqrt(error / fmax(norm, products / 9 * (double)n));
}

// What a plan says about its results.
struct prediction {
    double error;
    size_t products, n; // of a sum; outputs
};

// The error of one direction with random arrays; negative if the edge has no tiles.
static double try_direction(const struct partita_problem *p, enum partita_direction direction,
                            size_t edge, struct random *random, struct prediction *ret)
{
    struct imposed imposed;
    if (!impose(&imposed, p, direction, edge)) return -1;
    const struct shape *shape = &imposed.plan.shape;
    const size_t scalar = partita_type_size(p->signal);
    const size_t x = shape->batch * shape->in_channels * shape_inputs(shape),
                 y = shape->batch * shape->out_channels * shape_outputs(shape),
                 w = shape->out_channels * shape->group_in * shape_taps(shape);
    const bool forward = direction == PARTITA_FORWARD,
               weight = direction == PARTITA_BACKWARD_WEIGHT;
    const size_t n[3] = {forward ? y : weight ? w : x, forward || weight ? x : y, weight ? y : w};
    void *array[3];
    double *exact[3];
    for (int i = 0; i < 3; i++) {
        array[i] = guarded_alloc(n[i] * scalar, scalar);
        exact[i] = malloc(n[i] * sizeof(double));
        if (i) random_samples(random, p->signal, array[i], n[i]);
        for (size_t k = 0; i && k < n[i]; k++)
            exact[i][k] = creal(reference_sample(p->signal, array[i], k));
    }
    run(&imposed, array[0], array[1], array[2]);
    double *no_bias = calloc(shape->out_channels, sizeof *no_bias);
    if (forward) reference_layer_forward(p, exact[0], exact[1], exact[2], no_bias);
    else if (weight) reference_backward_weight(p, exact[0], exact[1], exact[2]);
    else reference_backward_data(p, exact[0], exact[1], exact[2]);
    ret->products = forward  ? w / shape->out_channels
                    : weight ? y / shape->out_channels
                             : w / shape->in_channels;
    ret->n = n[0];
    ret->error = imposed.plan.choice.error;
    const double error = error_of(p->signal, array[0], exact[0], n[0], (double)ret->products);
    for (int i = 0; i < 3; i++) {
        guarded_free(array[i]);
        free(exact[i]);
    }
    free(no_bias);
    release(&imposed);
    return error;
}

// With few tiles and many output channels the product is transposed.
static void few_tiles_are_transposed(void **state)
{
    (void)state;
    struct partita_problem p = {SIZE(6, 7), CHANNELS(300, 100), SAME(3)};
    struct imposed imposed;
    for (int batch = 1; batch <= 100; batch += 99) {
        p.batch = (size_t)batch;
        assert_true(impose(&imposed, &p, PARTITA_FORWARD, 6));
        assert_int_equal(((const struct winograd *)imposed.plan.state)->transposed, batch == 1);
        release(&imposed);
    }
}

// Root mean square of the error of a product in one term of TF32, relative to the product
// (decision 43). Of a sum of independent products it is the error relative to the norm, however
// many there are.
static const double ONE_TERM = 0.6 * 0x1p-11;

// With the budget of these tests a device with tensor cores takes one term: the prediction, which
// is below 1e-5 otherwise, then contains that error.
static bool takes_one_term(const struct prediction *plan)
{
    return plan->error >= ONE_TERM;
}

// Four root mean squares, as in gate_direct, times the growth by which transforms enlarge errors.
static double winograd_gate(const struct layer_case *c, const struct prediction *plan)
{
    const double sums = gate_direct(c->type, plan->products + 1);
    const double products = takes_one_term(plan) ? 4 * ONE_TERM : 0;
    return gate_for_outputs(hypot(sums, products), plan->n) *
           winograd_growth(c->edge, c->named->problem.rank);
}

static void against_oracle(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem p = c->named->problem;
    struct random random = random_start(c->named->name);
    p.signal = p.taps = c->type;
    size_t max_taps = 1;
    for (int a = 0; a < p.rank; a++)
        max_taps = taps_of_branch(&p, a) > max_taps ? taps_of_branch(&p, a) : max_taps;
    for (int d = 1; d <= 4; d *= 2) {
        struct prediction plan;
        const double error = try_direction(&p, (enum partita_direction)d, c->edge, &random, &plan);
        assert_true((error >= 0) == (max_taps < c->edge));
        if (error < 0) continue;
        const double gate = winograd_gate(c, &plan);
        if (error > gate) fail_msg("direction %d: error %.3g above %.3g", d, error, gate);
    }
}

// Random volumes of both orders of channels, with any stride, dilation, padding and groups, in
// tiles of any edge.
static void random_volumes(void **state)
{
    (void)state;
    struct random random = random_start("volumes");
    int served = 0;
    for (int i = 0; i < 150; i++) {
        struct partita_problem p = {.rank = 3,
                                    .op = (enum partita_op)random_below(&random, 2),
                                    .batch = 1 + random_below(&random, 3),
                                    .groups = 1 + random_below(&random, 2),
                                    .channels_last = random_below(&random, 2)};
        p.in_channels = p.groups * (1 + random_below(&random, 20));
        p.out_channels = p.groups * (1 + random_below(&random, 20));
        for (int a = 0; a < 3; a++) {
            p.kernel[a] = 1 + random_below(&random, 4);
            p.stride[a] = random_below(&random, 3) ? 1 : 1 + random_below(&random, 3);
            p.dilation[a] = random_below(&random, 3) ? 1 : 1 + random_below(&random, 3);
            p.size[a] = (p.kernel[a] - 1) * p.dilation[a] + 1 + random_below(&random, 7);
            p.pad_begin[a] = (ptrdiff_t)random_below(&random, 4) - 1;
            p.pad_end[a] = (ptrdiff_t)random_below(&random, 4) - (p.pad_begin[a] < 0 ? 0 : 1);
            if (p.pad_begin[a] + p.pad_end[a] < 0) p.pad_begin[a] = p.pad_end[a] = 0;
        }
        p.signal = p.taps = random_below(&random, 2) ? PARTITA_F64 : PARTITA_F32;
        const struct named_problem named = {"volume", p};
        const struct layer_case c = {&named, p.signal, edges[random_below(&random, 5)]};
        for (int d = 1; d <= 4; d *= 2) {
            struct prediction plan;
            const double error =
                try_direction(&p, (enum partita_direction)d, c.edge, &random, &plan);
            if (error < 0) continue;
            const double gate = winograd_gate(&c, &plan);
            if (error > gate)
                fail_msg("volume %d, direction %d: error %.3g above %.3g", i, d, error, gate);
            served++;
        }
    }
    assert_true(served > 200);
}

// As in table 4 of Lavin and Gray, the error of F(2,3) is at most that of direct sums, that of
// F(4,3) less than ten times as large, that of F(6,3) larger. Predictions hold within a factor of
// two. With products in one term it is their error that grows, beside which that of direct sums in
// f32 is nothing.
static void order_of_errors(void **state)
{
    (void)state;
    enum { CHANNELS = 128 };
    struct partita_problem p = {SIZE(28, 28), CORRELATE, CHANNELS(CHANNELS, 8), SAME(3)};
    double error[N_EDGES_OF_TILES], direct = 0.3 * sqrt(9 * CHANNELS) * 0x1p-24; // sequential sums
    for (int e = 0; e < N_EDGES_OF_TILES; e++) {
        struct random random = random_start("order");
        struct prediction plan;
        error[e] = try_direction(&p, PARTITA_FORWARD, edges[e], &random, &plan);
        if (error[e] < 0 && subject_device && edges[e] % 2) continue;
        if (!(error[e] < 2 * plan.error && error[e] > plan.error / 2))
            fail_msg("edge %zu: error %.3g, predicted %.3g", edges[e], error[e], plan.error);
        if (takes_one_term(&plan)) direct = 2 * ONE_TERM * winograd_growth(edges[0], 2);
    }
    assert_true(error[0] < direct);
    assert_true(error[2] > error[0] && error[2] < 10 * direct);
    assert_true(error[4] > error[2]);
    assert_true(subject_device || error[1] > error[0]); // of 7 there are rectangles with 4
}

static struct partita_options subject_options(double error_budget, struct log_lines *lines)
{
    const struct partita_options options = {.engine = subject_engine->name,
                                            .error_budget = error_budget};
    struct partita_options all = layer_options(&options);
    if (lines) all.log = log_into(lines);
    return all;
}

// The predicted error of the chosen tiles is at most the budget, by default 2e-6; the explanation
// names the tiles.
static void budget(void **state)
{
    (void)state;
    const struct partita_problem p = {SIZE(48, 48), CORRELATE, CHANNELS(64, 64), SAME(3)};
    const double budgets[] = {0, 1e-3, 1.1e-6, 3e-7};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        struct partita_plan *plan;
        char text[4096];
        const struct partita_options options = subject_options(budgets[i], NULL);
        assert_ok(partita_plan_create(&p, &options, &plan));
        assert_true(plan->choice.error <= (budgets[i] > 0 ? budgets[i] : 2e-6));
        partita_plan_explain(plan, text, sizeof text);
        assert_non_null(strstr(text, plan->choice.summary));
        if (budgets[i] == 3e-7)
            assert_string_equal(plan->choice.summary, "F(2x2,3x3)"); // others have larger errors
        partita_plan_destroy(plan);
    }
    struct imposed imposed; // F(6x6,3x3) exists, but is not chosen by default
    assert_true(impose(&imposed, &p, PARTITA_FORWARD, 8));
    struct request request = {.shape = &imposed.plan.shape,
                              .direction = PARTITA_FORWARD,
                              .model = &imposed.model,
                              .device = subject_device,
                              .transform = 8,
                              .workspace_limit = SIZE_MAX};
    struct estimate estimate = {0};
    subject_engine->estimate(&request, &estimate);
    assert_true(!estimate.applicable || estimate.error <= 2e-6);
    release(&imposed);
    struct log_lines lines = {0};
    const struct partita_options options = subject_options(1e-8, &lines);
    struct partita_plan *plan;
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "budget"));
}

// The engine of PARTITA_TEST_DEVICE; false if there is none.
static bool find_subject(void)
{
    char text[256];
    if (layer_has_engine("cpu/winograd")) return true;
    if (device_open(getenv("PARTITA_TEST_DEVICE"), text, sizeof text, &subject_device) !=
        PARTITA_OK)
        return false;
    const struct engine *const *engine = subject_device->engines;
    while (*engine && strcmp((*engine)->name, "cuda/winograd") != 0) engine++;
    subject_engine = *engine;
    return subject_engine;
}

int main(void)
{
    static struct layer_case cases[2][N_EDGES_OF_TILES][N_PROBLEMS];
    static struct CMUnitTest tests[2 * N_EDGES_OF_TILES * N_PROBLEMS + 4];
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    if (!find_subject()) return 1;
    size_t n = 0;
    if (!subject_device) tests[n++] = named_test(few_tiles_are_transposed, NULL, "few-tiles-turn");
    for (int f64 = 0; f64 < (layer_is_brief() ? 1 : 2); f64++)
        for (int e = 0; e < N_EDGES_OF_TILES; e++)
            for (size_t i = 0; i < N_PROBLEMS; i++) {
                if (subject_device && (edges[e] % 2 || problems[i].problem.rank > 2)) continue;
                struct layer_case *c = &cases[f64][e][i];
                *c = (struct layer_case){&problems[i], f64 ? PARTITA_F64 : PARTITA_F32, edges[e]};
                tests[n++] =
                    named_test(against_oracle, c, "%s: tiles of %zu/%s-%s", subject_engine->name,
                               edges[e], problems[i].name, partita_type_name(c->type));
            }
    if (!subject_device) tests[n++] = named_test(random_volumes, NULL, "random-volumes");
    tests[n++] = named_test(order_of_errors, NULL, "%s: order-of-errors", subject_engine->name);
    tests[n++] = named_test(budget, NULL, "%s: budget", subject_engine->name);
    const int failures = run_test_list(tests, n);
    device_close(subject_device);
    return failures;
}
