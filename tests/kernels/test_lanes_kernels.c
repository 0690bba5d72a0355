// SPDX-License-Identifier: MIT
// Kernels for planes in lanes, for every instruction set of this machine, against the contract of
// kernels.h: rows of every length around that of a vector, tap spans of every length. Operands are
// between inaccessible pages or guard bytes. The C reference has the same tests.
#include "support/kernel_check.h"

#include <stdio.h>

enum { MAX_LANES = CONV_BLOCK_BYTES / 4, MAX_SPANS = 9, MAX_N = 60 };

// One lane ends at the end of a page; its neighbour may have no plane.
static void test_read(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start("read");
    for (size_t n = 0; n <= MAX_N; n++)
        for (size_t step = 1; step <= 3; step++) {
            const size_t lanes = lanes_of(f64), size = n ? (n - 1) * step + 1 : 0,
                         fenced = random_below(&random, lanes);
            const size_t bytes = size * scalar_size(f64), apart = 1 + random_below(&random, 2);
            const size_t without = random_below(&random, 2) ? (fenced + 1) % lanes : lanes;
            struct fence fence = fence_open(bytes);
            void *x[MAX_LANES] = {0}, *y = blocks(&random, f64, n * apart);
            const void *from[MAX_LANES];
            for (size_t l = 0; l < lanes; l++) {
                x[l] = guarded_alloc(bytes, scalar_size(f64));
                fill_random(&random, f64, x[l], size);
                from[l] = l == without ? NULL : x[l];
                if (l == fenced) from[l] = fence_put(&fence, x[l], bytes, EDGE_END);
            }
            if (n) scalar_put(f64, x[(fenced + 2) % lanes], 0, extreme_value(&random, f64, false));
            s->kernels->lanes_read(y, apart, from, step, n);
            for (size_t i = 0; i < n * lanes; i++) {
                const size_t l = i % lanes;
                assert_same(f64, y, i / lanes * apart * lanes + l,
                            from[l] ? scalar_get(f64, x[l], i / lanes * step) : 0);
            }
            for (size_t l = 0; l < lanes; l++) guarded_free(x[l]);
            guarded_free(y);
            fence_close(&fence);
        }
}

static void test_write(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start("write");
    for (size_t n = 0; n <= MAX_N; n++)
        for (size_t kind = 0; kind < 12; kind++) {
            const size_t lanes = lanes_of(f64), step = 1 + kind % 3,
                         size = n ? (n - 1) * step + 1 : 0;
            const size_t without = random_below(&random, lanes);
            const bool relu = kind & 1, biased = kind > 5;
            void *y[MAX_LANES], *x = blocks(&random, f64, n), *bias = blocks(&random, f64, 1),
                                *kept[MAX_LANES];
            for (size_t l = 0; l < lanes; l++) {
                y[l] =
                    l == without ? NULL : guarded_alloc(size * scalar_size(f64), scalar_size(f64));
                kept[l] = calloc(size + 1, scalar_size(f64));
                if (!y[l]) continue;
                fill_random(&random, f64, y[l], size);
                memcpy(kept[l], y[l], size * scalar_size(f64));
            }
            if (n)
                scalar_put(f64, x, random_below(&random, n * lanes),
                           extreme_value(&random, f64, false));
            s->kernels->lanes_write(y, step, x, n, biased ? bias : NULL, relu);
            for (size_t l = 0; l < lanes; l++)
                for (size_t i = 0; y[l] && i < size; i++) {
                    double expected = scalar_get(f64, kept[l], i);
                    if (i % step == 0) {
                        expected = scalar_get(f64, x, i / step * lanes + l) +
                                   (biased ? scalar_get(f64, bias, l) : 0);
                        if (relu && expected < 0) expected = 0;
                    }
                    if (expected != 0) assert_same(f64, y[l], i, expected);
                    else assert_true(scalar_get(f64, y[l], i) == 0); // of any sign
                }
            for (size_t l = 0; l < lanes; l++) {
                if (y[l]) guarded_free(y[l]);
                free(kept[l]);
            }
            guarded_free(x);
            guarded_free(bias);
        }
}

// Planes that are adjacent samples, as channels that come last: of all lanes or of the first ones,
// and of two images side by side. The last sample ends a page.
static void test_adjacent(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t lanes = lanes_of(f64), bytes = scalar_size(f64), n = 5;
    struct random random = random_start("adjacent");
    for (size_t channels = 1; channels <= lanes; channels++)
        for (size_t images = 1; images * channels <= lanes && images <= 2; images++) {
            const size_t step = channels + random_below(&random, 2), image = n * step;
            const size_t size = (images - 1) * image + (n - 1) * step + channels;
            struct fence fence = fence_open(size * bytes);
            char *kept = malloc(size * bytes), *lane[MAX_LANES] = {0};
            const void *from[MAX_LANES] = {0};
            void *to[MAX_LANES] = {0}, *y = blocks(&random, f64, n);
            fill_random(&random, f64, kept, size);
            char *x = fence_put(&fence, kept, size * bytes, EDGE_END);
            for (size_t l = 0; l < images * channels; l++) {
                const size_t at = l / channels * image + l % channels;
                lane[l] = kept + at * bytes;
                from[l] = to[l] = x + at * bytes;
            }
            s->kernels->lanes_read(y, 1, from, step, n);
            for (size_t i = 0; i < n * lanes; i++)
                assert_same(f64, y, i,
                            lane[i % lanes] ? scalar_get(f64, lane[i % lanes], i / lanes * step)
                                            : 0);
            s->kernels->scale(y, y, 2, n * lanes);
            s->kernels->lanes_write(to, step, y, n, NULL, false);
            for (size_t l = 0; l < images * channels; l++)
                for (size_t i = 0; i < n; i++)
                    scalar_put(f64, lane[l], i * step, 2 * scalar_get(f64, lane[l], i * step));
            assert_memory_equal(x, kept, size * bytes);
            fence_check(&fence, size * bytes, EDGE_END);
            fence_close(&fence);
            guarded_free(y);
            free(kept);
        }
}

// Operands of the sums: tap spans anywhere in x, which ends at a page.
struct operands {
    struct tap_span run[MAX_SPANS];
    size_t n_spans, n, taps;
    struct fence fence;
    void *x, *y, *w, *kept;
};

static struct operands draw(struct random *random, bool f64, size_t n, size_t n_spans)
{
    struct operands o = {.n = n, .n_spans = n_spans};
    const size_t reach = 20;
    for (size_t r = 0; r < n_spans; r++) {
        o.run[r].taps = r % 2 ? o.run[r - 1].taps
                              : 1 + random_below(random, MAX_SPAN_TAPS); // some spans are the same
        o.run[r].offset =
            r ? random_below(random, reach - MAX_SPAN_TAPS + 1) : reach - o.run[r].taps;
        o.taps += o.run[r].taps;
    }
    const size_t size = n ? n - 1 + reach : 0;
    o.fence = fence_open(size * CONV_BLOCK_BYTES);
    void *x = blocks(random, f64, size);
    double value; // not huge, since the taps do not add up to 1
    do value = extreme_value(random, f64, false);
    while (isfinite(value) && fabs(value) > 1);
    if (size) scalar_put(f64, x, random_below(random, size * lanes_of(f64)), value);
    o.x = fence_put(&o.fence, x, size * CONV_BLOCK_BYTES, EDGE_END);
    guarded_free(x);
    o.y = blocks(random, f64, n);
    o.w = blocks(random, f64, o.taps);
    o.kept = malloc((n + o.taps) * CONV_BLOCK_BYTES + 1);
    return o;
}

static void release(struct operands *o)
{
    fence_close(&o->fence);
    guarded_free(o->y);
    guarded_free(o->w);
    free(o->kept);
}

static void over_sizes(const struct kernel_subject *s,
                       void (*check)(const struct kernels *, struct operands *))
{
    struct random random = random_start(s->name);
    for (size_t n = 0; n <= MAX_N; n++)
        for (size_t n_spans = 0; n_spans <= MAX_SPANS; n_spans++) {
            struct operands o = draw(&random, s->kernels->f64, n, n_spans);
            check(s->kernels, &o);
            release(&o);
        }
}

static void check_conv(const struct kernels *k, struct operands *o)
{
    const bool f64 = k->f64;
    const size_t lanes = lanes_of(f64);
    memcpy(o->kept, o->y, o->n * CONV_BLOCK_BYTES);
    k->lanes_conv(o->y, o->x, o->w, o->run, o->n_spans, o->n);
    for (size_t i = 0; i < o->n * lanes; i++) {
        struct sum sum = {0};
        sum_product(&sum, 1, scalar_get(f64, o->kept, i));
        for (size_t r = 0, w = i % lanes; r < o->n_spans; r++)
            for (size_t t = 0; t < o->run[r].taps; t++, w += lanes)
                sum_product(&sum, scalar_get(f64, o->w, w),
                            scalar_get(f64, o->x, i + (o->run[r].offset + t) * lanes));
        if (!agrees(&sum, f64, scalar_get(f64, o->y, i), o->taps + 1))
            fail_msg("lane %zu, position %zu of %zu, %zu spans: %g, not %g", i % lanes, i / lanes,
                     o->n, o->n_spans, scalar_get(f64, o->y, i), sum_value(&sum));
    }
}

static void check_weight(const struct kernels *k, struct operands *o)
{
    const bool f64 = k->f64;
    const size_t lanes = lanes_of(f64);
    memcpy(o->kept, o->w, o->taps * CONV_BLOCK_BYTES);
    k->lanes_weight(o->w, o->y, o->x, o->run, o->n_spans, o->n);
    for (size_t r = 0, w = 0; r < o->n_spans; r++)
        for (size_t t = 0; t < o->run[r].taps; t++)
            for (size_t l = 0; l < lanes; l++, w++) {
                struct sum sum = {0};
                sum_product(&sum, 1, scalar_get(f64, o->kept, w));
                for (size_t i = 0; i < o->n; i++)
                    sum_product(&sum, scalar_get(f64, o->y, i * lanes + l),
                                scalar_get(f64, o->x, (o->run[r].offset + t + i) * lanes + l));
                if (!agrees(&sum, f64, scalar_get(f64, o->w, w), o->n + 1))
                    fail_msg("lane %zu, tap %zu of span %zu, %zu positions: %g, not %g", l, t, r,
                             o->n, scalar_get(f64, o->w, w), sum_value(&sum));
            }
}

static void test_conv(void **state)
{
    over_sizes(*state, check_conv);
}

static void test_weight(void **state)
{
    over_sizes(*state, check_weight);
}

// The bits of an output do not depend on where a row is split.
static void test_conv_splits(void **state)
{
    const struct kernel_subject *s = *state;
    struct random random = random_start("cuts");
    struct operands o = draw(&random, s->kernels->f64, MAX_N, MAX_SPANS);
    memcpy(o.kept, o.y, o.n * CONV_BLOCK_BYTES);
    s->kernels->lanes_conv(o.y, o.x, o.w, o.run, o.n_spans, o.n);
    for (size_t n = 1; n < 20; n++) {
        for (size_t i = 0; i < o.n; i += n)
            s->kernels->lanes_conv((char *)o.kept + i * CONV_BLOCK_BYTES,
                                   (char *)o.x + i * CONV_BLOCK_BYTES, o.w, o.run, o.n_spans,
                                   o.n - i < n ? o.n - i : n);
        assert_memory_equal(o.kept, o.y, o.n * CONV_BLOCK_BYTES);
        release(&o);
        random = random_start("cuts");
        o = draw(&random, s->kernels->f64, MAX_N, MAX_SPANS);
        memcpy(o.kept, o.y, o.n * CONV_BLOCK_BYTES);
        s->kernels->lanes_conv(o.y, o.x, o.w, o.run, o.n_spans, o.n);
    }
    release(&o);
}

// An output of a plane against the definition, with its taps in the order of w.
static void check_plane_output(const struct kernel_subject *s, const struct plane_conv *call,
                               const void *bias, size_t i)
{
    const bool f64 = s->kernels->f64;
    const struct plane_axis *axis = call->axis;
    struct sum sum = {0};
    size_t k = 0;
    sum_product(&sum, 1, bias ? scalar_get(f64, bias, 0) : 0);
    for (size_t c = 0; c < axis[1].taps; c++)
        for (size_t h = 0; h < axis[0].step; h++)
            for (size_t r = h; r < axis[0].taps; r += axis[0].step, k++) {
                const ptrdiff_t row = (ptrdiff_t)(i / axis[1].count * axis[0].step + r);
                const ptrdiff_t col = (ptrdiff_t)(i % axis[1].count * axis[1].step + c);
                const size_t at[] = {(size_t)(row + axis[0].first), (size_t)(col + axis[1].first)};
                if (at[0] < axis[0].size && at[1] < axis[1].size)
                    sum_product(&sum, scalar_get(f64, call->w, k),
                                scalar_get(f64, call->x, at[0] * axis[1].size + at[1]));
            }
    if (!agrees(&sum, f64, scalar_get(f64, call->y, i), axis[0].taps * axis[1].taps + 1))
        fail_msg("output %zu of %zu x %zu, %zu x %zu taps: %g, not %g", i, axis[0].count,
                 axis[1].count, axis[0].taps, axis[1].taps, scalar_get(f64, call->y, i),
                 sum_value(&sum));
}

// Axes of plane i, with at least so many rows of outputs.
static void draw_axes(struct random *random, size_t i, size_t rows, struct plane_axis axis[2])
{
    const size_t step = 1 + random_below(random, 2);
    size_t column = 1 + random_below(random, 7);
    if (!plane_serves(column)) column = 7;
    for (size_t a = 0; a < 2; a++)
        axis[a] = (struct plane_axis){.size = 1 + random_below(random, 40),
                                      .count = (a ? 1 : rows) + i % 37,
                                      .taps = a ? 1 + i % 9 : column,
                                      .step = step,
                                      .first = (ptrdiff_t)random_below(random, 24) - 16};
}

// Planes of any size and padding; x begins and ends at the edges of pages, in turn. With relu the
// same results, but 0 where they are negative.
static void test_plane(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64);
    struct random random = random_start("plane");
    for (size_t i = 0; i < 400; i++) {
        struct plane_conv call = {0};
        draw_axes(&random, i, PLANE_ROWS, call.axis);
        const struct plane_axis *axis = call.axis;
        const size_t n = axis[0].size * axis[1].size, outputs = axis[0].count * axis[1].count;
        const size_t taps = axis[0].taps * axis[1].taps;
        struct fence fence = fence_open(n * bytes);
        void *x = guarded_alloc(n * bytes, bytes), *w = guarded_alloc(taps * bytes, bytes);
        void *y = guarded_alloc(outputs * bytes, bytes), *bias = guarded_alloc(bytes, bytes);
        void *positive = guarded_alloc(outputs * bytes, bytes);
        fill_random(&random, f64, x, n);
        fill_random(&random, f64, w, taps);
        fill_random(&random, f64, bias, 1);
        call.x = fence_put(&fence, x, n * bytes, i % 2 ? EDGE_END : EDGE_START);
        call.w = w;
        call.next[0] = i % 5 ? call.x : NULL;
        call.next[1] = i % 7 ? y : NULL;
        call.y = positive;
        s->kernels->plane_conv(&call, i % 3 ? bias : NULL, true);
        call.y = y;
        s->kernels->plane_conv(&call, i % 3 ? bias : NULL, false);
        for (size_t k = 0; k < outputs; k++) {
            const double v = scalar_get(f64, y, k);
            check_plane_output(s, &call, i % 3 ? bias : NULL, k);
            if (scalar_get(f64, positive, k) != (v > 0 ? v : 0)) fail_msg("output %zu: relu", k);
        }
        void *all[] = {x, w, y, bias, positive};
        for (size_t k = 0; k < 5; k++) guarded_free(all[k]);
        fence_close(&fence);
    }
}

// Whether an output meets sample `at` of an axis through some tap.
static bool is_met(const struct plane_axis *axis, size_t at)
{
    for (size_t p = 0; p < axis->count; p++)
        for (size_t t = 0; t < axis->taps; t++)
            if ((ptrdiff_t)(p * axis->step + t) + axis->first == (ptrdiff_t)at) return true;
    return false;
}

// All lanes of tap k's gradient together, less what was there before, against the definition.
static void check_plane_tap(const struct kernel_subject *s, const struct plane_weight *call,
                            const void *before, size_t k)
{
    const bool f64 = s->kernels->f64;
    const struct plane_axis *axis = call->axis;
    const size_t outputs = axis[0].count * axis[1].count, lanes = lanes_of(f64);
    struct sum sum = {0};
    double found = 0;
    for (size_t l = 0; l < lanes; l++) {
        found += scalar_get(f64, call->w, k * lanes + l);
        sum_product(&sum, 1, scalar_get(f64, before, k * lanes + l));
    }
    for (size_t i = 0; i < outputs; i++) {
        const ptrdiff_t row = (ptrdiff_t)(i / axis[1].count * axis[0].step + k / axis[1].taps);
        const ptrdiff_t col = (ptrdiff_t)(i % axis[1].count * axis[1].step + k % axis[1].taps);
        const size_t at[] = {(size_t)(row + axis[0].first), (size_t)(col + axis[1].first)};
        if (at[0] < axis[0].size && at[1] < axis[1].size)
            sum_product(&sum, scalar_get(f64, call->gy, i),
                        scalar_get(f64, call->x, at[0] * axis[1].size + at[1]));
    }
    if (!agrees(&sum, f64, found, outputs + lanes))
        fail_msg("tap %zu of %zu x %zu, %zu x %zu outputs: %g, not %g", k, axis[0].taps,
                 axis[1].taps, axis[0].count, axis[1].count, found, sum_value(&sum));
}

// Planes of any size and padding, at the edges of pages; samples that no output meets are infinite.
static void test_plane_weight(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64);
    struct random random = random_start("plane weight");
    for (size_t i = 0; i < 400; i++) {
        struct plane_weight call = {0};
        draw_axes(&random, i, 1, call.axis);
        const struct plane_axis *axis = call.axis;
        const size_t n = axis[0].size * axis[1].size, outputs = axis[0].count * axis[1].count;
        const size_t taps = axis[0].taps * axis[1].taps, sums = taps * lanes_of(f64);
        struct fence fence = fence_open(n * bytes), other = fence_open(outputs * bytes);
        void *x = guarded_alloc(n * bytes, bytes), *gy = guarded_alloc(outputs * bytes, bytes);
        void *w = blocks(&random, f64, taps), *before = guarded_alloc(sums * bytes, 0);
        fill_random(&random, f64, x, n);
        fill_random(&random, f64, gy, outputs);
        for (size_t k = 0; k < n; k++)
            if (!is_met(&axis[0], k / axis[1].size) || !is_met(&axis[1], k % axis[1].size))
                scalar_put(f64, x, k, INFINITY);
        memcpy(before, w, sums * bytes);
        call.x = fence_put(&fence, x, n * bytes, i % 2 ? EDGE_END : EDGE_START);
        call.gy = fence_put(&other, gy, outputs * bytes, i % 3 ? EDGE_END : EDGE_START);
        call.w = w;
        // What is prefetched is no memory.
        call.next[0] = i % 5 ? (const void *)(uintptr_t)random_below(&random, 1 << 20) : NULL;
        call.next[1] = i % 7 ? (const void *)(uintptr_t)random_below(&random, 1 << 20) : NULL;
        s->kernels->plane_weight(&call);
        for (size_t k = 0; k < taps; k++) check_plane_tap(s, &call, before, k);
        void *all[] = {x, gy, w, before};
        for (size_t k = 0; k < 4; k++) guarded_free(all[k]);
        fence_close(&fence);
        fence_close(&other);
    }
}

static const struct promise promises[] = {
    {"lanes_read", test_read},
    {"lanes_write", test_write},
    {"adjacent planes", test_adjacent},
    {"lanes_conv", test_conv},
    {"lanes_conv, same bits", test_conv_splits},
    {"lanes_weight", test_weight},
    {"plane_conv", test_plane},
    {"plane_weight", test_plane_weight},
};
int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
