// SPDX-License-Identifier: MIT
// The kernel that fades from one signal to another, for every instruction set of this machine,
// against its formula. Operands are between inaccessible pages; bytes that must not be read are
// NaN. The C reference has the same tests.
#include "support/kernel_check.h"

enum { MAX_LOOP = 200 };

struct fade {
    size_t n, per_frame;
    double first, slope;
    double x[MAX_LOOP], y[MAX_LOOP];
};

static void fade_make(struct fade *f, struct random *random, bool f64, size_t n, size_t per_frame)
{
    const size_t length = 1 + random_below(random, 3000); // in frames
    f->n = n;
    f->per_frame = per_frame;
    f->first = (double)random_below(random, length);
    f->slope = 1.0 / (double)(length + n);
    fill_random(random, f64, f->x, n);
    fill_random(random, f64, f->y, n);
}

// y + x w - y w. The difference, the product and the sum round a sample; its weight is rounded in
// double precision and to the precision of the samples, and once in this test: 6 roundings. One of
// them is exact (in double precision the weight is rounded once) or nearly so, which covers the
// products of rounding errors.
static void fade_compare(bool f64, const struct fade *f, const void *y)
{
    for (size_t i = 0; i < f->n; i++) {
        const double weight = (f->first + (double)(i / f->per_frame)) * f->slope;
        const double from = scalar_get(f64, f->y, i), to = scalar_get(f64, f->x, i);
        struct sum sum = {0};
        sum_product(&sum, from, 1);
        sum_product(&sum, to, weight);
        sum_product(&sum, -from, weight);
        if (!agrees(&sum, f64, scalar_get(f64, y, i), 5)) // and one more
            fail_msg("sample %zu of %zu, weight %.17g: %.17g, not %.17g", i, f->n, weight,
                     scalar_get(f64, y, i), sum_value(&sum));
    }
}

static void test_blend(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    struct fade f;
    struct fence fx = fence_open(sizeof f.x), fy = fence_open(sizeof f.y);
    for (size_t round = 0; round < (MAX_LOOP + 1) * 16; round++) {
        const size_t n = round / 16, bytes = n * scalar_size(f64);
        const enum edge edge = round % N_EDGES;
        fade_make(&f, &random, f64, n, 1 + round / 2 % 2);
        if (n && round % 16 > 4) // in one of both, so that differences stay finite
            scalar_put(f64, round % 16 < 11 ? f.x : f.y, random_below(&random, n),
                       extreme_value(&random, f64, false));
        const void *x = fence_put(&fx, f.x, bytes, edge);
        void *y = fence_put(&fy, f.y, bytes, edge);
        s->kernels->blend(y, x, n, f.per_frame, f.first, f.slope);
        fade_compare(f64, &f, y);
        assert_memory_equal(x, f.x, bytes);
        fence_check(&fx, bytes, edge);
        fence_check(&fy, bytes, edge);
    }
    fence_close(&fx);
    fence_close(&fy);
}

// A fade has the same bits in several calls of whole frames, each with its own first weight, as in
// one call.
static void test_blend_splits(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    for (int round = 0; round < 2000; round++) {
        struct fade f;
        const size_t per_frame = 1 + random_below(&random, 2),
                     frames = random_below(&random, MAX_LOOP / 2 + 1);
        fade_make(&f, &random, f64, frames * per_frame, per_frame);
        double whole[MAX_LOOP];
        memcpy(whole, f.y, sizeof whole);
        s->kernels->blend(whole, f.x, f.n, per_frame, f.first, f.slope);
        for (size_t at = 0, n; at < frames; at += n) {
            n = 1 + random_below(&random, random_below(&random, 2) ? 5 : frames);
            if (n > frames - at) n = frames - at;
            s->kernels->blend(scalar_at(f64, f.y, at * per_frame),
                              scalar_at(f64, f.x, at * per_frame), n * per_frame, per_frame,
                              f.first + (double)at, f.slope);
        }
        if (f.n) assert_memory_equal(whole, f.y, f.n * scalar_size(f64));
    }
}

// A fade between equal signals does not change them.
static void test_blend_equal(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start(s->name);
    for (size_t round = 0; round < 8 * MAX_LOOP; round++) {
        struct fade f;
        fade_make(&f, &random, f64, 1 + round / 8, 1 + round % 2);
        scalar_put(f64, f.x, random_below(&random, f.n), extreme_value(&random, f64, true));
        memcpy(f.y, f.x, sizeof f.y);
        s->kernels->blend(f.y, f.x, f.n, f.per_frame, f.first, f.slope);
        for (size_t i = 0; i < f.n; i++)
            assert_true(scalar_get(f64, f.y, i) == scalar_get(f64, f.x, i));
    }
}

static const struct promise promises[] = {
    {"blend", test_blend},
    {"blend, cut anywhere", test_blend_splits},
    {"blend of equals", test_blend_equal},
};

int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
