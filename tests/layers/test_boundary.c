// SPDX-License-Identifier: MIT
// problem.boundary with each engine of the CPU: a table of shapes and random layers against the
// oracle in all directions; complex signals against the oracle; the transpose identity; samples
// that are not finite; workspaces, limits, threads and saved transforms. In all types a call is the
// call without a boundary on an array that the test has extended, bit by bit. Without ghost cells a
// boundary costs nothing. (test_problem.c has the refusals.)
#include "core/plan.h"
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

enum { N_BOUNDARIES = PARTITA_BOUNDARY_WRAP };
static const char *const boundary_names[] = {"zero",    "constant",  "edge",
                                             "reflect", "symmetric", "wrap"};

// Padding up to the size of an axis, for all boundaries but REFLECT, for which it is shortened.
static const struct named_problem problems[] = {
    {"same-3x3", {SIZE(14, 13), BATCH(2), CHANNELS(5, 9), KERNEL(3, 3), PAD(1, 1), RELU}},
    {"full", {SIZE(9, 7), CORRELATE, CHANNELS(3, 4), KERNEL(5, 4), PAD(4, 3)}},
    {"as-wide-as-x", {SIZE(5, 4), BATCH(2), CHANNELS(3, 2), KERNEL(7, 6), PAD(5, 4)}},
    {"wider-than-taps", {SIZE(9, 8), CHANNELS(2, 3), KERNEL(2, 3), PAD_BEGIN(9, 2), PAD_END(3, 8)}},
    {"ghosts-alone", {SIZE(9, 8), KERNEL(2, 2), PAD_BEGIN(7, 6), PAD_END(-11, -9)}},
    {"cropped", {SIZE(9, 20), CHANNELS(2, 2), KERNEL(3, 5), PAD_BEGIN(2, -4), PAD_END(-3, 6)}},
    {"one-side", {SIZE(12, 11), CHANNELS(3, 3), KERNEL(3, 3), PAD_END(0, 2)}},
    {"stride",
     {SIZE(15, 17), CHANNELS(4, 6), GROUPS(2), KERNEL(5, 3), STRIDE(2, 3), PAD_BEGIN(2, 1)}},
    {"dilation", {SIZE(13, 12), CHANNELS(3, 2), KERNEL(3, 3), DILATION(4, 3), PAD(4, 3)}},
    {"depthwise", {SIZE(12, 13), BATCH(2), CHANNELS(33, 33), GROUPS(33), KERNEL(7, 7), PAD(3, 3)}},
    {"channels-last",
     {SIZE(9, 10), BATCH(2), CHANNELS(18, 20), KERNEL(3, 3), PAD(1, 2), .channels_last = true}},
    {"channels-last-depthwise",
     {SIZE(9, 10), CHANNELS(40, 40), GROUPS(40), KERNEL(5, 3), PAD(2, 1), .channels_last = true}},
    {"line", {LENGTH(300), CHANNELS(3, 2), KERNEL(40), PAD_BEGIN(39), PAD_END(20)}},
    {"line-of-one", {LENGTH(500), CORRELATE, KERNEL(70), PAD(69)}},
    {"volume", {SIZE(4, 5, 6), BATCH(2), CHANNELS(3, 2), KERNEL(3, 3, 2), PAD(1, 2, 1)}},
    {"one-sample", {SIZE(1, 6), CHANNELS(2, 2), KERNEL(3, 3), PAD(1, 1)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const char *const engines[] = {"cpu/direct", "cpu/gemm",      "cpu/winograd",
                                      "cpu/tiles",  "cpu/depthwise", "cpu/overlap-save"};
enum { N_ENGINES_HERE = sizeof engines / sizeof *engines, ANY_ENGINE = N_ENGINES_HERE };

struct boundary_case {
    const char *engine;
    enum partita_boundary boundary;
    enum partita_type type;
    const struct partita_problem *problem; // NULL: random ones
};

// The problem with this boundary and no more padding than it allows; without outputs if that leaves
// none.
static struct partita_problem bounded_by(const struct partita_problem *problem,
                                         enum partita_boundary boundary)
{
    struct partita_problem p = *problem;
    p.boundary = boundary;
    if (boundary == PARTITA_BOUNDARY_CONSTANT) p.boundary_value = -0.75;
    if (boundary <= PARTITA_BOUNDARY_EDGE) return p;
    for (int a = 0; a < reference_rank(&p); a++) {
        const ptrdiff_t max = (ptrdiff_t)p.size[a] - (boundary == PARTITA_BOUNDARY_REFLECT);
        if (p.pad_begin[a] > max) p.pad_begin[a] = max;
        if (p.pad_end[a] > max) p.pad_end[a] = max;
    }
    return p;
}

static bool has_outputs(const struct partita_problem *p)
{
    for (int a = 0; a < reference_rank(p); a++)
        if (!reference_outputs(p, (size_t)a)) return false;
    return true;
}

static bool problem_of(const struct boundary_case *c, const struct partita_problem *problem,
                       struct partita_problem *ret)
{
    const struct partita_problem suited = layer_suit_engine(c->engine, problem),
                                 typed = problem_of_type(&suited, c->type);
    *ret = bounded_by(&typed, c->boundary);
    return has_outputs(ret) && layer_is_served(c->engine, ret);
}

static struct partita_options options_of(const struct boundary_case *c, int threads)
{
    return (struct partita_options){
        .engine = c->engine, .threads = threads, .directions = LAYER_ALL};
}

// The bits do not depend on the number of threads or on whose workspace it is.
static void against_oracle(void **state)
{
    const struct boundary_case *c = *state;
    const struct partita_options options = options_of(c, 2), one = options_of(c, 1);
    struct random random = random_start("oracle");
    struct partita_problem p;
    struct layer layer, other;
    assert_true(problem_of(c, c->problem, &p));
    layer_open(&layer, &p, &options, &random);
    layer_run(&layer);
    layer_check_inputs(&layer);
    layer_check(&layer);
    layer_check_copy(&layer, &one);
    layer_open_copy(&other, &layer, &options);
    layer_check_workspace(&layer, &other);
    layer_close(&other);
    layer_close(&layer);
}

static void random_layers(void **state)
{
    const struct boundary_case *c = *state;
    struct random random = random_start("random");
    int n = 0;
    for (int i = 0; i < layer_repeats(60); i++) {
        const struct partita_problem drawn = layer_random(&random);
        const struct partita_options options = options_of(c, 1 + i % 2);
        struct partita_problem p;
        struct layer layer;
        if (!problem_of(c, &drawn, &p)) continue;
        layer_open(&layer, &p, &options, &random);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
        n++;
    }
    assert_true(n > 0);
}

// Constant ghost cells are not linear in x.
static void transpose_identity(void **state)
{
    const struct boundary_case *c = *state;
    const struct partita_options options = options_of(c, 2);
    struct random random = random_start("transpose");
    struct partita_problem p;
    struct layer layer;
    assert_true(problem_of(c, c->problem, &p));
    p.activation = PARTITA_LINEAR;
    layer_open(&layer, &p, &options, &random);
    layer_check_transpose(&layer, 1e-12);
    layer_close(&layer);
}

// Arrays of a call and of the same call on an extended x without padding.
struct twin {
    struct partita_problem problem, extended;
    size_t n_x, n_extended, n_y, n_w;
    size_t bytes;
    char *x, *wide, *y[2], *w, *gy, *gw[2], *gx, *wide_gx;
};

// The sample of x that sample i of the extended x copies; -1: none, it is constant.
static ptrdiff_t copied_by(const struct twin *t, size_t i)
{
    const struct partita_problem *p = &t->problem, *e = &t->extended;
    const size_t channels = or_one(p->in_channels), rest = e->channels_last ? channels : 1;
    const size_t plane = t->n_x / or_one(p->batch) / channels;
    const size_t wide = t->n_extended / or_one(p->batch) / channels;
    size_t at = i / rest % wide, step = 1, sample = 0;
    for (int a = reference_rank(p) - 1; a >= 0; a--) {
        const ptrdiff_t index = reference_inside(p->boundary, p->size[a],
                                                 (ptrdiff_t)(at % e->size[a]) - p->pad_begin[a]);
        if (index < 0) return -1;
        sample += (size_t)index * step;
        at /= e->size[a], step *= p->size[a];
    }
    return (ptrdiff_t)((i / rest / wide * plane + sample) * rest + i % rest);
}

static void copy_extended(const struct twin *t)
{
    for (size_t i = 0; i < t->n_extended; i++) {
        const ptrdiff_t from = copied_by(t, i);
        char *to = t->wide + i * t->bytes;
        if (from >= 0) memcpy(to, t->x + (size_t)from * t->bytes, t->bytes);
        else sample_put(t->problem.signal, t->wide, i, t->problem.boundary_value);
    }
}

// Each sample of gx is the sum of the gradients of its copies, each addition rounded; in f16 to
// half of its smallest number if that is more.
static void check_gradient(const struct twin *t)
{
    const enum partita_type type = t->problem.signal;
    const double smallest = type == PARTITA_F16 ? 0x1p-25 : 0;
    const double real = type == PARTITA_F64 ? 0x1p-53 : 0x1p-24;
    const double u = half_is(type) ? half_roundoff(type) : real;
    double *sum = calloc(3 * t->n_x, sizeof *sum), *magnitude = sum + t->n_x;
    double *copies = magnitude + t->n_x;
    for (size_t i = 0; i < t->n_extended; i++) {
        const ptrdiff_t at = copied_by(t, i);
        const double value = creal(reference_sample(type, t->wide_gx, i));
        if (at < 0) continue;
        sum[at] += value, magnitude[at] += fabs(value), copies[at]++;
    }
    for (size_t i = 0; i < t->n_x; i++) {
        const double error = fabs(creal(reference_sample(type, t->gx, i)) - sum[i]);
        if (!(error <= copies[i] * (u * magnitude[i] + smallest)))
            fail_msg("sample %zu: error %g of %g, %g copies", i, error, sum[i], copies[i]);
    }
    free(sum);
}

static void run_twin(const struct twin *t, const char *engine, bool wide)
{
    const struct partita_options options = {.engine = engine, .threads = 1, .filter_uses = 1};
    const struct partita_call taps = {.taps = t->w};
    struct partita_plan *plan;
    const void *x = wide ? t->wide : t->x;
    assert_ok(partita_plan_create(wide ? &t->extended : &t->problem, &options, &plan));
    assert_ok(partita_forward(plan, NULL, t->y[wide], x, &taps));
    if (*partita_plan_engine(plan, PARTITA_BACKWARD_WEIGHT))
        assert_ok(partita_backward_weight(plan, t->gw[wide], x, t->gy, NULL));
    if (*partita_plan_engine(plan, PARTITA_BACKWARD_DATA)) {
        assert_ok(partita_backward_data(plan, NULL, wide ? t->wide_gx : t->gx, t->gy, &taps));
        if (wide) check_gradient(t);
    }
    partita_plan_destroy(plan);
}

static char *draw_samples(struct random *random, enum partita_type type, size_t n)
{
    char *samples = guarded_alloc(n * partita_type_size(type), partita_type_size(type));
    random_samples(random, type, samples, n);
    return samples;
}

static void same_as_extended(void **state)
{
    const struct boundary_case *c = *state;
    struct random random = random_start("twin");
    for (size_t k = 0; k < N_PROBLEMS; k++) {
        struct twin t = {.bytes = partita_type_size(c->type), .n_w = 1};
        struct partita_problem p = problem_of_type(&problems[k].problem, c->type);
        const bool complex_samples = type_is_complex(c->type);
        size_t out[PARTITA_MAX_RANK];
        if (complex_samples && (reference_rank(&p) > 1 || c->boundary == PARTITA_BOUNDARY_CONSTANT))
            continue;
        t.problem = t.extended = bounded_by(&p, c->boundary);
        if (!has_outputs(&t.problem)) continue;
        assert_ok(partita_problem_output_size(&t.problem, out));
        t.n_x = t.n_extended = or_one(p.batch) * or_one(p.in_channels);
        t.n_y = or_one(p.batch) * or_one(p.out_channels);
        t.n_w = or_one(p.out_channels) * or_one(p.in_channels) / or_one(p.groups);
        t.extended.boundary = PARTITA_BOUNDARY_ZERO;
        t.extended.boundary_value = 0;
        for (int a = 0; a < reference_rank(&p); a++) {
            t.extended.size[a] = (out[a] - 1) * or_one(p.stride[a]) +
                                 or_one(p.dilation[a]) * (or_one(p.kernel[a]) - 1) + 1;
            t.extended.pad_begin[a] = t.extended.pad_end[a] = 0;
            t.n_x *= p.size[a], t.n_extended *= t.extended.size[a];
            t.n_y *= out[a], t.n_w *= or_one(p.kernel[a]);
        }
        t.x = draw_samples(&random, c->type, t.n_x);
        t.wide = draw_samples(&random, c->type, t.n_extended);
        t.w = draw_samples(&random, c->type, t.n_w);
        t.gy = draw_samples(&random, c->type, t.n_y);
        t.gx = guarded_alloc(t.n_x * t.bytes, t.bytes);
        t.wide_gx = guarded_alloc(t.n_extended * t.bytes, t.bytes);
        for (int i = 0; i < 2; i++) {
            t.y[i] = guarded_alloc(t.n_y * t.bytes, t.bytes);
            t.gw[i] = guarded_alloc(t.n_w * t.bytes, t.bytes);
        }
        copy_extended(&t);
        run_twin(&t, c->engine, false);
        run_twin(&t, c->engine, true);
        assert_memory_equal(t.y[0], t.y[1], t.n_y * t.bytes);
        assert_memory_equal(t.gw[0], t.gw[1], t.n_w * t.bytes);
        char *const arrays[] = {t.x,    t.wide,  t.w,     t.gy, t.y[0],
                                t.y[1], t.gw[0], t.gw[1], t.gx, t.wide_gx};
        for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) guarded_free(arrays[i]);
    }
}

static void complex_signals(void **state)
{
    const struct boundary_case *c = *state;
    struct random random = random_start("complex");
    const struct partita_problem drawn = {LENGTH(600),   BATCH(2),    CHANNELS(2, 3), KERNEL(50),
                                          PAD_BEGIN(49), PAD_END(30), CORRELATE};
    struct partita_problem p = problem_of_type(&drawn, c->type);
    p.boundary = c->boundary;
    const size_t outputs = reference_outputs(&p, 0), n_x = 2 * 2 * 600, n_y = 2 * 3 * outputs;
    char *x = draw_samples(&random, c->type, n_x), *w = draw_samples(&random, c->type, 2 * 3 * 50);
    char *y = guarded_alloc(n_y * partita_type_size(c->type), 16);
    double complex *expected = malloc(n_y * sizeof *expected);
    struct partita_plan *plan;
    reference_forward(&p, expected, x, w);
    for (int e = 0; e < N_SIGNAL_ENGINES; e++) {
        const struct partita_options options = {.engine = engine_names[e], .threads = 1};
        assert_ok(partita_plan_create(&p, &options, &plan));
        assert_ok(partita_forward(plan, NULL, y, x, &(struct partita_call){.taps = w}));
        const size_t transform = plan->choice.transform;
        const double gate =
            transform ? gate_transform(c->type, transform) : gate_direct(c->type, 2 * 2 * 50);
        const double error = error_against(c->type, y, expected, n_y, typical_output(&p));
        if (!(error <= gate)) fail_msg("%s: error %g above %g", engine_names[e], error, gate);
        partita_plan_destroy(plan);
    }
    free(expected);
    guarded_free(y);
    guarded_free(w);
    guarded_free(x);
}

// A NaN reaches the results that it reaches in direct sums.
static void not_finite(void **state)
{
    const struct boundary_case *c = *state, direct_case = {.engine = "cpu/direct"};
    const struct partita_options options = options_of(c, 1), direct = options_of(&direct_case, 1);
    struct random random = random_start("special");
    struct partita_problem p;
    struct layer layer, other;
    assert_true(problem_of(c, c->problem, &p));
    p.activation = PARTITA_LINEAR;
    layer_open(&layer, &p, &options, &random);
    sample_put(p.signal, layer.array[LAYER_X], 1, NAN);
    sample_put(p.signal, layer.array[LAYER_GY], layer.n[LAYER_GY] - 1, NAN);
    layer_open_copy(&other, &layer, &direct);
    layer_run(&layer);
    layer_run(&other);
    for (int a = LAYER_Y; a <= LAYER_GW; a++) {
        const enum layer_array array = (enum layer_array)a;
        for (size_t i = 0; i < layer.n[a]; i++)
            assert_int_equal(isnan(layer_sample(&layer, array, i)),
                             isnan(layer_sample(&other, array, i)));
    }
    layer_close(&other);
    layer_close(&layer);
}

static void limits(void **state)
{
    const struct boundary_case *c = *state;
    const struct partita_options options = options_of(c, 1);
    struct random random = random_start("limits");
    struct partita_problem p;
    const struct layer_limits limits = {
        .first = 1 << 12, .end = 1 << 22, .factor = 8, .transform = 64 * 64};
    assert_true(problem_of(c, c->problem, &p));
    assert_true(layer_check_limits(&p, &options, &limits, &random) > 0);
}

// Engines without a workspace of their own: what a call itself needs counts, too.
static void exact_limits(void **state)
{
    const struct partita_problem list[] = {
        {SIZE(50, 50), KERNEL(3, 3), PAD_BEGIN(1, 1), BOUNDARY(WRAP)},
        {SIZE(50, 51), CHANNELS(3, 3), GROUPS(3), KERNEL(3, 3), .signal = PARTITA_F16},
        {LENGTH(300), KERNEL(30), UP(3)}};
    (void)state;
    for (size_t i = 0; i < 3 * sizeof list / sizeof *list; i++) {
        struct partita_options options = {.engine = i % 3 ? engines[i % 3 == 1 ? 0 : 4] : NULL,
                                          .directions = PARTITA_FORWARD};
        struct partita_plan *plan;
        if (partita_plan_create(&list[i / 3], &options, &plan) != PARTITA_OK) continue;
        const size_t needed = partita_plan_workspace(plan, PARTITA_FORWARD);
        partita_plan_destroy(plan);
        for (options.workspace_limit = needed; options.workspace_limit > 1;
             options.workspace_limit -= options.workspace_limit / 9 + 1) {
            const enum partita_status status = partita_plan_create(&list[i / 3], &options, &plan);
            assert_true(status == PARTITA_OK || status == PARTITA_ERR_UNSUPPORTED);
            if (status != PARTITA_OK) continue;
            assert_in_range(partita_plan_workspace(plan, PARTITA_FORWARD), 0,
                            options.workspace_limit);
            partita_plan_destroy(plan);
        }
    }
}

static void saved_transforms(void **state)
{
    const struct boundary_case *c = *state;
    const struct partita_options options = options_of(c, 2);
    const struct partita_problem p = bounded_by(
        &(struct partita_problem){SIZE(20, 21), CHANNELS(8, 6), KERNEL(7, 7), PAD(3, 3), BATCH(2)},
        c->boundary);
    struct random random = random_start("saved");
    struct layer layer;
    layer_open(&layer, &p, &options, &random);
    layer_run_saved(&layer, true);
    layer_check(&layer);
    layer_close(&layer);
}

// Padding that is not read, or zeros: the same plan.
static void free_of_cost(void **state)
{
    const struct partita_problem plain = {SIZE(30, 31), CHANNELS(3, 8), KERNEL(3, 3)};
    const struct partita_problem padded = {SIZE(30, 31), CHANNELS(3, 8), KERNEL(3, 3), PAD(1, 1)};
    const struct partita_problem cropped = {SIZE(30, 31), CHANNELS(3, 8), KERNEL(3, 3), PAD(-2, 0)};
    struct partita_problem others[] = {plain, cropped, padded};
    (void)state;
    others[0].boundary = PARTITA_BOUNDARY_WRAP;
    others[1].boundary = PARTITA_BOUNDARY_EDGE;
    others[2].boundary = PARTITA_BOUNDARY_CONSTANT;
    for (int i = 0; i < 3; i++) {
        struct partita_problem zero = others[i];
        struct partita_plan *plan, *without;
        char text[2][20000];
        zero.boundary = PARTITA_BOUNDARY_ZERO;
        assert_ok(partita_plan_create(&others[i], NULL, &plan));
        assert_ok(partita_plan_create(&zero, NULL, &without));
        partita_plan_explain(plan, text[0], sizeof text[0]);
        partita_plan_explain(without, text[1], sizeof text[1]);
        assert_string_equal(text[0], text[1]);
        for (int d = 1; d <= 4; d *= 2)
            assert_int_equal(partita_plan_workspace(plan, (enum partita_direction)d),
                             partita_plan_workspace(without, (enum partita_direction)d));
        partita_plan_destroy(plan);
        partita_plan_destroy(without);
    }
}

static void explained(void **state)
{
    const struct partita_problem p = {SIZE(30, 31), CHANNELS(3, 8), KERNEL(3, 3), PAD(1, 1),
                                      BOUNDARY(SYMMETRIC)};
    struct partita_plan *plan;
    char text[20000];
    (void)state;
    assert_ok(partita_plan_create(&p, NULL, &plan));
    partita_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, ", 30x31 -> 30x31 samples"));
    assert_non_null(strstr(text, ", boundary symmetric"));
    partita_plan_destroy(plan);
}

enum { MAX_TESTS = 6000 };
static struct boundary_case cases[MAX_TESTS];
static struct CMUnitTest tests[MAX_TESTS];
static size_t n_tests;

static void add_case(CMUnitTestFunction run, const char *test, const struct boundary_case *c,
                     const char *name)
{
    struct boundary_case *kept = &cases[n_tests];
    struct partita_problem p;
    if (c->problem && !problem_of(c, c->problem, &p)) return;
    *kept = *c;
    tests[n_tests++] = named_test(run, kept, "%s/%s/%s/%s/%s", test, c->engine ? c->engine : "auto",
                                  boundary_names[c->boundary], name, partita_type_name(c->type));
}

static void add_engine(const char *engine, enum partita_boundary boundary)
{
    struct boundary_case c = {engine, boundary, PARTITA_F32, NULL};
    const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    for (int t = 0; t < 2 - layer_is_brief(); t++) {
        c.type = types[t], c.problem = NULL;
        add_case(random_layers, "random", &c, "random");
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            c.problem = &problems[i].problem;
            if ((i + (size_t)boundary) % 2 == (size_t)t) // every other one is enough
                add_case(against_oracle, "oracle", &c, problems[i].name);
            if (t == 1 && boundary != PARTITA_BOUNDARY_CONSTANT && i % 3 == 0)
                add_case(transpose_identity, "transpose", &c, problems[i].name);
            if (t == 0 && i % 4 == 1) add_case(not_finite, "not-finite", &c, problems[i].name);
            if (t == 0 && i % 8 == 0) add_case(limits, "limits", &c, problems[i].name);
        }
    }
}

int main(void)
{
    for (int b = 1; b <= N_BOUNDARIES; b++) {
        struct boundary_case c = {"cpu/tiles", (enum partita_boundary)b, PARTITA_F32, NULL};
        for (size_t e = 0; e < N_ENGINES_HERE; e++) add_engine(engines[e], c.boundary);
        add_case(saved_transforms, "saved", &c, "saved");
        c.engine = NULL;
        for (int type = PARTITA_F32; type <= PARTITA_BF16; type++) {
            c.type = (enum partita_type)type;
            add_case(same_as_extended, "extended", &c, "all");
            if (type_is_complex(c.type) && b != PARTITA_BOUNDARY_CONSTANT)
                add_case(complex_signals, "complex", &c, "line");
        }
    }
    tests[n_tests++] = named_test(free_of_cost, NULL, "free-of-cost");
    tests[n_tests++] = named_test(exact_limits, NULL, "exact-limits");
    tests[n_tests++] = named_test(explained, NULL, "explained");
    return run_test_list(tests, n_tests);
}
