// SPDX-License-Identifier: MIT
#include "kernels/spectra.h"

#include "support/kernel_check.h"

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

void test_cmac(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start(s->name);
    for (int round = 0; round < 600; round++) cmac_check(s->kernels, &random, round % 3);
}

// A block has the same bits alone as among others, and a product may replace either factor.
void test_cmac_same_bits(void **state)
{
    const struct kernel_subject *s = *state;
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

void test_add_and_scale(void **state)
{
    const struct kernel_subject *s = *state;
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

void test_split_and_join(void **state)
{
    const struct kernel_subject *s = *state;
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
