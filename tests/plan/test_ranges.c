// SPDX-License-Identifier: MIT
// Ranges of indices (lib/base/ranges.h) of many random axes against lists of the inputs that each
// output reads: halos, padding, strides, dilation, negative and empty ranges. Also problems that
// are split into parts, whose outputs must read nothing outside the ranges of their part.
#include "base/ranges.h"
#include "core/problem.h"
#include "core/slice.h"
#include "geometry/samples.h"
#include "geometry/signal_blocks.h"
#include "support/test.h"

enum { CASES = 3000, FAR = 400 }; // outputs are nearer to 0 than FAR

static bool holds(struct range range, ptrdiff_t i)
{
    return range.first <= i && i < range_end(range);
}

static struct range draw_range(struct random *random, size_t size)
{
    return (struct range){(ptrdiff_t)random_below(random, 200) - 100, size};
}

static struct windows draw_windows(struct random *random)
{
    return (struct windows){(ptrdiff_t)random_below(random, 60) - 30, 1 + random_below(random, 7),
                            1 + random_below(random, 20)};
}

// Whether output y reads input x.
static bool reads(const struct windows *windows, ptrdiff_t y, ptrdiff_t x)
{
    const ptrdiff_t first = windows->first + (ptrdiff_t)windows->step * y;
    return first <= x && x < first + (ptrdiff_t)windows->span;
}

static void inputs_of_outputs(void **state)
{
    (void)state;
    struct random random = random_start("inputs");
    for (int i = 0; i < CASES; i++) {
        const struct windows windows = draw_windows(&random);
        const struct range outputs = draw_range(&random, 1 + random_below(&random, 9));
        const struct range inputs = windows_inputs(&windows, outputs);
        ptrdiff_t first = PTRDIFF_MAX, last = PTRDIFF_MIN;
        for (ptrdiff_t y = outputs.first; y < range_end(outputs); y++)
            for (ptrdiff_t x = -10 * FAR; x < 10 * FAR; x++) {
                if (!reads(&windows, y, x)) continue;
                first = x < first ? x : first;
                last = x > last ? x : last;
            }
        assert_int_equal(inputs.first, first);
        assert_int_equal(range_end(inputs), last + 1);
    }
}

static void outputs_of_inputs(void **state)
{
    (void)state;
    struct random random = random_start("outputs");
    for (int i = 0; i < CASES; i++) {
        const struct windows windows = draw_windows(&random);
        const struct range inputs = draw_range(&random, 1 + random_below(&random, 9));
        const struct range outputs = windows_outputs(&windows, inputs);
        for (ptrdiff_t y = -FAR; y < FAR; y++) {
            bool any = false;
            for (ptrdiff_t x = inputs.first; x < range_end(inputs); x++)
                any = any || reads(&windows, y, x);
            assert_int_equal(holds(outputs, y), any);
        }
    }
}

static void within(void **state)
{
    (void)state;
    struct random random = random_start("within");
    for (int i = 0; i < CASES; i++) {
        const struct range range = draw_range(&random, random_below(&random, 150));
        const struct range bounds = draw_range(&random, random_below(&random, 60));
        const struct range part = range_within(range, bounds.first, range_end(bounds));
        assert_true(bounds.first <= part.first && range_end(part) <= range_end(bounds));
        for (ptrdiff_t x = -FAR; x < FAR; x++)
            assert_int_equal(holds(part, x), holds(range, x) && holds(bounds, x));
    }
}

static struct partita_problem draw_problem(struct random *random)
{
    for (;;) {
        const struct partita_problem p = {.size = {1 + random_below(random, 60)},
                                          .kernel = {1 + random_below(random, 12)},
                                          .stride = {1 + random_below(random, 5)},
                                          .dilation = {1 + random_below(random, 4)},
                                          .pad_begin = {(ptrdiff_t)random_below(random, 60) - 20},
                                          .pad_end = {(ptrdiff_t)random_below(random, 60) - 20}};
        size_t out[3];
        if (partita_problem_output_size(&p, out) == PARTITA_OK && out[0] <= 100) return p;
    }
}

// Whether output y of a problem has a product with sample x.
static bool depends(const struct axis *axis, size_t y, size_t x)
{
    for (size_t j = 0; j < axis->kernel; j++)
        if (axis->begin + (ptrdiff_t)(axis->stride * y + axis->dilation * j) == (ptrdiff_t)x)
            return true;
    return false;
}

// The part of `n` indices that index i belongs to.
static struct range part_of(size_t i, size_t n)
{
    return (struct range){(ptrdiff_t)(i / n * n), n};
}

// Outputs of a part depend on the samples of its range alone. Samples of a part have an effect on
// the outputs of its range alone. Both ranges are as short as the first and last window allow.
static void parts(void **state)
{
    (void)state;
    struct random random = random_start("parts");
    for (int i = 0; i < CASES; i++) {
        const struct partita_problem p = draw_problem(&random);
        struct shape shape;
        assert_ok(problem_canonical(&p, &(struct partita_log){0}, &shape));
        const struct axis *axis = &shape.axis[0];
        const struct windows windows = {axis->begin, axis->stride, axis->span};
        const size_t n = 1 + random_below(&random, 20);
        for (size_t y = 0; y < axis->out; y++) {
            const struct range inputs = windows_inputs(&windows, part_of(y, n));
            const struct range samples = range_within(inputs, 0, (ptrdiff_t)axis->size);
            for (size_t x = 0; x < axis->size; x++)
                if (depends(axis, y, x)) assert_true(holds(samples, (ptrdiff_t)x));
            if (y % n == 0 && inputs.first >= 0 && inputs.first < (ptrdiff_t)axis->size)
                assert_true(depends(axis, y, (size_t)samples.first));
        }
        for (size_t x = 0; x < axis->size; x++) {
            const struct range reaching = windows_outputs(&windows, part_of(x, n));
            const struct range outputs = range_within(reaching, 0, (ptrdiff_t)axis->out);
            for (size_t y = 0; y < axis->out; y++)
                if (depends(axis, y, x)) assert_true(holds(outputs, (ptrdiff_t)y));
        }
    }
}

// Samples of a row that a reader with a stride finds inside the array.
static void inside(void **state)
{
    (void)state;
    struct random random = random_start("inside");
    for (int i = 0; i < CASES; i++) {
        const size_t size = random_below(&random, 40), step = 1 + random_below(&random, 6);
        const size_t n = random_below(&random, 30);
        const ptrdiff_t first = (ptrdiff_t)random_below(&random, 120) - 60;
        const struct inside found = samples_inside(size, first, step, n);
        assert_true(found.begin <= n && found.count <= n - found.begin);
        for (size_t k = 0; k < n; k++) {
            const ptrdiff_t at = first + (ptrdiff_t)(step * k);
            assert_int_equal(k >= found.begin && k < found.begin + found.count,
                             0 <= at && at < (ptrdiff_t)size);
        }
    }
}

// The outputs of a block of outputs at full rate.
static void outputs_of_block(void **state)
{
    (void)state;
    struct random random = random_start("block");
    for (int i = 0; i < CASES; i++) {
        const struct axis axis = {.stride = 1 + random_below(&random, 6),
                                  .out = random_below(&random, 40)};
        const size_t from = random_below(&random, 100), end = from + random_below(&random, 100);
        const struct block_outputs outputs = block_outputs(&axis, from, end);
        size_t count = 0, first = 0;
        for (size_t p = axis.out; p-- > 0;)
            if (p * axis.stride >= from && p * axis.stride < end) {
                count++;
                first = p;
            }
        assert_int_equal(outputs.count, count);
        if (!count) continue;
        assert_int_equal(outputs.first, first);
        assert_int_equal(outputs.skip, first * axis.stride - from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(inputs_of_outputs),
                                       cmocka_unit_test(outputs_of_inputs),
                                       cmocka_unit_test(within),
                                       cmocka_unit_test(parts),
                                       cmocka_unit_test(inside),
                                       cmocka_unit_test(outputs_of_block)};
    return run_all(tests);
}
