// SPDX-License-Identifier: MIT
// Kernels for every instruction set of this machine against the contract of kernels.h: values
// against sums in twice the precision, NaNs and infinities in the right outputs, all tails, no
// access outside the stated ranges, and the same bits however calls are split. The C reference has
// the same tests, so that each instruction set also agrees with it.
#include "support/kernel_check.h"

#include "kernels/spectra.h"

#include <stdio.h>

static const char *const variant_names[FIR_TYPES] = {"fir", "fir-real-taps", "fir-complex"};

enum { MAX_LEVELS = CPU_AVX512 + 1, MAX_TESTS = 256 };

// The kernel under test. Sizes count reals, also for complex numbers.
struct subject {
    const struct kernels *kernels;
    enum fir_type variant;
    char name[48];
};

static size_t reals_in_sample(enum fir_type variant)
{
    return variant == FIR_REAL ? 1 : 2;
}

static size_t reals_in_tap(enum fir_type variant)
{
    return variant == FIR_COMPLEX ? 2 : 1;
}

// A filter, its input and the initial contents of y: x has `history` reals before those of the
// outputs.
struct fir_data {
    size_t taps, outputs, history;
    void *x, *h, *y;
    struct sum *expected;
};

static struct fir_data fir_data_make(const struct subject *s, size_t taps, size_t outputs)
{
    const size_t scalar = scalar_size(s->kernels->f64),
                 history = (taps - 1) * reals_in_sample(s->variant);
    return (struct fir_data){
        .taps = taps,
        .outputs = outputs,
        .history = history,
        .x = test_calloc(history + outputs, scalar),
        .h = test_calloc(taps * reals_in_tap(s->variant), scalar),
        .y = test_calloc(outputs, scalar),
        .expected = test_calloc(outputs, sizeof(struct sum)),
    };
}

static void fir_data_free(struct fir_data *d)
{
    test_free(d->x);
    test_free(d->h);
    test_free(d->y);
    test_free(d->expected);
}

static void fir_data_fill(const struct subject *s, struct fir_data *d, struct random *random)
{
    const bool f64 = s->kernels->f64;
    fill_random(random, f64, d->x, d->history + d->outputs);
    fill_random(random, f64, d->h, d->taps * reals_in_tap(s->variant));
    fill_random(random, f64, d->y, d->outputs);
}

// Output i by the formula. Complex taps: even reals are re re - im im, odd ones re im + im re.
static struct sum fir_sum(const struct subject *s, const struct fir_data *d, size_t i)
{
    const bool f64 = s->kernels->f64;
    struct sum sum = {0};
    sum_product(&sum, scalar_get(f64, d->y, i), 1);
    for (size_t j = 0; j < d->taps; j++) {
        const size_t at = d->history + i - j * reals_in_sample(s->variant),
                     tap = j * reals_in_tap(s->variant);
        sum_product(&sum, scalar_get(f64, d->h, tap), scalar_get(f64, d->x, at));
        if (s->variant != FIR_COMPLEX) continue;
        const double im = scalar_get(f64, d->h, tap + 1);
        sum_product(&sum, i % 2 ? im : -im, scalar_get(f64, d->x, i % 2 ? at - 1 : at + 1));
    }
    return sum;
}

static void fir_expect(const struct subject *s, struct fir_data *d)
{
    for (size_t i = 0; i < d->outputs; i++) d->expected[i] = fir_sum(s, d, i);
}

// The number of additions that round a product: those in its segment of 64 taps, one into y for
// each segment, and for complex taps one for the pair of products or of their sums.
static size_t fir_additions(size_t taps)
{
    return (taps < 64 ? taps : 64) + (taps + 63) / 64 + 1;
}

static void fir_run(const struct subject *s, void *y, const void *x, const void *h, size_t n,
                    size_t taps)
{
    s->kernels->fir(y, x, h, n / reals_in_sample(s->variant), taps, s->variant);
}

struct fences {
    struct fence x, h, y;
};

static struct fences fences_open(const struct subject *s, const struct fir_data *d)
{
    const size_t scalar = scalar_size(s->kernels->f64);
    return (struct fences){
        .x = fence_open((d->history + d->outputs) * scalar),
        .h = fence_open(d->taps * reals_in_tap(s->variant) * scalar),
        .y = fence_open(d->outputs * scalar),
    };
}

static void fences_close(struct fences *f)
{
    fence_close(&f->x);
    fence_close(&f->h);
    fence_close(&f->y);
}

// Checks the first n outputs with all arrays at one edge of their fences, so that ends vary, and
// with n also alignments.
static void fir_check(const struct subject *s, const struct fir_data *d, const struct fences *f,
                      size_t n, enum edge edge)
{
    const bool f64 = s->kernels->f64;
    const size_t scalar = scalar_size(f64), x_bytes = (d->history + n) * scalar,
                 y_bytes = n * scalar;
    const size_t h_bytes = d->taps * reals_in_tap(s->variant) * scalar;
    char *x = fence_put(&f->x, d->x, x_bytes, edge), *h = fence_put(&f->h, d->h, h_bytes, edge);
    void *y = fence_put(&f->y, d->y, y_bytes, edge);
    fir_run(s, y, x + d->history * scalar, h, n, d->taps);
    for (size_t i = 0; i < n; i++)
        if (!agrees(&d->expected[i], f64, scalar_get(f64, y, i), fir_additions(d->taps)))
            fail_msg("%zu taps, output %zu of %zu: %.17g, not %.17g", d->taps, i, n,
                     scalar_get(f64, y, i), sum_value(&d->expected[i]));
    fence_check(&f->x, x_bytes, edge);
    fence_check(&f->h, h_bytes, edge);
    fence_check(&f->y, y_bytes, edge);
}

static void fir_check_taps(const struct subject *s, struct random *random, size_t taps,
                           size_t first, size_t last)
{
    struct fir_data d = fir_data_make(s, taps, last);
    fir_data_fill(s, &d, random);
    fir_expect(s, &d);
    struct fences f = fences_open(s, &d);
    for (size_t n = first; n <= last; n += reals_in_sample(s->variant))
        for (enum edge edge = 0; edge < N_EDGES; edge++) fir_check(s, &d, &f, n, edge);
    fences_close(&f);
    fir_data_free(&d);
}

static void test_fir_tails(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    const size_t lanes = vector_lanes(s->kernels);
    for (size_t taps = 1; taps <= 200; taps++) fir_check_taps(s, &random, taps, 0, 4 * lanes + 4);
}

// Many segments, and enough outputs for the widest group of vectors and for each narrower one.
static void test_fir_long(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    const size_t lanes = vector_lanes(s->kernels);
    fir_check_taps(s, &random, 1000, 31 * lanes + 2, 32 * lanes + 2);
    fir_check_taps(s, &random, 4097, 31 * lanes + 2, 31 * lanes + 4);
    fir_check_taps(s, &random, 17, 9000, 9002); // outputs beyond one tile
}

// The contract's gate: the relative L2 error over many outputs of random data is at most 4 u
// sqrt(products).
static void test_fir_error(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    const bool f64 = s->kernels->f64;
    static const size_t lengths[] = {1, 8, 64, 65, 256, 1000, 4096};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        struct fir_data d = fir_data_make(s, lengths[k], 1024);
        fir_data_fill(s, &d, &random);
        memset(d.y, 0, d.outputs * scalar_size(f64));
        fir_expect(s, &d);
        fir_run(s, d.y, scalar_at(f64, d.x, d.history), d.h, d.outputs, d.taps);
        double error = 0, norm = 0;
        for (size_t i = 0; i < d.outputs; i++) {
            const double exact = sum_value(&d.expected[i]);
            error += pow(scalar_get(f64, d.y, i) - exact, 2);
            norm += exact * exact;
        }
        const double gate =
            gate_direct(f64 ? PARTITA_F64 : PARTITA_F32, d.taps * reals_in_tap(s->variant));
        if (!(sqrt(error / norm) <= gate))
            fail_msg("%zu taps: error %.3g", d.taps, sqrt(error / norm));
        fir_data_free(&d);
    }
}

static void test_fir_extreme(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    const bool f64 = s->kernels->f64;
    for (int round = 0; round < 400; round++) {
        const size_t taps = 1 + random_below(&random, 150), last = 5 * vector_lanes(s->kernels);
        struct fir_data d = fir_data_make(s, taps, last);
        fir_data_fill(s, &d, &random);
        const size_t n_taps = taps * reals_in_tap(s->variant);
        for (size_t j = 0; j < n_taps; j++) {
            const double tap = scalar_get(f64, d.h, j) / (double)(4 * n_taps);
            scalar_put(f64, d.h, j, random_below(&random, 20) ? tap : 0);
        }
        for (size_t k = random_below(&random, 20); k > 0; k--)
            scalar_put(f64, d.x, random_below(&random, d.history + last),
                       extreme_value(&random, f64, round % 2));
        fir_expect(s, &d);
        struct fences f = fences_open(s, &d);
        const size_t n = random_below(&random, last / 2 + 1) * 2;
        for (enum edge edge = 0; edge < N_EDGES; edge++) fir_check(s, &d, &f, n, edge);
        fences_close(&f);
        fir_data_free(&d);
    }
}

// Outputs have the same bits in calls of random lengths, most of them short, as in one call.
static void test_fir_splits(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    const bool f64 = s->kernels->f64;
    const size_t scalar = scalar_size(f64), step = reals_in_sample(s->variant);
    for (int round = 0; round < 300; round++) {
        struct fir_data d = fir_data_make(s, 1 + random_below(&random, 300),
                                          step * (1 + random_below(&random, 900)));
        fir_data_fill(s, &d, &random);
        void *whole = test_calloc(d.outputs, scalar);
        memcpy(whole, d.y, d.outputs * scalar);
        fir_run(s, whole, scalar_at(f64, d.x, d.history), d.h, d.outputs, d.taps);
        for (size_t i = 0, n; i < d.outputs; i += n) {
            n = step * (1 + random_below(&random, random_below(&random, 4) ? 40 : 600));
            if (n > d.outputs - i) n = d.outputs - i;
            fir_run(s, scalar_at(f64, d.y, i), scalar_at(f64, d.x, d.history + i), d.h, n, d.taps);
        }
        assert_memory_equal(whole, d.y, d.outputs * scalar);
        test_free(whole);
        fir_data_free(&d);
    }
}

static void test_select(void **state)
{
    (void)state;
    for (enum cpu_isa isa = CPU_C; isa <= CPU_AVX512; isa++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(isa, f64);
            assert_non_null(k);
            assert_int_equal(k->f64, f64);
            if (isa <= cpu_detect() && (isa == CPU_C || isa == cpu_detect()))
                assert_string_equal(k->isa, cpu_isa_name(isa));
        }
}

static void test_cpu_limit(void **state)
{
    (void)state;
    for (enum cpu_isa best = CPU_C; best <= CPU_AVX512; best++) {
        for (enum cpu_isa isa = CPU_C; isa <= CPU_AVX512; isa++)
            assert_int_equal(cpu_lower(best, cpu_isa_name(isa)), isa < best ? isa : best);
        assert_int_equal(cpu_lower(best, "mmx"), best);
        assert_int_equal(cpu_lower(best, NULL), best);
    }
    assert_int_equal(cpu_detect(), cpu_lower(CPU_AVX512, cpu_isa_name(cpu_detect())));
}

static struct subject subjects[2 * MAX_LEVELS][FIR_TYPES];
static struct kernel_subject others[2 * MAX_LEVELS]; // kernels without variants
static struct CMUnitTest tests[MAX_TESTS];
static size_t n_tests;

static void add_test(CMUnitTestFunction function, const void *state, const char *subject,
                     const char *what)
{
    assert_true(n_tests < MAX_TESTS);
    tests[n_tests++] = named_test(function, state, "%s: %s", subject, what);
}

static void add_table(const struct kernels *k, struct subject *s, struct kernel_subject *other)
{
    for (enum fir_type variant = 0; variant < FIR_TYPES; variant++) {
        s[variant] = (struct subject){.kernels = k, .variant = variant};
        snprintf(s[variant].name, sizeof s->name, "%s-%s-%s", variant_names[variant],
                 k->f64 ? "f64" : "f32", k->isa);
        add_test(test_fir_tails, &s[variant], s[variant].name, "every tail, 1 to 200 taps");
        add_test(test_fir_long, &s[variant], s[variant].name, "many taps, many outputs");
        add_test(test_fir_error, &s[variant], s[variant].name, "error");
        add_test(test_fir_extreme, &s[variant], s[variant].name, "hostile values");
        add_test(test_fir_splits, &s[variant], s[variant].name, "cut anywhere");
    }
    other->kernels = k;
    snprintf(other->name, sizeof other->name, "%s-%s", k->f64 ? "f64" : "f32", k->isa);
    add_test(test_cmac, other, other->name, "cmac");
    add_test(test_cmac_same_bits, other, other->name, "cmac, same bits");
    add_test(test_add_and_scale, other, other->name, "add, scale");
    add_test(test_split_and_join, other, other->name, "split, join");
}

int main(void)
{
    unsetenv("PARTITA_CPU"); // all instruction sets are tested here
    size_t n_tables = 0;
    for (int i = 0; i < MAX_TABLES; i++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = tested_kernels(i, f64);
            if (k) {
                add_table(k, subjects[n_tables], &others[n_tables]);
                n_tables++;
            }
        }
    add_test(test_select, NULL, "kernels", "select");
    add_test(test_cpu_limit, NULL, "kernels", "PARTITA_CPU");
    return run_test_list(tests, n_tests);
}
