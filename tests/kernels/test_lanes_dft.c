// SPDX-License-Identifier: MIT
// Transforms of planes in lanes, for every instruction set of this machine, against their
// definition, with products of spectra. Operands are between inaccessible pages or guard bytes. The
// C reference has the same tests.
#include "support/kernel_check.h"

#include <complex.h>

// A transform with given radices, modulo u^n - e^(-2 pi i phase), with twiddle factors by the
// definition; `phase` is that of each result, in the order of the results.
enum { MAX_TRANSFORM = 120 };
static const long double PI = 3.14159265358979323846264338327950288L;
struct transform {
    struct lanes_dft dft;
    long double phase[MAX_TRANSFORM];
    double f64[LANES_PASSES][2 * MAX_TRANSFORM];
    float f32[LANES_PASSES][2 * MAX_TRANSFORM];
};

static void make(struct transform *t, bool f64, long double phase, const unsigned char *radices)
{
    *t = (struct transform){.dft = {.n = 1}, .phase = {phase}};
    size_t nodes = 1;
    for (; radices[t->dft.passes]; t->dft.passes++) {
        const int pass = t->dft.passes, radix = radices[pass];
        size_t at = 0;
        for (size_t node = 0; node < nodes; node++)
            for (int k = 1; k < radix; k++, at += 2) {
                const long double angle = -2 * PI * t->phase[node] * k / radix;
                t->f64[pass][at] = (double)cosl(angle);
                t->f64[pass][at + 1] = (double)sinl(angle);
                t->f32[pass][at] = (float)cosl(angle);
                t->f32[pass][at + 1] = (float)sinl(angle);
            }
        for (size_t node = nodes; node-- > 0;)
            for (int q = radix; q-- > 0;)
                t->phase[node * (size_t)radix + (size_t)q] = (t->phase[node] + q) / radix;
        t->dft.radix[pass] = (unsigned char)radix;
        t->dft.factors[pass] = f64 ? (const void *)t->f64[pass] : (const void *)t->f32[pass];
        if (pass == 0 && phase == 0) t->dft.factors[pass] = NULL;
        nodes *= (size_t)radix;
        t->dft.n = nodes;
    }
}

static const unsigned char radices[][6] = {
    {2},       {3},          {4},       {5},       {8},          {2, 3},    {8, 8},
    {3, 4},    {5, 4, 4},    {3, 3, 8}, {5, 3, 8}, {2, 2, 2, 2}, {4, 2, 5}, {8, 2},
    {5, 5, 2}, {3, 2, 5, 2}, {8, 4, 3}, {6},       {10},         {12},      {6, 6},
    {12, 6},   {10, 12},     {7},       {7, 8},    {2, 7},       {6, 7, 2}};

static double element(bool f64, const struct lanes_row *line, size_t k, size_t lane, size_t part)
{
    return scalar_get(f64, line->re, (k * line->stride + part * line->im) * lanes_of(f64) + lane);
}

// Transforms a row of samples into a strided column and compares with the definition; transforms
// back and compares with the samples.
static void test_dft(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t lanes = lanes_of(f64), apart = 3;
    struct random random = random_start("dft");
    static struct transform t;
    for (size_t i = 0; i < 2 * sizeof radices / sizeof *radices; i++) {
        make(&t, f64, i % 2 ? -0.25 : 0, radices[i / 2]);
        const size_t n = t.dft.n;
        void *x = blocks(&random, f64, 2 * n), *y = blocks(&random, f64, 2 * apart * n),
             *z = blocks(&random, f64, 2 * n);
        const struct lanes_row samples = {x, n, 1}, column = {y, 1, 2 * apart}, again = {z, n, 1};
        double kept = scalar_get(f64, y, 2 * lanes), error = 0, norm = 0;
        s->kernels->lanes_dft(&column, &samples, &t.dft);
        for (size_t l = 0; l < lanes; l++)
            for (size_t q = 0; q < n; q++) {
                long double re = 0, im = 0;
                for (size_t k = 0; k < n; k++) {
                    const long double angle = -2 * PI * t.phase[q] * (long double)k;
                    const long double a = element(f64, &samples, k, l, 0),
                                      b = element(f64, &samples, k, l, 1);
                    re += a * cosl(angle) - b * sinl(angle);
                    im += a * sinl(angle) + b * cosl(angle);
                }
                error += pow(element(f64, &column, q, l, 0) - (double)re, 2) +
                         pow(element(f64, &column, q, l, 1) - (double)im, 2);
                norm += (double)(re * re + im * im);
            }
        const double gate = gate_transform(f64 ? PARTITA_F64 : PARTITA_F32, n);
        if (!(error <= gate * gate * norm))
            fail_msg("%zu elements: error %g above %g", n, sqrt(error / norm), gate);
        assert_same(f64, y, 2 * lanes, kept); // between the elements
        s->kernels->lanes_dft_inverse(&again, &column, &t.dft);
        error = norm = 0;
        for (size_t k = 0; k < 2 * n * lanes; k++) {
            error += pow(scalar_get(f64, z, k) / (double)n - scalar_get(f64, x, k), 2);
            norm += pow(scalar_get(f64, x, k), 2);
        }
        if (!(error <= gate * gate * norm))
            fail_msg("%zu elements back: %g above %g", n, sqrt(error / norm), gate);
        guarded_free(x);
        guarded_free(y);
        guarded_free(z);
    }
}

// Multiplies a strided column's transform by random numbers and transforms back, in place and into
// another column; compared with the definition.
static void test_filter(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t lanes = lanes_of(f64), apart = 3;
    struct random random = random_start("filter");
    static struct transform t;
    for (size_t i = 0; i < 2 * sizeof radices / sizeof *radices; i++) {
        make(&t, f64, i % 2 ? -0.25 : 0, radices[i / 2]);
        const size_t n = t.dft.n;
        void *x = blocks(&random, f64, 2 * apart * n), *h = blocks(&random, f64, 2 * n),
             *y = blocks(&random, f64, 2 * apart * n), *work = blocks(&random, f64, 2 * n);
        const struct lanes_row in = {x, 1, 2 * apart}, factor = {h, 1, 2}, out = {y, 1, 2 * apart};
        const double kept = scalar_get(f64, y, 2 * lanes);
        double error = 0, norm = 0;
        static long double complex root[MAX_TRANSFORM][MAX_TRANSFORM];
        for (size_t q = 0; q < n; q++)
            for (size_t k = 0; k < n; k++)
                root[q][k] = cexpl(-2 * PI * I * t.phase[q] * (long double)k);
        s->kernels->lanes_filter(&out, &in, h, work, &t.dft);
        for (size_t l = 0; l < lanes; l++) {
            long double complex product[MAX_TRANSFORM];
            for (size_t q = 0; q < n; q++) {
                product[q] = 0;
                for (size_t k = 0; k < n; k++)
                    product[q] +=
                        root[q][k] * (element(f64, &in, k, l, 0) + I * element(f64, &in, k, l, 1));
                product[q] *= element(f64, &factor, q, l, 0) + I * element(f64, &factor, q, l, 1);
            }
            for (size_t k = 0; k < n; k++) {
                long double complex sum = 0;
                for (size_t q = 0; q < n; q++) sum += product[q] * conjl(root[q][k]);
                error += pow(element(f64, &out, k, l, 0) - (double)creall(sum), 2) +
                         pow(element(f64, &out, k, l, 1) - (double)cimagl(sum), 2);
                norm += pow((double)cabsl(sum), 2);
            }
        }
        // Two transforms and a product between them.
        const double gate = 3 * gate_transform(f64 ? PARTITA_F64 : PARTITA_F32, n);
        if (!(error <= gate * gate * norm))
            fail_msg("%zu elements: error %g above %g", n, sqrt(error / norm), gate);
        assert_same(f64, y, 2 * lanes, kept); // between the elements
        s->kernels->lanes_filter(&in, &in, h, work, &t.dft);
        for (size_t k = 0; k < n; k++)
            for (size_t l = 0; l < 2 * lanes; l++) {
                const size_t at = 2 * apart * lanes * k + l;
                assert_same(f64, x, at, scalar_get(f64, y, at));
            }
        void *all[] = {x, h, y, work};
        for (size_t k = 0; k < 4; k++) guarded_free(all[k]);
    }
}

static void test_product(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t lanes = lanes_of(f64);
    struct random random = random_start("product");
    for (size_t n = 0; n < 9; n++)
        for (int kind = 0; kind < 4; kind++) {
            const bool conjugate = kind & 1, add = kind & 2;
            void *x = blocks(&random, f64, 6 * n), *h = blocks(&random, f64, 2 * n),
                 *y = blocks(&random, f64, 4 * n);
            const struct lanes_row a = {x, 1, 6}, b = {h, n, 1}, c = {y, 1, 4};
            double *kept = malloc((4 * n * lanes + 1) * sizeof *kept);
            for (size_t i = 0; i < 4 * n * lanes; i++) kept[i] = scalar_get(f64, y, i);
            s->kernels->lanes_product(&c, &a, &b, n, conjugate, add);
            for (size_t k = 0; k < n; k++)
                for (size_t l = 0; l < 4 * lanes; l++) {
                    const size_t i = 4 * k * lanes + l, lane = l % lanes;
                    struct sum sum = {0};
                    if (l >= 2 * lanes) { // between the elements
                        assert_same(f64, y, i, kept[i]);
                        continue;
                    }
                    const double ar = element(f64, &a, k, lane, 0),
                                 ai = element(f64, &a, k, lane, 1);
                    const double br = element(f64, &b, k, lane, 0),
                                 bi = (conjugate ? -1 : 1) * element(f64, &b, k, lane, 1);
                    sum_product(&sum, add, kept[i]);
                    sum_product(&sum, ar, l < lanes ? br : bi);
                    sum_product(&sum, l < lanes ? -ai : ai, l < lanes ? bi : br);
                    if (!agrees(&sum, f64, scalar_get(f64, y, i), 3))
                        fail_msg("element %zu of %zu, kind %d: %g, not %g", k, n, kind,
                                 scalar_get(f64, y, i), sum_value(&sum));
                }
            free(kept);
            guarded_free(x);
            guarded_free(h);
            guarded_free(y);
        }
}

static const struct promise promises[] = {
    {"lanes_dft", test_dft},
    {"lanes_filter", test_filter},
    {"lanes_product", test_product},
};
int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
