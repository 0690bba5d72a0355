// SPDX-License-Identifier: MIT
// partita_correlate_normalised against sums in long double: at any level, beside passages that are
// eight orders louder; powers of two change no bit.
#include "support/test.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

enum { MAX_N = 6000, MAX_M = 700, MAX_LAGS = MAX_N + MAX_M };

struct signals {
    enum partita_type type;
    size_t n, m;
    double complex x[MAX_N], h[MAX_M];
    bool zero_mean;
};
static struct signals s;
static double complex results[MAX_LAGS], expected[MAX_LAGS];
static double bounds[MAX_LAGS];

static double complex sample_get(enum partita_type type, const void *samples, size_t i)
{
    switch (type) {
    case PARTITA_F32:
        return (double)((const float *)samples)[i];
    case PARTITA_CF32:
        return ((const float complex *)samples)[i];
    case PARTITA_CF64:
        return ((const double complex *)samples)[i];
    default:
        return ((const double *)samples)[i];
    }
}

// Rounds the signals to their type, and computes all lags into `results`; `bits` receives them.
static void run(void *bits)
{
    static double complex x[MAX_N], h[MAX_M], y[MAX_LAGS];
    const struct partita_options options = {.zero_mean = s.zero_mean,
                                            .log = {.line = partita_log_stderr}};
    for (size_t i = 0; i < s.n; i++) sample_put(s.type, x, i, s.x[i]);
    for (size_t i = 0; i < s.m; i++) sample_put(s.type, h, i, s.h[i]);
    for (size_t i = 0; i < s.n; i++) s.x[i] = sample_get(s.type, x, i);
    for (size_t i = 0; i < s.m; i++) s.h[i] = sample_get(s.type, h, i);
    assert_ok(partita_correlate_normalised(s.type, y, x, s.n, h, s.m, NULL, &options));
    const size_t lags = s.n + s.m - 1;
    for (size_t i = 0; i < lags; i++) results[i] = sample_get(s.type, y, i);
    if (bits) memcpy(bits, y, lags * partita_type_size(s.type));
}

// Sums over windows in long double: f64 and its squares are in the range of that. The bound of a
// lag's error: 3 u sqrt(log2 N) of the norms that the numerator's transforms read (gate_transform),
// m u for the norm, and the rounding to the type. With zero_mean the template without its mean has
// an error of m u, which the signal's level meets, and the norm is of differences to a sample of
// the window, whose squares are at most m + 1 times the variation: 9 (m + 1) u and m u for the
// sums.
static void oracle(void)
{
    const double u = 0x1p-53, type_u = type_is_f64(s.type) ? 0x1p-53 : 0x1p-24, m = (double)s.m;
    long double complex mean_h = 0;
    long double total = 0, energy_h = 0;
    for (size_t i = 0; s.zero_mean && i < s.m; i++) mean_h += s.h[i] / (long double)s.m;
    for (size_t i = 0; i < s.m; i++) energy_h += powl(cabsl(s.h[i] - mean_h), 2);
    for (size_t i = 0; i < s.n; i++) total += powl(cabsl(s.x[i]), 2);
    for (size_t at = 0; at < s.n + s.m - 1; at++) {
        const ptrdiff_t lag = (ptrdiff_t)at - (ptrdiff_t)(s.m - 1);
        long double complex mean = 0, sum = 0;
        long double energy = 0, level = 0;
        for (int pass = s.zero_mean ? 0 : 1; pass < 2; pass++)
            for (size_t i = 0; i < s.m; i++) {
                const ptrdiff_t from = lag + (ptrdiff_t)i;
                const bool exists = from >= 0 && (size_t)from < s.n;
                const long double complex x = exists ? s.x[from] : 0;
                if (!pass) mean += x / (long double)s.m;
                if (!pass) continue;
                sum += (x - mean) * conjl(s.h[i] - mean_h);
                energy += powl(cabsl(x - mean), 2);
                level += powl(cabsl(mean), 2);
            }
        const bool silent = energy <= 0x1p-80L * level || energy_h == 0;
        const double spread = silent ? 1 : (double)sqrtl(total / energy);
        expected[at] = silent ? 0 : (double complex)(sum / sqrtl(energy) / sqrtl(energy_h));
        bounds[at] = 3 * u * sqrt(14) * spread + m * u + type_u;
        if (s.zero_mean) bounds[at] += m * u * spread + (10 * m + 9) * m * u;
    }
}

static void check_all(void)
{
    oracle();
    for (size_t i = 0; i < s.n + s.m - 1; i++) {
        const double error = cabs(results[i] - expected[i]);
        if (!(error <= bounds[i]) || !(cabs(results[i]) <= 1 + bounds[i])) {
            printf("# lag %zu of %zu: %g%+gi instead of %g%+gi, bound %g\n", i, s.n,
                   creal(results[i]), cimag(results[i]), creal(expected[i]), cimag(expected[i]),
                   bounds[i]);
            fail();
        }
    }
}

static void noise(const char *name, enum partita_type type, size_t n, size_t m)
{
    struct random random = random_start(name);
    static double complex samples[MAX_N];
    s.type = type, s.n = n, s.m = m;
    random_samples(&random, PARTITA_CF64, samples, n);
    for (size_t i = 0; i < n; i++) s.x[i] = type_is_complex(type) ? samples[i] : creal(samples[i]);
    random_samples(&random, PARTITA_CF64, samples, m);
    for (size_t i = 0; i < m; i++) s.h[i] = type_is_complex(type) ? samples[i] : creal(samples[i]);
}

static void put_template(size_t at, double gain)
{
    for (size_t i = 0; i < s.m; i++) s.x[at + i] = gain * s.h[i];
}

static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_CF32, PARTITA_CF64};

static void levels(void **state)
{
    static const double exponents[2][7] = {{0, -22, 19, -30, -37, -43, 37},
                                           {0, -160, 160, -300, -307, -321, 300}};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 7; i++) {
            const double gain = pow(10, exponents[type_is_f64(types[t])][i]);
            noise("levels", types[t], 3000, 300);
            put_template(1000, 1);
            for (size_t k = 0; k < s.n; k++) s.x[k] *= gain;
            for (size_t k = 0; k < s.m; k++) s.h[k] *= gain;
            run(NULL);
            check_all();
            // Of samples of a few bits the template is what is left of it.
            if (gain > (type_is_f64(types[t]) ? 1e-307 : 1e-37))
                assert_true(creal(results[1000 + s.m - 1]) > 0.9999);
        }
}

static void loud_passages(void **state)
{
    static const double gains[2][4] = {{1e2, 1e4, 1e6, 1e8}, {1e2, 1e4, 1e6, 1e8}};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++) {
            noise("loud", types[t], 6000, 200);
            for (size_t k = 1500; k < 3000; k++) s.x[k] *= gains[type_is_f64(types[t])][i];
            // Quiet in two steps, and silence.
            for (size_t k = 4500; k < 5000; k++) s.x[k] *= 1e-3;
            for (size_t k = 5500; k < 5800; k++) s.x[k] = 0;
            put_template(4000, 1);
            put_template(4600, 1e-3);
            run(NULL);
            check_all();
            assert_true(creal(results[4000 + s.m - 1]) > 0.9999);
            assert_true(creal(results[4600 + s.m - 1]) > 0.9999);
        }
}

static void powers_of_two(void **state)
{
    static char first[16 * MAX_LAGS], other[16 * MAX_LAGS];
    struct random random = random_start("powers");
    (void)state;
    for (int i = 0; i < 120; i++) {
        const enum partita_type type = types[i % 4];
        const size_t n = 1 + random_below(&random, 2000), m = 1 + random_below(&random, 400);
        const int max = type_is_f64(type) ? 900 : 90;
        // All samples are normal numbers at any of these levels.
        const int ex = (int)random_below(&random, (size_t)max) - max / 2,
                  eh = (int)random_below(&random, (size_t)max) - max / 2;
        noise("powers", type, n, m);
        s.zero_mean = i / 4 % 2;
        for (size_t k = n / 2; i % 3 == 0 && k < n; k++) s.x[k] *= 0x1p-20;
        run(first);
        for (size_t k = 0; k < n; k++) s.x[k] *= ldexp(1, ex);
        for (size_t k = 0; k < m; k++) s.h[k] *= ldexp(1, eh);
        run(other);
        assert_memory_equal(first, other, (n + m - 1) * partita_type_size(type));
        s.zero_mean = false;
    }
}

static void not_finite(void **state)
{
    static const double bad[] = {NAN, INFINITY};
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++) {
            noise("not-finite", types[t], 3000, 100);
            s.zero_mean = i / 2;

            oracle();
            s.x[700] = bad[i % 2];
            run(NULL);
            for (size_t lag = 0; lag < s.n + s.m - 1; lag++) {
                const bool depends = lag >= 700 && lag < 700 + s.m;
                if (depends) assert_true(isnan(creal(results[lag])) || isnan(cimag(results[lag])));
                else assert_true(cabs(results[lag] - expected[lag]) < 1e-6);
            }
            s.zero_mean = false;
        }
}

static void offsets(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 5; kind++) {
            noise("offsets", types[t], 4000, 200);
            s.zero_mean = true;
            put_template(1000, 0.5);
            for (size_t k = 0; k < s.n; k++) {
                const double at = (double)k / (double)s.n;
                const double level[] = {50, at < 0.5 ? -3000 : 3000, 2000 * at, 1e4 * sin(6 * at),
                                        1e6};
                s.x[k] += level[kind];
            }
            for (size_t k = 0; k < s.m; k++) s.h[k] += 7;
            run(NULL);
            check_all();
            // A ramp or a slow wave varies more than the template; floats at 1e6 have steps of
            // 1/16.
            if (kind < 2 || (kind == 4 && type_is_f64(types[t])))
                assert_true(creal(results[1000 + s.m - 1]) > 0.99);
            s.zero_mean = false;
        }
}

static void constants(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        noise("constants", types[t], 2000, 20);
        s.zero_mean = true;
        for (size_t i = 700; i < 1300; i++) s.x[i] = 0.1;
        run(NULL);
        check_all();
        for (size_t lag = 700; lag + s.m <= 1300; lag++) assert_true(results[lag + s.m - 1] == 0);
        for (size_t i = 0; i < s.m; i++) s.h[i] = 0.1;
        run(NULL);
        for (size_t i = 0; i < s.n + s.m - 1; i++) assert_true(results[i] == 0);
        s.zero_mean = false;
    }
}

static void of_this_call_alone(void **state)
{
    static float x[8], y[16];
    struct log_lines lines = {0};
    const struct partita_options options = {.zero_mean = true, .log = log_into(&lines)};
    struct partita_plan *plan;
    (void)state;
    assert_int_equal(partita_convolve(PARTITA_F32, y, x, 8, x, 8, NULL, &options), PARTITA_ERR_ARG);
    assert_int_equal(partita_correlate(PARTITA_F32, y, x, 8, x, 8, NULL, &options),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_plan_create(&(struct partita_problem){LENGTH(8)}, &options, &plan),
                     PARTITA_ERR_ARG);
    assert_int_equal(lines.n_lines, 3);
    assert_non_null(strstr(lines.text, "options.zero_mean"));
    const struct partita_options later = {.reserved = {[6] = true}, .log = log_into(&lines)};
    assert_int_equal(partita_correlate(PARTITA_F32, y, x, 8, x, 8, NULL, &later),
                     PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "options.reserved"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(loud_passages),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(offsets),
        cmocka_unit_test(constants),
        cmocka_unit_test(of_this_call_alone),
    };
    return run_all(tests);
}
