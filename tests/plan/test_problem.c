// SPDX-License-Identifier: MIT
// Invalid problems and options are refused before anything is allocated, with the field and its
// value in the log line. Also the output size, up to the limits of valid problems.

#include "support/allocators.h"
#include "support/test.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

static const struct partita_problem good = {LENGTH(10), KERNEL(3)};
static const struct partita_problem good_stream = {LENGTH(PARTITA_UNBOUNDED), KERNEL(3)};
static const struct partita_problem image = {SIZE(10, 10), KERNEL(3, 3)};

struct bad_problem {
    const char *name;
    struct partita_problem problem;
    const char *field, *value; // words that the log line must have
};

enum { HUGE_TYPE = 77 };
#define BIG ((size_t)1 << 62)

static const struct bad_problem bad_problems[] = {
    {"signal", {LENGTH(10), .signal = (enum partita_type)HUGE_TYPE}, "signal", "77"},
    {"taps", {LENGTH(10), .taps = (enum partita_type)HUGE_TYPE}, "taps", "77"},
    {"taps-wider", {LENGTH(10), .taps = PARTITA_F64}, "taps", "f64"},
    {"taps-complex", {LENGTH(10), .taps = PARTITA_CF32}, "taps", "cf32"},
    {"taps-narrower", {LENGTH(10), .signal = PARTITA_CF64, .taps = PARTITA_F32}, "taps", "f32"},
    {"op", {.op = (enum partita_op)5, .size = {10}}, "op", "5"},
    {"rank-negative", {.rank = -1, .size = {10}}, "rank", "-1"},
    {"rank-four", {.rank = 4, .size = {10}}, "rank", "4"},
    {"activation", {.activation = (enum partita_activation)7, .size = {10}}, "activation", "7"},
    {"activation-of-stream",
     {.activation = PARTITA_RELU, .size = {PARTITA_UNBOUNDED}},
     "activation",
     "streams"},
    {"activation-of-complex",
     {.activation = PARTITA_RELU, .signal = PARTITA_CF32, .taps = PARTITA_F32, .size = {10}},
     "activation",
     "cf32"},
    {"volume-overflow",
     {SIZE((size_t)1 << 30, (size_t)1 << 30, (size_t)1 << 30)},
     "large",
     "address space"},
    {"taps-overflow",
     {SIZE(1, 1, 1), KERNEL((size_t)1 << 30, (size_t)1 << 30, (size_t)1 << 30),
      PAD_END((ptrdiff_t)1 << 30, (ptrdiff_t)1 << 30, (ptrdiff_t)1 << 30)},
     "large",
     "address space"},
    {"no-output-third", {SIZE(5, 5, 3), KERNEL(1, 1, 4)}, "axis 2", "4"},
    {"groups-inputs", {LENGTH(10), CHANNELS(4, 6), GROUPS(3)}, "groups", "3"},
    {"groups-outputs", {LENGTH(10), CHANNELS(6, 4), GROUPS(3)}, "groups", "3"},
    {"size-zero", {.kernel = {3}}, "size[0]", "0"},
    {"size-zero-second", {SIZE(10, 0)}, "size[1]", "0"},
    {"size-unbounded-second", {SIZE(10, PARTITA_UNBOUNDED)}, "size[1]", "18446744073709551615"},
    {"size-huge", {.size = {BIG}}, "size[0]", "4611686018427387904"},
    {"kernel-huge", {LENGTH(10), KERNEL(BIG)}, "kernel[0]", "4611686018427387904"},
    {"stride-huge", {LENGTH(10), STRIDE(BIG)}, "stride[0]", "4611686018427387904"},
    {"dilation-huge", {.dilation = {BIG}, .size = {10}}, "dilation[0]", "4611686018427387904"},
    {"span-overflow",
     {LENGTH(10), KERNEL((size_t)1 << 40), DILATION((size_t)1 << 40), PAD_BEGIN(PTRDIFF_MAX / 2)},
     "kernel[0]",
     "1099511627776"},
    {"pad-huge", {LENGTH(10), PAD_BEGIN(PTRDIFF_MAX)}, "pad_begin[0]", "9223372036854775807"},
    {"pad-huge-negative", {LENGTH(10), PAD_END(PTRDIFF_MIN)}, "pad_end[0]", "-9223372036854775808"},
    {"pads-cancel",
     {LENGTH(10), PAD_BEGIN(PTRDIFF_MAX), PAD_END(-PTRDIFF_MAX)},
     "pad_begin[0]",
     "92233"},
    {"no-output", {LENGTH(10), KERNEL(11)}, "11", "10"},
    {"no-output-dilation", {LENGTH(12), KERNEL(4), DILATION(4)}, "13", "12"},
    {"no-output-cropped", {LENGTH(10), KERNEL(3), PAD(-4)}, "-4", "10"},
    {"no-output-second", {SIZE(10, 10), KERNEL(3, 11)}, "11", "10"},
    {"channels-overflow", {LENGTH(1000), INPUTS(BIG)}, "channels", "4611686018427387904"},
    {"channels-product", {LENGTH(10), CHANNELS(BIG >> 31, BIG >> 31)}, "channels", "2147483648"},
    {"batch-overflow", {LENGTH(1000), BATCH(BIG)}, "4611686018427387904", "4611686018427387904"},
    {"size-beyond-rank", {.rank = 1, .size = {28, 28}}, "size[1]", "28"},
    {"kernel-beyond-sizes", {LENGTH(28), KERNEL(3, 3)}, "kernel[1]", "3"},
    {"kernel-beyond-rank", {SIZE(28, 28), KERNEL(3, 3, 5)}, "kernel[2]", "5"},
    {"stride-beyond-rank", {LENGTH(28), STRIDE(1, 2)}, "stride[1]", "2"},
    {"dilation-beyond-rank", {LENGTH(28), DILATION(1, 1, 4)}, "dilation[2]", "4"},
    {"pad-begin-beyond-rank", {LENGTH(28), PAD_BEGIN(0, 6)}, "pad_begin[1]", "6"},
    {"pad-end-beyond-rank", {SIZE(28, 28), PAD_END(0, 0, -1)}, "pad_end[2]", "-1"},
    {"inputs-alone", {LENGTH(28), INPUTS(2)}, "out_channels", "2"},
    {"block-of-bounded", {LENGTH(28), .block = 64}, "block", "64"},
    {"latency-of-bounded", {LENGTH(28), LATENCY(17)}, "latency", "17"},
    {"whole-blocks-of-bounded", {LENGTH(28), .whole_blocks = true}, "whole_blocks", "1"},
    {"separable-of-one-axis", {LENGTH(28), .separable = true}, "separable", "rank 1"},
    {"reserved", {LENGTH(28), .reserved = true}, "reserved", "false"},
    {"separable-of-stream", {STREAM(64), .separable = true}, "separable", "streams"},
    {"boundary-unknown", {LENGTH(28), .boundary = 6}, "boundary", "6"},
    {"boundary-value-alone", {LENGTH(28), .boundary_value = 0.5}, "boundary_value", "0.5"},
    {"boundary-value-of-edge",
     {LENGTH(28), BOUNDARY(EDGE), .boundary_value = NAN},
     "boundary_value",
     "nan"},
    {"boundary-of-stream", {STREAM(64), BOUNDARY(WRAP)}, "boundary", "5"},
    {"boundary-of-up", {LENGTH(28), UP(2), BOUNDARY(EDGE)}, "boundary", "2"},
    {"boundary-of-complex",
     {LENGTH(28), TYPE(PARTITA_CF32), BOUNDARY(CONSTANT), .boundary_value = 1},
     "boundary_value",
     "real types"},
    {"reflect-wide", {LENGTH(28), BOUNDARY(REFLECT), PAD_END(28)}, "boundary", "27"},
    {"reflect-wide-second",
     {SIZE(9, 5), KERNEL(1, 9), BOUNDARY(REFLECT), PAD_BEGIN(0, 5)},
     "pad_begin[1]",
     "5"},
    {"symmetric-wide", {LENGTH(28), BOUNDARY(SYMMETRIC), PAD_BEGIN(29)}, "boundary", "28"},
    {"wrap-wide", {LENGTH(28), BOUNDARY(WRAP), PAD_BEGIN(29)}, "pad_begin[0]", "29"},
    {"up-huge", {LENGTH(28), UP((size_t)1 << 21)}, "up", "2097152"},
    {"up-of-layer", {SIZE(28, 28), UP(2)}, "up", "one axis"},
    {"up-of-half", {LENGTH(28), TYPE(PARTITA_F16), UP(2)}, "up", "f16"},
    {"up-of-relu", {LENGTH(28), RELU, UP(2)}, "up", "activation"},
    {"up-size", {.size = {(size_t)1 << 40}, UP(1 << 20)}, "up", "1048576"},
    {"up-no-output", {LENGTH(3), KERNEL(8), UP(2)}, "6", "8"},
    {"stream-rank", {SIZE(PARTITA_UNBOUNDED, 10)}, "rank", "2"},
    {"stream-batch", {LENGTH(PARTITA_UNBOUNDED), BATCH(2)}, "batch", "2"},
    {"stream-pad-begin", {LENGTH(PARTITA_UNBOUNDED), PAD_BEGIN(7)}, "pad_begin", "7"},
    {"stream-pad-end", {LENGTH(PARTITA_UNBOUNDED), PAD_END(-7)}, "pad_end", "-7"},
    {"stream-block", {STREAM(BIG)}, "block", "4611686018427387904"},
    {"stream-latency", {LENGTH(PARTITA_UNBOUNDED), LATENCY(BIG)}, "latency", "4611686018427387904"},
    {"stream-kernel", {LENGTH(PARTITA_UNBOUNDED), KERNEL(BIG)}, "kernel[0]", "4611686018427387904"},
};

static void refused_with_field_and_value(void **state)
{
    const struct bad_problem *bad = *state;
    struct log_lines lines;
    struct meter meter = {0};
    struct partita_options options = {.log = log_into(&lines),
                                      .allocator = meter_allocator(&meter)};
    struct partita_plan *plan = (struct partita_plan *)1;
    assert_int_equal(partita_plan_create(&bad->problem, &options, &plan), PARTITA_ERR_ARG);
    assert_ptr_equal(plan, (struct partita_plan *)1);
    assert_int_equal(meter.n_allocated, 0);
    assert_int_equal(lines.n_lines, 1);
    if (!strstr(lines.text, bad->field) || !strstr(lines.text, bad->value)) {
        fail_msg("\"%s\" does not name both %s and %s", lines.text, bad->field, bad->value);
    }
    size_t size[PARTITA_MAX_RANK] = {41, 42, 43};
    assert_int_equal(partita_problem_output_size(&bad->problem, size), PARTITA_ERR_ARG);
    assert_true(size[0] == 41 && size[1] == 42 && size[2] == 43);
}

static void bad_arguments(void **state)
{
    (void)state;
    size_t size[PARTITA_MAX_RANK] = {41, 42, 43};
    struct partita_plan *plan;
    assert_int_equal(partita_problem_output_size(NULL, size), PARTITA_ERR_ARG);
    assert_int_equal(partita_problem_output_size(&good, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_problem_output_size(&good_stream, size), PARTITA_ERR_ARG);
    assert_int_equal(size[0], 41);
    assert_int_equal(partita_plan_create(NULL, NULL, &plan), PARTITA_ERR_ARG);
    assert_int_equal(partita_plan_create(&good, NULL, NULL), PARTITA_ERR_ARG);
}

struct bad_options {
    const char *name;
    struct partita_options options;
    enum partita_status status;
    const char *field, *value;
};

static const struct bad_options bad_options[] = {
    {"device", {.device = "tpu"}, PARTITA_ERR_DEVICE, "device", "tpu"},
    {"device-empty", {.device = ""}, PARTITA_ERR_DEVICE, "device", ""},
    {"effort", {.effort = (enum partita_effort)9}, PARTITA_ERR_ARG, "effort", "9"},
    {"threads", {.threads = -2}, PARTITA_ERR_ARG, "threads", "-2"},
    {"error-budget", {.error_budget = -0.5}, PARTITA_ERR_ARG, "error_budget", "-0.5"},
    {"error-budget-nan",
     {.error_budget = (double)__builtin_nanf("")},
     PARTITA_ERR_ARG,
     "error_budget",
     "nan"},
    {"directions", {.directions = 9}, PARTITA_ERR_ARG, "directions", "9"},
    {"sample-rate-of-bounded", {.sample_rate = 48000}, PARTITA_ERR_ARG, "sample_rate", "48000"},
    {"allocator-half",
     {.allocator = {.allocate = meter_allocate}},
     PARTITA_ERR_ARG,
     "allocator",
     "both"},
};

static void options_refused(void **state)
{
    const struct bad_options *bad = *state;
    struct log_lines lines;
    struct partita_options options = bad->options;
    options.log = log_into(&lines);
    struct partita_plan *plan = (struct partita_plan *)1;
    assert_int_equal(partita_plan_create(&good, &options, &plan), bad->status);
    assert_ptr_equal(plan, (struct partita_plan *)1);
    assert_int_equal(lines.n_lines, 1);
    if (!strstr(lines.text, bad->field) || !strstr(lines.text, bad->value)) {
        fail_msg("\"%s\" does not name both %s and %s", lines.text, bad->field, bad->value);
    }
}

// Explicit defaults make the same problem.
static void defaults_written_out(void **state)
{
    (void)state;
    struct partita_problem spelled = {SIZE(10),  BATCH(1),  CHANNELS(1, 1), GROUPS(1),
                                      KERNEL(3), STRIDE(1), DILATION(1)};
    size_t a[PARTITA_MAX_RANK] = {0}, b[PARTITA_MAX_RANK] = {0};
    assert_ok(partita_problem_output_size(&good, a));
    assert_ok(partita_problem_output_size(&spelled, b));
    assert_int_equal(a[0], 8);
    assert_int_equal(b[0], 8);
    struct partita_plan *plan;
    char text[2][4096];
    for (int i = 0; i < 2; i++) {
        assert_ok(partita_plan_create(i ? &spelled : &good, NULL, &plan));
        assert_true(partita_plan_explain(plan, text[i], sizeof text[i]) < sizeof text[i]);
        partita_plan_destroy(plan);
    }
    assert_string_equal(text[0], text[1]);
}

// Compares with the oracle's formula over random problems; both refuse negative sizes.
static void output_size_of_random_problems(void **state)
{
    (void)state;
    struct random random = random_start("output-size");
    for (int i = 0; i < 20000; i++) {
        struct partita_problem p = {.rank = 1 + (int)random_below(&random, 3)};
        bool any = true;
        for (int a = 0; a < p.rank; a++) {
            p.size[a] = 1 + random_below(&random, 30);
            p.kernel[a] = random_below(&random, 9);
            p.stride[a] = random_below(&random, 5);
            p.dilation[a] = random_below(&random, 4);
            p.pad_begin[a] = (ptrdiff_t)random_below(&random, 20) - 10;
            p.pad_end[a] = (ptrdiff_t)random_below(&random, 20) - 10;
            any = any && reference_outputs(&p, (size_t)a) > 0;
        }
        size_t size[PARTITA_MAX_RANK] = {0};
        assert_int_equal(partita_problem_output_size(&p, size), any ? PARTITA_OK : PARTITA_ERR_ARG);
        for (size_t a = 0; any && a < (size_t)p.rank; a++)
            assert_int_equal(size[a], reference_outputs(&p, a));
    }
}

// Sizes beyond 32 bits are valid, and their output size is computed without memory.
static void sizes_beyond_32_bits(void **state)
{
    (void)state;
    size_t size[PARTITA_MAX_RANK];
    struct partita_problem p = {LENGTH((size_t)1 << 40), KERNEL((size_t)1 << 33), STRIDE(3)};
    assert_ok(partita_problem_output_size(&p, size));
    assert_int_equal(size[0], (((size_t)1 << 40) - ((size_t)1 << 33)) / 3 + 1);
    struct partita_problem wide = {SIZE(70000, 70000), KERNEL(3, 5), PAD_BEGIN(-1, 2),
                                   PAD_END(1, 2), STRIDE(1, 2)};
    assert_ok(partita_problem_output_size(&wide, size));
    assert_true(size[0] == 69998 && size[1] == 35000);
    assert_ok(partita_problem_output_size(&image, size));
    assert_true(size[0] == 8 && size[1] == 8);
}

static void names_and_sizes(void **state)
{
    (void)state;
    static const struct {
        enum partita_type type;
        size_t size;
        const char *name;
    } types[] = {{PARTITA_F32, 4, "f32"},
                 {PARTITA_F64, 8, "f64"},
                 {PARTITA_CF32, 8, "cf32"},
                 {PARTITA_CF64, 16, "cf64"},
                 {(enum partita_type)HUGE_TYPE, 0, "?"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(partita_type_size(types[i].type), types[i].size);
        assert_string_equal(partita_type_name(types[i].type), types[i].name);
    }
    for (int s = -1; s < 20; s++) {
        const char *text = partita_status_string((enum partita_status)s);
        assert_non_null(text);
        assert_true(strlen(text) > 1);
        for (int t = -1; t < s && s <= PARTITA_ERR_STATE; t++) {
            assert_string_not_equal(text, partita_status_string((enum partita_status)t));
        }
    }
    assert_int_equal(partita_type_size(PARTITA_TYPE_DEFAULT), 4);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", PARTITA_VERSION_MAJOR, PARTITA_VERSION_MINOR,
             PARTITA_VERSION_PATCH);
    assert_string_equal(partita_version(), version);
}

// Axes are those with a size, taps are of the signal's type, and the plan knows their number.
static void defaults_follow_other_fields(void **state)
{
    (void)state;
    const struct partita_problem layer = {
        .kernel = {3, 3}, .size = {28, 30}, .in_channels = 4, .out_channels = 6, .groups = 2};
    const struct partita_problem spectrum = {
        .signal = PARTITA_CF32, .kernel = {3}, .size = {2}, .pad_begin = {2}, .pad_end = {2}};
    const float x[] = {1, 0, 0, 0}, h[] = {1, 0, 0, 2, 3, 0};
    float y[8] = {0};
    size_t size[PARTITA_MAX_RANK];
    struct partita_plan *plan;
    struct partita_filter *filter;
    assert_ok(partita_problem_output_size(&layer, size));
    assert_true(size[0] == 26 && size[1] == 28 && size[2] == 1);
    assert_ok(partita_plan_create(&layer, NULL, &plan));
    assert_int_equal(partita_plan_taps_count(plan), 6 * 2 * 9);
    partita_plan_destroy(plan);
    assert_ok(partita_plan_create(&spectrum, NULL, &plan));
    assert_int_equal(partita_plan_taps_count(plan), 3);
    assert_ok(partita_filter_create(plan, h, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    assert_memory_equal(y, h, sizeof h);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(partita_plan_taps_count(NULL), 0);
}

// main sets PARTITA_LOG=stderr.
static void plans_without_a_log_report_to_stderr(void **state)
{
    (void)state;
    char text[256] = "";
    struct partita_plan *plan;
    FILE *file = tmpfile();
    assert_non_null(file);
    const int kept = dup(2);
    dup2(fileno(file), 2);
    const enum partita_status status =
        partita_plan_create(&(struct partita_problem){LENGTH(9), KERNEL(31)}, NULL, &plan);
    dup2(kept, 2);
    close(kept);
    assert_int_equal(status, PARTITA_ERR_ARG);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_memory_equal(text, "partita: axis 0", 15);
    assert_true(strstr(text, "31") && text[strlen(text) - 1] == '\n');
}

static const struct bad_options stream_options[] = {
    {"workspace", {.workspace_limit = 5000}, PARTITA_ERR_ARG, "workspace_limit", "5000"},
    {"parts", {.parts = {64, 64, false}}, PARTITA_ERR_ARG, "parts", "bounded"},
    {"directions", {.directions = 6}, PARTITA_ERR_ARG, "directions", "6"},
};

static void options_of_bounded_problems(void **state)
{
    const struct bad_options *bad = *state;
    struct log_lines lines;
    struct partita_options options = bad->options;
    struct partita_plan *plan = NULL;
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&good_stream, &options, &plan), bad->status);
    assert_true(strstr(lines.text, bad->field) && strstr(lines.text, bad->value));
}

// Description and planning of a missing device say what is missing; plans for the CPU still work.
static void missing_device(void **state)
{
    (void)state;
    char text[256] = "";
    struct log_lines lines;
    struct partita_plan *plan = NULL;
    struct partita_problem problem = {LENGTH(10), KERNEL(3)};
    setenv("PARTITA_CUDA_MODULE", "/nowhere/libpartita-cuda.so", 1);
    assert_int_equal(partita_device_describe("cuda", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_non_null(strstr(text, "no CUDA device: module not loaded"));
    struct partita_options options = {.device = "cuda:0", .log = log_into(&lines)};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_DEVICE);
    assert_non_null(strstr(lines.text, "module not loaded"));
    assert_null(plan);
    options.device = NULL;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    partita_plan_destroy(plan);
    assert_ok(partita_device_describe("cpu", text, 4));
    assert_string_equal(text, "the");
    assert_int_equal(partita_device_describe("tpu", text, 0), PARTITA_ERR_DEVICE);
    assert_int_equal(partita_device_describe(NULL, text, 4), PARTITA_ERR_ARG);
    unsetenv("PARTITA_CUDA_MODULE");
}

int main(void)
{
    enum {
        N_PROBLEMS = sizeof bad_problems / sizeof *bad_problems,
        N_OPTIONS = sizeof bad_options / sizeof *bad_options,
        N_STREAM_OPTIONS = sizeof stream_options / sizeof *stream_options
    };
    struct CMUnitTest tests[N_PROBLEMS + N_OPTIONS + N_STREAM_OPTIONS + 8];
    size_t n = 0;
    setenv("PARTITA_LOG", "stderr", 1);
    for (size_t i = 0; i < N_STREAM_OPTIONS; i++)
        tests[n++] = named_test(options_of_bounded_problems, &stream_options[i], "stream-option-%s",
                                stream_options[i].name);
    tests[n++] = named_test(defaults_follow_other_fields, NULL, "defaults-follow-other-fields");
    tests[n++] = named_test(plans_without_a_log_report_to_stderr, NULL, "log-to-stderr");
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        tests[n++] = named_test(refused_with_field_and_value, &bad_problems[i], "bad-%s",
                                bad_problems[i].name);
    }
    for (size_t i = 0; i < N_OPTIONS; i++) {
        tests[n++] =
            named_test(options_refused, &bad_options[i], "bad-option-%s", bad_options[i].name);
    }
    tests[n++] = named_test(bad_arguments, NULL, "bad-arguments");
    tests[n++] = named_test(defaults_written_out, NULL, "defaults-written-out");
    tests[n++] = named_test(output_size_of_random_problems, NULL, "output-size-of-random-problems");
    tests[n++] = named_test(sizes_beyond_32_bits, NULL, "sizes-beyond-32-bits");
    tests[n++] = named_test(missing_device, NULL, "missing-device");
    tests[n++] = named_test(names_and_sizes, NULL, "names-and-sizes");
    return run_test_list(tests, n);
}
