// SPDX-License-Identifier: MIT
// The one-call helpers: every mode, range and window of lags against the oracle, with the signal
// longer and shorter than the taps.

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
                                const struct partita_slice *slice)
{
    return c->op == PARTITA_CONVOLVE ? partita_convolve(c->type, y, x, c->n, h, c->m, slice)
                                     : partita_correlate(c->type, y, x, c->n, h, c->m, slice);
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
    assert_ok(call(c, y, data->x, data->h, slice));
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
    check_slice(c, &data, &(struct partita_slice){.mode = PARTITA_RANGE}, 0, n + m - 1);
    check_slice(c, &data, &(struct partita_slice){.mode = PARTITA_FULL, .first = 3, .last = 1}, 0,
                n + m - 1);
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
        if (first == zero && last == zero) continue; // all zeros means everything
        struct partita_slice slice = {.first = first - zero, .last = last - zero};
        if (slice.first == 0 && slice.last == 0) continue;
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
    static const struct partita_slice bad[] = {{.first = 3, .last = 3},
                                               {.first = 3, .last = 2},
                                               {.mode = (enum partita_mode)9},
                                               {.mode = (enum partita_mode) - 1},
                                               {.first = PTRDIFF_MIN, .last = PTRDIFF_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int op = 0; op < 2; op++) {
            struct helper_case c = {PARTITA_F32, (enum partita_op)op, 4, 4};
            assert_int_equal(partita_slice_size(c.op, 4, 4, &bad[i]), 0);
            assert_int_equal(call(&c, y, x, x, &bad[i]), PARTITA_ERR_ARG);
        }
    }
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, 0, 4, NULL), 0);
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, 4, 0, NULL), 0);
    assert_int_equal(partita_slice_size((enum partita_op)7, 4, 4, NULL), 0);
    assert_int_equal(partita_slice_size(PARTITA_CONVOLVE, SIZE_MAX, 4, NULL), 0);
    assert_int_equal(partita_convolve(PARTITA_F32, NULL, x, 4, x, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, NULL, 4, x, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, 4, NULL, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, 0, x, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_correlate(PARTITA_F32, y, x, 4, x, 0, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve((enum partita_type)9, y, x, 4, x, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, SIZE_MAX / 8, x, SIZE_MAX / 8, NULL),
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
    struct partita_slice slice = {.first = N / 2, .last = N / 2 + LENGTH};
    for (int i = 0; i < 200; i++) assert_ok(partita_convolve(PARTITA_F32, y, x, N, h, M, &slice));
    double complex expected[LENGTH];
    struct partita_problem p = {LENGTH(LENGTH + M - 1), KERNEL(M)};
    reference_forward(&p, expected, x + N / 2 - (M - 1), h);
    struct helper_case c = {PARTITA_F32, PARTITA_CONVOLVE, M, M};
    assert_true(error_against(PARTITA_F32, y, expected, LENGTH, 0) <= gate(&c, LENGTH));
    free(x);
}

int main(void)
{
    static struct helper_case cases[4][2][N_SIZES];
    static struct CMUnitTest tests[4 * 2 * N_SIZES * 2 + 2];
    size_t n = 0;
    for (int type = 0; type < 4; type++) {
        for (int op = 0; op < 2; op++) {
            for (size_t s = 0; s < N_SIZES; s++) {
                struct helper_case *c = &cases[type][op][s];
                *c = (struct helper_case){(enum partita_type)type, (enum partita_op)op, sizes[s][0],
                                          sizes[s][1]};
                const char *word = op ? "correlate" : "convolve",
                           *name = partita_type_name(c->type);
                tests[n++] = named_test(modes, c, "%s/modes-%zu-%zu-%s", word, c->n, c->m, name);
                tests[n++] = named_test(ranges, c, "%s/ranges-%zu-%zu-%s", word, c->n, c->m, name);
            }
        }
    }
    tests[n++] = named_test(malformed, NULL, "malformed");
    tests[n++] = named_test(slice_of_a_long_result, NULL, "slice-of-a-long-result");
    return run_test_list(tests, n);
}
