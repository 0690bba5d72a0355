// SPDX-License-Identifier: MIT
// cpu/blocks beyond the tests of every engine (test_engines.c): imposed partition sizes, equal ones
// and the schedule of divisions with its published examples; narrow windows of lags; slices with
// few blocks; workspace limits; sums over more partitions than are summed sequentially; threads.

#include "support/rig.h"

#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#include "parts_cases.h"

// Whether PARTITA_TEST_DEVICE names a device, whose engine is tested then.
static bool on_device(void)
{
    return layer_has_engine("cuda/blocks");
}

static struct partita_options blocks_options(struct partita_options options)
{
    options.engine = on_device() ? "cuda/blocks" : "cpu/blocks";
    return layer_options(&options);
}

// A device has no direct sums of partitions and, without cuFFT, only transforms that fit a thread
// block.
static bool is_served(const struct parts_case *parts)
{
    const char *cufft = getenv("PARTITA_CUFFT");
    const size_t max = cufft && !strcmp(cufft, "none") ? 4096 : SIZE_MAX;
    return !on_device() || (!parts->in_time && parts->taps <= max && parts->signal <= max);
}

static void imposed_parts(void **state)
{
    const struct typed_case *c = *state;
    struct partita_problem problem = parts_problem(c);
    struct partita_options options = blocks_options((struct partita_options){
        .parts = {c->parts->taps, c->parts->signal, c->parts->in_time}, .threads = 1});
    struct random random = random_start(c->parts->name);
    struct rig rig;
    rig_open(&rig, &problem, &options, &random);
    rig_forward(&rig);
    rig_check(&rig);
    // For one type only, since many threads are slow on a busy machine.
    for (int threads = 2; threads <= (c->types->signal == PARTITA_F32 && !on_device() ? 3 : 0);
         threads++) {
        options.threads = threads;
        rig_check_copy(&rig, &options);
    }
    rig_close(&rig);
}

// With channels, groups, a batch and dilated taps; equal partitions also with a stride.
static void imposed_parts_of_many(void **state)
{
    const struct type_pair *types = *state;
    struct partita_problem problem = {LENGTH(500),    TYPE_PAIR(types), CORRELATE,  BATCH(2),
                                      CHANNELS(6, 4), GROUPS(2),        KERNEL(90), DILATION(3),
                                      PAD_BEGIN(267), PAD_END(200)};
    const struct partita_parts sizes[] = {
        {64, 64, false}, {64, 64, false}, {20, 60, false}, {20, 60, true}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes - on_device(); i++) {
        const struct partita_options options =
            blocks_options((struct partita_options){.parts = sizes[i], .threads = 3});
        struct random random = random_start("many");
        struct rig rig;
        problem.stride[0] = i == 1 ? 5 : 1;
        rig_open(&rig, &problem, &options, &random);
        rig_forward(&rig);
        rig_check(&rig);
        if (i > 1 && !on_device())
            rig_check_copy(&rig, &(struct partita_options){.engine = "cpu/blocks:private-divisions",
                                                           .parts = sizes[i],
                                                           .threads = 2});
        rig_close(&rig);
    }
}

static void explain(const struct partita_problem *problem, const struct partita_options *options,
                    char *text, size_t size)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(problem, options, &plan));
    assert_true(partita_plan_explain(plan, text, size) < size);
    partita_plan_destroy(plan);
}

// The schedule of 60 x 36 with 12 and 6 is explained as published, without intervals that have no
// pairs.
static void schedule_is_printed(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "division 0, 5 intervals",     " 0: (0, 0)\n",
        " 18: (1, 1) (3, 0)\n",        " 36: (0, 3) (2, 2) (4, 1)\n",
        " 54: (1, 4) (3, 3) (5, 2)\n", " 72: (4, 4)\n",
        "division 1, 5 intervals",     " 6: (1, 0)\n",
        " 24: (0, 2) (2, 1) (4, 0)\n", " 42: (1, 3) (3, 2) (5, 1)\n",
        " 60: (2, 4) (4, 3)\n",        " 78: (5, 4)\n",
        "division 2, 4 intervals",     " 12: (0, 1) (2, 0)\n",
        " 30: (1, 2) (3, 1) (5, 0)\n", " 48: (0, 4) (2, 3) (4, 2)\n",
        " 66: (3, 4) (5, 3)\n",
    };
    struct partita_problem problem = {LENGTH(60), KERNEL(36), PAD(35)};
    char text[8192];
    const struct partita_options options =
        blocks_options((struct partita_options){.parts = {6, 12, false}});
    explain(&problem, &options, text, sizeof text);
    const char *at = text;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]);
        if (!at) fail_msg("\"%s\" is missing or misplaced in\n%s", lines[i], text);
    }
    assert_null(strstr(text, "(5, 5)"));
}

// A few outputs in the middle of a long product are one sum over the partitions that contribute.
static void narrow_lags(void **state)
{
    const struct type_pair *types = *state;
    enum { N = 60000, M = 50000, LAGS = 41 };
    const struct partita_options one = blocks_options((struct partita_options){.threads = 1});
    const struct partita_options three = blocks_options((struct partita_options){.threads = 3});
    for (int window = 0; window < 4; window++) {
        ptrdiff_t first = (ptrdiff_t[]){-20, -49990, 59980, 300}[window];
        struct partita_problem problem = {LENGTH(N),         TYPE_PAIR(types),
                                          CORRELATE,         KERNEL(M),
                                          PAD_BEGIN(-first), PAD_END(M - 1 + first + LAGS - N)};
        struct random random = random_start("lags");
        struct rig rig;
        rig_open(&rig, &problem, &one, &random);
        rig_forward(&rig);
        rig_check(&rig);
        if (window == 0) { // other windows have so few taps that pairs may cost less
            char text[4096];
            partita_plan_explain(rig.plan, text, sizeof text);
            assert_non_null(strstr(text, "1 window of 41 outputs"));
            assert_true(on_device() || partita_plan_workspace(rig.plan, PARTITA_FORWARD) <
                                           80 * rig.plan->choice.transform * rig.sample_bytes);
        }
        rig_check_copy(&rig, &three);
        // The one-call helper may read the template without a filter.
        if (types->signal == types->taps) {
            void *y = guarded_alloc(LAGS * rig.sample_bytes, 0);
            struct partita_slice slice = {
                .mode = PARTITA_RANGE, .first = first, .last = first + LAGS};
            assert_ok(partita_correlate(types->signal, y, rig.x, N, rig.w, M, &slice, NULL));
            // The larger gate, since direct sums may cost less.
            double gate = gate_for_outputs(gate_direct(types->signal, M), LAGS);
            assert_true(error_against(types->signal, y, rig.reference, LAGS,
                                      typical_output(&problem)) <= gate);
            guarded_free(y);
            struct partita_problem sliced;
            assert_ok(
                partita_slice_problem(PARTITA_CORRELATE, types->signal, N, M, &slice, &sliced));
            assert_true(sliced.op == problem.op && sliced.signal == problem.signal &&
                        sliced.taps == problem.taps);
            assert_true(sliced.kernel[0] == M && sliced.size[0] == N);
            assert_true(sliced.pad_begin[0] == problem.pad_begin[0] &&
                        sliced.pad_end[0] == problem.pad_end[0]);
        }
        rig_close(&rig);
    }
}

// With far more partitions than are summed sequentially, partial sums are added, within the gate.
static void many_parts(void **state)
{
    const struct type_pair *types = *state;
    enum { N = 200000, LAGS = 3 };
    struct partita_problem problem = {LENGTH(N), TYPE_PAIR(types), KERNEL(N), PAD_BEGIN(1),
                                      PAD_END(LAGS - 2)};
    const struct partita_options options =
        blocks_options((struct partita_options){.parts = {64, 64, false}});
    struct random random = random_start("many");
    struct rig rig;
    rig_open(&rig, &problem, &options, &random);
    rig_forward(&rig);
    rig_check(&rig);
    rig_close(&rig);
}

// With so little workspace there are thousands of partitions, in several rounds of chunks.
static void lags_in_rounds(void **state)
{
    const struct type_pair *types = *state;
    enum { N = 600000, LAGS = 3, TRANSFORM = 128 };
    struct partita_problem problem = {LENGTH(N), TYPE_PAIR(types), KERNEL(N), PAD_BEGIN(1),
                                      PAD_END(LAGS - 2)};
    const size_t samples = (on_device() ? 100 : 60) * TRANSFORM;
    const struct partita_options options = blocks_options((struct partita_options){
        .threads = 1, .workspace_limit = samples * partita_type_size(types->signal)});
    struct random random = random_start("rounds");
    struct rig rig;
    rig_open(&rig, &problem, &options, &random);
    assert_true(on_device() || rig.plan->choice.transform <= TRANSFORM + TRANSFORM / 4);
    rig_forward(&rig);
    rig_check(&rig);
    rig_close(&rig);
}

// Less workspace makes chunks shorter, down to windows that each read all inputs again, with the
// same result.
static void limited_workspace(void **state)
{
    const struct type_pair *types = *state;
    struct partita_problem problem = {LENGTH(6000), TYPE_PAIR(types), KERNEL(3000), PAD(2999)};
    struct random random = random_start("limit");
    struct rig free_rig, rig;
    const struct partita_options free_options =
        blocks_options((struct partita_options){.threads = 1});
    rig_open(&free_rig, &problem, &free_options, &random);
    rig_forward(&free_rig);
    rig_check(&free_rig);
    size_t limit = partita_plan_workspace(free_rig.plan, PARTITA_FORWARD), served = 0;
    for (; limit > 1000; limit = limit / 2) {
        struct partita_plan *plan;
        const struct partita_options options =
            blocks_options((struct partita_options){.threads = 1, .workspace_limit = limit});
        enum partita_status status = partita_plan_create(&problem, &options, &plan);
        if (status == PARTITA_ERR_UNSUPPORTED) break;
        assert_ok(status);
        partita_plan_destroy(plan);
        rig_open_with(&rig, &problem, &options, free_rig.x, free_rig.w);
        assert_true(partita_plan_workspace(rig.plan, PARTITA_FORWARD) <= limit);
        rig.reference = free_rig.reference;
        rig_forward(&rig);
        rig_check(&rig);
        rig.reference = NULL;
        rig_close(&rig);
        served++;
    }
    assert_true(served >= 2);
    assert_true(limit < 8 * 3000 * free_rig.sample_bytes);
    rig_close(&free_rig);
}

// Taps of a single use give the same bits as a filter, with windows of lags and with pairs.
static void once_has_bits_of_filter(void **state)
{
    const struct type_pair *types = *state;
    struct partita_problem problem = {LENGTH(3010), TYPE_PAIR(types), CORRELATE, KERNEL(3000)};
    for (int full = 0; full < 2; full++) {
        struct random random = random_start("once");
        struct rig rig;
        problem.pad_begin[0] = problem.pad_end[0] = full ? 2999 : 5;
        const struct partita_options options =
            blocks_options((struct partita_options){.threads = 2});
        rig_open(&rig, &problem, &options, &random);
        assert_true(rig.plan->choice.from_taps == !full || on_device());
        rig_forward(&rig);
        void *y = guarded_alloc(rig.n_y * rig.sample_bytes, 0);
        assert_ok(partita_forward(rig.plan, NULL, y, rig.x, &(struct partita_call){.taps = rig.w}));
        assert_memory_equal(y, rig.y, rig.n_y * rig.sample_bytes);
        assert_int_equal(
            partita_forward(NULL, NULL, y, rig.x, &(struct partita_call){.taps = rig.w}),
            PARTITA_ERR_ARG);
        assert_int_equal(
            partita_forward(rig.plan, NULL, NULL, rig.x, &(struct partita_call){.taps = rig.w}),
            PARTITA_ERR_ARG);
        assert_int_equal(partita_forward(rig.plan, NULL, (char *)y + 1, rig.x,
                                         &(struct partita_call){.taps = rig.w}),
                         PARTITA_ERR_ARG);
        assert_int_equal(
            partita_forward(rig.plan, NULL, y, NULL, &(struct partita_call){.taps = rig.w}),
            PARTITA_ERR_ARG);
        assert_int_equal(
            partita_forward(rig.plan, NULL, y, rig.x, &(struct partita_call){.taps = NULL}),
            PARTITA_ERR_ARG);
        assert_memory_equal(y, rig.y, rig.n_y * rig.sample_bytes);
        guarded_free(y);
        rig_close(&rig);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct partita_parts bad[] = {
        {1, 0, false}, {0, 7, false}, {0, 0, true}, {SIZE_MAX, 2, false}};
    struct partita_problem problem = {LENGTH(60), KERNEL(36), STRIDE(2), PAD_BEGIN(35)};
    struct partita_plan *plan = (struct partita_plan *)1;
    struct log_lines lines;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct partita_options options = {.parts = bad[i], .log = log_into(&lines)};
        assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_ARG);
        assert_non_null(strstr(lines.text, "options.parts"));
    }
    struct partita_options strided = {
        .engine = "cpu/blocks", .parts = {6, 12, false}, .log = log_into(&lines)};
    assert_int_equal(partita_plan_create(&problem, &strided, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "stride"));
    problem.stride[0] = 1;
    strided.parts = (struct partita_parts){(size_t)1 << 40, 12, false};
    strided.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &strided, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "no transform holds"));
    problem.size[0] = PARTITA_UNBOUNDED, problem.pad_begin[0] = 0;
    strided.parts = (struct partita_parts){0};
    assert_int_equal(partita_plan_create(&problem, &strided, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_ptr_equal(plan, (struct partita_plan *)1);
    assert_int_equal(partita_slice_problem(PARTITA_CONVOLVE, PARTITA_F32, 0, 5, NULL, &problem),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_slice_problem(PARTITA_CONVOLVE, PARTITA_F32, 5, 5, NULL, NULL),
                     PARTITA_ERR_ARG);
}

// A device refuses what it cannot compute, with a reason.
static void device_refusals(void **state)
{
    (void)state;
    struct partita_problem problem = {LENGTH(60), KERNEL(36), STRIDE(2), PAD_BEGIN(35)};
    struct partita_plan *plan = (struct partita_plan *)1;
    struct log_lines lines;
    struct partita_options options =
        blocks_options((struct partita_options){.parts = {6, 12, false}});
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "stride"));
    problem.stride[0] = 1;
    options.parts = (struct partita_parts){(size_t)1 << 40, 12, false};
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "no transform holds"));
    options.parts = (struct partita_parts){64, 64, true};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    options.parts = (struct partita_parts){64, 64, false};
    options.workspace_limit = 100;
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "workspace"));
    options.workspace_limit = 0;
    options.parts = (struct partita_parts){0};
    problem.size[0] = PARTITA_UNBOUNDED, problem.pad_begin[0] = 0;
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "streams"));
    assert_ptr_equal(plan, (struct partita_plan *)1);
}

// Plans beyond 32 bits have right sizes, impossible ones are refused, and nothing of that size is
// allocated.
static void sizes_beyond_32_bits(void **state)
{
    (void)state;
    const size_t huge = (size_t)5 << 32;
    struct partita_problem problem = {LENGTH(huge + 1), CORRELATE, KERNEL(huge), PAD_BEGIN(1000),
                                      PAD_END(999)};
    const struct partita_options forced = blocks_options((struct partita_options){.threads = 2});
    const struct partita_options free = {.device = forced.device, .threads = 2};
    char text[4096];
    explain(&problem, &forced, text, sizeof text);
    assert_non_null(strstr(text, "1 window of 2001 outputs"));
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &free, &plan));
    assert_string_equal(partita_plan_engine(plan, PARTITA_FORWARD), forced.engine);
    assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) < 64 << 20);
    partita_plan_destroy(plan);
    problem.pad_begin[0] = problem.pad_end[0] = (ptrdiff_t)huge - 1;
    if (!on_device()) explain(&problem, &forced, text, sizeof text);
}

// The signal begins 1e6 times as loud as it goes on. With short partitions the errors of the loud
// part end one transform after the outputs that depend on it; a single partition spreads them over
// the quiet outputs (docs/theory.md, section 5).
static void loud_then_quiet(void **state)
{
    (void)state;
    enum { N = 40000, M = 512, LOUD = 2000, SHORT = 1024, WHOLE = 65536, WINDOW = 2000 };
    static const size_t part[] = {SHORT, WHOLE};
    double error[2] = {0, INFINITY};
    const struct partita_problem problem = {LENGTH(N), KERNEL(M), PAD_BEGIN(M - 1)};
    for (int i = 0; i < (is_served(&(struct parts_case){.taps = WHOLE, .signal = WHOLE}) ? 2 : 1);
         i++) {
        const struct partita_options options =
            blocks_options((struct partita_options){.parts = {part[i], part[i], false}});
        const size_t from = LOUD + M + 2 * SHORT;
        struct random random = random_start("loud");
        struct rig rig;
        rig_open(&rig, &problem, &options, &random);
        for (size_t k = 0; k < LOUD; k++)
            sample_put(problem.signal, rig.x, k, 1e6 * reference_sample(problem.signal, rig.x, k));
        rig_forward(&rig);
        struct partita_problem window = problem;
        window.pad_begin[0] -= (ptrdiff_t)from;
        window.pad_end[0] = -(ptrdiff_t)(N - from - WINDOW);
        double complex *expected = malloc(WINDOW * sizeof *expected);
        reference_forward(&window, expected, rig.x, rig.w);
        error[i] = error_against(problem.signal, (char *)rig.y + from * rig.sample_bytes, expected,
                                 WINDOW, 0);
        free(expected);
        rig_close(&rig);
    }
    assert_true(error[0] <= gate_transform(problem.signal, 2 * SHORT));
    // The loud part is LOUD of the samples over which its errors are spread: they are at least A
    // sqrt(LOUD/n) u.
    assert_true(error[1] >= 1e6 * sqrt((double)LOUD / (2 * WHOLE)) * 0x1p-24);
}

int main(void)
{
    static struct typed_case cases[N_TYPE_PAIRS][2][N_PARTS_CASES];
    static struct CMUnitTest tests[N_TYPE_PAIRS * (2 * N_PARTS_CASES + 6) + 4];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t t = 0; t < (layer_is_brief() ? 1 : N_TYPE_PAIRS); t++) {
        const struct type_pair *types = &type_pairs[t];
        for (int op = 0; op < 2; op++)
            for (size_t i = 0; i < N_PARTS_CASES; i++) {
                struct typed_case *c = &cases[t][op][i];
                if (!is_served(&parts_cases[i])) continue;
                *c = (struct typed_case){&parts_cases[i], types, (enum partita_op)op};
                tests[n++] =
                    named_test(imposed_parts, c, "parts/%s-%s-%s", op ? "correlate" : "convolve",
                               parts_cases[i].name, types->name);
            }
        tests[n++] = named_test(imposed_parts_of_many, types, "parts/channels-%s", types->name);
        tests[n++] = named_test(narrow_lags, types, "lags/narrow-%s", types->name);
        tests[n++] = named_test(many_parts, types, "parts/thousands-%s", types->name);
        tests[n++] = named_test(lags_in_rounds, types, "lags/rounds-%s", types->name);
        tests[n++] = named_test(once_has_bits_of_filter, types, "once-as-often-%s", types->name);
        tests[n++] = named_test(limited_workspace, types, "limited-workspace-%s", types->name);
    }
    tests[n++] = named_test(schedule_is_printed, NULL, "schedule-is-printed");
    tests[n++] = named_test(on_device() ? device_refusals : refusals, NULL, "refusals");
    tests[n++] = named_test(loud_then_quiet, NULL, "loud-then-quiet");
    tests[n++] = named_test(sizes_beyond_32_bits, NULL, "sizes-beyond-32-bits");
    return run_test_list(tests, n);
}
