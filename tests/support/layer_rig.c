// SPDX-License-Identifier: MIT
#include "core/plan.h"

#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "support/reference_layer.h"

double layer_sample(const struct layer *layer, enum layer_array array, size_t i)
{
    return creal(reference_sample(layer->problem.signal, layer->array[array], i));
}

static const char *device_under_test(void)
{
    const char *device = getenv("PARTITA_TEST_DEVICE");
    return device ? device : "cpu";
}

enum layer_device layer_device_check(void)
{
    char text[256];
    enum partita_status status = partita_device_describe(device_under_test(), text, sizeof text);
    if (status == PARTITA_OK) {
        printf("# device: %s\n", text);
        return LAYER_DEVICE_READY;
    }
    bool promised = getenv("PARTITA_CUDA_MODULE");
    printf(promised ? "Bail out! %s: %s\n" : "1..0 # SKIP %s: %s\n", device_under_test(), text);
    return promised ? LAYER_DEVICE_MISSING : LAYER_DEVICE_SKIP;
}

void layer_assert_engine(const char *engine, const char *asked)
{
    const size_t n = strcspn(asked, ":");
    if (strlen(engine) != n || strncmp(engine, asked, n) != 0)
        fail_msg("%s, where %s was asked for", engine, asked);
}

bool layer_has_engine(const char *engine)
{
    size_t n = strcspn(engine, "/");
    return strcspn(device_under_test(), ":") == n && !strncmp(engine, device_under_test(), n);
}

bool layer_on_stand_in(void)
{
    return getenv("PARTITA_CUDA_MODULE");
}

bool layer_is_brief(void)
{
    return getenv("PARTITA_TEST_BRIEF");
}

int layer_repeats(int n)
{
    if (layer_is_brief()) return 1;
    return layer_on_stand_in() ? (n + 7) / 8 : n;
}

struct partita_options layer_options(const struct partita_options *options)
{
    struct partita_options all = options ? *options : (struct partita_options){0};
    if (all.engine && !all.device && layer_has_engine(all.engine)) all.device = device_under_test();
    return all;
}

// "winograd" of "cuda/winograd".
static bool engine_has_algorithm(const char *engine, const char *algorithm)
{
    return !strcmp(strchr(engine, '/') + 1, algorithm);
}

static void layer_allocate(struct layer *layer)
{
    const struct partita_problem *p = &layer->problem;
    size_t scalar = partita_type_size(p->signal), plane = 1, outputs = 1, taps = 1;
    for (int a = 0; a < reference_rank(p); a++) {
        plane *= p->size[a];
        taps *= or_one(p->kernel[a]);
        outputs *= reference_outputs(p, (size_t)a);
    }
    size_t x = or_one(p->batch) * or_one(p->in_channels) * plane,
           y = or_one(p->batch) * or_one(p->out_channels) * outputs;
    size_t w = or_one(p->out_channels) * (or_one(p->in_channels) / or_one(p->groups)) * taps,
           k = or_one(p->out_channels);
    const size_t n[LAYER_ARRAYS] = {x, w, k, y, y, x, w, k};
    memcpy(layer->n, n, sizeof n);
    for (int i = 0; i < LAYER_ARRAYS; i++) layer->array[i] = guarded_alloc(n[i] * scalar, scalar);
}

static void layer_create(struct layer *layer, const struct partita_options *options)
{
    for (int i = 0; i < LAYER_Y; i++) {
        layer->expected[i] = malloc((layer->n[i] + 1) * sizeof(double));
        for (size_t k = 0; k < layer->n[i]; k++)
            layer->expected[i][k] = layer_sample(layer, (enum layer_array)i, k);
    }
    struct partita_options all = layer_options(options);
    assert_ok(partita_plan_create(&layer->problem, &all, &layer->plan));
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
}

bool layer_is_served(const char *engine, const struct partita_problem *problem)
{
    struct partita_plan *plan = NULL;
    const struct partita_options options =
        layer_options(&(struct partita_options){.engine = engine, .directions = LAYER_ALL});
    const enum partita_status status = partita_plan_create(problem, &options, &plan);
    partita_plan_destroy(plan);
    const bool must = engine_has_algorithm(engine, "direct") && !half_is(problem->signal);
    if (status == PARTITA_ERR_UNSUPPORTED && !must) return false;
    assert_ok(status);
    return true;
}

void layer_open(struct layer *layer, const struct partita_problem *problem,
                const struct partita_options *options, struct random *random)
{
    *layer = (struct layer){.problem = *problem};
    layer_allocate(layer);
    for (int i = 0; i < LAYER_Y; i++)
        random_samples(random, problem->signal, layer->array[i], layer->n[i]);
    layer_create(layer, options);
}

void layer_open_copy(struct layer *layer, const struct layer *other,
                     const struct partita_options *options)
{
    *layer = (struct layer){.problem = other->problem};
    layer_allocate(layer);
    for (int i = 0; i < LAYER_Y; i++)
        memcpy(layer->array[i], other->array[i],
               layer->n[i] * partita_type_size(layer->problem.signal));
    layer_create(layer, options);
}

size_t layer_edge(const struct layer *layer)
{
    return layer->plan->choice.transform;
}

bool layer_transforms_pairs(const struct layer *layer)
{
    return !strncmp(layer->plan->engine->name, "cuda/tiles", strlen("cuda/tiles"));
}

void layer_close(struct layer *layer)
{
    partita_filter_destroy(layer->filter);
    partita_plan_destroy(layer->plan);
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        guarded_free(layer->array[i]);
        free(layer->expected[i]);
    }
}

void layer_run(struct layer *layer)
{
    void **a = layer->array;
    assert_ok(partita_forward(layer->plan, layer->filter, a[LAYER_Y], a[LAYER_X], NULL));
    assert_ok(partita_backward_data(layer->plan, layer->filter, a[LAYER_GX], a[LAYER_GY], NULL));
    assert_ok(partita_backward_weight(layer->plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], NULL));
    assert_ok(partita_backward_bias(layer->plan, a[LAYER_GB], a[LAYER_GY], NULL));
}

enum partita_status layer_call(const struct layer *layer, enum layer_array result,
                               void *const a[LAYER_ARRAYS], const struct partita_call *call)
{
    const struct partita_filter *filter = call && call->taps ? NULL : layer->filter;
    void *to = a[result];
    if (result == LAYER_Y) return partita_forward(layer->plan, filter, to, a[LAYER_X], call);
    if (result == LAYER_GX)
        return partita_backward_data(layer->plan, filter, to, a[LAYER_GY], call);
    if (result == LAYER_GB) return partita_backward_bias(layer->plan, to, a[LAYER_GY], call);
    const void *x = call && call->saved ? NULL : a[LAYER_X];
    return partita_backward_weight(layer->plan, to, x, a[LAYER_GY], call);
}

void layer_add(const struct layer *layer, enum layer_array result, void *to, const void *before)
{
    const enum partita_type type = layer->problem.signal;
    for (size_t i = 0; i < layer->n[result]; i++) {
        const double x = creal(reference_sample(type, before, i)),
                     y = layer_sample(layer, result, i);
        sample_put(type, to, i, type_is_f64(type) ? x + y : (double)((float)x + (float)y));
    }
}

void layer_run_saved(struct layer *layer, bool guarded)
{
    struct partita_saved *saved;
    void **a = layer->array;
    assert_ok(partita_saved_create(layer->plan, &saved));
    assert_true(partita_saved_bytes(layer->plan) > 0);
    void *workspace = guarded ? guarded_alloc(partita_saved_workspace(saved), 0) : NULL;
    assert_int_equal(
        partita_backward_weight(layer->plan, a[LAYER_GW], NULL, a[LAYER_GY],
                                &(struct partita_call){.saved = saved, .workspace = workspace}),
        PARTITA_ERR_STATE);
    for (int again = 0; again < 2; again++) {
        void *scratch =
            guarded ? guarded_alloc(partita_plan_workspace(layer->plan, PARTITA_FORWARD), 0) : NULL;
        assert_ok(partita_forward(layer->plan, layer->filter, a[LAYER_Y], a[LAYER_X],
                                  &(struct partita_call){.saved = saved, .workspace = scratch}));
        if (guarded) guarded_free(scratch);
        assert_ok(partita_backward_weight(
            layer->plan, a[LAYER_GW], NULL, a[LAYER_GY],
            &(struct partita_call){.saved = saved, .workspace = workspace}));
    }
    assert_ok(partita_backward_data(layer->plan, layer->filter, a[LAYER_GX], a[LAYER_GY], NULL));
    assert_ok(partita_backward_bias(layer->plan, a[LAYER_GB], a[LAYER_GY], NULL));
    if (guarded) guarded_free(workspace);
    partita_saved_destroy(saved);
}

// `typical` is the root mean square of a product of independent numbers uniform in [-1, 1). Errors
// are compared with sums of `products` of them even where padding leaves fewer.
static void layer_check_array(struct layer *layer, enum layer_array array,
                              const struct partita_plan *plan, double products, double typical)
{
    double error = 0, norm = 0;
    size_t n = layer->n[array];
    for (size_t i = 0; i < n; i++) {
        double expected = layer->expected[array][i], e = layer_sample(layer, array, i) - expected;
        error += e * e;
        norm += expected * expected;
    }
    norm = fmax(norm, typical * typical * products * (double)n);
    double gate = gate_direct(layer->problem.signal, (size_t)products);
    if (layer->transform)
        gate = fmax(gate, gate_transform(layer->problem.signal, layer->transform));
    gate = gate_for_outputs(gate, n);
    if (plan && engine_has_algorithm(plan->engine->name, "winograd"))
        gate *= winograd_growth(plan->choice.transform, layer->problem.rank);
    if (half_is(layer->problem.signal)) gate += half_roundoff(layer->problem.signal);
    static const char *const names[LAYER_ARRAYS] = {"x", "w", "bias", "gy", "y", "gx", "gw", "gb"};
    if (!(error <= gate * gate * norm))
        fail_msg("%s of %zu samples: error %.3g above %.3g", names[array], n, sqrt(error / norm),
                 gate);
}

void layer_check(struct layer *layer)
{
    const struct partita_problem *p = &layer->problem;
    double **e = layer->expected;
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        if (!e[i]) e[i] = malloc((layer->n[i] + 1) * sizeof(double));
    reference_layer_forward(p, e[LAYER_Y], e[LAYER_X], e[LAYER_W], e[LAYER_BIAS]);
    reference_backward_data(p, e[LAYER_GX], e[LAYER_GY], e[LAYER_W]);
    reference_backward_weight(p, e[LAYER_GW], e[LAYER_X], e[LAYER_GY]);
    reference_backward_bias(p, e[LAYER_GB], e[LAYER_GY]);
    double k = (double)or_one(p->out_channels), taps = (double)layer->n[LAYER_W] / k;
    double in = (double)or_one(p->in_channels), summed = (double)layer->n[LAYER_Y] / k;
    layer_check_array(layer, LAYER_Y, layer->plan, taps + 1, 1.0 / 3);
    layer_check_array(layer, LAYER_GX, layer->plan->backward_data,
                      (double)layer->n[LAYER_W] / in + 1, 1.0 / 3);
    layer_check_array(layer, LAYER_GW, layer->plan->backward_weight, summed + 1, 1.0 / 3);
    layer_check_array(layer, LAYER_GB, NULL, summed + 1, sqrt(1.0 / 3));
}

void layer_same_bits(const struct layer *a, const struct layer *b)
{
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        assert_memory_equal(a->array[i], b->array[i],
                            a->n[i] * partita_type_size(a->problem.signal));
}

static size_t draw_channels(struct random *random)
{
    return random_below(random, 3) ? 1 + random_below(random, 4) : 1 + random_below(random, 21);
}

static struct partita_problem draw_layer(struct random *random)
{
    struct partita_problem p = {.rank = 1 + (int)random_below(random, 3),
                                .op = (enum partita_op)random_below(random, 2),
                                .batch = 1 + random_below(random, 3),
                                .groups = random_below(random, 2) ? 1 : 1 + random_below(random, 4),
                                .channels_last = layer_has_engine("cpu") && random_below(random, 2),
                                .activation = (enum partita_activation)random_below(random, 2)};
    static const size_t extent[] = {90, 24, 9};
    p.in_channels = p.groups * draw_channels(random);
    p.out_channels = p.groups * draw_channels(random);
    for (int a = 0; a < p.rank; a++) {
        p.size[a] = 1 + random_below(random, extent[p.rank - 1]);
        p.kernel[a] = 1 + random_below(random, random_below(random, 4) ? 5 : extent[p.rank - 1]);
        p.stride[a] = random_below(random, 2) ? 1 : 1 + random_below(random, 5);
        p.dilation[a] = random_below(random, 2) ? 1 : 1 + random_below(random, 4);
        p.pad_begin[a] = (ptrdiff_t)random_below(random, 10) - 3;
        p.pad_end[a] = (ptrdiff_t)random_below(random, 10) - 3;
    }
    return p;
}

double layer_products(const struct partita_problem *p)
{
    double products = (double)(or_one(p->batch) * or_one(p->in_channels) * or_one(p->out_channels) /
                               or_one(p->groups));
    for (int a = 0; a < p->rank; a++)
        products *= (double)(reference_outputs(p, (size_t)a) * or_one(p->kernel[a]));
    return products;
}

struct partita_problem layer_random(struct random *random)
{
    for (;;) {
        struct partita_problem p = draw_layer(random);
        double products = layer_products(&p);
        if (products > 0 && products < 4e4) return p;
    }
}

struct partita_problem layer_suit_engine(const char *engine, const struct partita_problem *problem)
{
    struct partita_problem p = *problem;
    if (!engine_has_algorithm(engine, "depthwise") && !engine_has_algorithm(engine, "tiles:fused"))
        return p;
    size_t in = or_one(p.in_channels), out = or_one(p.out_channels);
    p.groups = p.in_channels = in;
    p.out_channels = in * (out > in ? out / in : 1);
    return p;
}

struct partita_problem problem_of_type(const struct partita_problem *problem,
                                       enum partita_type type)
{
    struct partita_problem p = *problem;
    p.signal = p.taps = type;
    return p;
}

const char *const layer_engines[N_LAYER_ENGINES] = {
    "cpu/direct",       "cpu/gemm",         "cpu/winograd",       "cpu/tiles",
    "cpu/depthwise",    "cuda/direct",      "cuda/direct:plain",  "cuda/direct:halo",
    "cuda/winograd",    "cuda/tiles",       "cuda/tiles:complex", "cuda/tiles:gauss",
    "cuda/tiles:fused", "cuda/gemm:panels", "cuda/gemm",
};

void layer_check_inputs(const struct layer *layer)
{
    for (int i = 0; i < LAYER_Y; i++)
        for (size_t k = 0; k < layer->n[i]; k++)
            assert_true(layer_sample(layer, (enum layer_array)i, k) == layer->expected[i][k]);
}

void layer_check_copy(const struct layer *first, const struct partita_options *options)
{
    struct layer other;
    layer_open_copy(&other, first, options);
    layer_run(&other);
    layer_same_bits(first, &other);
    layer_close(&other);
}

void layer_check_workspace(const struct layer *layer, struct layer *other)
{
    const struct partita_plan *plan = other->plan;
    void **a = other->array, *workspace[3];
    for (int d = 0; d < 3; d++)
        workspace[d] =
            guarded_alloc(partita_plan_workspace(plan, (enum partita_direction)(1 << d)), 0);
    for (int again = 0; again < 2; again++) {
        assert_ok(partita_forward(plan, other->filter, a[LAYER_Y], a[LAYER_X],
                                  &(struct partita_call){.workspace = workspace[0]}));
        assert_ok(partita_backward_data(plan, other->filter, a[LAYER_GX], a[LAYER_GY],
                                        &(struct partita_call){.workspace = workspace[1]}));
        assert_ok(partita_backward_weight(plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY],
                                          &(struct partita_call){.workspace = workspace[2]}));
        assert_ok(partita_backward_bias(plan, a[LAYER_GB], a[LAYER_GY], NULL));
        layer_same_bits(layer, other);
    }
    for (int d = 0; d < 3; d++) guarded_free(workspace[d]);
}

int layer_check_limits(const struct partita_problem *problem, const struct partita_options *options,
                       const struct layer_limits *limits, struct random *random)
{
    int n_planned = 0;
    for (size_t limit = limits->first; limit < limits->end; limit *= limits->factor) {
        struct partita_options limited = layer_options(options);
        limited.workspace_limit = limit;
        struct partita_plan *plan;
        const enum partita_status status = partita_plan_create(problem, &limited, &plan);
        if (status != PARTITA_OK) {
            assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
            assert_int_equal(n_planned, 0);
            continue;
        }
        for (int d = 1; d <= 4; d *= 2)
            assert_true(partita_plan_workspace(plan, (enum partita_direction)d) <= limit);
        partita_plan_destroy(plan);
        struct layer layer;
        layer_open(&layer, problem, &limited, random);
        layer.transform = limits->transform;
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
        n_planned++;
    }
    return n_planned;
}

double layer_dot(const struct layer *layer, enum layer_array a, enum layer_array b)
{
    double sum = 0;
    for (size_t i = 0; i < layer->n[a]; i++)
        sum += layer_sample(layer, a, i) * layer_sample(layer, b, i);
    return sum;
}

void layer_check_transpose(struct layer *layer, double gate)
{
    static const enum layer_array pairs[3][2] = {
        {LAYER_GY, LAYER_Y}, {LAYER_GX, LAYER_X}, {LAYER_GW, LAYER_W}};
    partita_filter_destroy(layer->filter);
    assert_ok(partita_filter_create(layer->plan, layer->array[LAYER_W], &layer->filter));
    layer_run(layer);
    double product[3], norm = 0;
    for (int i = 0; i < 3; i++) {
        const enum layer_array a = pairs[i][0], b = pairs[i][1];
        product[i] = layer_dot(layer, a, b);
        norm += sqrt(layer_dot(layer, a, a) * layer_dot(layer, b, b));
    }
    for (int i = 1; i < 3; i++)
        if (!(fabs(product[0] - product[i]) <= gate * norm))
            fail_msg("%.17g, %.17g, %.17g differ by more than %.3g", product[0], product[1],
                     product[2], gate * norm);
}
