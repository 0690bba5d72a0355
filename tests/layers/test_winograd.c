// SPDX-License-Identifier: MIT
// cpu/winograd, white box: its kernels for every instruction set against the convolution that they
// compute, every tile size in every direction against the oracle, errors against its prediction and
// against the order that Lavin and Gray report. With PARTITA_TEST_DEVICE it is that device's
// engine, without the tests that only apply to the CPU.
#include "core/filter.h"
#include "core/plan.h"

#include "support/kernel_check.h"
#include "support/layer_rig.h"
#include "support/reference_layer.h"

#include <stdio.h>

#include "cpu/winograd/winograd.h"

extern const struct engine engine_winograd;

enum {
    MAX_LEVELS = CPU_AVX512 + 1,
    N_EDGES_OF_TILES = 3,
    ROWS = 3,
    BLOCKS = 3,
    MAX_TILES = 16 * BLOCKS
};

static const size_t edges[N_EDGES_OF_TILES] = {4, 6, 8};

// Elements of ROWS rows of tiles at offsets of their own.
struct tiles {
    size_t elements, offset[WINOGRAD_EXTENT], row, n;
    struct fence fence;
    void *x;
};

static struct tiles draw_tiles(struct random *random, bool f64, size_t elements, size_t n)
{
    struct tiles t = {.elements = elements, .n = n};
    const size_t gap = random_below(random, 3);
    for (size_t k = 0; k < elements; k++) t.offset[k] = (elements - 1 - k) * (n + gap);
    t.row = elements * (n + gap);
    const size_t all = (ROWS - 1) * t.row + elements * n + (elements - 1) * gap,
                 bytes = all * scalar_size(f64);
    t.fence = fence_open(bytes);
    t.x = fence_put(&t.fence, NULL, bytes, EDGE_END);
    fill_random(random, f64, t.x, all);
    return t;
}

static double element(const struct tiles *t, bool f64, size_t row, size_t k, size_t i)
{
    return scalar_get(f64, t->x, row * t->row + t->offset[k] + i);
}

// The transform, ret[row][element][n], guarded.
static void *transformed(const struct tiles *t, bool f64, winograd_fn *kernel, size_t edge,
                         size_t count, size_t elements)
{
    void *y = guarded_alloc(ROWS * elements * t->n * scalar_size(f64), scalar_size(f64));
    const struct winograd_rows rows = {t->n, ROWS, t->row, elements * t->n, t->n, t->offset};
    kernel(y, t->x, edge, count, &rows);
    return y;
}

// A'[(G g) . (B' d)] is the correlation of d and g, for each F(m, r). The bound is the rounding
// error of at most 4 edge operations on the sum of magnitudes, which is the same formula with
// magnitudes.
static void minimal_filtering(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const double u = f64 ? 0x1p-53 : 0x1p-24;
    struct random random = random_start(s->name);
    for (int e = 0; e < N_EDGES_OF_TILES; e++)
        for (size_t edge = edges[e], m = 2; m < edge; m++) {
            const size_t r = edge + 1 - m, n = BLOCKS * block_lanes(f64);
            struct tiles d = draw_tiles(&random, f64, edge, n), g = draw_tiles(&random, f64, r, n);
            void *v = transformed(&d, f64, s->kernels->winograd_input, edge, 0, edge);
            void *w = transformed(&g, f64, s->kernels->winograd_taps, edge, r, edge);
            struct tiles product = draw_tiles(&random, f64, edge, n);
            for (size_t l = 0; l < ROWS; l++)
                for (size_t k = 0; k < edge; k++)
                    for (size_t i = 0; i < n; i++) {
                        const size_t at = (l * edge + k) * n + i;
                        scalar_put(f64, product.x, l * product.row + product.offset[k] + i,
                                   scalar_get(f64, v, at) * scalar_get(f64, w, at));
                    }
            void *y = transformed(&product, f64, s->kernels->winograd_output, edge, m, m);
            for (size_t at = 0; at < ROWS * m * n; at++) {
                const size_t i = at % n, o = at / n % m, l = at / n / m;
                double expected = 0, magnitude = 0;
                for (size_t k = 0; k < r; k++)
                    expected += element(&d, f64, l, o + k, i) * element(&g, f64, l, k, i);
                for (size_t p = 0; p < edge; p++) {
                    double row[WINOGRAD_EXTENT], inputs = 0, taps = 0;
                    winograd_input_row(edge, p, row);
                    for (size_t k = 0; k < edge; k++)
                        inputs += fabs(row[k] * element(&d, f64, l, k, i));
                    for (size_t k = 0; k < r; k++)
                        taps +=
                            fabs(winograd_taps_entry(edge, r, k, p) * element(&g, f64, l, k, i));
                    magnitude += fabs(winograd_output_entry(edge, m, o, p)) * inputs * taps;
                }
                const double error = fabs(scalar_get(f64, y, at) - expected);
                if (!(error <= 4 * (double)edge * u * magnitude))
                    fail_msg("F(%zu,%zu), output %zu: error %.3g of %.3g", m, r, o, error,
                             magnitude);
            }
            fence_close(&d.fence);
            fence_close(&g.fence);
            fence_close(&product.fence);
            guarded_free(v);
            guarded_free(w);
            guarded_free(y);
        }
}

static void deinterleave_and_interleave(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64), lanes = block_lanes(f64);
    struct random random = random_start("deal");
    for (size_t step = 1; step <= 7; step++)
        for (size_t count = 1; count <= step; count++)
            for (size_t n = 1; n <= 2 * lanes + 1; n++) {
                const size_t whole = (n + lanes - 1) / lanes * lanes,
                             stride = whole + random_below(&random, 3);
                struct fence fence = fence_open(whole * step * bytes);
                void *x = fence_put(&fence, NULL, whole * step * bytes, EDGE_END);
                void *y = guarded_alloc(count * stride * bytes, bytes);
                fill_random(&random, f64, x, whole * step);
                s->kernels->deinterleave(y, stride, x, step, count, n);
                for (size_t k = 0; k < count; k++)
                    for (size_t i = 0; i < n; i++)
                        assert_same(f64, y, k * stride + i, scalar_get(f64, x, i * step + k));
                guarded_free(y);
                fence_close(&fence);
            }
    for (size_t count = 1; count <= 16; count++)
        for (size_t n = 1; n <= 2 * lanes + 1; n++) {
            const size_t whole = (n + lanes - 1) / lanes * lanes,
                         stride = whole + random_below(&random, 3);
            const size_t pitch = count + (random_below(&random, 2) ? 0 : 16);
            struct fence fence = fence_open(((count - 1) * stride + whole) * bytes);
            void *x = fence_put(&fence, NULL, ((count - 1) * stride + whole) * bytes, EDGE_END);
            void *y = guarded_alloc(whole * pitch * bytes, bytes);
            fill_random(&random, f64, x, (count - 1) * stride + whole);
            s->kernels->interleave(y, pitch, x, (ptrdiff_t)stride, count, n);
            for (size_t k = 0; k < count; k++)
                for (size_t i = 0; i < n; i++)
                    assert_same(f64, y, i * pitch + k, scalar_get(f64, x, k * stride + i));
            // Rows in the other order.
            s->kernels->interleave(y, pitch, (char *)x + (count - 1) * stride * bytes,
                                   -(ptrdiff_t)stride, count, n);
            for (size_t k = 0; k < count; k++)
                for (size_t i = 0; i < n; i++)
                    assert_same(f64, y, i * pitch + k,
                                scalar_get(f64, x, (count - 1 - k) * stride + i));
            guarded_free(y);
            fence_close(&fence);
        }
}

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
    assert_ok(plan->engine->plan_create(plan, &request));
    imposed->filter.plan = plan;
    return true;
}

static void release(struct imposed *imposed)
{
    const struct engine *engine = imposed->plan.engine;
    if (engine->filter_destroy) engine->filter_destroy(&imposed->filter);
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
    if (!weight) assert_ok(filter_fill(&imposed->filter, other));
    const struct operands operands = {.to = to, .from = {from, weight ? other : NULL}};
    const struct partita_filter *filter = weight ? NULL : &imposed->filter;
    assert_ok(plan->device ? plan->device->run(plan, filter, &operands, workspace)
                           : engine->run(plan, filter, &operands, workspace));
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
        const double gate = gate_for_outputs(gate_direct(c->type, plan.products + 1), plan.n) *
                            winograd_growth(c->edge);
        if (error > gate) fail_msg("direction %d: error %.3g above %.3g", d, error, gate);
    }
}

// As in table 4 of Lavin and Gray, the error of F(2,3) is at most that of direct sums, that of
// F(4,3) less than ten times as large, that of F(6,3) larger. Predictions hold within a factor of
// two.
static void order_of_errors(void **state)
{
    (void)state;
    enum { CHANNELS = 128 };
    struct partita_problem p = {SIZE(28, 28), CORRELATE, CHANNELS(CHANNELS, 8), SAME(3)};
    double error[N_EDGES_OF_TILES];
    for (int e = 0; e < N_EDGES_OF_TILES; e++) {
        struct random random = random_start("order");
        struct prediction plan;
        error[e] = try_direction(&p, PARTITA_FORWARD, edges[e], &random, &plan);
        if (!(error[e] < 2 * plan.error && error[e] > plan.error / 2))
            fail_msg("edge %zu: error %.3g, predicted %.3g", edges[e], error[e], plan.error);
    }
    const double direct = 0.3 * sqrt(9 * CHANNELS) * 0x1p-24; // a sequential sum
    assert_true(error[0] < direct);
    assert_true(error[1] > error[0] && error[1] < 10 * direct);
    assert_true(error[2] > error[1]);
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
    const double budgets[] = {0, 1e-3, 1.1e-6, 4e-7};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        struct partita_plan *plan;
        char text[4096];
        const struct partita_options options = subject_options(budgets[i], NULL);
        assert_ok(partita_plan_create(&p, &options, &plan));
        assert_true(plan->choice.error <= (budgets[i] > 0 ? budgets[i] : 2e-6));
        partita_plan_explain(plan, text, sizeof text);
        assert_non_null(strstr(text, plan->choice.summary));
        if (budgets[i] == 4e-7)
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

// Tests that only the CPU's engine has.
static size_t list_kernels(struct kernel_subject *s, struct CMUnitTest *tests)
{
    size_t n = 0;
    for (enum cpu_isa isa = CPU_C; isa <= cpu_detect(); isa++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(isa, f64);
            if (strcmp(k->isa, cpu_isa_name(isa)) != 0) continue;
            s->kernels = k;
            snprintf(s->name, sizeof s->name, "%s-%s", f64 ? "f64" : "f32", k->isa);
            tests[n++] = named_test(minimal_filtering, s, "%s: minimal filtering", s->name);
            tests[n++] =
                named_test(deinterleave_and_interleave, s, "%s: deal and collect", s->name);
            s++;
        }
    tests[n++] = named_test(few_tiles_are_transposed, NULL, "few-tiles-turn");
    return n;
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
    static struct kernel_subject subjects[2 * MAX_LEVELS];
    static struct layer_case cases[2][N_EDGES_OF_TILES][N_PROBLEMS];
    static struct CMUnitTest tests[4 * MAX_LEVELS + 2 * N_EDGES_OF_TILES * N_PROBLEMS + 3];
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    if (!find_subject()) return 1;
    size_t n = subject_device ? 0 : list_kernels(subjects, tests);
    for (int f64 = 0; f64 < (layer_is_brief() ? 1 : 2); f64++)
        for (int e = 0; e < N_EDGES_OF_TILES; e++)
            for (size_t i = 0; i < N_PROBLEMS; i++) {
                struct layer_case *c = &cases[f64][e][i];
                *c = (struct layer_case){&problems[i], f64 ? PARTITA_F64 : PARTITA_F32, edges[e]};
                tests[n++] =
                    named_test(against_oracle, c, "%s: tiles of %zu/%s-%s", subject_engine->name,
                               edges[e], problems[i].name, partita_type_name(c->type));
            }
    tests[n++] = named_test(order_of_errors, NULL, "%s: order-of-errors", subject_engine->name);
    tests[n++] = named_test(budget, NULL, "%s: budget", subject_engine->name);
    const int failures = run_test_list(tests, n);
    device_close(subject_device);
    return failures;
}
