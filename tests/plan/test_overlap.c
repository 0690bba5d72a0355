// SPDX-License-Identifier: MIT
// Results that share memory with operands: every bounded call refuses them, with one line, for each
// engine, by however few samples they overlap, and leaves the memory as it was. Arrays that only
// touch are accepted and give the bits of separate ones.
#include "support/test.h"

#include <math.h>
#include <stdio.h>

struct overlap_case {
    const char *name, *engine;
    struct partita_problem problem;
};

// One input and one output of equal lengths, causal, as users filter in place; and layers.
#define SIGNAL                                                                                     \
    {                                                                                              \
        LENGTH(3000), KERNEL(100), PAD_BEGIN(99)                                                   \
    }
#define LAYER                                                                                      \
    {                                                                                              \
        SIZE(14, 15), BATCH(2), CHANNELS(6, 4), KERNEL(3, 3), PAD(1, 1)                            \
    }
#define LAST                                                                                       \
    {                                                                                              \
        SIZE(14, 15), BATCH(2), CHANNELS(6, 4), KERNEL(3, 3), PAD(1, 1), .channels_last = true     \
    }
static const struct overlap_case cases[] = {
    {"signal", "cpu/direct", SIGNAL},
    {"signal", "cpu/gemm", SIGNAL},
    {"signal", "cpu/tiles", SIGNAL},
    {"signal", "cpu/overlap-save", SIGNAL},
    {"signal", "cpu/overlap-add", SIGNAL},
    {"signal", "cpu/blocks", SIGNAL},
    {"resampled", "cpu/direct", {LENGTH(900), KERNEL(60), UP(3), STRIDE(2), PAD_BEGIN(59)}},
    {"resampled", "cpu/overlap-save", {LENGTH(900), KERNEL(60), UP(3), STRIDE(2), PAD_BEGIN(59)}},
    {"complex", "cpu/overlap-save", {LENGTH(3000), KERNEL(100), PAD_BEGIN(99), TYPES(CF32, CF32)}},
    {"f64", "cpu/direct", {LENGTH(3000), KERNEL(100), PAD_BEGIN(99), TYPES(F64, F64)}},
    {"f16", "cpu/direct", {LENGTH(3000), KERNEL(100), PAD_BEGIN(99), TYPES(F16, F16)}},
    {"pointwise", "cpu/gemm", {SIZE(9, 9), CHANNELS(4, 4)}},
    {"layer", "cpu/direct", LAYER},
    {"layer", "cpu/gemm", LAYER},
    {"layer", "cpu/winograd", LAYER},
    {"layer", "cpu/tiles", LAYER},
    {"depthwise",
     "cpu/depthwise",
     {SIZE(20, 21), CHANNELS(4, 4), GROUPS(4), KERNEL(7, 7), PAD(3, 3)}},
    {"layer-last", "cpu/direct", LAST},
    {"layer-last", "cpu/gemm", LAST},
    {"layer-last", "cpu/winograd", LAST},
    {"layer-last", "cpu/tiles", LAST},
};
enum { N_CASES = sizeof cases / sizeof *cases, GAP = 256 };

// The arrays of one call in samples, results first; n is 0 for arrays that it does not have.
struct call {
    enum partita_direction direction; // 0: the gradient of the bias
    size_t n[3];
};

struct bench {
    const struct overlap_case *overlap_case;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct log_lines lines;
    size_t sample;
    char *memory; // two arrays anywhere, and a third behind them
    size_t bytes;
};

static enum partita_status run(const struct bench *b, const struct call *call, void *to,
                               const void *first, const void *second)
{
    switch (call->direction) {
    case PARTITA_FORWARD:
        return partita_forward(b->plan, b->filter, to, first, NULL);
    case PARTITA_BACKWARD_DATA:
        return partita_backward_data(b->plan, b->filter, to, first, NULL);
    case PARTITA_BACKWARD_WEIGHT:
        return partita_backward_weight(b->plan, to, first, second, NULL);
    default:
        return partita_backward_bias(b->plan, to, first, NULL);
    }
}

// The call with its result `shift` samples behind the start of operand `which`; `bits` is the
// result with separate arrays.
static void check_shift(struct bench *b, const struct call *call, int which, ptrdiff_t shift,
                        const void *bits)
{
    const size_t n = call->n[0] + call->n[1] + call->n[2];
    const ptrdiff_t bytes = (ptrdiff_t)b->sample, middle = (ptrdiff_t)(n + GAP) * bytes;
    char *operand = b->memory + middle, *other = operand + (n + GAP) * b->sample;
    char *to = operand + shift * bytes, *copy = malloc(b->bytes);
    struct random random = random_start("overlap");
    const enum partita_type type =
        b->overlap_case->problem.signal ? b->overlap_case->problem.signal : PARTITA_F32;
    random_samples(&random, type, b->memory, b->bytes / b->sample);
    memcpy(copy, b->memory, b->bytes);
    const bool apart = shift >= (ptrdiff_t)call->n[1 + which] || shift <= -(ptrdiff_t)call->n[0];
    b->lines = (struct log_lines){0};
    const enum partita_status status =
        run(b, call, to, which ? other : operand, which ? operand : other);
    if (apart) {
        assert_int_equal(status, PARTITA_OK);
        assert_int_equal(b->lines.n_lines, 0);
        if (bits) assert_memory_equal(to, bits, call->n[0] * b->sample);
    } else {
        assert_int_equal(status, PARTITA_ERR_ARG);
        assert_int_equal(b->lines.n_lines, 1);
        assert_non_null(strstr(b->lines.text, "overlaps"));
        assert_memory_equal(b->memory, copy, b->bytes);
    }
    free(copy);
}

static void check_call(struct bench *b, const struct call *call)
{
    for (int which = 0; which < 2; which++) {
        const ptrdiff_t operand = (ptrdiff_t)call->n[1 + which], result = (ptrdiff_t)call->n[0];
        const ptrdiff_t shifts[] = {0, 1, -1, 64, -64, operand - 1, 1 - result, operand, -result};
        if (!operand) continue;
        for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++)
            check_shift(b, call, which, shifts[i], NULL);
        // The arrays that touch have the operands of arrays that are far apart.
        const size_t n = call->n[0] + call->n[1] + call->n[2];
        char *bits = malloc(call->n[0] * b->sample);
        check_shift(b, call, which, operand + 1, NULL);
        memcpy(bits, b->memory + (n + GAP) * b->sample + (size_t)(operand + 1) * b->sample,
               call->n[0] * b->sample);
        check_shift(b, call, which, operand, bits);
        check_shift(b, call, which, -result, bits);
        free(bits);
    }
}

static void overlapping_results(void **state)
{
    struct bench b = {.overlap_case = *state};
    const struct partita_problem *p = &b.overlap_case->problem;
    struct partita_options options = {.engine = b.overlap_case->engine, .log = log_into(&b.lines)};
    size_t size[PARTITA_MAX_RANK];
    const unsigned gradients[] = {PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
                                  PARTITA_FORWARD};
    for (int i = 0; i < 2 && !b.plan; i++) {
        options.directions = gradients[i];
        if (partita_plan_create(p, &options, &b.plan) != PARTITA_OK) b.plan = NULL;
    }
    assert_non_null(b.plan);
    assert_ok(partita_problem_output_size(p, size));
    b.sample = partita_type_size(p->signal);
    const size_t taps = partita_plan_taps_count(b.plan);
    const size_t inputs = or_one(p->batch) * or_one(p->in_channels) * p->size[0] *
                          or_one(p->size[1]) * or_one(p->size[2]);
    const size_t outputs = or_one(p->batch) * or_one(p->out_channels) * size[0] * size[1] * size[2];
    b.bytes = 4 * (inputs + outputs + taps + GAP) * b.sample;
    b.memory = malloc(b.bytes);
    struct random random = random_start("overlap-taps");
    random_samples(&random, p->signal ? p->signal : PARTITA_F32, b.memory, taps);
    assert_ok(partita_filter_create(b.plan, b.memory, &b.filter));
    check_call(&b, &(struct call){PARTITA_FORWARD, {outputs, inputs, 0}});
    if (options.directions != PARTITA_FORWARD) {
        check_call(&b, &(struct call){PARTITA_BACKWARD_DATA, {inputs, outputs, 0}});
        check_call(&b, &(struct call){PARTITA_BACKWARD_WEIGHT, {taps, inputs, outputs}});
        check_call(&b, &(struct call){0, {or_one(p->out_channels), outputs, 0}});
    }
    free(b.memory);
    partita_filter_destroy(b.filter);
    partita_plan_destroy(b.plan);
}

// The workspace and taps of a call.
static void workspaces_and_taps(void **state)
{
    static _Alignas(64) char memory[1 << 18];
    const struct partita_problem problem = LAYER;
    struct log_lines lines = {0};
    struct partita_plan *plan;
    struct partita_filter *filter;
    (void)state;
    assert_ok(partita_plan_create(
        &problem, &(struct partita_options){.log = log_into(&lines), .threads = 1}, &plan));
    const size_t workspace = partita_plan_workspace(plan, PARTITA_FORWARD);
    const size_t x = 2 * 6 * 14 * 15 * 4, y = 2 * 4 * 14 * 15 * 4, w = 4 * 6 * 9 * 4;
    char *taps = memory, *in = taps + w, *out = in + x, *end = out + y;
    char *behind = end + (64 - (uintptr_t)end % 64) % 64;
    assert_true(workspace > 64 && (size_t)(behind - memory) + workspace <= sizeof memory);
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_forward(plan, filter, out, in, &(struct partita_call){.workspace = behind}));
    assert_ok(partita_forward(plan, NULL, out, in,
                              &(struct partita_call){.workspace = behind, .taps = taps}));
    assert_ok(
        partita_filter_update(filter, taps, NULL, &(struct partita_call){.workspace = behind}));
    assert_int_equal(lines.n_lines, 0);
    const struct partita_call over_y = {.workspace = behind - 64},
                              over_x = {.workspace = memory + (w + 63) / 64 * 64};
    assert_int_equal((uintptr_t)over_x.workspace % 64, 0);
    assert_int_equal(partita_forward(plan, filter, out, in, &over_y), PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(plan, filter, out, in, &over_x), PARTITA_ERR_ARG);
    assert_int_equal(
        partita_forward(plan, NULL, taps + w - 4, out, &(struct partita_call){.taps = taps}),
        PARTITA_ERR_ARG);
    assert_int_equal(
        partita_filter_update(filter, taps, NULL, &(struct partita_call){.workspace = taps}),
        PARTITA_ERR_ARG);
    assert_int_equal(lines.n_lines, 4);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// Calls without a plan of the caller's: short signals that are summed directly, and long ones.
static void one_shots(void **state)
{
    static float memory[4 * 40000];
    (void)state;
    for (size_t n = 40; n <= 40000; n *= 1000)
        for (int call = 0; call < 3; call++) {
            const size_t m = n / 4, full = n + m - 1;
            struct log_lines lines = {0};
            const struct partita_options options = {.log = log_into(&lines)};
            enum partita_status (*const run[])(enum partita_type, void *, const void *, size_t,
                                               const void *, size_t, const struct partita_slice *,
                                               const struct partita_options *, size_t) = {
                partita_convolve_sized, partita_correlate_sized,
                partita_correlate_normalised_sized};
            float *x = memory + 40000, *h = memory;
            for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) memory[i] = 1;
            float *const places[] = {x,     x + 1, x - 64,    x + n - 1,
                                     x + n, h,     h + m - 1, x - full + 1};
            for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                const float *y = places[i];
                const bool apart = (y >= x + n || y + full <= x) && (y >= h + m || y + full <= h);
                lines.n_lines = 0;
                assert_int_equal(
                    run[call](PARTITA_F32, places[i], x, n, h, m, NULL, &options, sizeof options),
                    apart ? PARTITA_OK : PARTITA_ERR_ARG);
                assert_int_equal(lines.n_lines, !apart);
            }
        }
}

int main(void)
{
    struct CMUnitTest tests[N_CASES + 2];
    size_t n = 0;
    for (size_t i = 0; i < N_CASES; i++)
        tests[n++] = named_test(overlapping_results, (void *)(uintptr_t)&cases[i], "%s/%s",
                                cases[i].engine, cases[i].name);
    tests[n++] = named_test(workspaces_and_taps, NULL, "workspaces-and-taps");
    tests[n++] = named_test(one_shots, NULL, "one-shots");
    return run_test_list(tests, n);
}
