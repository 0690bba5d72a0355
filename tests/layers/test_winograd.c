// SPDX-License-Identifier: MIT
// cpu/winograd from inside: its kernels at every level against the convolution they are to compute,
// every tile size in every direction against the oracle, its errors against what it predicts and
// against Lavin and Gray's order. With PARTITA_TEST_DEVICE it is that device's engine, but for what
// the CPU's alone has.
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
    LINES = 3,
    BLOCKS = 3,
    TILES_MOST = 16 * BLOCKS
};

static const size_t edges[N_EDGES_OF_TILES] = {4, 6, 8};

struct subject {
    const struct kernels *kernels;
    char name[16];
};

// Elements of LINES lines of tiles at places of their own, and what a transform makes of them.
struct tiles {
    size_t elements, offset[WINOGRAD_EXTENT], line, n;
    struct fence fence;
    void *x;
};

static struct tiles draw_tiles(struct random *random, bool f64, size_t elements, size_t n)
{
    struct tiles t = {.elements = elements, .n = n};
    const size_t gap = random_below(random, 3);
    for (size_t k = 0; k < elements; k++) t.offset[k] = (elements - 1 - k) * (n + gap);
    t.line = elements * (n + gap);
    const size_t all = (LINES - 1) * t.line + elements * n + (elements - 1) * gap,
                 bytes = all * scalar_size(f64);
    t.fence = fence_open(bytes);
    t.x = fence_put(&t.fence, NULL, bytes, EDGE_END);
    fill_random(random, f64, t.x, all);
    return t;
}

static double element(const struct tiles *t, bool f64, size_t line, size_t k, size_t i)
{
    return scalar_get(f64, t->x, line * t->line + t->offset[k] + i);
}

// ret[line][element][n], guarded.
static void *transformed(const struct tiles *t, bool f64, winograd_fn *kernel, size_t edge,
                         size_t count, size_t elements)
{
    void *y = guarded_alloc(LINES * elements * t->n * scalar_size(f64), scalar_size(f64));
    const struct winograd_rows lines = {t->n, LINES, t->line, elements * t->n, t->n, t->offset};
    kernel(y, t->x, edge, count, &lines);
    return y;
}

// A'[(G g) . (B' d)] is the correlation of d and g: for each F(m, r). The bound: rounding errors of
// a chain of at most 4 edge operations on the sum of magnitudes, which is the same formula with
// magnitudes throughout.
static void minimal_filtering(void **state)
{
    const struct subject *s = *state;
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
            for (size_t l = 0; l < LINES; l++)
                for (size_t k = 0; k < edge; k++)
                    for (size_t i = 0; i < n; i++) {
                        const size_t at = (l * edge + k) * n + i;
                        scalar_put(f64, product.x, l * product.line + product.offset[k] + i,
                                   scalar_get(f64, v, at) * scalar_get(f64, w, at));
                    }
            void *y = transformed(&product, f64, s->kernels->winograd_output, edge, m, m);
            for (size_t at = 0; at < LINES * m * n; at++) {
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

static void deal_and_collect(void **state)
{
    const struct subject *s = *state;
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
            // Lines in the other order.
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

// A plan of one direction with tiles of one edge, whatever they cost.
struct forced {
    struct partita_plan plan;
    struct partita_filter filter;
    struct cost_model host;
};

static bool force(struct forced *forced, const struct partita_problem *problem,
                  enum partita_direction direction, size_t edge)
{
    *forced = (struct forced){0};
    struct partita_plan *plan = &forced->plan;
    assert_ok(problem_canonical(problem, &plan->log, &plan->shape));
    plan->engine = subject_engine;
    plan->device = subject_device;
    plan->direction = direction;
    plan->isa = cpu_detect();
    plan->kernels = kernels_select(plan->isa, plan->shape.f64);
    plan->threads = 1;
    cost_model_default(&forced->host, plan->isa);
    const struct request request = {.shape = &plan->shape,
                                    .direction = direction,
                                    .model = &forced->host,
                                    .device = plan->device,
                                    .transform = edge,
                                    .workspace_limit = SIZE_MAX,
                                    .error_budget = 1};
    plan->engine->estimate(&request, &plan->choice);
    if (!plan->choice.applicable) return false;
    assert_int_equal(plan->choice.transform, edge);
    assert_ok(plan->engine->plan_create(plan, &request));
    forced->filter.plan = plan;
    return true;
}

static void release(struct forced *forced)
{
    const struct engine *engine = forced->plan.engine;
    if (engine->filter_destroy) engine->filter_destroy(&forced->filter);
    else mem_release(&forced->plan.allocator, forced->filter.state);
    engine->plan_destroy(&forced->plan);
}

static void run(struct forced *forced, void *to, const void *from, const void *other)
{
    struct partita_plan *plan = &forced->plan;
    const struct engine *engine = plan->engine;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    void *workspace = guarded_alloc(plan_workspace(plan), 0);
    if (!weight) assert_ok(engine->filter_create(&forced->filter, other));
    const struct operands operands = {.to = to, .from = {from, weight ? other : NULL}};
    assert_ok(engine->run(plan, weight ? NULL : &forced->filter, &operands, workspace));
    guarded_free(workspace);
}

struct named_problem {
    const char *name;
    struct partita_problem problem;
};

#define SAME(k) .kernel = {k, k}, .pad_begin = {(k) / 2, (k) / 2}, .pad_end = {(k) / 2, (k) / 2}

static const struct named_problem problems[] = {
    {"same-3x3",
     {.rank = 2, .batch = 2, .in_channels = 19, .out_channels = 21, SAME(3), .size = {13, 27}}},
    {"wide-rows", {.rank = 2, .in_channels = 2, .out_channels = 3, SAME(3), .size = {9, 700}}},
    {"smaller-than-tile",
     {.rank = 2, .batch = 5, .in_channels = 2, .out_channels = 3, SAME(3), .size = {2, 1}}},
    {"5x5", {.rank = 2, .in_channels = 4, .out_channels = 9, SAME(5), .size = {14, 14}}},
    {"2x2", {SIZE(9, 8), CORRELATE, CHANNELS(3, 2), KERNEL(2, 2)}},
    {"7x7-as-large-as-map", {SIZE(7, 7), CHANNELS(3, 4), KERNEL(7, 7)}},
    {"1x3", {SIZE(11, 23), CHANNELS(3, 5), KERNEL(1, 3), PAD_END(0, 1)}},
    {"3x1", {SIZE(11, 23), CHANNELS(3, 5), KERNEL(3, 1), PAD_BEGIN(2, 0)}},
    {"line", {SIZE(1000), BATCH(3), CHANNELS(5, 9), KERNEL(3)}},
    {"stride-2",
     {.rank = 2, .in_channels = 6, .out_channels = 7, SAME(3), .size = {17, 16}, .stride = {2, 2}}},
    {"stride-4-of-11", {SIZE(35, 39), CORRELATE, CHANNELS(3, 5), KERNEL(11, 11), STRIDE(4, 4)}},
    {"stride-one-axis",
     {.rank = 2, .in_channels = 3, .out_channels = 3, SAME(3), .size = {17, 16}, .stride = {3, 1}}},
    {"dilation",
     {.rank = 2,
      .in_channels = 3,
      .out_channels = 3,
      SAME(3),
      .size = {17, 16},
      .dilation = {2, 3}}},
    {"stride-and-dilation",
     {.rank = 2,
      .in_channels = 3,
      .out_channels = 3,
      SAME(5),
      .size = {37, 36},
      .stride = {4, 2},
      .dilation = {6, 3}}},
    {"groups",
     {.rank = 2,
      .batch = 2,
      .in_channels = 12,
      .out_channels = 18,
      .groups = 3,
      SAME(3),
      .size = {10, 11},
      .activation = PARTITA_RELU}},
    {"cropped", {SIZE(20, 20), KERNEL(3, 3), PAD_BEGIN(-4, 5), PAD_END(-3, -6)}},
    {"few-tiles",
     {.rank = 2, .batch = 3, .in_channels = 300, .out_channels = 100, SAME(3), .size = {6, 7}}},
    {"few-tiles-strided",
     {.rank = 2,
      .in_channels = 48,
      .out_channels = 96,
      .groups = 2,
      SAME(3),
      .size = {13, 9},
      .stride = {2, 2}}},
    // Parts of the output channels that share the transformed inputs, turned and not, these in two
    // chunks.
    {"parts", {.rank = 2, .in_channels = 20, .out_channels = 150, SAME(3), .size = {6, 7}}},
    {"parts-of-groups",
     {.rank = 2, .in_channels = 6, .out_channels = 300, .groups = 2, SAME(3), .size = {13, 15}}},
    {"parts-in-chunks", {SIZE(100), CHANNELS(258, 136), KERNEL(3)}},
    {"many-channels", {.rank = 2, .in_channels = 300, .out_channels = 9, SAME(3), .size = {6, 7}}},
    // Gradients of taps by all threads together: several blocks of tiles, output channels in two
    // pieces, groups in turns.
    {"together",
     {.rank = 2, .in_channels = 264, .out_channels = 2, .groups = 2, SAME(3), .size = {70, 66}}},
    {"together-in-pieces",
     {.rank = 2, .in_channels = 1, .out_channels = 260, SAME(3), .size = {70, 34}}},
    {"groups-in-turns",
     {.rank = 2, .in_channels = 24, .out_channels = 24, .groups = 24, SAME(3), .size = {64, 64}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct layer_case {
    const struct named_problem *named;
    enum partita_type type;
    size_t edge;
};

static size_t taps_of_phase(const struct partita_problem *p, int axis)
{
    size_t kernel = p->kernel[axis] ? p->kernel[axis] : 1,
           stride = p->stride[axis] ? p->stride[axis] : 1,
           dilation = p->dilation[axis] ? p->dilation[axis] : 1, common = stride;
    while (stride % common || dilation % common) common--;
    return (kernel + stride / common - 1) / (stride / common);
}

// Relative L2 error, over what random sums of so many products would have.
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

// One direction with random arrays: the error, or a negative number where the edge has no tiles.
static double try_direction(const struct partita_problem *p, enum partita_direction direction,
                            size_t edge, struct random *random, double *ret_predicted,
                            size_t *ret_products, size_t *ret_n)
{
    struct forced forced;
    if (!force(&forced, p, direction, edge)) return -1;
    const struct shape *shape = &forced.plan.shape;
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
    run(&forced, array[0], array[1], array[2]);
    double *no_bias = calloc(shape->out_channels, sizeof *no_bias);
    if (forward) reference_layer_forward(p, exact[0], exact[1], exact[2], no_bias);
    else if (weight) reference_backward_weight(p, exact[0], exact[1], exact[2]);
    else reference_backward_data(p, exact[0], exact[1], exact[2]);
    *ret_products = forward  ? w / shape->out_channels
                    : weight ? y / shape->out_channels
                             : w / shape->in_channels;
    *ret_n = n[0];
    *ret_predicted = forced.plan.choice.error;
    const double error = error_of(p->signal, array[0], exact[0], n[0], (double)*ret_products);
    for (int i = 0; i < 3; i++) {
        guarded_free(array[i]);
        free(exact[i]);
    }
    free(no_bias);
    release(&forced);
    return error;
}

// Few tiles and many output channels: those are the positions of kernels->conv.
static void few_tiles_turn(void **state)
{
    (void)state;
    struct partita_problem p = {
        .rank = 2, .in_channels = 300, .out_channels = 100, SAME(3), .size = {6, 7}};
    struct forced forced;
    for (int batch = 1; batch <= 100; batch += 99) {
        p.batch = (size_t)batch;
        assert_true(force(&forced, &p, PARTITA_FORWARD, 6));
        assert_int_equal(((const struct winograd *)forced.plan.state)->turned, batch == 1);
        release(&forced);
    }
}

static void against_oracle(void **state)
{
    const struct layer_case *c = *state;
    struct partita_problem p = c->named->problem;
    struct random random = random_start(c->named->name);
    p.signal = p.taps = c->type;
    size_t most = 1;
    for (int a = 0; a < p.rank; a++)
        most = taps_of_phase(&p, a) > most ? taps_of_phase(&p, a) : most;
    for (int d = 1; d <= 4; d *= 2) {
        double predicted;
        size_t products, n;
        const double error = try_direction(&p, (enum partita_direction)d, c->edge, &random,
                                           &predicted, &products, &n);
        assert_true((error >= 0) == (most < c->edge));
        if (error < 0) continue;
        const double gate =
            gate_for_outputs(gate_direct(c->type, products + 1), n) * winograd_growth(c->edge);
        if (error > gate) fail_msg("direction %d: error %.3g above %.3g", d, error, gate);
    }
}

// Lavin and Gray's table 4: F(2,3) no worse than the direct sum, F(4,3) worse by less than an
// order, F(6,3) worse again; and the predictions hold within a factor of two.
static void order_of_errors(void **state)
{
    (void)state;
    enum { CHANNELS = 128 };
    struct partita_problem p = {.rank = 2,
                                .op = PARTITA_CORRELATE,
                                .in_channels = CHANNELS,
                                .out_channels = 8,
                                SAME(3),
                                .size = {28, 28}};
    double error[N_EDGES_OF_TILES];
    for (int e = 0; e < N_EDGES_OF_TILES; e++) {
        struct random random = random_start("order");
        double predicted;
        size_t products, n;
        error[e] = try_direction(&p, PARTITA_FORWARD, edges[e], &random, &predicted, &products, &n);
        if (!(error[e] < 2 * predicted && error[e] > predicted / 2))
            fail_msg("edge %zu: error %.3g, predicted %.3g", edges[e], error[e], predicted);
    }
    const double direct = 0.3 * sqrt(9 * CHANNELS) * 0x1p-24; // a sum in one chain
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

// Without a budget no tile is taken whose error is predicted above 2e-6; with one, none above it;
// explain says which.
static void budget(void **state)
{
    (void)state;
    const struct partita_problem p = {.rank = 2,
                                      .op = PARTITA_CORRELATE,
                                      .in_channels = 64,
                                      .out_channels = 64,
                                      SAME(3),
                                      .size = {48, 48}};
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
            assert_string_equal(plan->choice.summary, "F(2x2,3x3)"); // the others err by more
        partita_plan_destroy(plan);
    }
    struct forced forced; // F(6x6,3x3) is there, but not without being asked for
    assert_true(force(&forced, &p, PARTITA_FORWARD, 8));
    struct request request = {.shape = &forced.plan.shape,
                              .direction = PARTITA_FORWARD,
                              .model = &forced.host,
                              .device = subject_device,
                              .transform = 8,
                              .workspace_limit = SIZE_MAX};
    struct estimate estimate = {0};
    subject_engine->estimate(&request, &estimate);
    assert_true(!estimate.applicable || estimate.error <= 2e-6);
    release(&forced);
    struct log_lines lines = {0};
    const struct partita_options options = subject_options(1e-8, &lines);
    struct partita_plan *plan;
    assert_int_equal(partita_plan_create(&p, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "budget"));
}

// What the CPU's engine alone has.
static size_t list_kernels(struct subject *s, struct CMUnitTest *tests)
{
    size_t n = 0;
    for (enum cpu_isa level = CPU_C; level <= cpu_detect(); level++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(level, f64);
            if (strcmp(k->isa, cpu_isa_name(level)) != 0) continue;
            s->kernels = k;
            snprintf(s->name, sizeof s->name, "%s-%s", f64 ? "f64" : "f32", k->isa);
            tests[n++] = named_test(minimal_filtering, s, "%s: minimal filtering", s->name);
            tests[n++] = named_test(deal_and_collect, s, "%s: deal and collect", s->name);
            s++;
        }
    tests[n++] = named_test(few_tiles_turn, NULL, "few-tiles-turn");
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
    static struct subject subjects[2 * MAX_LEVELS];
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
