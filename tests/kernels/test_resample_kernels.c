// SPDX-License-Identifier: MIT
// The kernels of resampling, for every instruction set of this machine, against the contract of
// kernels.h: sums in twice the precision, infinite samples outside the ranges that are read, all
// tails, and the same bits however calls are split. The C reference has the same tests.
#include "support/kernel_check.h"

enum { BRANCHES = 5, STRIDE = 7, OUTPUTS = 23, TAILS = 80 };

// One set of taps and samples. All samples that must not be read are infinite.
struct data {
    bool f64;
    enum fir_type variant;
    size_t taps, step, outputs;
    struct resample_position start;
    void *rows, *x, *y;
    size_t n_x; // reals, of which `history` are before output 0's sample
    size_t history;
};

static size_t pitch_of(const struct data *d)
{
    const size_t block = CONV_BLOCK_BYTES / scalar_size(d->f64);
    const size_t part = (d->taps * d->step + block - 1) / block * block;
    return part * (d->variant == FIR_COMPLEX ? 2 : 1);
}

static struct data data_make(const struct kernel_subject *s, enum fir_type variant, size_t taps,
                             struct random *random)
{
    struct data d = {.f64 = s->kernels->f64,
                     .variant = variant,
                     .taps = taps,
                     .step = variant == FIR_REAL ? 1 : 2,
                     .outputs = OUTPUTS};
    const size_t scalar = scalar_size(d.f64), guard = 64;
    d.start = (struct resample_position){.branches = BRANCHES,
                                         .pitch = pitch_of(&d),
                                         .taps = taps,
                                         .branch = random_below(random, BRANCHES),
                                         .next_branch = STRIDE % BRANCHES,
                                         .next_sample = STRIDE / BRANCHES};
    const size_t last = (d.start.branch + (OUTPUTS - 1) * STRIDE) / BRANCHES;
    d.history = guard + d.step * (taps - 1);
    d.n_x = d.history + d.step * (last + 1) + guard;
    d.x = guarded_alloc(d.n_x * scalar, scalar);
    d.rows = guarded_alloc(BRANCHES * d.start.pitch * scalar, 0);
    d.y = guarded_alloc(OUTPUTS * d.step * scalar, scalar);
    fill_random(random, d.f64, d.x, d.n_x);
    fill_random(random, d.f64, d.y, OUTPUTS * d.step);
    for (size_t i = 0; i < guard; i++) {
        scalar_put(d.f64, d.x, i, INFINITY);
        scalar_put(d.f64, d.x, d.n_x - 1 - i, INFINITY);
    }
    memset(d.rows, 0, BRANCHES * d.start.pitch * scalar);
    const size_t parts = variant == FIR_COMPLEX ? 2 : 1;
    for (size_t row = 0; row < BRANCHES * parts; row++)
        for (size_t t = 0; t < taps; t++) {
            const double tap = (double)random_below(random, 2001) / 1000 - 1;
            for (size_t k = 0; k < d.step; k++)
                scalar_put(d.f64, d.rows, row * d.start.pitch / parts + t * d.step + k, tap);
        }
    return d;
}

static void data_free(struct data *d)
{
    guarded_free(d->x);
    guarded_free(d->rows);
    guarded_free(d->y);
}

static void run(const struct kernel_subject *s, const struct data *d, void *y, const void *x,
                const struct resample_position *at, size_t n)
{
    s->kernels->resample(y, x, d->rows, at, n, d->variant);
}

// Part k (real, imaginary) of output i.
static struct sum expect(const struct data *d, size_t i, size_t k)
{
    const size_t at = d->start.branch + i * STRIDE;
    const size_t row = at % BRANCHES * d->start.pitch,
                 oldest = d->history - d->step * (d->taps - 1);
    const size_t first = oldest + d->step * (at / BRANCHES);
    struct sum sum = {0};
    sum_product(&sum, scalar_get(d->f64, d->y, i * d->step + k), 1);
    for (size_t t = 0; t < d->taps; t++) {
        const size_t x = first + t * d->step;
        sum_product(&sum, scalar_get(d->f64, d->rows, row + t * d->step),
                    scalar_get(d->f64, d->x, x + k));
        if (d->variant != FIR_COMPLEX) continue;
        const double im = scalar_get(d->f64, d->rows, row + d->start.pitch / 2 + t * 2);
        sum_product(&sum, k ? im : -im, scalar_get(d->f64, d->x, x + 1 - k));
    }
    return sum;
}

// A product is rounded with the additions to its sum, of the lanes, of the parts and to y; fewer
// than its taps, or segments of 64 and their sums, and 12.
static void every_number_of_taps(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    for (size_t taps = 1; taps <= TAILS; taps++)
        for (enum fir_type variant = 0; variant < FIR_TYPES; variant++) {
            struct data d = data_make(s, variant, taps, &random);
            struct sum expected[OUTPUTS][2];
            for (size_t i = 0; i < OUTPUTS; i++)
                for (size_t k = 0; k < d.step; k++) expected[i][k] = expect(&d, i, k);
            run(s, &d, d.y, scalar_at(d.f64, d.x, d.history), &d.start, OUTPUTS);
            for (size_t i = 0; i < OUTPUTS * d.step; i++)
                if (!agrees(&expected[i / d.step][i % d.step], d.f64, scalar_get(d.f64, d.y, i),
                            taps + 12))
                    fail_msg("%zu taps, variant %d: output %zu", taps, (int)variant, i);
            data_free(&d);
        }
}

static void split_anywhere_same_bits(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    const size_t scalar = scalar_size(s->kernels->f64);
    for (enum fir_type variant = 0; variant < FIR_TYPES; variant++) {
        struct data d = data_make(s, variant, 37, &random);
        char whole[OUTPUTS * 2 * sizeof(double)];
        memcpy(whole, d.y, OUTPUTS * d.step * scalar);
        run(s, &d, whole, scalar_at(d.f64, d.x, d.history), &d.start, OUTPUTS);
        for (size_t i = 0, n; i < OUTPUTS; i += n) {
            n = 1 + random_below(&random, OUTPUTS - i);
            const size_t at = d.start.branch + i * STRIDE;
            struct resample_position start = d.start;
            start.branch = at % BRANCHES;
            run(s, &d, scalar_at(d.f64, d.y, i * d.step),
                scalar_at(d.f64, d.x, d.history + d.step * (at / BRANCHES)), &start, n);
        }
        assert_memory_equal(d.y, whole, OUTPUTS * d.step * scalar);
        data_free(&d);
    }
}

int main(void)
{
    static const struct promise promises[] = {
        {"resample, every number of taps", every_number_of_taps},
        {"resample, split anywhere", split_anywhere_same_bits},
    };
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
