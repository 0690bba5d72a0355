// SPDX-License-Identifier: MIT
// Spectra as objects: products of two spectra, of a spectrum and a signal and of a spectrum with
// itself, in both operations, for any slice and number of threads, against the oracle, on the
// device that PARTITA_TEST_DEVICE names. Also normalised correlation, which only the CPU has.

#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

enum { N_SIZES = 10 };
static const size_t sizes[N_SIZES][3] = {
    {1, 1, 0},       {1, 700, 64}, {700, 1, 64},   {512, 512, 128}, {1000, 700, 128},
    {997, 1009, 64}, {64, 64, 64}, {3000, 65, 64}, {65, 3000, 256}, {2000, 1999, 96}};

struct spectrum_case {
    enum partita_type type;
    enum partita_op op;
    size_t n, m, block;
};

typedef enum partita_status multiply_fn(void *, const struct partita_spectrum *,
                                        const struct partita_spectrum *,
                                        const struct partita_slice *);

static multiply_fn *multiply_of(enum partita_op op)
{
    return op == PARTITA_CONVOLVE ? partita_spectrum_convolve : partita_spectrum_correlate;
}

struct operands {
    void *x, *h;
    double complex *full; // n + m - 1 samples
    struct partita_spectrum *sx, *sh;
};

static void operands_open(struct operands *o, const struct spectrum_case *c, int threads)
{
    struct random random = random_start("spectrum");
    const struct partita_options options = {.device = getenv("PARTITA_TEST_DEVICE"),
                                            .threads = threads};
    size_t bytes = partita_type_size(c->type), scalar = type_is_f64(c->type) ? 8 : 4;
    o->x = guarded_alloc(c->n * bytes, scalar);
    o->h = guarded_alloc(c->m * bytes, scalar);
    o->full = malloc((c->n + c->m - 1) * sizeof *o->full);
    random_samples(&random, c->type, o->x, c->n);
    random_samples(&random, c->type, o->h, c->m);
    struct partita_problem p = {
        .signal = c->type, .taps = c->type, .op = c->op, .kernel = {c->m}, .size = {c->n}};
    p.pad_begin[0] = p.pad_end[0] = (ptrdiff_t)c->m - 1;
    reference_forward(&p, o->full, o->x, o->h);
    assert_ok(partita_spectrum_create(c->type, o->x, c->n, c->block, &options, &o->sx));
    assert_ok(partita_spectrum_create(c->type, o->h, c->m, partita_spectrum_block(o->sx), &options,
                                      &o->sh));
    assert_int_equal(partita_spectrum_size(o->sx), c->n);
    assert_true(partita_spectrum_block(o->sx) >= c->block);
    assert_true(partita_spectrum_bytes(o->sx) >= 2 * c->n * bytes);
}

static void operands_close(struct operands *o)
{
    partita_spectrum_destroy(o->sx);
    partita_spectrum_destroy(o->sh);
    guarded_free(o->x);
    guarded_free(o->h);
    free(o->full);
}

static double gate_of(const struct spectrum_case *c, size_t block, size_t n)
{
    return gate_for_outputs(gate_transform(c->type, 2 * block), n);
}

// Samples first .. first+length-1 of the full result.
static void check(const struct spectrum_case *c, const struct operands *o, const void *y,
                  ptrdiff_t first, size_t length)
{
    double complex *expected = calloc(length, sizeof *expected);
    ptrdiff_t full = (ptrdiff_t)(c->n + c->m - 1);
    for (size_t i = 0; i < length; i++) {
        ptrdiff_t at = first + (ptrdiff_t)i;
        expected[i] = at < 0 || at >= full ? 0 : o->full[at];
    }
    double shorter = (double)(c->n < c->m ? c->n : c->m);
    double typical = sqrt(shorter) * (type_is_complex(c->type) ? 2.0 : 1.0) / 3;
    double error = error_against(c->type, y, expected, length, typical);
    if (!(error <= gate_of(c, partita_spectrum_block(o->sx), length)))
        fail_msg("first %td, length %zu: error %.3g", first, length, error);
    free(expected);
}

static void slices(void **state)
{
    const struct spectrum_case *c = *state;
    struct operands o;
    operands_open(&o, c, 2);
    struct random random = random_start("slices");
    ptrdiff_t full = (ptrdiff_t)(c->n + c->m - 1),
              zero = c->op == PARTITA_CORRELATE ? (ptrdiff_t)c->m - 1 : 0;
    ptrdiff_t block = (ptrdiff_t)partita_spectrum_block(o.sx);
    const ptrdiff_t fixed[][2] = {{0, full},
                                  {0, 1},
                                  {full - 1, full},
                                  {-5, full + 7},
                                  {-20, -10},
                                  {full, full + 9},
                                  {zero - 3, zero + 4},
                                  {block - 1, block + 1},
                                  {zero - block, zero + block},
                                  {zero, zero + 1}};
    enum { N_FIXED = sizeof fixed / sizeof *fixed };
    for (size_t i = 0; i < N_FIXED + 10; i++) {
        ptrdiff_t first =
            i < N_FIXED ? fixed[i][0] : (ptrdiff_t)random_below(&random, (size_t)full);
        ptrdiff_t last =
            i < N_FIXED ? fixed[i][1] : first + 1 + (ptrdiff_t)random_below(&random, (size_t)full);
        struct partita_slice slice = {
            .mode = PARTITA_RANGE, .first = first - zero, .last = last - zero};
        size_t length = partita_slice_size(c->op, c->n, c->m, &slice);
        if (slice.first == 0 && slice.last == 0) first = 0;
        void *y = guarded_alloc(length * partita_type_size(c->type), 0);
        assert_ok(multiply_of(c->op)(y, o.sx, o.sh, &slice));
        check(c, &o, y, first, length);
        guarded_free(y);
    }
    operands_close(&o);
}

// The same bits with any number of threads.
static void same_bits(void **state)
{
    const struct spectrum_case *c = *state;
    struct operands o, other;
    size_t bytes = (c->n + c->m - 1) * partita_type_size(c->type);
    void *y = guarded_alloc(bytes, 0), *again = guarded_alloc(bytes, 0);
    operands_open(&o, c, 1);
    operands_open(&other, c, 3);
    assert_ok(multiply_of(c->op)(y, o.sx, o.sh, NULL));
    assert_ok(multiply_of(c->op)(again, other.sx, other.sh, NULL));
    assert_memory_equal(y, again, bytes);
    operands_close(&o);
    operands_close(&other);
    guarded_free(y);
    guarded_free(again);
}

// One recording in both roles, as a filter and as a template, is transformed only once.
static void with_itself(void **state)
{
    const struct spectrum_case *c = *state;
    struct spectrum_case square = *c;
    struct operands o;
    square.m = square.n;
    operands_open(&o, &square, 2);
    memcpy(o.h, o.x, square.n * partita_type_size(square.type));
    struct partita_problem p = {.signal = square.type,
                                .taps = square.type,
                                .op = square.op,
                                .kernel = {square.n},
                                .size = {square.n}};
    p.pad_begin[0] = p.pad_end[0] = (ptrdiff_t)square.n - 1;
    reference_forward(&p, o.full, o.x, o.h);
    void *y = guarded_alloc((2 * square.n - 1) * partita_type_size(square.type), 0);
    assert_ok(multiply_of(square.op)(y, o.sx, o.sx, NULL));
    check(&square, &o, y, 0, 2 * square.n - 1);
    guarded_free(y);
    operands_close(&o);
}

static void errors(void **state)
{
    (void)state;
    float x[200] = {1}, y[400], kept[400];
    double d[200] = {1};
    const struct partita_options options = {.device = getenv("PARTITA_TEST_DEVICE")};
    struct partita_spectrum *a, *b, *wide, *none = (struct partita_spectrum *)1;
    memset(y, 0x77, sizeof y);
    memcpy(kept, y, sizeof y);
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 200, 64, &options, &a));
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 200, 128, &options, &b));
    assert_ok(partita_spectrum_create(PARTITA_F64, d, 200, 64, &options, &wide));
    assert_int_equal(partita_spectrum_create(PARTITA_F32, NULL, 200, 64, &options, &none),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, 0, 64, &options, &none),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, SIZE_MAX / 4, 64, &options, &none),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, 200, SIZE_MAX, &options, &none),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_create((enum partita_type)9, x, 200, 64, &options, &none),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_create(PARTITA_F32, x, 200, 64, &options, NULL),
                     PARTITA_ERR_ARG);
    assert_ptr_equal(none, (struct partita_spectrum *)1);
    assert_int_equal(partita_spectrum_convolve(y, a, b, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_convolve(y, a, wide, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_convolve(NULL, a, a, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_convolve(y, NULL, a, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_spectrum_correlate(y, a, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(
        partita_spectrum_convolve(
            y, a, a, &(struct partita_slice){.mode = PARTITA_RANGE, .first = 3, .last = 3}),
        PARTITA_ERR_ARG);
    assert_memory_equal(y, kept, sizeof y);
    partita_spectrum_destroy(a);
    partita_spectrum_destroy(b);
    partita_spectrum_destroy(wide);
    partita_spectrum_destroy(NULL);
    assert_int_equal(partita_spectrum_size(NULL) + partita_spectrum_block(NULL) +
                         partita_spectrum_bytes(NULL),
                     0);
}

// Compares with the quotient of the oracle's correlation and norms that are summed for each lag.
static void normalised(void **state)
{
    const struct spectrum_case *c = *state;
    struct operands o;
    operands_open(&o, c, 1);
    const size_t bytes = partita_type_size(c->type), full = c->n + c->m - 1;
    double template = 0;
    for (size_t i = 0; i < c->m; i++) template += pow(cabs(reference_sample(c->type, o.h, i)), 2);
    double complex *expected = malloc((full + 20) * sizeof *expected);
    for (ptrdiff_t at = -10; at < (ptrdiff_t)full + 10; at++) {
        double energy = 0;
        for (size_t i = 0; i < c->m; i++) {
            ptrdiff_t from = at - (ptrdiff_t)(c->m - 1) + (ptrdiff_t)i;
            if (from >= 0 && from < (ptrdiff_t)c->n)
                energy += pow(cabs(reference_sample(c->type, o.x, (size_t)from)), 2);
        }
        expected[at + 10] = energy > 0 && at >= 0 && at < (ptrdiff_t)full
                                ? o.full[at] / sqrt(energy * template)
                                : 0;
    }
    const ptrdiff_t zero = (ptrdiff_t)c->m - 1;
    const ptrdiff_t ranges[][2] = {
        {0, (ptrdiff_t)full}, {-10, (ptrdiff_t)full + 10}, {zero, zero + 1}, {zero - 2, zero + 3}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        struct partita_slice slice = {
            .mode = PARTITA_RANGE, .first = ranges[i][0] - zero, .last = ranges[i][1] - zero};
        const size_t length = partita_slice_size(PARTITA_CORRELATE, c->n, c->m, &slice);
        void *y = guarded_alloc(length * bytes, 0);
        assert_ok(partita_correlate_normalised(c->type, y, o.x, c->n, o.h, c->m, &slice, NULL));
        // The correlation's error is relative to lags with all samples; lags at the ends have only
        // a part of that energy.
        double error = 0, gate = gate_transform(c->type, 4 * full) + gate_direct(c->type, c->m);
        for (size_t k = 0; k < length; k++)
            error = fmax(error, cabs(reference_sample(c->type, y, k) -
                                     expected[ranges[i][0] + 10 + (ptrdiff_t)k]));
        if (!(error <= 10 * sqrt((double)(c->m < c->n ? c->m : c->n)) * gate))
            fail_msg("error %.3g", error);
        guarded_free(y);
    }
    free(expected);
    operands_close(&o);
}

// A template 120 dB below the preceding part of the signal is found with a correlation of one.
static void normalised_after_loud(void **state)
{
    (void)state;
    enum { N = 20000, M = 300, AT = 15000 };
    double *x = malloc(N * sizeof *x), h[M], y[N - M + 1];
    struct random random = random_start("loud");
    random_samples(&random, PARTITA_F64, x, N);
    random_samples(&random, PARTITA_F64, h, M);
    for (size_t i = 0; i < 10000; i++) x[i] *= 1e6;
    memcpy(x + AT, h, sizeof h);
    assert_ok(partita_correlate_normalised(PARTITA_F64, y, x, N, h, M,
                                           &(struct partita_slice){.mode = PARTITA_VALID}, NULL));
    assert_true(fabs(y[AT] - 1) < 1e-9);
    for (size_t i = 0; i < N - M + 1; i++) assert_true(i == AT || fabs(y[i]) < 0.5);
    memset(x, 0, N * sizeof *x);
    assert_ok(partita_correlate_normalised(PARTITA_F64, y, x, N, h, M,
                                           &(struct partita_slice){.mode = PARTITA_VALID}, NULL));
    for (size_t i = 0; i < N - M + 1; i++) assert_true(y[i] == 0);
    free(x);
}

int main(void)
{
    static struct spectrum_case cases[4][2][N_SIZES];
    static struct CMUnitTest tests[4 * 2 * N_SIZES * 3 + 4 * N_SIZES + 2];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    const bool on_cpu = layer_has_engine("cpu/blocks");
    for (int type = 0; type < (layer_is_brief() ? 1 : 4); type++)
        for (int op = 0; op < 2; op++)
            for (size_t s = 0; s < N_SIZES; s++) {
                struct spectrum_case *c = &cases[type][op][s];
                *c = (struct spectrum_case){(enum partita_type)(PARTITA_F32 + type),
                                            (enum partita_op)op, sizes[s][0], sizes[s][1],
                                            sizes[s][2]};
                const char *word = op ? "correlate" : "convolve",
                           *name = partita_type_name(c->type);
                tests[n++] = named_test(slices, c, "%s/slices-%zu-%zu-%s", word, c->n, c->m, name);
                tests[n++] =
                    named_test(same_bits, c, "%s/same-bits-%zu-%zu-%s", word, c->n, c->m, name);
                tests[n++] = named_test(with_itself, c, "%s/with-itself-%zu-%s", word, c->n, name);
                if (op && on_cpu)
                    tests[n++] =
                        named_test(normalised, c, "normalised/%zu-%zu-%s", c->n, c->m, name);
            }
    tests[n++] = named_test(errors, NULL, "errors");
    if (on_cpu) tests[n++] = named_test(normalised_after_loud, NULL, "normalised/after-loud");
    return run_test_list(tests, n);
}
