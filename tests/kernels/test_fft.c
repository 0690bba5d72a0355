// SPDX-License-Identifier: MIT
// Transforms (lib/fft/fft.h), white box: products of spectra are convolutions where nothing wraps
// around, for every good size, real and complex, in both precisions, with each provider that is
// built.

#include "fft/fft.h" // before complex.h, since it has a field of that name

#include "kernels/kernels.h"
#include "support/test.h"

#undef complex
#include <math.h>
#include <stdio.h>

enum { FAST_LIMIT = 5000, SLOW_LIMIT = 300000, SAMPLED = 200 };

struct fft_case {
    size_t n;
    bool f64, complex;
};

// A transform, two signals and working memory; all but x and h are aligned as fft.h requires.
struct lab {
    struct fft *fft;
    enum partita_type type;
    size_t n;
    char *x, *h, *y, *spectrum_x, *spectrum_h, *scratch;
};

static void lab_open(struct lab *lab, const struct fft_case *c, bool measure)
{
    static const struct partita_allocator plain;
    struct fft_request request = {
        .n = c->n, .f64 = c->f64, .complex = c->complex, .measure = measure, .isa = cpu_detect()};
    assert_ok(fft_create(&request, &plain, &lab->fft));
    assert_int_equal(lab->fft->n, c->n);
    assert_int_equal(lab->fft->spectrum_bytes, lab->fft->lines * SPECTRUM_LINE_BYTES);
    lab->n = c->n;
    lab->type = (enum partita_type)(PARTITA_F32 + c->f64 + 2 * c->complex);
    size_t bytes = c->n * partita_type_size(lab->type), scalar = c->f64 ? 8 : 4;
    lab->x = guarded_alloc(bytes, scalar);
    lab->h = guarded_alloc(bytes, scalar);
    lab->y = guarded_alloc(bytes, 3 * scalar);
    lab->spectrum_x = guarded_alloc(lab->fft->spectrum_bytes, 0);
    lab->spectrum_h = guarded_alloc(lab->fft->spectrum_bytes, 0);
    lab->scratch = guarded_alloc(lab->fft->scratch_bytes, 0);
}

static void lab_close(struct lab *lab)
{
    fft_destroy(lab->fft);
    guarded_free(lab->x);
    guarded_free(lab->h);
    guarded_free(lab->y);
    guarded_free(lab->spectrum_x);
    guarded_free(lab->spectrum_h);
    guarded_free(lab->scratch);
}

// Computes y, the samples of the product of both spectra, without the transforms' gain.
static void multiply(struct lab *lab)
{
    const struct kernels *kernels = kernels_select(cpu_detect(), type_is_f64(lab->type));
    size_t blocks = lab->fft->lines;
    fft_forward(lab->fft, lab->spectrum_x, lab->x, lab->scratch);
    fft_forward(lab->fft, lab->spectrum_h, lab->h, lab->scratch);
    kernels->cmac(lab->spectrum_x, lab->spectrum_x, blocks, lab->spectrum_h, blocks, 1, blocks);
    fft_inverse(lab->fft, lab->y, lab->spectrum_x, lab->scratch);
    for (size_t i = 0; i < lab->n; i++) {
        sample_put(lab->type, lab->y, i, reference_sample(lab->type, lab->y, i) / lab->fft->gain);
    }
}

// A transform split into random steps has the same bits as the whole.
static void check_steps(struct lab *lab, struct random *random)
{
    const size_t bytes = lab->fft->spectrum_bytes, steps = lab->fft->steps;
    const size_t sample = partita_type_size(lab->type);
    const enum fft_part part = random_below(random, 2) ? FFT_UPPER : FFT_WHOLE;
    char *y = guarded_alloc(lab->n * sample, 0);
    assert_true(steps >= 1);
    fft_forward(lab->fft, lab->spectrum_x, lab->x, lab->scratch);
    for (size_t at = 0, n; at < steps; at += n) {
        n = 1 + random_below(random, random_below(random, 2) ? 3 : steps - at);
        if (n > steps - at) n = steps - at;
        fft_forward_steps(lab->fft, lab->spectrum_h, lab->x, lab->scratch,
                          (struct fft_steps){at, at + n});
    }
    assert_memory_equal(lab->spectrum_h, lab->spectrum_x, bytes);
    fft_inverse_steps(lab->fft, lab->y, lab->spectrum_x, lab->scratch, (struct fft_steps){0, steps},
                      part);
    for (size_t at = 0, n; at < steps; at += n) {
        n = 1 + random_below(random, random_below(random, 2) ? 3 : steps - at);
        if (n > steps - at) n = steps - at;
        fft_inverse_steps(lab->fft, y, lab->spectrum_h, lab->scratch,
                          (struct fft_steps){at, at + n}, part);
    }
    const size_t from = part == FFT_UPPER ? lab->n / 2 * sample : 0;
    assert_memory_equal(y + from, lab->y + from, lab->n * sample - from);
    guarded_free(y);
}

// Spectrum lines with a stride have the same bits as adjacent ones, and nothing between them is
// written.
static void check_apart(struct lab *lab, struct random *random)
{
    enum { BLOCK = SPECTRUM_LINE_BYTES };
    const size_t blocks = lab->fft->lines, steps = lab->fft->steps;
    const size_t stride = BLOCK * (1 + random_below(random, 4));
    char *apart = guarded_alloc(blocks * stride, 0);
    const struct fft_target target = {apart, lab->spectrum_h, stride};
    memset(apart, 0x5a, blocks * stride);
    fft_forward(lab->fft, lab->spectrum_x, lab->x, lab->scratch);
    for (size_t at = 0, n; at < steps; at += n) {
        n = 1 + random_below(random, steps - at);
        fft_forward_apart(lab->fft, &target, lab->x, lab->scratch, (struct fft_steps){at, at + n});
    }
    for (size_t i = 0; i < blocks * stride; i++) {
        const char expected =
            i % stride < BLOCK ? lab->spectrum_x[i / stride * BLOCK + i % stride] : 0x5a;
        if (apart[i] != expected) fail_msg("n %zu, stride %zu: byte %zu", lab->n, stride, i);
    }
    guarded_free(apart);
}

// Fails unless a and b are as close as two transforms of the same samples.
static void check_close(const struct lab *lab, const void *a, const void *b, size_t bytes)
{
    const bool f64 = type_is_f64(lab->type);
    double error = 0, norm = 0, gate = gate_transform(lab->type, lab->n);
    for (size_t i = 0; i < bytes / (f64 ? 8 : 4); i++) {
        const double x = f64 ? ((const double *)a)[i] : ((const float *)a)[i];
        const double y = f64 ? ((const double *)b)[i] : ((const float *)b)[i];
        error += (x - y) * (x - y);
        norm += y * y;
    }
    assert_true(error <= gate * gate * norm);
}

// The transform of half of the samples has the spectrum of these with zeros behind them, and the
// inverse to half has the first half of the samples.
static void check_half(struct lab *lab)
{
    const size_t half = lab->n / 2, sample = partita_type_size(lab->type);
    char *whole = guarded_alloc(lab->n * sample, sample), *x = guarded_alloc(half * sample, sample);
    memcpy(lab->y, lab->x, half * sample);
    memcpy(x, lab->x, half * sample);
    memset((char *)lab->y + half * sample, 0, half * sample);
    fft_forward(lab->fft, lab->spectrum_x, lab->y, lab->scratch);
    fft_forward_half(lab->fft, lab->spectrum_h, x, whole, lab->scratch);
    check_close(lab, lab->spectrum_h, lab->spectrum_x, lab->fft->spectrum_bytes);
    fft_forward(lab->fft, lab->spectrum_x, lab->x, lab->scratch);
    fft_forward(lab->fft, lab->spectrum_h, lab->x, lab->scratch);
    fft_inverse(lab->fft, lab->y, lab->spectrum_x, lab->scratch);
    fft_inverse_half(lab->fft, x, lab->spectrum_h, whole, lab->scratch);
    check_close(lab, x, lab->y, half * sample);
    guarded_free(whole);
    guarded_free(x);
}

// Compares outputs first .. last-1 of the convolution of x with the first m samples of h with
// direct sums; a random part of them if there are many.
static void check_outputs(const struct lab *lab, struct random *random, size_t m, size_t first,
                          size_t last)
{
    size_t n_checked = last - first < SAMPLED ? last - first : SAMPLED;
    double error = 0, norm = 0;
    for (size_t i = 0; i < n_checked; i++) {
        size_t at = n_checked < SAMPLED ? first + i : first + random_below(random, last - first);
        long double re = 0, im = 0;
        for (size_t j = 0; j < m && j <= at; j++) {
            double _Complex a = reference_sample(lab->type, lab->x, at - j),
                            b = reference_sample(lab->type, lab->h, j);
            re += (long double)creal(a) * creal(b) - (long double)cimag(a) * cimag(b);
            im += (long double)creal(a) * cimag(b) + (long double)cimag(a) * creal(b);
        }
        double _Complex y = reference_sample(lab->type, lab->y, at);
        error += pow(creal(y) - (double)re, 2) + pow(cimag(y) - (double)im, 2);
        norm += pow((double)re, 2) + pow((double)im, 2);
    }
    double typical = (type_is_complex(lab->type) ? 4.0 : 1.0) / 9 * (double)m * (double)n_checked;
    double relative = sqrt(error / (norm > typical ? norm : typical));
    double gate = gate_for_outputs(gate_transform(lab->type, lab->n), n_checked);
    if (!(relative <= gate))
        fail_msg("n %zu, m %zu: error %.3g above %.3g", lab->n, m, relative, gate);
}

static void fill(struct lab *lab, struct random *random, size_t n_x, size_t n_h)
{
    size_t bytes = partita_type_size(lab->type);
    random_samples(random, lab->type, lab->x, n_x);
    random_samples(random, lab->type, lab->h, n_h);
    memset(lab->x + n_x * bytes, 0, (lab->n - n_x) * bytes);
    memset(lab->h + n_h * bytes, 0, (lab->n - n_h) * bytes);
}

static void products_are_convolutions(void **state)
{
    const struct fft_case *c = *state;
    struct random random = random_start("fft");
    struct lab lab;
    lab_open(&lab, c, false);
    size_t bytes = c->n * partita_type_size(lab.type), half = (c->n + 1) / 2;
    char *kept = malloc(bytes);
    fill(&lab, &random, c->n - half + 1, half); // nothing wraps around: overlap-add
    memcpy(kept, lab.x, bytes);
    multiply(&lab);
    assert_memory_equal(kept, lab.x, bytes);
    check_outputs(&lab, &random, half, 0, c->n);
    for (size_t m = 1; m <= c->n;
         m = m < 3 ? m + 1 : m * 5 - 1) { // a full block of x: overlap-save
        fill(&lab, &random, c->n, m);
        multiply(&lab);
        check_outputs(&lab, &random, m, m - 1, c->n);
    }
    free(kept);
    lab_close(&lab);
}

// Forward and inverse together are the identity times the gain, with any alignment and the same
// bits each time.
static void round_trip(void **state)
{
    const struct fft_case *c = *state;
    struct random random = random_start("round");
    struct lab lab;
    lab_open(&lab, c, false);
    fill(&lab, &random, c->n, c->n);
    double _Complex *expected = malloc(c->n * sizeof *expected);
    for (size_t i = 0; i < c->n; i++)
        expected[i] = lab.fft->gain * reference_sample(lab.type, lab.x, i);
    size_t bytes = c->n * partita_type_size(lab.type), scalar = c->f64 ? 8 : 4;
    char *first = malloc(bytes);
    for (size_t offset = 0; offset < 64; offset += scalar) {
        char *x = guarded_alloc(bytes, offset), *y = guarded_alloc(bytes, 64 - scalar - offset);
        memcpy(x, lab.x, bytes);
        fft_forward(lab.fft, lab.spectrum_x, x, lab.scratch);
        fft_inverse(lab.fft, y, lab.spectrum_x, lab.scratch);
        if (offset == 0) memcpy(first, y, bytes);
        assert_memory_equal(first, y, bytes);
        guarded_free(x);
        guarded_free(y);
    }
    assert_true(error_against(lab.type, first, expected, c->n, 0) <=
                gate_for_outputs(gate_transform(lab.type, c->n), c->n));
    free(first);
    free(expected);
    lab_close(&lab);
}

// h has samples in its first half and x in its second half. Rotation by half the transform moves
// each onto the other's samples, negated where it wraps around; checked on their sums, with the
// spectrum lines in two calls.
static void rotated_by_half(void **state)
{
    const struct fft_case *c = *state;
    struct random random = random_start("turned");
    struct lab lab;
    lab_open(&lab, c, false);
    const size_t half = c->n / 2, bytes = partita_type_size(lab.type), blocks = lab.fft->lines,
                 split = blocks / 3;
    for (int back = 0; back < 2; back++) {
        fill(&lab, &random, c->n, c->n);
        double _Complex *expected = malloc(half * sizeof *expected);
        memset(back ? lab.x : lab.x + half * bytes, 0, half * bytes);
        memset(back ? lab.h + half * bytes : lab.h, 0, half * bytes);
        for (size_t i = 0; i < half; i++)
            expected[i] = reference_sample(lab.type, lab.x, back ? half + i : i) +
                          reference_sample(lab.type, lab.h, back ? i : half + i);
        fft_forward(lab.fft, lab.spectrum_x, lab.x, lab.scratch);
        fft_forward(lab.fft, lab.spectrum_h, lab.h, lab.scratch);
        const size_t at = split * SPECTRUM_LINE_BYTES;
        fft_add_rotated(lab.fft, lab.spectrum_h, lab.spectrum_x, 0, split, back);
        fft_add_rotated(lab.fft, lab.spectrum_h + at, lab.spectrum_x + at, split, blocks - split,
                        back);
        fft_inverse(lab.fft, lab.y, lab.spectrum_h, lab.scratch);
        for (size_t i = 0; i < c->n; i++)
            sample_put(lab.type, lab.y, i, reference_sample(lab.type, lab.y, i) / lab.fft->gain);
        const double gate = gate_for_outputs(gate_transform(lab.type, c->n), half);
        assert_true(error_against(lab.type, back ? lab.y : lab.y + half * bytes, expected, half,
                                  0) <= gate);
        free(expected);
    }
    lab_close(&lab);
}

static void steps_are_the_whole(void **state)
{
    struct random random = random_start("steps");
    struct lab lab;
    lab_open(&lab, *state, false);
    fill(&lab, &random, lab.n, lab.n);
    check_steps(&lab, &random);
    check_apart(&lab, &random);
    check_half(&lab);
    lab_close(&lab);
}

static void good_sizes(void **state)
{
    (void)state;
    size_t last = 0;
    for (size_t n = 1; n < 70000; n++) {
        size_t good = fft_good_size(n);
        assert_true(good >= n);
        assert_true(good >= last);
        assert_true(
            good <
            2 * n + fft_good_size(1)); // rounding up never doubles a size above the smallest one
        assert_int_equal(fft_good_size(good), good);
        last = good;
    }
    assert_int_equal(fft_good_size(SIZE_MAX), 0);
    assert_int_equal(fft_good_size((size_t)1 << 60), 0);
    struct fft *fft = (struct fft *)1;
    struct fft_request request = {.n = 17, .isa = cpu_detect()};
    static const struct partita_allocator plain;
    assert_true(fft_good_size(17) > 17);
#ifdef HAVE_FFTW
    assert_ok(fft_create(&request, &plain, &fft));
    fft_destroy(fft);
#else
    assert_int_equal(fft_create(&request, &plain, &fft), PARTITA_ERR_UNSUPPORTED);
    assert_ptr_equal(fft, (struct fft *)1);
#endif
    fft_destroy(NULL);
}

static const char *provider_of(size_t n)
{
    static const struct partita_allocator plain;
    const struct fft_request request = {.n = n, .isa = cpu_detect()};
    struct fft *fft;
    assert_int_equal(fft_create(&request, &plain, &fft), PARTITA_OK);
    const char *name = fft_provider(fft);
    fft_destroy(fft);
    return name;
}

static void times_interpolate_within_a_provider(void **state)
{
    (void)state;
    for (size_t n = fft_good_size(1); n < 5000; n = fft_good_size(n + 1)) {
        size_t power = fft_good_size(1);
        while (power < n) power *= 2;
        assert_true(fft_interpolates(n) == !strcmp(provider_of(n), provider_of(power)));
    }
}

static void measured_plan_is_as_exact(void **state)
{
    struct fft_case c = *(const struct fft_case *)*state;
    struct random random = random_start("measure");
    struct lab lab;
    lab_open(&lab, &c, true);
    fill(&lab, &random, c.n / 2, c.n / 2);
    multiply(&lab);
    check_outputs(&lab, &random, c.n / 2, 0, c.n - 1);
    lab_close(&lab);
}

static struct fft_case cases[1000];
static struct CMUnitTest tests[4000];
static size_t n_cases, n_tests;

static void add_tests(size_t size, bool slow)
{
    for (int kind = 0; kind < 4; kind++) {
        struct fft_case *c = &cases[n_cases++];
        *c = (struct fft_case){size, kind & 1, kind & 2};
        const char *name = partita_type_name((enum partita_type)(PARTITA_F32 + kind));
        tests[n_tests++] =
            named_test(products_are_convolutions, c, "convolution-%zu-%s", size, name);
        tests[n_tests++] = named_test(steps_are_the_whole, c, "steps-%zu-%s", size, name);
        tests[n_tests++] = named_test(rotated_by_half, c, "turned-%zu-%s", size, name);
        if (!slow) tests[n_tests++] = named_test(round_trip, c, "round-trip-%zu-%s", size, name);
    }
}

int main(int n_arguments, char **arguments)
{
    static const size_t several_odd[] = {1152, 1920, 3200, 3456, 5760};
    bool slow = n_arguments > 1 && strcmp(arguments[1], "slow") == 0;
    size_t from = slow ? FAST_LIMIT : 1, to = slow ? SLOW_LIMIT : FAST_LIMIT;
    for (size_t i = 0; !slow && i < sizeof several_odd / sizeof *several_odd; i++)
        add_tests(several_odd[i], slow);
    for (size_t size = fft_good_size(from); size <= to; size = fft_good_size(size + 1))
        add_tests(size, slow);
    if (!slow) {
        tests[n_tests++] = named_test(good_sizes, NULL, "good-sizes");
        tests[n_tests++] = named_test(times_interpolate_within_a_provider, NULL, "interpolation");
        tests[n_tests++] =
            named_test(measured_plan_is_as_exact, &cases[n_cases - 4], "measured-f32");
        tests[n_tests++] =
            named_test(measured_plan_is_as_exact, &cases[n_cases - 1], "measured-cf64");
    }
    return run_test_list(tests, n_tests);
}
