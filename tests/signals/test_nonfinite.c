// SPDX-License-Identifier: MIT
// Samples that are infinite or NaN, in every direction of every engine for bounded problems:
// results that depend on one are NaN, all others have the bits that they have with zeros in place
// of these samples. Dependence is found by the definition, output by output.
#include "core/plan.h"

#include "support/layer_rig.h"

#include <math.h>

struct nonfinite_case {
    const char *engine;
    struct partita_problem problem;
    bool imposed; // parts of cpu/blocks
};

// A copy of an array with some samples that are not finite, and one with zeros in their places.
struct inputs {
    char *bad, *zeroed;
    bool *is_bad;
};

static struct inputs spoil(const struct layer *layer, enum layer_array array, size_t count,
                           struct random *random)
{
    const enum partita_type type = layer->problem.signal;
    const size_t bytes = partita_type_size(type), n = layer->n[array];
    struct inputs ret = {malloc(n * bytes), malloc(n * bytes), calloc(n, sizeof *ret.is_bad)};
    memcpy(ret.bad, layer->array[array], n * bytes);
    memcpy(ret.zeroed, layer->array[array], n * bytes);
    for (size_t i = 0; i < count; i++) {
        static const double values[] = {NAN, INFINITY, -INFINITY};
        const size_t at = random_below(random, n);
        sample_put(type, ret.bad, at, values[random_below(random, 3)]);
        sample_put(type, ret.zeroed, at, 0);
        ret.is_bad[at] = true;
    }
    return ret;
}

static void inputs_free(struct inputs *inputs)
{
    free(inputs->bad);
    free(inputs->zeroed);
    free(inputs->is_bad);
}

// The results that depend on a sample of x or gy that is not finite, by the definition.
struct products {
    const struct shape *shape;
    const bool *bad_x, *bad_gy;
    bool *y, *gx, *gw;
};

static void visit_product(const struct products *p, size_t y, size_t x, size_t w)
{
    if (p->bad_x[x]) p->y[y] = p->gw[w] = true;
    if (p->bad_gy[y]) p->gx[x] = p->gw[w] = true;
}

// Position of tap t of output o along an axis; false: in padding.
static bool meets(const struct axis *axis, size_t o, size_t t, size_t *position)
{
    const ptrdiff_t at = axis->begin + (ptrdiff_t)(axis->stride * o + axis->dilation * t);
    *position = (size_t)at;
    return at >= 0 && at < (ptrdiff_t)axis->size;
}

// y, x: the first samples of the planes; w: the path.
static void visit_plane(const struct products *p, size_t y, size_t x, size_t w)
{
    const struct axis *a = p->shape->axis;
    const size_t step[2] = {shape_strides(p->shape, true).position,
                            shape_strides(p->shape, false).position};
    const size_t taps = shape_taps(p->shape), outputs = shape_outputs(p->shape);
    for (size_t o = 0; o < outputs; o++)
        for (size_t t = 0; t < taps; t++) {
            const size_t last = a[1].out * a[2].out, kernel = a[1].kernel * a[2].kernel;
            const size_t tap = w * taps + (p->shape->flip ? taps - 1 - t : t);
            size_t at[3];
            if (meets(&a[0], o / last, t / kernel, &at[0]) &&
                meets(&a[1], o / a[2].out % a[1].out, t / a[2].kernel % a[1].kernel, &at[1]) &&
                meets(&a[2], o % a[2].out, t % a[2].kernel, &at[2]))
                visit_product(p, y + o * step[0],
                              x + ((at[0] * a[1].size + at[1]) * a[2].size + at[2]) * step[1], tap);
        }
}

static void visit_products(const struct products *p)
{
    const struct shape *shape = p->shape;
    const struct sample_strides to = shape_strides(shape, true), from = shape_strides(shape, false);
    for (size_t n = 0; n < shape->batch; n++)
        for (size_t k = 0; k < shape->out_channels; k++)
            for (size_t c = 0; c < shape->group_in; c++) {
                const size_t in = k / shape->group_out * shape->group_in + c;
                visit_plane(p, n * to.item + k * to.channel, n * from.item + in * from.channel,
                            k * shape->group_in + c);
            }
}

static bool sample_is_nan(enum partita_type type, const void *samples, size_t i)
{
    const double complex value = reference_sample(type, samples, i);
    return isnan(creal(value)) || isnan(cimag(value));
}

static bool sample_is_finite(enum partita_type type, const void *samples, size_t i)
{
    const double complex value = reference_sample(type, samples, i);
    return isfinite(creal(value)) && isfinite(cimag(value));
}

// Where nothing spreads, a dependent result is the sum itself, which may be infinite.
static void check_results(const struct partita_plan *plan, enum partita_type type, const void *got,
                          const void *clean, const bool *depends, size_t n, const char *what)
{
    const size_t bytes = plan->shape.sample_bytes;
    const bool sums = plan->choice.spread == 0;
    for (size_t i = 0; i < n; i++) {
        const bool same =
            memcmp((const char *)got + i * bytes, (const char *)clean + i * bytes, bytes) == 0;
        const bool spoilt = sums ? !sample_is_finite(type, got, i) : sample_is_nan(type, got, i);
        if (depends[i] ? !spoilt : !same)
            fail_msg("%s[%zu]: %g, %s", what, i, creal(reference_sample(type, got, i)),
                     depends[i] ? "depends on a sample that is not finite" : "does not depend");
    }
}

static void run_directions(const struct layer *layer, const struct inputs *x,
                           const struct inputs *gy, bool bad, void *const to[3])
{
    const void *from[2] = {bad ? x->bad : x->zeroed, bad ? gy->bad : gy->zeroed};
    assert_ok(partita_forward(layer->plan, layer->filter, to[0], from[0], NULL));
    assert_ok(partita_backward_data(layer->plan, layer->filter, to[1], from[1], NULL));
    assert_ok(partita_backward_weight(layer->plan, to[2], from[0], from[1], NULL));
}

// `count` samples of x and of gy are not finite.
static void check_spoilt(struct layer *layer, size_t count, struct random *random)
{
    static const enum layer_array results[] = {LAYER_Y, LAYER_GX, LAYER_GW};
    struct inputs x = spoil(layer, LAYER_X, count, random);
    struct inputs gy = spoil(layer, LAYER_GY, count > 1 ? 1 : count, random);
    void *clean[3], *got[3];
    bool *depends[3];
    const enum partita_type type = layer->problem.signal;
    for (int i = 0; i < 3; i++) {
        const size_t n = layer->n[results[i]], bytes = partita_type_size(type);
        clean[i] = malloc(n * bytes);
        got[i] = malloc(n * bytes);
        depends[i] = calloc(n, sizeof **depends);
    }
    const struct products products = {.shape = &layer->plan->shape,
                                      .bad_x = x.is_bad,
                                      .bad_gy = gy.is_bad,
                                      .y = depends[0],
                                      .gx = depends[1],
                                      .gw = depends[2]};
    visit_products(&products);
    run_directions(layer, &x, &gy, false, clean);
    run_directions(layer, &x, &gy, true, got);
    check_results(layer->plan, type, got[0], clean[0], depends[0], layer->n[LAYER_Y], "y");
    check_results(layer->plan->backward_data, type, got[1], clean[1], depends[1],
                  layer->n[LAYER_GX], "gx");
    check_results(layer->plan->backward_weight, type, got[2], clean[2], depends[2],
                  layer->n[LAYER_GW], "gw");
    for (int i = 0; i < 3; i++) {
        free(clean[i]);
        free(got[i]);
        free(depends[i]);
    }
    inputs_free(&x);
    inputs_free(&gy);
}

static void stays_where_it_is(void **state)
{
    const struct nonfinite_case *c = *state;
    struct random random = random_start(c->engine);
    struct partita_options options = {.engine = c->engine, .directions = LAYER_ALL};
    if (c->imposed) options.parts = (struct partita_parts){.taps = 64, .signal = 64};
    struct partita_problem problem = layer_suit_engine(c->engine, &c->problem);
    problem.activation = PARTITA_LINEAR;
    struct layer layer;
    layer_open(&layer, &problem, &options, &random);
    check_spoilt(&layer, 0, &random);
    for (int i = 0; i < 8; i++) check_spoilt(&layer, 1, &random);
    check_spoilt(&layer, 5, &random);
    layer_close(&layer);
}

static const struct nonfinite_case cases[] = {
    {"cpu/direct", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3), PAD(1, 1)}, false},
    {"cpu/gemm", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3), STRIDE(2, 2)}, false},
    {"cpu/winograd", {SIZE(23, 17), BATCH(2), CHANNELS(3, 5), KERNEL(3, 3), PAD(1, 1)}, false},
    {"cpu/winograd", {SIZE(30, 30), CHANNELS(4, 6), GROUPS(2), KERNEL(5, 3), CORRELATE}, false},
    // Columns in several batches, strides, a map in each lane, channels last of both kinds.
    {"cpu/winograd", {SIZE(9, 900), CHANNELS(2, 3), KERNEL(3, 3), PAD(1, 1)}, false},
    {"cpu/winograd", {SIZE(23, 18), CHANNELS(3, 5), KERNEL(5, 5), STRIDE(2, 2)}, false},
    {"cpu/winograd", {SIZE(7, 7), BATCH(20), CHANNELS(3, 20), KERNEL(3, 3), PAD(1, 1)}, false},
    {"cpu/winograd",
     {SIZE(7, 7), BATCH(20), CHANNELS(3, 20), KERNEL(3, 3), PAD(1, 1), .channels_last = true},
     false},
    {"cpu/winograd",
     {SIZE(23, 17), BATCH(2), CHANNELS(19, 5), KERNEL(3, 3), .channels_last = true},
     false},
    {"cpu/tiles", {SIZE(40, 37), BATCH(3), CHANNELS(3, 2), KERNEL(7, 5), PAD(3, 2)}, false},
    {"cpu/tiles",
     {SIZE(20, 37), BATCH(3), CHANNELS(19, 2), KERNEL(7, 5), .channels_last = true},
     false},
    {"cpu/tiles", {SIZE(18, 18), CHANNELS(6, 64), KERNEL(9, 9), PAD(4, 4)}, false},
    {"cpu/tiles", {SIZE(40, 37), CHANNELS(2, 4), GROUPS(2), KERNEL(9, 9), DILATION(2, 1)}, false},
    {"cpu/tiles", {SIZE(9, 12, 11), BATCH(2), CHANNELS(2, 3), KERNEL(3, 4, 5), CORRELATE}, false},
    {"cpu/depthwise", {SIZE(60, 60), BATCH(2), CHANNELS(4, 4), GROUPS(4), KERNEL(3, 3)}, false},
    {"cpu/depthwise",
     {SIZE(56, 56), CHANNELS(4, 4), GROUPS(4), KERNEL(21, 21), PAD(10, 10), CORRELATE},
     false},
    {"cpu/overlap-save", {LENGTH(3000), BATCH(2), CHANNELS(2, 3), KERNEL(150), PAD(149)}, false},
    {"cpu/overlap-save", {LENGTH(3000), KERNEL(300), DILATION(2), CORRELATE}, false},
    {"cpu/overlap-save", {LENGTH(9000), KERNEL(300), PAD_BEGIN(290), TYPES(F64, F64)}, false},
    {"cpu/overlap-save", {LENGTH(900), KERNEL(200), PAD_BEGIN(400), PAD_END(-100)}, false},
    {"cpu/blocks", {LENGTH(3000), BATCH(2), CHANNELS(2, 3), KERNEL(1500), PAD(1499)}, false},
    {"cpu/blocks", {LENGTH(3000), KERNEL(2990), CORRELATE, PAD_BEGIN(20)}, false},
    {"cpu/blocks", {LENGTH(800), KERNEL(300), CORRELATE}, true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

// Forward alone: a stride, complex samples, an engine without gradients, an activation, several
// threads.
static const struct nonfinite_case forward_cases[] = {
    {"cpu/direct", {LENGTH(500), KERNEL(5), DILATION(3)}, false},
    {"cpu/direct", {LENGTH(500), KERNEL(6), STRIDE(4), DILATION(2), TYPES(CF32, F32)}, false},
    {"cpu/direct", {LENGTH(500), CHANNELS(2, 2), KERNEL(7), STRIDE(3), TYPES(CF64, CF64)}, false},
    {"cpu/blocks", {LENGTH(800), KERNEL(300), CORRELATE}, true},
    {"cpu/overlap-add", {LENGTH(4000), KERNEL(300), PAD(299)}, false},
    {"cpu/overlap-add",
     {LENGTH(4000), CHANNELS(2, 2), KERNEL(300), STRIDE(3), TYPES(CF64, CF64)},
     false},
    {"cpu/overlap-save", {LENGTH(4000), KERNEL(300), STRIDE(7), TYPES(CF32, F32)}, false},
    {"cpu/blocks", {LENGTH(2000), KERNEL(800), STRIDE(5), TYPES(F64, F64)}, false},
    {"cpu/tiles", {SIZE(40, 37), CHANNELS(3, 2), KERNEL(7, 5), STRIDE(2, 1), RELU}, false},
    {"cpu/overlap-save", {LENGTH(4000), KERNEL(300), RELU}, false},
};
enum { N_FORWARD_CASES = sizeof forward_cases / sizeof *forward_cases };

static void forward_stays_where_it_is(void **state)
{
    const struct nonfinite_case *c = *state;
    struct random random = random_start(c->engine);
    struct partita_options options = {.engine = c->engine, .threads = 3};
    if (c->imposed)
        options.parts = (struct partita_parts){.taps = 64, .signal = 64, .in_time = true};
    const enum partita_type type = c->problem.signal;
    const size_t bytes = partita_type_size(type);
    struct partita_plan *plan;
    struct partita_filter *filter;
    assert_ok(partita_plan_create(&c->problem, &options, &plan));
    const struct shape *shape = &plan->shape;
    struct layer layer = {.problem = c->problem, .plan = plan};
    const size_t n_y = shape->batch * shape->out_channels * shape_outputs(shape);
    layer.n[LAYER_X] = shape->batch * shape->in_channels * shape_inputs(shape);
    const size_t n_w = shape_path_count(shape) * shape_taps(shape);
    layer.array[LAYER_X] = malloc(layer.n[LAYER_X] * bytes);
    void *w = malloc(n_w * bytes), *got = malloc(n_y * bytes), *clean = malloc(n_y * bytes);
    random_samples(&random, c->problem.signal, layer.array[LAYER_X], layer.n[LAYER_X]);
    random_samples(&random, c->problem.taps, w, n_w);
    assert_ok(partita_filter_create(plan, w, &filter));
    for (int i = 0; i < 20; i++) {
        struct inputs x = spoil(&layer, LAYER_X, (size_t)i % 4, &random);
        bool *none = calloc(n_y, 1), *y = calloc(n_y, 1), *gx = calloc(layer.n[LAYER_X], 1);
        bool *gw = calloc(n_w, 1);
        const struct products products = {
            .shape = shape, .bad_x = x.is_bad, .bad_gy = none, .y = y, .gx = gx, .gw = gw};
        visit_products(&products);
        assert_ok(partita_forward(plan, filter, clean, x.zeroed, NULL));
        assert_ok(partita_forward(plan, filter, got, x.bad, NULL));
        check_results(plan, type, got, clean, y, n_y, "y");
        inputs_free(&x);
        free(none);
        free(y);
        free(gx);
        free(gw);
    }
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    free(layer.array[LAYER_X]);
    free(w);
    free(got);
    free(clean);
}

int main(void)
{
    struct CMUnitTest tests[N_CASES + N_FORWARD_CASES];
    int n = 0;
    for (int i = 0; i < N_CASES; i++, n++)
        tests[n] = named_test(stays_where_it_is, &cases[i], "%s-%d", cases[i].engine, i);
    for (int i = 0; i < N_FORWARD_CASES; i++, n++)
        tests[n] = named_test(forward_stays_where_it_is, &forward_cases[i], "forward-%s-%d",
                              forward_cases[i].engine, i);
    return run_test_list(tests, (size_t)n);
}
