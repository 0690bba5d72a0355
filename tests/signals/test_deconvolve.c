// SPDX-License-Identifier: MIT
// Deconvolution: responses that are known, of signals whose spectra are known.

#include "support/allocators.h"
#include "support/test.h"

#include <math.h>

// For |S|^2 = q p the result is the response times q^2 / (q^2 + t^2), t = 1e-6.
static const double THRESHOLD = 1e-6;

// Three transforms and a division by the spectrum, of which no bin is below 1/3 of the largest.
static double gate(size_t n)
{
    return 3 * gate_transform(PARTITA_F64, 4 * n);
}

static double *recording_of(const double *signal, size_t m, const double *h, size_t n)
{
    double complex *sums = calloc(n + m - 1, sizeof *sums);
    double *recording = calloc(n + m - 1, sizeof *recording);
    const struct partita_problem p = {.signal = PARTITA_F64,
                                      .taps = PARTITA_F64,
                                      .kernel = {m},
                                      .size = {n},
                                      .pad_begin = {(ptrdiff_t)m - 1},
                                      .pad_end = {(ptrdiff_t)m - 1}};
    reference_forward(&p, sums, h, signal);
    for (size_t i = 0; i < n + m - 1; i++) recording[i] = creal(sums[i]);
    free(sums);
    return recording;
}

// The echo of half the amplitude 7 frames later leaves every bin between 1/2 and 3/2, so that q is
// at least 1/9 and the weight at least 1 - 81 t^2. Of a signal that is late the response is early.
static void known_responses(void **state)
{
    static const size_t sizes[][2] = {{8, 1}, {8, 8}, {8, 50}, {40, 300}, {3000, 1000}};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t m = sizes[k][0], n = sizes[k][1], all = n + m - 1;
        struct random random = random_start("responses");
        double *h = calloc(all, sizeof *h), *signal = calloc(m, sizeof *signal);
        random_samples(&random, PARTITA_F64, h, n);
        signal[0] = -3e4;
        signal[7] = 1.5e4;
        double *recording = recording_of(signal, m, h, n);
        double *got = guarded_alloc(all * sizeof *got, 8);
        assert_ok(partita_deconvolve(got, recording, all, signal, m, NULL));
        double complex *expected = calloc(all, sizeof *expected);
        for (size_t i = 0; i < all; i++) expected[i] = h[i];
        const double error = error_against(PARTITA_F64, got, expected, all, 0);
        if (!(error <= gate(all) + 81 * THRESHOLD * THRESHOLD))
            fail_msg("%zu and %zu samples: error %.3g", m, n, error);
        assert_ok(partita_deconvolve(recording, recording, all, signal, m, NULL)); // in place
        assert_memory_equal(recording, got, all * sizeof *got);
        guarded_free(got);
        free(expected);
        free(recording);
        free(signal);
        free(h);
    }
}

// A recording that begins after the signal has its response at a negative lag, which must not
// appear anywhere else.
static void negative_lags_do_not_wrap(void **state)
{
    (void)state;
    for (size_t n = 1; n < 40; n++)
        for (size_t late = 1; late < 30; late++) {
            double signal[30] = {0}, recording[40] = {0}, h[40];
            signal[late] = 1;
            recording[0] = 1;
            assert_ok(partita_deconvolve(h, recording, n, signal, late + 1, NULL));
            for (size_t i = 0; i < n; i++)
                if (!(fabs(h[i]) < 1e-12))
                    fail_msg("lag -%zu of %zu: h[%zu] = %g", late, n, i, h[i]);
        }
}

// Beyond the band of a pulse, whose spectrum falls by 60 dB within 1/20 of all frequencies,
// division would amplify noise without a bound. |H| = |R| q^1.5 / (q^2 + t^2) / sqrt(p), whose
// largest value is that of q = sqrt(3) t: 0.57 |R| / sqrt(t p). p is the square of the sum of the
// pulse, or 0.02 % less if no bin has frequency 0.
static void noise_beyond_the_band_is_not_amplified(void **state)
{
    enum { N = 4096 };
    static double signal[N], recording[N], h[N];
    struct random random = random_start("noise");
    (void)state;
    for (int i = 0; i < N; i++) signal[i] = exp(-0.5 * pow((i - 200) / 40.0, 2));
    random_samples(&random, PARTITA_F64, recording, N);
    double noise = 0, response = 0, sum = 0;
    for (int i = 0; i < N; i++) {
        recording[i] *= 1e-6;
        noise += recording[i] * recording[i];
        sum += signal[i];
    }
    assert_ok(partita_deconvolve(h, recording, N, signal, N, NULL));
    for (int i = 0; i < N; i++) response += h[i] * h[i];
    assert_true(sqrt(response) <= sqrt(noise) * 0.57 / sqrt(THRESHOLD) / sum * 1.001);
}

static void zeros_and_mistakes(void **state)
{
    (void)state;
    const double one[4] = {1}, zeros[4] = {0};
    double h[4] = {5, 5, 5, 5};
    assert_int_equal(partita_deconvolve(NULL, one, 4, one, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_deconvolve(h, NULL, 4, one, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_deconvolve(h, one, 4, NULL, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_deconvolve(h, one, 0, one, 4, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_deconvolve(h, one, 4, one, 0, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_deconvolve(h, one, SIZE_MAX, one, 2, NULL), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(partita_deconvolve(h, one, 402653184, one, 1, NULL), PARTITA_ERR_UNSUPPORTED);
    struct partita_allocator half = {.release = meter_release};
    assert_int_equal(partita_deconvolve(h, one, 4, one, 4, &half), PARTITA_ERR_ARG);
    struct meter meter;
    const struct partita_allocator allocator = meter_allocator(&meter);
    enum partita_status status = PARTITA_ERR_NOMEM;
    size_t fail_at = 0;
    while (status == PARTITA_ERR_NOMEM) {
        for (int i = 0; i < 4; i++) assert_true(h[i] == 5);
        meter = (struct meter){.fail_at = ++fail_at};
        status = partita_deconvolve(h, one, 4, zeros, 4, &allocator);
        assert_int_equal(meter.n_live, 0);
    }
    assert_ok(status);
    assert_true(fail_at >= 5);
    for (int i = 0; i < 4; i++) assert_true(h[i] == 0);
}

// Powers of two change no bits, also where the powers of bins would overflow or vanish.
static void any_level(void **state)
{
    enum { N = 200, M = 50 };
    static const int exponents[][2] = {{1000, 1000}, {-1000, -1000}, {500, -400}, {-600, 400}};
    double signal[M], recording[N], expected[N], s[M], r[N], got[N];
    struct random random = random_start("levels");
    (void)state;
    random_samples(&random, PARTITA_F64, signal, M);
    random_samples(&random, PARTITA_F64, recording, N);
    assert_ok(partita_deconvolve(expected, recording, N, signal, M, NULL));
    for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
        for (size_t i = 0; i < M; i++) s[i] = ldexp(signal[i], exponents[k][0]);
        for (size_t i = 0; i < N; i++) r[i] = ldexp(recording[i], exponents[k][1]);
        assert_ok(partita_deconvolve(got, r, N, s, M, NULL));
        for (size_t i = 0; i < N; i++)
            assert_true(got[i] == ldexp(expected[i], exponents[k][1] - exponents[k][0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        named_test(known_responses, NULL, "known-responses"),
        named_test(negative_lags_do_not_wrap, NULL, "negative-lags-do-not-wrap"),
        named_test(noise_beyond_the_band_is_not_amplified, NULL, "noise-beyond-the-band"),
        named_test(zeros_and_mistakes, NULL, "zeros-and-mistakes"),
        named_test(any_level, NULL, "any-level"),
    };
    return run_all(tests);
}
