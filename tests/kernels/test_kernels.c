// SPDX-License-Identifier: MIT
// Kernels for every instruction set of this machine against the contract of kernels.h: values
// against sums in twice the precision, NaNs and infinities in the right outputs, all tails, no
// access outside the stated ranges, and the same bits however calls are split. The C reference has
// the same tests, so that each instruction set also agrees with it.
#include "support/kernel_check.h"

#include <stdio.h>

enum fir_variant { REAL_SIGNAL, COMPLEX_SIGNAL, COMPLEX_TAPS, N_VARIANTS };
static const char *const variant_names[N_VARIANTS] = {"fir", "fir-step-2", "fir-complex"};

enum { MAX_LEVELS = CPU_AVX512 + 1, MAX_TESTS = 256 };

// The kernel under test. Sizes count reals, also for complex numbers.
struct subject {
    const struct kernels *kernels;
    enum fir_variant variant;
    char name[48];
};

static size_t reals_in_sample(enum fir_variant variant)
{
    return variant == REAL_SIGNAL ? 1 : 2;
}

static size_t reals_in_tap(enum fir_variant variant)
{
    return variant == COMPLEX_TAPS ? 2 : 1;
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
        if (s->variant != COMPLEX_TAPS) continue;
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
    if (s->variant == COMPLEX_TAPS) s->kernels->fir_complex(y, x, h, n / 2, taps);
    else s->kernels->fir(y, x, h, n, taps, reals_in_sample(s->variant));
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
    for (size_t n = first; n <= last; n += reals_in_tap(s->variant))
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
    const size_t scalar = scalar_size(f64), step = reals_in_tap(s->variant);
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

// Spectra: blocks of real lanes and imaginary lanes.

enum { MAX_TERMS = 40, MAX_BLOCKS = 11, MAX_STRIDE = 13 };

struct cmac_data {
    size_t terms, blocks, x_stride, h_stride;
    char *x, *h; // aligned
};

static size_t blocks_read(size_t terms, size_t stride, size_t blocks)
{
    return terms ? (terms - 1) * stride + blocks : 0;
}

// Random blocks where the kernel reads, NaN in the gaps.
static char *spectra_make(struct random *random, bool f64, const struct cmac_data *d, size_t stride,
                          bool tame)
{
    const size_t block = SPECTRUM_LINE_BYTES, reals = 2 * block_lanes(f64);
    const size_t bytes = blocks_read(d->terms, stride, d->blocks) * block;
    char *x = guarded_alloc(bytes, 0); // filled with NaN
    for (size_t t = 0; t < d->terms; t++) {
        fill_random(random, f64, x + t * stride * block, d->blocks * reals);
        for (size_t k = random_below(random, 8); !tame && d->blocks && k > 0; k--)
            scalar_put(f64, x + t * stride * block, random_below(random, d->blocks * reals),
                       extreme_value(random, f64, false));
    }
    return x;
}

static struct sum cmac_sum(bool f64, const struct cmac_data *d, size_t block, size_t lane,
                           bool imaginary)
{
    const size_t reals = 2 * block_lanes(f64), half = block_lanes(f64);
    struct sum sum = {0};
    for (size_t t = 0; t < d->terms; t++) {
        const size_t xi = (t * d->x_stride + block) * reals + lane,
                     hi = (t * d->h_stride + block) * reals + lane;
        const double xr = scalar_get(f64, d->x, xi), hr = scalar_get(f64, d->h, hi);
        const double xm = scalar_get(f64, d->x, xi + half), hm = scalar_get(f64, d->h, hi + half);
        sum_product(&sum, xr, imaginary ? hm : hr);
        sum_product(&sum, imaginary ? xm : -xm, imaginary ? hr : hm);
    }
    return sum;
}

static void cmac_compare(bool f64, const struct cmac_data *d, const void *y)
{
    const size_t lanes = block_lanes(f64);
    for (size_t i = 0; i < 2 * lanes * d->blocks; i++) {
        const struct sum sum = cmac_sum(f64, d, i / (2 * lanes), i % lanes, i / lanes % 2);
        if (!agrees(&sum, f64, scalar_get(f64, y, i),
                    d->terms + 1)) // those of its real or imaginary part, and one for both
            fail_msg("%zu terms, real %zu of %zu blocks: %.17g, not %.17g", d->terms, i, d->blocks,
                     scalar_get(f64, y, i), sum_value(&sum));
    }
}

static void cmac_check(const struct kernels *k, struct random *random, bool tame)
{
    const bool f64 = k->f64;
    const size_t block = SPECTRUM_LINE_BYTES;
    struct cmac_data d = {.terms = random_below(random, MAX_TERMS),
                          .blocks = random_below(random, MAX_BLOCKS)};
    d.x_stride = random_below(random, 4) ? d.blocks + random_below(random, 3)
                                         : random_below(random, MAX_STRIDE);
    d.h_stride = random_below(random, 4) ? d.blocks + random_below(random, 3)
                                         : random_below(random, MAX_STRIDE);
    d.x = spectra_make(random, f64, &d, d.x_stride, tame);
    d.h = spectra_make(random, f64, &d, d.h_stride, true);
    for (size_t i = 0; i < blocks_read(d.terms, d.h_stride, d.blocks) * 2 * block_lanes(f64); i++)
        scalar_put(f64, d.h, i,
                   scalar_get(f64, d.h, i) /
                       (double)(4 * d.terms)); // sums of huge values stay finite
    const size_t x_bytes = blocks_read(d.terms, d.x_stride, d.blocks) * block;
    const size_t h_bytes = blocks_read(d.terms, d.h_stride, d.blocks) * block,
                 y_bytes = d.blocks * block;
    struct fence fx = fence_open(x_bytes), fh = fence_open(h_bytes), fy = fence_open(y_bytes);
    for (enum edge edge = 0; edge < N_EDGES; edge++) {
        void *y = fence_put(&fy, NULL, y_bytes, edge);
        k->cmac(y, fence_put(&fx, d.x, x_bytes, edge), d.x_stride,
                fence_put(&fh, d.h, h_bytes, edge), d.h_stride, d.terms, d.blocks);
        cmac_compare(f64, &d, y);
        fence_check(&fy, y_bytes, edge);
    }
    fence_close(&fx);
    fence_close(&fh);
    fence_close(&fy);
    guarded_free(d.x);
    guarded_free(d.h);
}

static void test_cmac(void **state)
{
    const struct subject *s = *state;
    struct random random = random_start(s->name);
    for (int round = 0; round < 600; round++) cmac_check(s->kernels, &random, round % 3);
}

// A block has the same bits alone as among others, and a product may replace either factor.
static void test_cmac_same_bits(void **state)
{
    const struct subject *s = *state;
    const struct kernels *k = s->kernels;
    struct random random = random_start(s->name);
    const size_t block = SPECTRUM_LINE_BYTES;
    for (int round = 0; round < 100; round++) {
        struct cmac_data d = {.terms = 1 + random_below(&random, 9),
                              .blocks = 1 + random_below(&random, MAX_BLOCKS)};
        d.x_stride = d.h_stride = d.blocks;
        d.x = spectra_make(&random, k->f64, &d, d.x_stride, true);
        d.h = spectra_make(&random, k->f64, &d, d.h_stride, true);
        char *whole = guarded_alloc(d.blocks * block, 0),
             *alone = guarded_alloc(d.blocks * block, 0);
        k->cmac(whole, d.x, d.blocks, d.h, d.blocks, d.terms, d.blocks);
        for (size_t b = 0; b < d.blocks; b++)
            k->cmac(alone + b * block, d.x + b * block, d.blocks, d.h + b * block, d.blocks,
                    d.terms, 1);
        assert_memory_equal(whole, alone, d.blocks * block);
        k->cmac(whole, d.x, 0, d.h, 0, 1, d.blocks);
        char *replaced = round % 2 ? d.x : d.h;
        k->cmac(replaced, d.x, 0, d.h, 0, 1, d.blocks);
        assert_memory_equal(whole, replaced, d.blocks * block);
        guarded_free(whole);
        guarded_free(alone);
        guarded_free(d.x);
        guarded_free(d.h);
    }
}

// Loops. Each result is one rounding of exact operands, or a copy, so results are compared by their
// bits.

enum { MAX_LOOP = 150 };

static void test_add_and_scale(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    const size_t scalar = scalar_size(f64);
    double x[MAX_LOOP], before[MAX_LOOP];
    struct fence fx = fence_open(sizeof x), fy = fence_open(sizeof x);
    for (size_t round = 0; round < (MAX_LOOP + 1) * N_EDGES; round++) {
        const size_t n = round / N_EDGES;
        const enum edge edge = round % N_EDGES;
        fill_random(&random, f64, x, n);
        fill_random(&random, f64, before, n);
        if (n) scalar_put(f64, x, random_below(&random, n), extreme_value(&random, f64, false));
        const void *in = fence_put(&fx, x, n * scalar, edge);
        void *y = fence_put(&fy, before, n * scalar, edge);
        s->kernels->add(y, in, n);
        for (size_t i = 0; i < n; i++)
            assert_same(f64, y, i, scalar_get(f64, before, i) + scalar_get(f64, x, i));
        s->kernels->scale(y, in, 1.0 / 3, n);
        const double third = f64 ? 1.0 / 3 : (double)(float)(1.0 / 3);
        for (size_t i = 0; i < n; i++) assert_same(f64, y, i, third * scalar_get(f64, x, i));
        s->kernels->add(y, in, n);
        memcpy(before, y, n * scalar);
        s->kernels->scale(y, y, -2, n);
        for (size_t i = 0; i < n; i++) assert_same(f64, y, i, -2 * scalar_get(f64, before, i));
        fence_check(&fx, n * scalar, edge);
        fence_check(&fy, n * scalar, edge);
    }
    fence_close(&fx);
    fence_close(&fy);
}

static void test_split_and_join(void **state)
{
    const struct subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    const size_t scalar = scalar_size(f64), lanes = block_lanes(f64);
    double x[2 * MAX_LOOP];
    struct fence fx = fence_open(sizeof x), fy = fence_open(sizeof x + SPECTRUM_LINE_BYTES);
    for (size_t round = 0; round < (MAX_LOOP + 1) * N_EDGES; round++) {
        const size_t n = round / N_EDGES, blocks = (n + lanes - 1) / lanes;
        const size_t x_bytes = 2 * n * scalar, y_bytes = blocks * SPECTRUM_LINE_BYTES;
        const enum edge edge = round % N_EDGES;
        fill_random(&random, f64, x, 2 * n);
        if (n) scalar_put(f64, x, random_below(&random, 2 * n), extreme_value(&random, f64, false));
        void *in = fence_put(&fx, x, x_bytes, edge), *y = fence_put(&fy, NULL, y_bytes, edge);
        s->kernels->split(y, in, n);
        for (size_t i = 0; i < blocks * 2 * lanes; i++) {
            const size_t bin = i / (2 * lanes) * lanes + i % lanes;
            assert_same(f64, y, i, bin < n ? scalar_get(f64, x, 2 * bin + i / lanes % 2) : 0);
        }
        memset(in, ZONE_VALUE, x_bytes);
        s->kernels->join(in, y, n);
        if (n) assert_memory_equal(in, x, x_bytes);
        fence_check(&fx, x_bytes, edge);
        fence_check(&fy, y_bytes, edge);
    }
    fence_close(&fx);
    fence_close(&fy);
}

static void test_select(void **state)
{
    (void)state;
    for (enum cpu_isa level = CPU_C; level <= CPU_AVX512; level++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(level, f64);
            assert_non_null(k);
            assert_int_equal(k->f64, f64);
            if (level <= cpu_detect() && (level == CPU_C || level == cpu_detect()))
                assert_string_equal(k->isa, cpu_isa_name(level));
        }
}

static void test_cpu_limit(void **state)
{
    (void)state;
    unsetenv("PARTITA_CPU");
    const enum cpu_isa best = cpu_detect();
    for (enum cpu_isa level = CPU_C; level <= CPU_AVX512; level++) {
        setenv("PARTITA_CPU", cpu_isa_name(level), 1);
        assert_int_equal(cpu_detect(), level < best ? level : best);
    }
    setenv("PARTITA_CPU", "mmx", 1);
    assert_int_equal(cpu_detect(), best);
    unsetenv("PARTITA_CPU");
    assert_true(cpu_count() >= 1);
}

// The last of each row is for kernels without variants.
static struct subject subjects[2 * MAX_LEVELS][N_VARIANTS + 1];
static struct CMUnitTest tests[MAX_TESTS];
static size_t n_tests;

static void add_test(CMUnitTestFunction function, const struct subject *s, const char *what)
{
    assert_true(n_tests < MAX_TESTS);
    tests[n_tests++] = named_test(function, s, "%s: %s", s ? s->name : "kernels", what);
}

static void add_table(const struct kernels *k, struct subject *s)
{
    for (enum fir_variant variant = 0; variant < N_VARIANTS; variant++) {
        s[variant] = (struct subject){.kernels = k, .variant = variant};
        snprintf(s[variant].name, sizeof s->name, "%s-%s-%s", variant_names[variant],
                 k->f64 ? "f64" : "f32", k->isa);
        add_test(test_fir_tails, &s[variant], "every tail, 1 to 200 taps");
        add_test(test_fir_long, &s[variant], "many taps, many outputs");
        add_test(test_fir_error, &s[variant], "error");
        add_test(test_fir_extreme, &s[variant], "hostile values");
        add_test(test_fir_splits, &s[variant], "cut anywhere");
    }
    struct subject *all = &s[N_VARIANTS];
    *all = (struct subject){.kernels = k};
    snprintf(all->name, sizeof all->name, "%s-%s", k->f64 ? "f64" : "f32", k->isa);
    add_test(test_cmac, all, "cmac");
    add_test(test_cmac_same_bits, all, "cmac, same bits");
    add_test(test_add_and_scale, all, "add, scale");
    add_test(test_split_and_join, all, "split, join");
}

int main(void)
{
    unsetenv("PARTITA_CPU"); // all instruction sets are tested here
    size_t n_tables = 0;
    for (enum cpu_isa level = CPU_C; level <= cpu_detect(); level++)
        for (int f64 = 0; f64 < 2; f64++) {
            const struct kernels *k = kernels_select(level, f64);
            if (!strcmp(k->isa, cpu_isa_name(level))) add_table(k, subjects[n_tables++]);
        }
    add_test(test_select, NULL, "select");
    add_test(test_cpu_limit, NULL, "PARTITA_CPU");
    return run_test_list(tests, n_tests);
}
