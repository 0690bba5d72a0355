// SPDX-License-Identifier: MIT
// Kernels of layers, for every instruction set of this machine, against the contract of kernels.h:
// all numbers of channels, taps and positions around the sizes of their register blocks, against
// sums in twice the precision. Operands are between inaccessible pages. The C reference has the
// same tests.
#include "support/kernel_check.h"

#include <stdio.h>

// More than 64 terms have an order of rectangles of their own.
enum { MAX_TERMS = 73, MAX_SIZES_TERMS = 21, MAX_ROWS = 13, MAX_REACH = 70, MAX_BLOCKS = 30 };

static size_t block(bool f64)
{
    return CONV_BLOCK_BYTES / scalar_size(f64);
}

// Operands of conv and conv_weight: x is between pages and taps have random offsets into it, the
// last one at its end.
struct operands {
    bool f64;
    size_t channels, terms, n, stride, offset[MAX_TERMS];
    struct fence fence;
    void *x, *w, *y, *kept;
};

static struct operands draw(struct random *random, bool f64, size_t channels, size_t terms,
                            size_t blocks, enum edge edge, bool values)
{
    struct operands o = {
        .f64 = f64, .channels = channels, .terms = terms, .n = blocks * block(f64)};
    o.stride = o.n + random_below(random, 3);
    const size_t reach = terms ? random_below(random, MAX_REACH) : 0,
                 bytes = (o.n + reach) * scalar_size(f64);
    for (size_t t = 0; t < terms; t++) o.offset[t] = t ? random_below(random, reach + 1) : reach;
    o.fence = fence_open(bytes);
    void *x = malloc(bytes + 1);
    fill_random(random, f64, x, o.n + reach);
    double value; // not huge, since the weights do not add up to 1
    do value = extreme_value(random, f64, false);
    while (isfinite(value) && fabs(value) > 1);
    if (values && o.n + reach) scalar_put(f64, x, random_below(random, o.n + reach), value);
    o.x = fence_put(&o.fence, x, bytes, edge);
    free(x);
    o.w = guarded_alloc(channels * (terms + 1) * scalar_size(f64), scalar_size(f64));
    o.y = guarded_alloc((channels ? (channels - 1) * o.stride + o.n : 0) * scalar_size(f64),
                        scalar_size(f64));
    o.kept = malloc(channels * o.stride * scalar_size(f64) +
                    channels * (terms + 1) * scalar_size(f64) + 1);
    fill_random(random, f64, o.w, channels * (terms + 1));
    if (o.n) fill_random(random, f64, o.y, (channels - 1) * o.stride + o.n);
    return o;
}

static void release(struct operands *o)
{
    fence_close(&o->fence);
    guarded_free(o->w);
    guarded_free(o->y);
    free(o->kept);
}

// A call of conv with the weights of a term adjacent.
static struct conv_operands conv_operands_of(const struct operands *o)
{
    return (struct conv_operands){.y = o->y,
                                  .x = o->x,
                                  .w = o->w,
                                  .offset = o->offset,
                                  .y_stride = o->stride,
                                  .w_term = o->channels,
                                  .w_channel = 1,
                                  .terms = o->terms,
                                  .channels = o->channels,
                                  .n = o->n};
}

static void check_conv(const struct kernels *k, struct operands *o)
{
    const bool f64 = o->f64;
    const size_t n_y = o->n ? (o->channels - 1) * o->stride + o->n : 0;
    memcpy(o->kept, o->y, n_y * scalar_size(f64));
    const struct conv_operands operands = conv_operands_of(o);
    k->conv(&operands, NULL);
    for (size_t i = 0; i < n_y; i++) {
        struct sum sum = {0};
        if (i % o->stride >= o->n) { // between the rows
            assert_same(f64, o->y, i, scalar_get(f64, o->kept, i));
            continue;
        }
        sum_product(&sum, 1, scalar_get(f64, o->kept, i));
        for (size_t t = 0; t < o->terms; t++)
            sum_product(&sum, scalar_get(f64, o->w, t * o->channels + i / o->stride),
                        scalar_get(f64, o->x, o->offset[t] + i % o->stride));
        if (!agrees(&sum, f64, scalar_get(f64, o->y, i), o->terms + 1))
            fail_msg("channel %zu of %zu, position %zu of %zu, %zu terms: %g, not %g",
                     i / o->stride, o->channels, i % o->stride, o->n, o->terms,
                     scalar_get(f64, o->y, i), sum_value(&sum));
    }
}

static float flushed(float v)
{
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}

static float float_of(uint32_t bits)
{
    float ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

// A number and a smaller one as a pair of bf16.
static void to_pairs(void *array, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float upper = ((float *)array)[i], lower = upper * 0.3f;
        uint32_t bits[2];
        memcpy(&bits[0], &upper, sizeof upper);
        memcpy(&bits[1], &lower, sizeof lower);
        ((uint32_t *)array)[i] = (bits[0] & 0xffff0000) | bits[1] >> 16;
    }
}

// sum + a * b of both halves, the upper ones first.
static float add_pair(float sum, uint32_t a, uint32_t b)
{
    sum = flushed(sum);
    for (int half = 0; half < 2; half++, a <<= 16, b <<= 16) {
        const float x = flushed(float_of(a & 0xffff0000)), y = flushed(float_of(b & 0xffff0000));
        sum = flushed(fmaf(x, y, sum));
    }
    return sum;
}

// Every bit is that of the contract.
static void check_pairs(const struct kernels *k, struct operands *o)
{
    const size_t n_y = o->n ? (o->channels - 1) * o->stride + o->n : 0;
    size_t reach = 0;
    for (size_t t = 0; t < o->terms; t++) reach = o->offset[t] > reach ? o->offset[t] : reach;
    to_pairs(o->x, o->n + reach);
    to_pairs(o->w, o->channels * o->terms);
    memcpy(o->kept, o->y, n_y * sizeof(float));
    struct conv_operands operands = conv_operands_of(o);
    operands.overwrite = o->terms % 2;
    k->conv_pairs(&operands, NULL);
    for (size_t i = 0; i < n_y; i++) {
        const size_t channel = i / o->stride, position = i % o->stride;
        const float kept = ((float *)o->kept)[i];
        float sum = 0;
        for (size_t t = 0; t < o->terms && position < o->n; t++)
            sum = add_pair(sum, ((uint32_t *)o->w)[t * o->channels + channel],
                           ((uint32_t *)o->x)[o->offset[t] + position]);
        const float expected = operands.overwrite ? sum : sum + kept;
        assert_same(false, o->y, i, (double)(position < o->n ? expected : kept));
    }
}

static void check_weight(const struct kernels *k, struct operands *o)
{
    const bool f64 = o->f64;
    const size_t stride = o->terms + 1, n_w = o->channels * stride;
    // What is prefetched is no memory.
    const void *ahead = o->terms % 2 ? (const void *)(uintptr_t)(o->terms << 12) : NULL;
    memcpy(o->kept, o->w, n_w * scalar_size(f64));
    k->conv_weight(&(struct conv_weight_operands){.w = o->w,
                                                  .y = o->y,
                                                  .x = o->x,
                                                  .ahead = ahead,
                                                  .offset = o->offset,
                                                  .w_stride = stride,
                                                  .y_stride = o->stride,
                                                  .channels = o->channels,
                                                  .terms = o->terms,
                                                  .n = o->n});
    for (size_t i = 0; i < n_w; i++) {
        struct sum sum = {0};
        if (i % stride == o->terms) {
            assert_same(f64, o->w, i, scalar_get(f64, o->kept, i));
            continue;
        }
        sum_product(&sum, 1, scalar_get(f64, o->kept, i));
        for (size_t p = 0; p < o->n; p++)
            sum_product(&sum, scalar_get(f64, o->y, i / stride * o->stride + p),
                        scalar_get(f64, o->x, o->offset[i % stride] + p));
        if (!agrees(&sum, f64, scalar_get(f64, o->w, i), o->n + 1))
            fail_msg("channel %zu of %zu, tap %zu of %zu, %zu positions: %g, not %g", i / stride,
                     o->channels, i % stride, o->terms, o->n, scalar_get(f64, o->w, i),
                     sum_value(&sum));
    }
}

static void over_sizes(const struct kernel_subject *s, size_t max_channels,
                       void (*check)(const struct kernels *, struct operands *))
{
    struct random random = random_start(s->name);
    for (size_t channels = 1; channels <= max_channels; channels++)
        for (size_t blocks = 0; blocks <= MAX_BLOCKS; blocks += blocks < 9 ? 1 : 7)
            for (size_t terms = 0; terms <= MAX_SIZES_TERMS; terms += terms < 8 ? 1 : 13) {
                const enum edge edge = (enum edge)((blocks + terms) % N_EDGES);
                struct operands o =
                    draw(&random, s->kernels->f64, channels, terms, blocks, edge, blocks % 3 == 2);
                check(s->kernels, &o);
                release(&o);
            }
}

static void test_conv(void **state)
{
    over_sizes(*state, CONV_CHANNELS, check_conv);
}

static void test_weight(void **state)
{
    over_sizes(*state, MAX_ROWS, check_weight);
}

static void test_conv_pairs(void **state)
{
    const struct kernel_subject *s = *state;
    if (s->kernels->conv_pairs && cpu_sums_pairs()) over_sizes(s, CONV_CHANNELS, check_pairs);
}

// The bits of a position do not depend on its index, on the number of positions or on the number of
// channels.
static void test_conv_splits(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start("cuts");
    enum { BLOCKS = 23 };
    struct operands o = draw(&random, f64, CONV_CHANNELS, MAX_TERMS, BLOCKS, EDGE_END, false);
    void *again = malloc(CONV_CHANNELS * o.stride * scalar_size(f64)),
         *w = malloc(MAX_TERMS * sizeof(double));
    const size_t n_y = (o.channels - 1) * o.stride + o.n;
    memcpy(o.kept, o.y, n_y * scalar_size(f64));
    const struct conv_operands whole = conv_operands_of(&o);
    s->kernels->conv(&whole, NULL);
    for (size_t first = 0; first < BLOCKS; first += 4) {
        const size_t at = first * block(f64),
                     n = (first + 3 < BLOCKS ? 3 : BLOCKS - first) * block(f64);
        memcpy(again, o.kept, n_y * scalar_size(f64));
        struct conv_operands part = whole;
        part.y = scalar_at(f64, again, at);
        part.x = scalar_at(f64, o.x, at);
        part.n = n;
        part.ahead = CONV_AHEAD_BYTES;
        s->kernels->conv(&part, NULL);
        for (size_t k = 0; k < o.channels; k++)
            assert_memory_equal(scalar_at(f64, again, k * o.stride + at),
                                scalar_at(f64, o.y, k * o.stride + at), n * scalar_size(f64));
    }
    for (size_t k = 0; k < o.channels; k++) {
        for (size_t t = 0; t < o.terms; t++)
            scalar_put(f64, w, t, scalar_get(f64, o.w, t * o.channels + k));
        memcpy(again, o.kept, n_y * scalar_size(f64));
        struct conv_operands part = whole;
        part.y = scalar_at(f64, again, k * o.stride);
        part.w = w;
        part.w_term = part.channels = 1;
        part.ahead = SIZE_MAX / 3;
        s->kernels->conv(&part, NULL);
        assert_memory_equal(scalar_at(f64, again, k * o.stride), scalar_at(f64, o.y, k * o.stride),
                            o.n * scalar_size(f64));
    }
    free(again);
    free(w);
    release(&o);
}

// The rows of kept and y are the same.
static void assert_rows(const struct operands *o)
{
    for (size_t k = 0; k < o->channels; k++)
        assert_memory_equal(scalar_at(o->f64, o->kept, k * o->stride),
                            scalar_at(o->f64, o->y, k * o->stride), o->n * scalar_size(o->f64));
}

// Sums written past the caches, to aligned rows, are the rows of y; what is behind them stays.
static void check_past_caches(const struct kernels *kernels, const struct operands *o,
                              struct conv_operands operands)
{
    const size_t bytes = scalar_size(o->f64), row = o->n + block(o->f64);
    char *rows = aligned_alloc(CONV_BLOCK_BYTES, o->channels * row * bytes);
    memset(rows, 0xff, o->channels * row * bytes);
    operands.y = rows;
    operands.y_stride = row;
    operands.past_caches = true;
    kernels->conv(&operands, NULL);
    for (size_t k = 0; k < o->channels; k++, rows += row * bytes) {
        assert_memory_equal(rows, scalar_at(o->f64, o->y, k * o->stride), o->n * bytes);
        for (size_t i = o->n * bytes; i < row * bytes; i++)
            assert_int_equal((unsigned char)rows[i], 0xff);
    }
    free(rows - o->channels * row * bytes);
}

// The bits are the same with the weights of a channel adjacent, with prefetching, and with sums
// that are not read instead of zeros; and `prefetch` moves by the lines of a call: 3 that are left
// of the first row, then rows of 5 that are 100 bytes apart.
static void test_conv_prefetch(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    enum { BLOCKS = 5, LEFT = 3, ROW = 5, SKIP = 100, LINE = 64 };
    struct random random = random_start("prefetch");
    for (size_t channels = 1; channels <= CONV_CHANNELS; channels++)
        for (size_t count = 0; count <= MAX_TERMS; count++) {
            struct operands o =
                draw(&random, f64, channels, MAX_TERMS, BLOCKS, EDGE_END, count % 3 == 2);
            const size_t n_y = ((channels - 1) * o.stride + o.n) * scalar_size(f64);
            struct conv_prefetch prefetch = {(uintptr_t)o.x, LEFT, ROW, SKIP, count};
            const size_t rows = count < LEFT ? 0 : 1 + (count - LEFT) / ROW;
            memcpy(o.kept, o.y, n_y);
            const struct conv_operands plain = conv_operands_of(&o);
            s->kernels->conv(&plain, NULL);
            struct conv_operands operands = plain;
            operands.y = o.kept;
            double by_channel[CONV_CHANNELS * MAX_TERMS];
            for (size_t t = 0; t < o.terms; t++)
                for (size_t k = 0; k < channels; k++)
                    scalar_put(f64, by_channel, k * o.terms + t,
                               scalar_get(f64, o.w, t * channels + k));
            if (count % 2) {
                operands.w = by_channel;
                operands.w_term = 1;
                operands.w_channel = o.terms;
            }
            s->kernels->conv(&operands, &prefetch);
            assert_rows(&o);
            assert_int_equal(prefetch.at, (uintptr_t)o.x + count * LINE + rows * SKIP);
            assert_int_equal(prefetch.left, rows * ROW + LEFT - count);
            operands.overwrite = true;
            memset(o.kept, 0xff, n_y); // NaN
            memset(o.y, 0, n_y);
            s->kernels->conv(&plain, NULL);
            s->kernels->conv(&operands, NULL);
            // Products of extreme values may underflow to -0, which added to 0 is 0.
            if (count % 3 != 2) {
                assert_rows(&o);
                check_past_caches(s->kernels, &o, operands);
            }
            release(&o);
        }
}

// Rows made adjacent: only the block after the end of the last row may change, and only the block
// after the end of a row may be read.
static void test_rows(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64), lanes = block(f64);
    struct random random = random_start("rows");
    for (size_t n = 1; n <= 2 * lanes + 1; n++)
        for (size_t rows = 0; rows <= 5; rows++) {
            const size_t stride = n + random_below(&random, 4),
                         n_x = rows ? (rows - 1) * stride + n + lanes : 0;
            struct fence fence = fence_open(n_x * bytes);
            void *from = malloc(n_x * bytes + 1),
                 *y = guarded_alloc((rows * n + lanes) * bytes, bytes);
            fill_random(&random, f64, from, n_x);
            void *x = fence_put(&fence, from, n_x * bytes, EDGE_END);
            s->kernels->conv_rows(y, x, stride, rows, n);
            for (size_t i = 0; i < rows * n; i++)
                assert_same(f64, y, i, scalar_get(f64, from, i / n * stride + i % n));
            guarded_free(y);
            fence_close(&fence);
            free(from);
        }
}

static void test_transpose(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    const size_t bytes = scalar_size(f64), max = 2 * block(f64) + 1;
    struct random random = random_start("transpose");
    for (size_t rows = 0; rows <= max; rows++)
        for (size_t n = 0; n <= max; n++) {
            const size_t x_stride = n + random_below(&random, 3),
                         y_stride = rows + random_below(&random, 3);
            const size_t n_x = rows && n ? (rows - 1) * x_stride + n : 0,
                         n_y = rows && n ? (n - 1) * y_stride + rows : 0;
            struct fence in = fence_open(n_x * bytes), out = fence_open(n_y * bytes);
            void *from = malloc(n_x * bytes + 1), *kept = malloc(n_y * bytes + 1);
            fill_random(&random, f64, from, n_x);
            fill_random(&random, f64, kept, n_y);
            void *x = fence_put(&in, from, n_x * bytes, EDGE_END);
            for (int back = 0; back < 2; back++) { // rows in the other order
                const size_t first = back && rows ? (rows - 1) * x_stride : 0;
                void *y = fence_put(&out, kept, n_y * bytes, EDGE_END);
                s->kernels->transpose(y, y_stride, scalar_at(f64, x, first),
                                      back ? -x_stride : x_stride, rows, n);
                for (size_t i = 0; i < n_y; i++) {
                    const size_t k = i % y_stride, row = back ? rows - 1 - k : k;
                    assert_same(f64, y, i,
                                k < rows ? scalar_get(f64, from, row * x_stride + i / y_stride)
                                         : scalar_get(f64, kept, i));
                }
                fence_check(&out, n_y * bytes, EDGE_END);
            }
            fence_close(&in);
            fence_close(&out);
            free(from);
            free(kept);
        }
}

static double finished(bool f64, double sum, const struct conv_finish *finish, double bias)
{
    // In the kernel's precision.
    double v = sum + (finish->bias ? bias : 0);
    v = f64 ? v : (double)(float)v;
    return finish->relu && v < 0 ? 0 : v;
}

static void test_store(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start("store");
    enum { MAX_N = 70, MAX_STEP = 3 };
    for (size_t n = 0; n <= MAX_N; n++)
        for (int kind = 0; kind < 10; kind++) {
            const bool each = kind >= 8; // without and with relu
            const size_t step = each ? 1 : 1 + random_below(&random, MAX_STEP);
            const size_t bytes = scalar_size(f64);
            void *y = guarded_alloc((n ? (n - 1) * step + 1 : 0) * bytes, bytes),
                 *sum = guarded_alloc(n * bytes, bytes);
            double bias[MAX_N + 1], kept[MAX_N * MAX_STEP];
            fill_random(&random, f64, bias, n + 1);
            fill_random(&random, f64, sum, n);
            if (n) fill_random(&random, f64, y, (n - 1) * step + 1);
            if (n)
                scalar_put(f64, sum, random_below(&random, n), extreme_value(&random, f64, false));
            for (size_t i = 0; n && i <= (n - 1) * step; i++) kept[i] = scalar_get(f64, y, i);
            const struct conv_finish finish = {.bias = each || kind & 2 ? bias : NULL,
                                               .each = each,
                                               .relu = each ? kind & 1 : kind & 4};
            s->kernels->conv_store(y, step, sum, n, &finish);
            for (size_t i = 0; n && i <= (n - 1) * step; i++) {
                const double expected = i % step
                                            ? kept[i]
                                            : finished(f64, scalar_get(f64, sum, i / step), &finish,
                                                       scalar_get(f64, bias, each ? i : 0));
                const double actual = scalar_get(f64, y, i);
                if (!(actual == expected || (isnan(actual) && isnan(expected))))
                    fail_msg("%zu of %zu, step %zu, kind %d: %g, not %g", i, n, step, kind, actual,
                             expected);
            }
            guarded_free(y);
            guarded_free(sum);
        }
}

static void test_sum(void **state)
{
    const struct kernel_subject *s = *state;
    const bool f64 = s->kernels->f64;
    struct random random = random_start("sum");
    for (size_t n = 0; n < 200; n++) {
        void *x = guarded_alloc(n * scalar_size(f64), scalar_size(f64));
        struct sum sum = {0};
        fill_random(&random, f64, x, n);
        for (size_t i = 0; i < n; i++) sum_product(&sum, 1, scalar_get(f64, x, i));
        assert_true(agrees(&sum, true, s->kernels->sum(x, n), n));
        guarded_free(x);
    }
}

static const struct promise promises[] = {
    {"conv", test_conv},
    {"conv, same bits", test_conv_splits},
    {"conv_weight", test_weight},
    {"conv_prefetch", test_conv_prefetch},
    {"conv of pairs", test_conv_pairs},
    {"conv_rows", test_rows},
    {"transpose", test_transpose},
    {"conv_store", test_store},
    {"sum", test_sum},
};
int main(void)
{
    return test_all_isas(promises, sizeof promises / sizeof *promises);
}
