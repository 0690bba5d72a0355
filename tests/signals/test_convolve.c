// SPDX-License-Identifier: MIT
// The one-call helpers: every mode, range and window of lags against the oracle, with the signal
// longer and shorter than the taps.

#include "support/allocators.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

enum { N_SIZES = 9 };
static const size_t sizes[N_SIZES][2] = {{1, 1},  {1, 9},    {9, 1},    {8, 8},      {40, 7},
                                         {7, 40}, {501, 64}, {64, 500}, {3000, 1100}};

struct helper_case {
    enum partita_type type;
    enum partita_op op;
    size_t n, m;
};

static enum partita_status call(const struct helper_case *c, void *y, const void *x, const void *h,
                                const struct partita_slice *slice,
                                const struct partita_options *options)
{
    return c->op == PARTITA_CONVOLVE
               ? partita_convolve(c->type, y, x, c->n, h, c->m, slice, options)
               : partita_correlate(c->type, y, x, c->n, h, c->m, slice, options);
}

// The larger gate of direct sums and of transforms of at most four times the full length, so that
// it holds for any algorithm.
static double gate(const struct helper_case *c, size_t n)
{
    size_t longest = c->n + c->m, shorter = c->n < c->m ? c->n : c->m;
    double direct = gate_direct(c->type, shorter), transform = gate_transform(c->type, 4 * longest);
    return gate_for_outputs(direct > transform ? direct : transform, n);
}

struct data {
    void *x, *h;
    double complex *full; // n + m - 1 samples; correlation: lags -(m-1) .. n-1
};

static void data_open(struct data *data, const struct helper_case *c)
{
    struct random random = random_start("helpers");
    size_t bytes = partita_type_size(c->type);
    data->x = guarded_alloc(c->n * bytes, bytes % 16);
    data->h = guarded_alloc(c->m * bytes, bytes % 16);
    data->full = malloc((c->n + c->m - 1) * sizeof *data->full);
    random_samples(&random, c->type, data->x, c->n);
    random_samples(&random, c->type, data->h, c->m);
    ptrdiff_t pad = (ptrdiff_t)c->m - 1;
    struct partita_problem p = {
        .signal = c->type, .taps = c->type, .op = c->op, .kernel = {c->m}, .size = {c->n}};
    p.pad_begin[0] = p.pad_end[0] = pad;
    reference_forward(&p, data->full, data->x, data->h);
}

static void data_close(struct data *data)
{
    guarded_free(data->x);
    guarded_free(data->h);
    free(data->full);
}

// Checks the size and the samples of a slice, and that nothing else is written.
static void check_slice(const struct helper_case *c, const struct data *data,
                        const struct partita_slice *slice, ptrdiff_t first, size_t length)
{
    assert_int_equal(partita_slice_size(c->op, c->n, c->m, slice), length);
    void *y = guarded_alloc(length * partita_type_size(c->type), partita_type_size(c->type) % 16);
    assert_ok(call(c, y, data->x, data->h, slice, NULL));
    double complex *expected = calloc(length, sizeof *expected);
    ptrdiff_t full = (ptrdiff_t)(c->n + c->m - 1);
    for (size_t i = 0; i < length; i++) {
        ptrdiff_t at = first + (ptrdiff_t)i;
        expected[i] = at < 0 || at >= full ? 0 : data->full[at];
    }
    size_t shorter = c->n < c->m ? c->n : c->m;
    double typical = sqrt((double)shorter) * (type_is_complex(c->type) ? 2.0 : 1.0) / 3;
    double error = error_against(c->type, y, expected, length, typical);
    if (!(error <= gate(c, length)))
        fail_msg("first %td, length %zu: error %.3g", first, length, error);
    free(expected);
    guarded_free(y);
}

// As in scipy.signal, `same` is centred in the full result, at the first of two middle samples;
// also for correlate.
static void modes(void **state)
{
    const struct helper_case *c = *state;
    struct data data;
    data_open(&data, c);
    size_t n = c->n, m = c->m, shorter = n < m ? n : m, longer = n < m ? m : n;
    check_slice(c, &data, NULL, 0, n + m - 1);
    check_slice(c, &data, &(struct partita_slice){0}, 0, n + m - 1);
    check_slice(c, &data, &(struct partita_slice){.mode = PARTITA_SAME}, (ptrdiff_t)((m - 1) / 2),
                n);
    check_slice(c, &data, &(struct partita_slice){.mode = PARTITA_VALID}, (ptrdiff_t)shorter - 1,
                longer - shorter + 1);
    data_close(&data);
}

// Ranges inside, across and outside the full result. Lag 0 of a correlation is its sample m-1.
static void ranges(void **state)
{
    const struct helper_case *c = *state;
    struct random random = random_start("ranges");
    struct data data;
    data_open(&data, c);
    ptrdiff_t full = (ptrdiff_t)(c->n + c->m - 1),
              zero = c->op == PARTITA_CORRELATE ? (ptrdiff_t)c->m - 1 : 0;
    const ptrdiff_t fixed[][2] = {{0, 1},     {full - 1, full},     {0, full},
                                  {-3, 2},    {full - 1, full + 5}, {-10, full + 10},
                                  {-20, -10}, {full + 3, full + 9}};
    for (size_t i = 0; i < 20; i++) {
        ptrdiff_t first =
            i < 8 ? fixed[i][0] : (ptrdiff_t)random_below(&random, (size_t)full + 20) - 10;
        ptrdiff_t last =
            i < 8 ? fixed[i][1] : first + 1 + (ptrdiff_t)random_below(&random, (size_t)full + 9);
        struct partita_slice slice = {
            .mode = PARTITA_RANGE, .first = first - zero, .last = last - zero};
        check_slice(c, &data, &slice, first, (size_t)(last - first));
    }
    data_close(&data);
}

static void malformed(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 4}, y[8], kept[8];
    memset(y, 0x77, sizeof y);
    memcpy(kept, y, sizeof y);
    static const struct partita_slice bad[] = {
        {.mode = PARTITA_RANGE},
        {.mode = PARTITA_RANGE, .first = 3, .last = 3},
        {.mode = PARTITA_RANGE, .first = 3, .last = 2},
        {.first = 0, .last = 3},
        {.mode = PARTITA_SAME, .first = 1},
        {.mode = (enum partita_mode)9},
        {.mode = (enum partita_mode) - 1},
        {.mode = PARTITA_RANGE, .first = PTRDIFF_MIN, .last = PTRDIFF_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int op = 0; op < 2; op++) {
            struct helper_case c = {PARTITA_F32, (enum partita_op)op, 4, 4};
            assert_int_equal(partita_slice_size(c.op, 4, 4, &bad[i]), 0);
            assert_int_equal(call(&c, y, x, x, &bad[i], NULL), PARTITA_ERR_ARG);
        }
    }
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, 0, 4, NULL), 0);
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, 4, 0, NULL), 0);
    assert_int_equal(partita_slice_size((enum partita_op)7, 4, 4, NULL), 0);
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, SIZE_MAX, 4, NULL), 0);
    assert_int_equal(partita_convolve(PARTITA_F32, NULL, x, 4, x, 4, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, NULL, 4, x, 4, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, 4, NULL, 4, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, 0, x, 4, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_correlate(PARTITA_F32, y, x, 4, x, 0, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve((enum partita_type)9, y, x, 4, x, 4, NULL, NULL),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, SIZE_MAX / 8, x, SIZE_MAX / 8, NULL, NULL),
                     PARTITA_ERR_ARG);
    assert_memory_equal(y, kept, sizeof y);
}

// A slice of a huge result costs only the slice: a window of 100 samples after 10^7 others takes a
// moment, all of the result thousands of times longer. The time limit is that of the test program.
static void slice_of_a_long_result(void **state)
{
    (void)state;
    enum { N = 10000000, M = 1000, LENGTH = 100 };
    struct random random = random_start("long");
    float *x = malloc(N * sizeof *x), h[M], y[LENGTH];
    random_samples(&random, PARTITA_F32, x, N);
    random_samples(&random, PARTITA_F32, h, M);
    struct partita_slice slice = {.mode = PARTITA_RANGE, .first = N / 2, .last = N / 2 + LENGTH};
    for (int i = 0; i < 200; i++)
        assert_ok(partita_convolve(PARTITA_F32, y, x, N, h, M, &slice, NULL));
    double complex expected[LENGTH];
    struct partita_problem p = {LENGTH(LENGTH + M - 1), KERNEL(M)};
    reference_forward(&p, expected, x + N / 2 - (M - 1), h);
    struct helper_case c = {PARTITA_F32, PARTITA_CONVOLVE, M, M};
    assert_true(error_against(PARTITA_F32, y, expected, LENGTH, 0) <= gate(&c, LENGTH));
    free(x);
}

// What a plan of cpu/direct computes, of operands in this order.
static void planned(const struct helper_case *c, void *y, const void *x, const void *h,
                    const struct partita_slice *slice)
{
    const struct partita_options options = {.engine = "cpu/direct", .directions = PARTITA_FORWARD};
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    assert_ok(partita_slice_problem(c->op, c->type, c->n, c->m, slice, &problem));
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, h, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static size_t reals_of(enum partita_type type)
{
    return type_is_complex(type) ? 2 : 1;
}

static double real_at(enum partita_type type, const void *x, size_t i)
{
    return type_is_f64(type) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

// Small signals are summed without a plan: without allocating, within rounding as a plan of
// cpu/direct sums them, and infinities and NaN reach the same outputs. The planned order of sums is
// that with the shorter operand as the filter; convolution allows the exchange.
static void small_signals(void **state)
{
    (void)state;
    enum { MAX_SAMPLES = 180 }; // so that full results of complex samples are small too
    struct random random = random_start("small");
    static const enum partita_mode modes_of[] = {PARTITA_FULL, PARTITA_SAME, PARTITA_VALID,
                                                 PARTITA_RANGE};
    static const double odd[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 400; i++) {
        struct helper_case c = {
            (enum partita_type)(PARTITA_F32 + i % 4), (enum partita_op)(i / 4 % 2),
            1 + random_below(&random, MAX_SAMPLES), 1 + random_below(&random, MAX_SAMPLES)};
        if (c.m > c.n) c.m = 1 + random_below(&random, c.n);
        if (i % 3) c.m = 1 + (c.m - 1) % 9;
        const size_t bytes = partita_type_size(c.type), reals = reals_of(c.type);
        struct partita_slice slice = {.mode = modes_of[i / 8 % 4]};
        if (slice.mode == PARTITA_RANGE) {
            slice.first = (ptrdiff_t)random_below(&random, c.n + c.m + 20) - 10 - (ptrdiff_t)c.m;
            slice.last = slice.first + 1 + (ptrdiff_t)random_below(&random, c.n);
        }
        const size_t size = partita_slice_size(c.op, c.n, c.m, &slice);
        void *x = guarded_alloc(c.n * bytes, bytes % 16), *h = guarded_alloc(c.m * bytes, 0);
        void *y = guarded_alloc(size * bytes, 0), *expected = guarded_alloc(size * bytes, 0);
        random_samples(&random, c.type, x, c.n);
        random_samples(&random, c.type, h, c.m);
        for (int k = 0; k < i / 32 % 3; k++) {
            const bool tap = random_below(&random, 2);
            const size_t at = random_below(&random, (tap ? c.m : c.n) * reals);
            const double value = odd[random_below(&random, 3)];
            if (type_is_f64(c.type)) ((double *)(tap ? h : x))[at] = value;
            else ((float *)(tap ? h : x))[at] = (float)value;
        }
        struct meter meter = {0};
        const struct partita_options options = {.allocator = meter_allocator(&meter)};
        planned(&c, expected, x, h, &slice);
        assert_ok(call(&c, y, x, h, &slice, &options));
        assert_int_equal(meter.n_allocated, 0);
        const bool exchange = c.op == PARTITA_CONVOLVE && slice.mode != PARTITA_SAME;
        const bool finite = i / 32 % 3 == 0; // others spread over the signal's zeros, which differ
        if (exchange && finite && c.m < c.n && i % 2) { // the other order is the same sum
            const struct helper_case other = {c.type, c.op, c.m, c.n};
            assert_ok(call(&other, y, h, x, &slice, NULL));
        }
        // Each sum has an error of at most 4 u sqrt(m) relative to its magnitudes, which are below
        // 1; twice, since both are rounded.
        const double u = type_is_f64(c.type) ? 0x1p-53 : 0x1p-24, sums = (double)(c.m * reals);
        for (size_t k = 0; k < size * reals; k++) {
            const double a = real_at(c.type, y, k), b = real_at(c.type, expected, k);
            if (isnan(a) != isnan(b) || (isinf(b) && a != b) ||
                (isfinite(b) && !(fabs(a - b) <= 8 * u * sqrt(sums) * sums)))
                fail_msg("%s %zu x %zu, %d: sample %zu is %g, planned %g",
                         partita_type_name(c.type), c.n, c.m, i, k, a, b);
        }
        guarded_free(x), guarded_free(h), guarded_free(y), guarded_free(expected);
    }
}

// With the shorter operand as the signal, infinities spread as with a plan: not over its zeros.
static void short_signal_with_infinity(void **state)
{
    (void)state;
    const float x[2] = {1, INFINITY}, h[3] = {1, 2, 3};
    const float sums[4] = {1, INFINITY, INFINITY, INFINITY};
    const struct partita_options options = {.engine = "cpu/direct"};
    float y[4];
    assert_ok(partita_convolve(PARTITA_F32, y, x, 2, h, 3, NULL, &options));
    assert_memory_equal(y, sums, sizeof sums);
}

// Options are those of a plan. What has no meaning for one call forward is refused by its name.
static void options_are_honoured(void **state)
{
    (void)state;
    enum { N = 3000, M = 300 };
    struct random random = random_start("options");
    static float x[N], h[M], y[N + M - 1], kept[N + M - 1];
    random_samples(&random, PARTITA_F32, x, N);
    random_samples(&random, PARTITA_F32, h, M);
    struct log_lines lines = {0};
    struct meter meter = {0};
    const struct partita_options usual = {.log = log_into(&lines),
                                          .allocator = meter_allocator(&meter)};
    static const char *const engines[] = {"cpu/direct", "cpu/overlap-save", "cpu/blocks"};
    double complex *full = malloc((N + M - 1) * sizeof *full);
    struct partita_problem p = {.op = PARTITA_CONVOLVE, LENGTH(N), KERNEL(M)};
    p.pad_begin[0] = p.pad_end[0] = M - 1;
    reference_forward(&p, full, x, h);
    for (size_t i = 0; i < 3; i++) {
        struct partita_options options = usual;
        options.engine = engines[i];
        options.threads = 1;
        const size_t before = meter.n_allocated;
        assert_ok(partita_convolve(PARTITA_F32, y, x, N, h, M, NULL, &options));
        assert_true(meter.n_allocated > before && meter.n_live == 0);
        const struct helper_case c = {PARTITA_F32, PARTITA_CONVOLVE, N, M};
        assert_true(error_against(PARTITA_F32, y, full, N + M - 1, 0) <= gate(&c, N + M - 1));
        // Direct sums are exact where others round: small integers tell which engine computed.
        for (size_t k = 0; k < N; k++) kept[k] = roundf(100 * x[k]);
        assert_ok(partita_convolve(PARTITA_F32, y, kept, N, kept, M, NULL, &options));
        bool integers = true;
        for (size_t k = 0; k < N + M - 1; k++) integers = integers && y[k] == roundf(y[k]);
        assert_int_equal(integers, i == 0);
    }
    memcpy(kept, y, sizeof y);
    const struct {
        struct partita_options options;
        const char *line;
        enum partita_status status;
    } refused[] = {
        {{.directions = PARTITA_FORWARD}, "options.directions", PARTITA_ERR_ARG},
        {{.filter_uses = 1}, "filter_uses", PARTITA_ERR_ARG},
        {{.sample_rate = 48000}, "options.sample_rate", PARTITA_ERR_ARG},
        {{.threads = -1}, "options.threads", PARTITA_ERR_ARG},
        {{.engine = "cpu/none"}, "options.engine", PARTITA_ERR_ARG},
        {{.engine = "cpu/winograd"}, "cpu/winograd", PARTITA_ERR_UNSUPPORTED},
        {{.device = "none"}, "options.device", PARTITA_ERR_DEVICE},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct partita_options options = refused[i].options;
        options.log = log_into(&lines);
        lines.text[0] = 0;
        assert_int_equal(partita_convolve(PARTITA_F32, y, x, N, h, M, NULL, &options),
                         refused[i].status);
        assert_non_null(strstr(lines.text, refused[i].line));
        assert_int_equal(partita_correlate(PARTITA_F32, y, x, N, h, M, NULL, &options),
                         refused[i].status);
        assert_int_equal(partita_correlate_normalised(PARTITA_F32, y, x, N, h, M, NULL, &options),
                         refused[i].status);
    }
    assert_memory_equal(y, kept, sizeof y);
    // The norms of the normalised correlation are counted too.
    const size_t before = meter.n_allocated;
    assert_ok(partita_correlate_normalised(PARTITA_F32, y, x, 3, h, 3, NULL, &usual));
    assert_true(meter.n_allocated > before && meter.n_live == 0);
    free(full);
}

int main(void)
{
    static struct helper_case cases[4][2][N_SIZES];
    static struct CMUnitTest tests[4 * 2 * N_SIZES * 2 + 5];
    size_t n = 0;
    for (int type = 0; type < 4; type++) {
        for (int op = 0; op < 2; op++) {
            for (size_t s = 0; s < N_SIZES; s++) {
                struct helper_case *c = &cases[type][op][s];
                *c = (struct helper_case){(enum partita_type)(PARTITA_F32 + type),
                                          (enum partita_op)op, sizes[s][0], sizes[s][1]};
                const char *word = op ? "correlate" : "convolve",
                           *name = partita_type_name(c->type);
                tests[n++] = named_test(modes, c, "%s/modes-%zu-%zu-%s", word, c->n, c->m, name);
                tests[n++] = named_test(ranges, c, "%s/ranges-%zu-%zu-%s", word, c->n, c->m, name);
            }
        }
    }
    tests[n++] = named_test(malformed, NULL, "malformed");
    tests[n++] = named_test(small_signals, NULL, "small");
    tests[n++] = named_test(short_signal_with_infinity, NULL, "short-signal-with-infinity");
    tests[n++] = named_test(options_are_honoured, NULL, "options");
    tests[n++] = named_test(slice_of_a_long_result, NULL, "slice-of-a-long-result");
    return run_test_list(tests, n);
}
