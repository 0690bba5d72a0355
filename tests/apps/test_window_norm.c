// SPDX-License-Identifier: MIT
// Unit tests of apps/correlate: the norms under a sliding template against sums in long double. The
// Python tests of this folder test the program.
#include <math.h>
#include <string.h>

#include "correlate/window_norm.h"
#include "support/test.h"

enum { INPUTS = 3, LENGTH = 257, FRAMES = 4000 };

static double uniform(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 24) - 0.5;
}

struct feeding {
    size_t chunk;
    int64_t origin;
    size_t stride;
    bool zero_mean;
};

// Divides ones: the results are 1 over both norms. Fed in pieces of `chunk` frames from frame
// `origin` on.
static void norms_of(double *y, const double *x, const double *h, struct feeding feeding)
{
    const size_t chunk = feeding.chunk, stride = feeding.stride;
    const int64_t origin = feeding.origin;
    struct window_norm *norm;
    struct fault fault;
    const struct window_norm_request request = {.signal = PARTITA_F64,
                                                .template_type = PARTITA_F64,
                                                .template = h,
                                                .length = LENGTH,
                                                .in_channels = INPUTS,
                                                .out_channels = 1,
                                                .groups = 1,
                                                .origin = origin,
                                                .wanted = LENGTH - 1,
                                                .stride = stride,
                                                .zero_mean = feeding.zero_mean};
    assert_true(window_norm_open(&norm, &request, &fault));
    size_t made = 0;
    for (int64_t at = origin; at < FRAMES; at += (int64_t)chunk) {
        const int64_t left = FRAMES - at;
        const size_t n = left < (int64_t)chunk ? (size_t)left : chunk;
        assert_true(window_norm_feed(norm, at < 0 ? NULL : x + at * INPUTS, n, &fault));
        // The results whose last frame has been fed.
        for (; (int64_t)(LENGTH - 1 + made * stride) < at + (int64_t)n; made++) {
            y[made] = 1;
            window_norm_divide(norm, y + made, 1);
        }
    }
    window_norm_close(norm);
}

static long double energy(const double *x, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (long double)x[i] * x[i];
    return sum;
}

// The second half is 120 dB quieter: what a sliding difference would leave there exceeds it. The
// bound is that of window_norm.h, and 2^-53 for rounding the reference to double; sums of long
// double have an error of LENGTH * INPUTS * 2^-64, less than 2^-54.
static void norms_are_exact(void **state)
{
    (void)state;
    static double x[FRAMES * INPUTS], h[LENGTH * INPUTS], y[FRAMES];
    const double bound = (INPUTS / 2.0 + 8 + 1) * ldexp(1, -53);
    unsigned seed = 7;
    for (size_t i = 0; i < LENGTH * INPUTS; i++) h[i] = uniform(&seed);
    for (size_t i = 0; i < FRAMES * INPUTS; i++)
        x[i] = uniform(&seed) * (i < FRAMES * INPUTS / 2 ? 1e6 : 1);
    norms_of(y, x, h, (struct feeding){100, 0, 1, false});
    for (size_t i = 0; i + LENGTH <= FRAMES; i++) {
        const long double wanted = 1 / (sqrtl(energy(x + i * INPUTS, LENGTH * INPUTS)) *
                                        sqrtl(energy(h, LENGTH * INPUTS)));
        assert_true(fabs((double)(y[i] / wanted - 1)) <= bound);
    }
}

static void norms_do_not_depend_on_calls(void **state)
{
    (void)state;
    static double x[FRAMES * INPUTS], h[LENGTH * INPUTS], y[FRAMES], z[FRAMES];
    static const size_t chunks[] = {1, 3, LENGTH, LENGTH + 1, FRAMES};
    const size_t n = FRAMES - LENGTH + 1;
    unsigned seed = 8;
    for (size_t i = 0; i < LENGTH * INPUTS; i++) h[i] = uniform(&seed);
    for (size_t i = 0; i < FRAMES * INPUTS; i++) x[i] = uniform(&seed);
    for (int zero_mean = 0; zero_mean < 2; zero_mean++) {
        norms_of(y, x, h, (struct feeding){64, 0, 1, zero_mean});
        for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
            norms_of(z, x, h, (struct feeding){chunks[k], k == 1 ? -3 : 0, 1, zero_mean});
            assert_memory_equal(y, z, n * sizeof *y);
        }
        for (size_t stride = 2; stride < 9; stride++) {
            norms_of(z, x, h, (struct feeding){50, 0, stride, zero_mean});
            for (size_t i = 0; i * stride < n; i++) assert_true(z[i] == y[i * stride]);
        }
    }
}

// The sum of squares of n frames of input c, without their mean.
static long double variation(const double *x, size_t n, size_t c)
{
    long double mean = 0, sum = 0;
    for (size_t i = 0; i < n; i++) mean += (long double)x[i * INPUTS + c] / n;
    for (size_t i = 0; i < n; i++) sum += powl((long double)x[i * INPUTS + c] - mean, 2);
    return sum;
}

// Offsets, a ramp, a step, and single outliers, one of which is the first sample of a block. The
// bound is that of window_norm.h, and 1 for rounding the reference to double. The mean in long
// double has an error of 2^-63 of the level, which adds its square to each square: nothing.
static void variations_are_exact(void **state)
{
    (void)state;
    static double x[FRAMES * INPUTS], h[LENGTH * INPUTS], y[FRAMES];
    const double bound = (INPUTS / 2.0 + 9 * LENGTH + 15 + 1) * ldexp(1, -53);
    for (int kind = 0; kind < 6; kind++) {
        unsigned seed = 9;
        for (size_t i = 0; i < LENGTH * INPUTS; i++) h[i] = uniform(&seed);
        for (size_t i = 0; i < FRAMES * INPUTS; i++) {
            const size_t frame = i / INPUTS;
            const double level[] = {0, 50, 1e6, (double)frame * 100, frame < 1900 ? 1e9 : -3, 1e6};
            x[i] = level[kind] + uniform(&seed) * (kind == 5 ? 1e-3 : 1);
            if (kind == 5 && frame % 900 == 5 * LENGTH % 900) x[i] = -1e7;
        }
        norms_of(y, x, h, (struct feeding){100, 0, 1, true});
        for (size_t i = 0; i + LENGTH <= FRAMES; i++) {
            long double sum = 0;
            for (size_t c = 0; c < INPUTS; c++) sum += variation(x + i * INPUTS, LENGTH, c);
            const long double wanted = 1 / (sqrtl(sum) * sqrtl(energy(h, LENGTH * INPUTS)));
            assert_true(fabs((double)(y[i] / wanted - 1)) <= bound);
        }
    }
}

static void constant_windows_give_zero(void **state)
{
    (void)state;
    static double x[FRAMES * INPUTS], h[LENGTH * INPUTS], y[FRAMES];
    unsigned seed = 10;
    for (size_t i = 0; i < LENGTH * INPUTS; i++) h[i] = 1 + (double)(i % 7);
    for (size_t i = 0; i < FRAMES * INPUTS; i++) {
        const size_t frame = i / INPUTS;
        x[i] = frame >= 1000 && frame < 3000 ? 0.1 * (double)(1 + i % INPUTS) : uniform(&seed);
        // Less than 2^-40 of the level is nothing, and more is something.
        if (frame == 1800) x[i] += ldexp(x[i], -42);
        if (frame == 2600) x[i] += ldexp(x[i], -34);
    }
    norms_of(y, x, h, (struct feeding){512, 0, 1, true});
    for (size_t i = 0; i + LENGTH <= FRAMES; i++) {
        const bool varies = i < 1000 || i + LENGTH > 3000 || (i <= 2600 && 2600 < i + LENGTH);
        assert_true(varies ? y[i] > 0 : y[i] == 0);
    }
}

static void means_are_subtracted(void **state)
{
    (void)state;
    enum { ROWS = 3, N = 1000 };
    static double h[ROWS][N][2];
    unsigned seed = 11;
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < 2; k++) {
            h[0][i][k] = 1e6 * (1 + (double)k) + uniform(&seed);
            h[1][i][k] = 0.1;
            h[2][i][k] = k ? 0.3 : uniform(&seed);
        }
    }
    template_subtract_means(h, PARTITA_CF64, ROWS, N);
    for (size_t k = 0; k < 2; k++) {
        long double sum = 0;
        for (size_t i = 0; i < N; i++) {
            sum += h[0][i][k];
            assert_true(h[1][i][k] == 0 && (!k || h[2][i][k] == 0));
        }
        // Of samples below 1: 2 for the sum, 1 for the quotient, 1 for the difference.
        assert_true(fabsl(sum / N) <= 4 * 0x1p-53L);
    }
}

static void silence_gives_zero(void **state)
{
    (void)state;
    static double x[FRAMES * INPUTS], h[LENGTH * INPUTS], y[FRAMES];
    memset(x, 0, sizeof x);
    for (size_t i = 0; i < LENGTH * INPUTS; i++) h[i] = 1;
    x[2000 * INPUTS] = 4;
    norms_of(y, x, h, (struct feeding){512, 0, 1, false});
    const double alone = 1 / (4 * sqrt(LENGTH * INPUTS));
    for (size_t i = 0; i + LENGTH <= FRAMES; i++) {
        const bool under = i <= 2000 && 2000 < i + LENGTH;
        assert_true(under ? fabs(y[i] / alone - 1) < 1e-15 : y[i] == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_exact),
        cmocka_unit_test(norms_do_not_depend_on_calls),
        cmocka_unit_test(silence_gives_zero),
        cmocka_unit_test(variations_are_exact),
        cmocka_unit_test(constant_windows_give_zero),
        cmocka_unit_test(means_are_subtracted),
    };
    return run_all(tests);
}
