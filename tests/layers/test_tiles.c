// SPDX-License-Identifier: MIT
// cpu/tiles, white box: transforms of every size against the definition in double, for every
// instruction set and both precisions; layers with every variant that the planner may choose (size
// of tiles, batches of tiles, chunks of channels, products), which test_layers.c has only where
// they are the cheapest.
#include "cpu/tiles/tiles.h" // before the complex numbers of test.h
#include "planner/planner.h"

#include <math.h>
#include <stdio.h>

#include "support/kernel_check.h"
#include "support/layer_rig.h"

// Two tiles in lanes, their spectra, and the elements of a transform.
struct lab {
    const struct kernels *kernels;
    struct tile_tables transform;
    size_t lanes, samples;
    char *memory;
    void *z, *tile[2], *spectrum[2]; // tile[i] [lane][sample]; spectrum[i] [bin][re, im][lane]
};

static char *take(struct arena *arena, size_t bytes)
{
    return arena_take(arena, bytes);
}

static void lab_open(struct lab *b, const struct kernels *kernels, const size_t n[3])
{
    struct arena arena = {0};
    *b = (struct lab){.kernels = kernels, .samples = n[0] * n[1] * n[2]};
    b->lanes = TILE_LINE_BYTES / scalar_size(kernels->f64);
    for (int pass = 0; pass < 2; pass++) {
        tile_tables_make(n, kernels->f64, &arena, &b->transform);
        b->z = take(&arena, tiles_transform_bytes(n));
        for (int i = 0; i < 2; i++) {
            b->tile[i] = take(&arena, b->samples * TILE_LINE_BYTES);
            b->spectrum[i] = take(&arena, b->transform.bins * 2 * TILE_LINE_BYTES);
        }
        if (pass == 1) return;
        arena.base = b->memory = aligned_alloc(64, arena.used);
        memset(b->memory, 0xff, arena.used);
        arena.used = 0;
    }
}

static void *line_of(const struct lab *b, size_t d, size_t h, int i)
{
    return (char *)b->z + ((d * b->transform.step[0] + h * b->transform.step[1]) * 2 + (size_t)i) *
                              TILE_LINE_BYTES;
}

static struct tile_spectrum spectrum_of(const struct lab *b, int i)
{
    return (struct tile_spectrum){b->spectrum[i], 2 * b->lanes, b->lanes};
}

static void *row_of(const struct lab *b, int i, size_t lane, size_t d, size_t h)
{
    const size_t *n = b->transform.n;
    return scalar_at(b->kernels->f64, b->tile[i], lane * b->samples + (d * n[1] + h) * n[2]);
}

// Computes the spectra of both tiles.
static void forward(struct lab *b)
{
    const size_t *n = b->transform.n;
    for (size_t d = 0; d < n[0]; d++)
        for (size_t h = 0; h < n[1]; h++) {
            for (int i = 0; i < 2; i++) {
                const void *rows[TILE_MAX_LANES];
                for (size_t l = 0; l < b->lanes; l++) rows[l] = row_of(b, i, l, d, h);
                b->kernels->lanes_read(line_of(b, d, h, i), 2, rows, 1, n[2]);
            }
            tiles_transform_row(&b->transform, b->kernels->tile_forward, line_of(b, d, h, 0));
        }
    tiles_transform_columns(&b->transform, b->kernels->tile_forward, b->z, false);
    const struct tile_spectrum s[2] = {spectrum_of(b, 0), spectrum_of(b, 1)};
    b->kernels->tile_split(&s[0], &s[1], b->z, b->transform.pair, b->transform.bins);
}

// Computes both tiles from their spectra.
static void inverse(struct lab *b)
{
    const size_t *n = b->transform.n;
    const struct tile_spectrum s[2] = {spectrum_of(b, 0), spectrum_of(b, 1)};
    b->kernels->tile_join(b->z, b->transform.pair, b->transform.bins, &s[0], &s[1],
                          0.5 / (double)b->samples);
    tiles_transform_columns(&b->transform, b->kernels->tile_inverse, b->z, true);
    for (size_t d = 0; d < n[0]; d++)
        for (size_t h = 0; h < n[1]; h++) {
            tiles_transform_row(&b->transform, b->kernels->tile_inverse, line_of(b, d, h, 0));
            for (int i = 0; i < 2; i++) {
                struct tile_rows rows = {{0}, {0}, {0}};
                for (size_t l = 0; l < b->lanes; l++) {
                    rows.row[l] = row_of(b, i, l, d, h);
                    rows.end[l] = n[2];
                }
                b->kernels->tile_scatter(&rows, line_of(b, d, h, i), 2, n[2],
                                         &(struct conv_finish){.bias = NULL});
            }
        }
}

static double bin_part(const struct lab *b, int i, size_t bin, int im, size_t lane)
{
    return scalar_get(b->kernels->f64, b->spectrum[i], (2 * bin + (size_t)im) * b->lanes + lane);
}

// Finds the frequencies of all bins along an axis, from the spectrum of an impulse at its second
// sample.
static void frequencies(struct lab *b, int axis, size_t *ret)
{
    const size_t *n = b->transform.n, step[3] = {n[1] * n[2], n[2], 1};
    const bool f64 = b->kernels->f64;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < b->samples * b->lanes; k++)
            scalar_put(f64, b->tile[i], k, k % b->samples == (n[axis] > 1 ? step[axis] : 0));
    forward(b);
    for (size_t bin = 0; bin < b->transform.bins; bin++) {
        const double cycles =
            -atan2(bin_part(b, 0, bin, 1, 0), bin_part(b, 0, bin, 0, 0)) / (2 * M_PI);
        ret[bin] = (size_t)(lround(cycles * (double)n[axis]) + (long)n[axis]) % n[axis];
    }
}

static void check_bin(const struct lab *b, size_t bin, const size_t f[3], double gate)
{
    const size_t *n = b->transform.n;
    for (int i = 0; i < 2; i++)
        for (size_t lane = (bin + (size_t)i) % 3; lane < b->lanes; lane += 5) {
            double re = 0, im = 0;
            for (size_t k = 0; k < b->samples; k++) {
                const double x = scalar_get(b->kernels->f64, b->tile[i], lane * b->samples + k);
                const double cycles = (double)(f[0] * (k / (n[1] * n[2])) % n[0]) / (double)n[0] +
                                      (double)(f[1] * (k / n[2] % n[1]) % n[1]) / (double)n[1] +
                                      (double)(f[2] * (k % n[2]) % n[2]) / (double)n[2];
                re += 2 * x * cos(2 * M_PI * cycles);
                im -= 2 * x * sin(2 * M_PI * cycles);
            }
            const double error =
                hypot(bin_part(b, i, bin, 0, lane) - re, bin_part(b, i, bin, 1, lane) - im);
            if (!(error <= gate))
                fail_msg("bin %zu of tile %d, lane %zu: error %g", bin, i, lane, error);
        }
}

// Compares the spectra of random tiles with the definition, and transforms back to the samples. The
// rms of a bin is 2 sqrt(samples / 3) and the rms of its error at most the gate times that; no
// single error should be ten times as large.
static void against_definition(const struct kernels *kernels, const size_t n[3],
                               struct random *random)
{
    struct lab b;
    lab_open(&b, kernels, n);
    size_t *f[3];
    for (int axis = 0; axis < 3; axis++) {
        f[axis] = malloc(b.transform.bins * sizeof(size_t));
        frequencies(&b, axis, f[axis]);
    }
    const enum partita_type type = kernels->f64 ? PARTITA_F64 : PARTITA_F32;
    const double gate = gate_transform(type, b.samples);
    double *kept = malloc(2 * b.samples * b.lanes * sizeof *kept);
    for (int i = 0; i < 2; i++) {
        fill_random(random, kernels->f64, b.tile[i], b.samples * b.lanes);
        for (size_t k = 0; k < b.samples * b.lanes; k++)
            kept[(size_t)i * b.samples * b.lanes + k] = scalar_get(kernels->f64, b.tile[i], k);
    }
    forward(&b);
    for (size_t bin = 0; bin < b.transform.bins; bin += 1 + b.samples / 512)
        check_bin(&b, bin, (const size_t[]){f[0][bin], f[1][bin], f[2][bin]},
                  10 * gate * 2 * sqrt((double)b.samples / 3));
    inverse(&b);
    for (size_t k = 0; k < 2 * b.samples * b.lanes; k++) {
        const size_t i = k / (b.samples * b.lanes), at = k % (b.samples * b.lanes);
        const double error = fabs(scalar_get(kernels->f64, b.tile[i], at) - kept[k]);
        if (!(error <= 10 * gate)) fail_msg("sample %zu of tile %zu: error %g", at, i, error);
    }
    for (int axis = 0; axis < 3; axis++) free(f[axis]);
    free(kept);
    free(b.memory);
}

static void sizes_of_one_axis(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    for (size_t n = 1; n <= 128; n = tile_tables_next_size(n + 1, true)) {
        against_definition(s->kernels, (const size_t[]){1, 1, n}, &random);
        if (n <= 64) against_definition(s->kernels, (const size_t[]){1, n, 1}, &random);
    }
    against_definition(s->kernels, (const size_t[]){1, 1, 1296}, &random);
}

static void sizes_of_more_axes(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    static const size_t sizes[][3] = {{1, 8, 8},  {1, 12, 16}, {1, 27, 9}, {1, 28, 10}, {1, 6, 2},
                                      {4, 3, 16}, {8, 8, 6},   {3, 9, 27}, {1, 3, 1},   {2, 2, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        against_definition(s->kernels, sizes[i], &random);
}

// The product with an impulse at any position is the other tile, rotated.
static void impulses(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    enum { N = 12, SAMPLES = N * N };
    struct lab b;
    lab_open(&b, s->kernels, (const size_t[]){1, N, N});
    double kept[SAMPLES];
    for (size_t at = 0; at < SAMPLES; at++) {
        fill_random(&random, f64, b.tile[0], SAMPLES * b.lanes);
        for (size_t k = 0; k < SAMPLES; k++) kept[k] = scalar_get(f64, b.tile[0], k);
        for (size_t k = 0; k < SAMPLES * b.lanes; k++)
            scalar_put(f64, b.tile[1], k, k % SAMPLES == at);
        forward(&b);
        for (size_t bin = 0; bin < b.transform.bins; bin++) {
            const double re = bin_part(&b, 0, bin, 0, 0), im = bin_part(&b, 0, bin, 1, 0);
            const double p = bin_part(&b, 1, bin, 0, 0) / 2, q = bin_part(&b, 1, bin, 1, 0) / 2;
            scalar_put(f64, b.spectrum[0], 2 * bin * b.lanes, re * p - im * q);
            scalar_put(f64, b.spectrum[0], (2 * bin + 1) * b.lanes, re * q + im * p);
        }
        inverse(&b);
        const double gate = 10 * gate_transform(f64 ? PARTITA_F64 : PARTITA_F32, SAMPLES);
        for (size_t k = 0; k < SAMPLES; k++) {
            const size_t from = (k / N + N - at / N) % N * N + (k % N + N - at % N) % N;
            assert_true(fabs(scalar_get(f64, b.tile[0], k) - kept[from]) <= gate);
        }
    }
    free(b.memory);
}

// Scalars of transposed products, for every number of rows: exactly the contract, and nothing after
// them.
static void scalars(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    enum { TERMS = 5, IM = 40, REALS = 2 * IM };
    for (size_t rows = 1; rows <= TILE_ROWS; rows++) {
        const size_t n = 4 * TERMS * rows;
        double from[REALS], to[4 * TERMS * TILE_ROWS + 1];
        fill_random(&random, f64, from, REALS);
        scalar_put(f64, to, n, 3);
        s->kernels->tile_scalars(to, from, IM, rows, TERMS);
        assert_true(scalar_get(f64, to, n) == 3);
        for (size_t i = 0; i < n; i++) {
            const size_t part = i / rows % 4, at = i / rows / 4 * rows + i % rows;
            const double re = scalar_get(f64, from, at), im = scalar_get(f64, from, IM + at);
            const double expected[] = {re, im, -im, re};
            assert_true(scalar_get(f64, to, i) == expected[part]);
        }
    }
}

// Stores the rows of all lanes, each with its bias, from `begin` to `end` only.
static void biased_rows(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    enum { N = 37 };
    const size_t lanes = TILE_LINE_BYTES / scalar_size(f64);
    static _Alignas(64) double line[2 * N * TILE_MAX_LANES], bias[TILE_MAX_LANES],
        to[TILE_MAX_LANES][N];
    for (int relu = 0; relu < 2; relu++) {
        struct tile_rows rows = {{0}, {0}, {0}};
        fill_random(&random, f64, line, 2 * N * lanes);
        fill_random(&random, f64, bias, lanes);
        for (size_t l = 0; l < lanes; l++) {
            rows.row[l] = to[l];
            rows.begin[l] = random_below(&random, N);
            rows.end[l] = rows.begin[l] + random_below(&random, N + 1 - rows.begin[l]);
            for (size_t i = 0; i < N; i++) scalar_put(f64, to[l], i, 3);
        }
        s->kernels->tile_scatter(&rows, line, 2, N,
                                 &(struct conv_finish){.bias = bias, .relu = relu});
        for (size_t l = 0; l < lanes; l++)
            for (size_t i = 0; i < N; i++) {
                const double sum =
                    scalar_get(f64, line, 2 * i * lanes + l) + scalar_get(f64, bias, l);
                const double rounded = f64 ? sum : (double)(float)sum,
                             y = relu && rounded < 0 ? 0 : rounded;
                assert_true(scalar_get(f64, to[l], i) ==
                            (rows.begin[l] <= i && i < rows.end[l] ? y : 3));
            }
    }
}

// Makes a plan of one direction again with other parameters; false if it cannot have them.
static bool remake(struct partita_plan *plan, const struct tiles_params *params)
{
    struct cost_model model;
    cost_model_default(&model, plan->isa);
    const struct request request = estimate_request(plan, &(struct partita_options){0}, &model,
                                                    plan->engine, params->transform);
    struct tiles tiles;
    if (!tiles_layout(&request, params, &tiles)) return false;
    const struct tiles_params made = {.transform = params->transform,
                                      .batch = tiles.batch,
                                      .oc_chunk = tiles.oc_chunk,
                                      .product = params->product};
    plan_destroy_state(plan);
    plan->choice.transform = params->transform;
    plan->choice.hop = tiles.batch;
    estimate_store(&plan->choice, &made, sizeof made);
    plan->choice.shared = tiles_shared_bytes(&tiles, false);
    plan->choice.worker = tiles_worker_bytes(&tiles);
    assert_ok(plan_create_state(plan, &request));
    return true;
}

static const struct partita_problem problems[] = {
    {SIZE(23, 29), CORRELATE, BATCH(4), CHANNELS(3, 9), KERNEL(5, 3), PAD(2, 1), RELU},
    {SIZE(31, 28), BATCH(3), CHANNELS(6, 8), GROUPS(2), KERNEL(4, 5), STRIDE(2, 3), DILATION(1, 2),
     PAD_BEGIN(3, 0), PAD_END(0, 4)},
    {SIZE(13, 9), CHANNELS(3, 2), KERNEL(11, 9), PAD_BEGIN(10, 8)},
    {SIZE(211), BATCH(2), CHANNELS(2, 3), KERNEL(37)},
    {SIZE(7, 9, 11), CHANNELS(3, 10), KERNEL(2, 3, 2), PAD_BEGIN(1, 1, 1)},
    {SIZE(7, 6), CHANNELS(300, 2), KERNEL(2, 2)},
    {SIZE(11, 12), CHANNELS(2, 21), KERNEL(3, 3)},
};

struct variant_case {
    size_t problem;
    enum partita_type type;
};

static void every_variant(void **state)
{
    const struct variant_case *c = *state;
    static const size_t transforms[] = {6, 14, 27, 40}, blocks[] = {16, 48},
                        parts[] = {8, 10, 1 << 20};
    struct partita_problem problem = problems[c->problem];
    problem.signal = problem.taps = c->type;
    struct random random = random_start("ways");
    struct layer layer;
    layer_open(
        &layer, &problem,
        &(struct partita_options){.engine = "cpu/tiles", .threads = 1, .directions = LAYER_ALL},
        &random);
    int n_made = 0;
    for (size_t i = 0; i < 6 * sizeof transforms / sizeof *transforms; i++)
        for (int product = TILES_COMPLEX; product <= TILES_TRANSPOSED; product++) {
            const struct tiles_params params = {.transform = transforms[i / 6],
                                                .batch = blocks[i / 3 % 2],
                                                .oc_chunk = parts[i % 3],
                                                .product = (enum tiles_product)product};
            const bool made = remake(layer.plan, &params),
                       data = remake(layer.plan->backward_data, &params);
            if (!remake(layer.plan->backward_weight, &params) && !made && !data) continue;
            n_made++;
            partita_filter_destroy(layer.filter);
            assert_ok(filter_with_bias(layer.plan, layer.array[LAYER_W], layer.array[LAYER_BIAS],
                                       &layer.filter));
            layer_run(&layer);
            layer_check(&layer);
        }
    assert_true(n_made >= 8);
    layer_close(&layer);
}

// Imposes several batches of tiles and chunks of channels on a layer if its taps fit small tiles,
// or the transposed product.
static void impose_batches(struct layer *layer, bool transposed)
{
    const size_t transform = layer->plan->choice.transform;
    struct tiles_params params = {
        .transform = 12, .batch = 16, .oc_chunk = 8, .product = TILES_GAUSS};
    if (transposed) params.transform = transform, params.product = TILES_TRANSPOSED;
    if (!remake(layer->plan, &params)) return;
    partita_filter_destroy(layer->filter);
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
}

// With transforms saved by forward, y has the same bits, gw is within its gate and has the bits of
// backward weight with the same tiles.
static void saved_transforms(void **state)
{
    const struct variant_case *c = *state;
    struct partita_problem problem = problems[c->problem];
    problem.signal = problem.taps = c->type;
    struct random random = random_start("saved");
    for (int i = 0; i < 4; i++) {
        const int threads = 1 + i % 2;
        const bool transposed = i / 2;
        struct layer layer, other;
        const struct partita_options options = {
            .engine = "cpu/tiles", .threads = threads, .directions = LAYER_ALL};
        layer_open(&layer, &problem, &options, &random);
        impose_batches(&layer, transposed);
        struct tiles_params params;
        estimate_load(&layer.plan->choice, &params, sizeof params);
        if (params.product == TILES_GAUSS) params.product = TILES_COMPLEX;
        assert_true(remake(layer.plan->backward_weight, &params));
        layer_run(&layer);
        layer_open_copy(&other, &layer, &options);
        impose_batches(&other, transposed);
        layer_run_saved(&other, true);
        layer_check(&other);
        layer_same_bits(&layer, &other);
        layer_close(&other);
        layer_close(&layer);
    }
}

static void saved_refusals(void **state)
{
    (void)state;
    struct random random = random_start("refusals");
    struct layer layer, direct;
    struct partita_saved *saved = NULL;
    struct log_lines lines;
    layer_open(&layer, &problems[0], &(struct partita_options){.engine = "cpu/tiles"}, &random);
    layer_open(&direct, &problems[0],
               &(struct partita_options){.engine = "cpu/direct", .log = log_into(&lines)}, &random);
    void **a = layer.array;
    assert_int_equal(partita_saved_bytes(NULL), 0);
    assert_int_equal(partita_saved_bytes(direct.plan), 0);
    assert_int_equal(partita_saved_workspace(NULL), 0);
    assert_int_equal(partita_saved_create(direct.plan, &saved), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "cpu/tiles"));
    assert_int_equal(partita_saved_create(NULL, &saved), PARTITA_ERR_ARG);
    assert_int_equal(partita_saved_create(layer.plan, NULL), PARTITA_ERR_ARG);
    assert_null(saved);
    partita_saved_destroy(NULL);
    assert_ok(partita_saved_create(layer.plan, &saved));
    assert_true(partita_saved_bytes(layer.plan) > 0);
    assert_int_equal(partita_forward(direct.plan, direct.filter, a[LAYER_Y], a[LAYER_X],
                                     &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(layer.plan, layer.filter, a[LAYER_Y], (char *)a[LAYER_X] + 1,
                                     &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(direct.plan, a[LAYER_GW], NULL, a[LAYER_GY],
                                             &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(layer.plan, NULL, NULL, a[LAYER_GY],
                                             &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_backward_weight(layer.plan, a[LAYER_GW], NULL, a[LAYER_GY],
                                             &(struct partita_call){.saved = saved}),
                     PARTITA_ERR_STATE);
    partita_saved_destroy(saved);
    layer_close(&direct);
    layer_close(&layer);
}

static const struct promise promises[] = {{"one axis", sizes_of_one_axis},
                                          {"more axes", sizes_of_more_axes},
                                          {"impulses", impulses},
                                          {"scalars", scalars},
                                          {"biased rows", biased_rows}};
enum {
    N_PROMISES = sizeof promises / sizeof *promises,
    N_PROBLEMS = sizeof problems / sizeof *problems
};

int main(void)
{
    static struct kernel_subject subjects[2];
    static struct variant_case ways[2][N_PROBLEMS];
    static struct CMUnitTest tests[2 * (N_PROMISES + 2 * N_PROBLEMS) + 1];
    size_t n = 0;
    for (int f64 = 0; f64 < 2; f64++) {
        struct kernel_subject *s = &subjects[f64];
        s->kernels = kernels_select(cpu_detect(), f64);
        snprintf(s->name, sizeof s->name, "%s", f64 ? "f64" : "f32");
        for (size_t p = 0; p < N_PROMISES; p++)
            tests[n++] =
                named_test(promises[p].run, s, "transforms: %s: %s", s->name, promises[p].name);
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            ways[f64][i] = (struct variant_case){i, f64 ? PARTITA_F64 : PARTITA_F32};
            tests[n++] =
                named_test(every_variant, &ways[f64][i], "every way: %s: problem %zu", s->name, i);
            tests[n++] =
                named_test(saved_transforms, &ways[f64][i], "saved: %s: problem %zu", s->name, i);
        }
    }
    tests[n++] = named_test(saved_refusals, NULL, "saved: refusals");
    return run_test_list(tests, n);
}
