// SPDX-License-Identifier: MIT
// The planner: explanations, forced engines, options that are kept or refused with a reason,
// planning time, PARTITA_CPU. The choices themselves are not tested.

#include "support/rig.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <malloc.h>
#include <math.h>
#include <stdio.h>

static const struct partita_problem longish = {LENGTH(100000), KERNEL(3000), PAD_BEGIN(2999)};
static const struct partita_problem live = {STREAM(256), CHANNELS(2, 2), GROUPS(2), KERNEL(4096),
                                            LATENCY(4096)};

static char *explain(const struct partita_plan *plan)
{
    static char text[8192];
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    return text;
}

static void explain_names_all_engines(void **state)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(*state, NULL, &plan));
    char *text = explain(plan);
    for (int e = 0; e < N_SIGNAL_ENGINES; e++) assert_non_null(strstr(text, engine_names[e]));
    char *chosen = strstr(text, "<- chosen");
    assert_non_null(chosen);
    assert_null(strstr(chosen + 1, "<- chosen"));
    while (*chosen != '\n') chosen--;
    chosen[1 + strcspn(chosen + 1, "\n")] = 0;
    assert_non_null(
        strstr(chosen, partita_plan_engine(plan, PARTITA_FORWARD))); // the chosen engine is marked
    assert_non_null(strstr(chosen, "error"));
    assert_non_null(strstr(chosen, "B"));
    partita_plan_destroy(plan);
}

// Like snprintf: returns the whole length for any capacity and terminates within it.
static void explain_truncates(void **state)
{
    (void)state;
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&live, NULL, &plan));
    char whole[8192], part[8192];
    size_t length = partita_plan_explain(plan, whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    assert_int_equal(partita_plan_explain(plan, NULL, 0), length);
    for (size_t size = 1; size < length + 3; size += 13) {
        memset(part, 0x7f, sizeof part);
        assert_int_equal(partita_plan_explain(plan, part, size), length);
        size_t kept = size - 1 < length ? size - 1 : length;
        assert_int_equal(strlen(part), kept);
        assert_memory_equal(part, whole, kept);
        for (size_t i = size; i < sizeof part; i++) assert_int_equal(part[i], 0x7f);
    }
    partita_plan_destroy(plan);
}

static void forced_engine_is_chosen(void **state)
{
    const struct partita_problem *problem = *state;
    const int n_engines = problem->size[0] == PARTITA_UNBOUNDED ? N_STREAM_ENGINES : N_ENGINES;
    for (int e = 0; e < n_engines; e++) {
        char name[32];
        strcpy(name, engine_names[e]);
        struct partita_plan *plan;
        assert_ok(partita_plan_create(
            problem, &(struct partita_options){.engine = name, .device = "cpu"}, &plan));
        memset(name, 'x', sizeof name - 1); // the strings of options may go
        assert_string_equal(partita_plan_engine(plan, PARTITA_FORWARD), engine_names[e]);
        partita_plan_destroy(plan);
    }
}

static void unknown_engine_is_named(void **state)
{
    (void)state;
    static const char *const unknown[] = {"cpu/none", "direct", "", "cpu/direct ", "cuda/direct"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct log_lines lines;
        struct partita_options options = {.engine = unknown[i], .log = log_into(&lines)};
        struct partita_plan *plan = (struct partita_plan *)1;
        assert_int_equal(partita_plan_create(&longish, &options, &plan), PARTITA_ERR_ARG);
        assert_ptr_equal(plan, (struct partita_plan *)1);
        assert_int_equal(lines.n_lines, 1);
        assert_non_null(strstr(lines.text, "engine"));
        assert_non_null(strstr(lines.text, unknown[i]));
    }
}

// No engine has no errors, and one line says so for each of them, and once for those with the same
// reason. A problem that no engine serves has a line of its own.
static void unsupported_names_every_reason(void **state)
{
    (void)state;
    struct log_lines lines;
    const struct partita_problem image = {SIZE(16, 16), TYPES(CF32, CF32), KERNEL(3, 3)};
    const struct partita_problem signal = {LENGTH(160), KERNEL(3)};
    struct partita_plan *plan = (struct partita_plan *)1;
    struct partita_options options = {.log = log_into(&lines), .error_budget = 1e-30};
    assert_int_equal(partita_plan_create(&signal, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_ptr_equal(plan, (struct partita_plan *)1);
    assert_int_equal(lines.n_lines, 1);
    for (int e = 0; e < N_SIGNAL_ENGINES; e++) assert_non_null(strstr(lines.text, engine_names[e]));
    options.engine = "cpu/overlap-add";
    options.log = log_into(&lines);
    assert_int_equal(partita_plan_create(&signal, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(lines.n_lines, 1);
    assert_non_null(strstr(lines.text, "cpu/overlap-add: "));
    assert_null(strstr(lines.text, "cpu/direct"));
    options = (struct partita_options){.log = log_into(&lines)};
    assert_int_equal(partita_plan_create(&image, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(lines.n_lines, 1);
    assert_non_null(strstr(lines.text, "complex problems have one axis, this has 2"));
}

// With any limit the plan is within it and right, or it is refused.
static void workspace_limit_is_kept(void **state)
{
    const char *engine = *state;
    struct random random = random_start("workspace");
    int n_planned = 0;
    for (size_t limit = 1; limit < (size_t)1 << 28; limit *= 3) {
        struct partita_problem problem = {LENGTH(5000), KERNEL(200), PAD_BEGIN(199)};
        struct partita_options options = {.engine = engine, .threads = 2, .workspace_limit = limit};
        struct partita_plan *plan = NULL;
        enum partita_status status = partita_plan_create(&problem, &options, &plan);
        if (status == PARTITA_OK) {
            assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) <= limit);
            partita_plan_destroy(plan);
            struct rig rig;
            rig_open(&rig, &problem, &options, &random);
            rig_forward(&rig);
            rig_check(&rig);
            rig_close(&rig);
            n_planned++;
        } else {
            assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
            assert_int_equal(n_planned, 0); // a larger limit never refuses
        }
    }
    assert_true(n_planned > 5);
}

// The same for layers, with finer limits.
static void workspace_limit_of_layers_is_kept(void **state)
{
    const char *engine = *state;
    static const struct partita_problem problems[] = {
        {SIZE(14, 14), BATCH(2), CHANNELS(5, 9), KERNEL(3, 3)},
        {SIZE(56, 56), CHANNELS(64, 512), KERNEL(3, 3), STRIDE(2, 1)},
        {SIZE(17, 20), CHANNELS(300, 40)},
        {LENGTH(700), CHANNELS(12, 9), KERNEL(130)},
        {SIZE(6, 7, 8), BATCH(2), CHANNELS(3, 5), KERNEL(3, 2, 3)},
    };
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_F16};
    static const enum partita_direction directions[] = {PARTITA_FORWARD, PARTITA_BACKWARD_DATA};
    for (size_t i = 0; i < 6 * (sizeof problems / sizeof *problems); i++) {
        struct partita_problem problem = problems[i / 6];
        problem.signal = problem.taps = types[i % 3];
        // Taps in f32 lie behind the engine's workspace.
        size_t wide = sizeof(float) * problem.in_channels * problem.out_channels;
        for (int a = 0; a < PARTITA_MAX_RANK; a++) wide *= or_one(problem.kernel[a]);
        if (problem.signal != PARTITA_F16) wide = 0;
        size_t min_limit = 0;
        for (size_t limit = 64; limit < (size_t)1 << 21; limit += limit / 16) {
            struct partita_options options = {.engine = engine,
                                              .threads = 1,
                                              .directions = directions[i / 3 % 2],
                                              .workspace_limit = limit};
            struct partita_plan *plan;
            if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) {
                if (min_limit)
                    fail_msg("problem %zu: accepted with %zu bytes, refused with %zu", i, min_limit,
                             limit);
                continue;
            }
            if (!min_limit) min_limit = limit;
            assert_in_range(partita_plan_workspace(plan, directions[i / 3 % 2]), 1, limit);
            partita_plan_destroy(plan);
        }
        const size_t engines = strcmp(engine, "cpu/direct") ? 1 << 15 : 1 << 12;
        assert_in_range(min_limit, 64, engines + wide + wide / 8);
    }
}

// If all threads work on one transform they share one workspace: a limit without space for a second
// one does not reduce the number of threads.
// Panels of cpu/gemm hold a part of the taps of a channel; the packed inputs grow with the taps.
static void panels_of_many_taps_are_small(void **state)
{
    enum { INS = 2, TAPS = 5000, INPUTS = 6000, OUTPUTS = INPUTS - TAPS + 1 };
    const struct partita_problem problem = {LENGTH(INPUTS), KERNEL(TAPS), CHANNELS(INS, 9)};
    static float x[INS * INPUTS], taps[9 * INS * TAPS], y[9 * OUTPUTS];
    struct partita_plan *plan;
    struct partita_filter *filter;
    (void)state;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = 1;
    for (size_t i = 0; i < sizeof taps / sizeof *taps; i++) taps[i] = 1;
    const struct partita_options options = {.engine = "cpu/gemm", .threads = 1};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) < (4 << 20));
    assert_ok(partita_filter_create(plan, taps, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    // Sums of ones are exact.
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) assert_true(y[i] == INS * TAPS);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void one_workspace_serves_all_threads(void **state)
{
    (void)state;
    const struct partita_problem problem = {LENGTH(1 << 22), KERNEL(1 << 20)};
    struct partita_options options = {.engine = "cpu/overlap-save", .threads = 3};
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    const bool shared_blocks = plan->choice.worker == 0;
    options.workspace_limit = plan->choice.bytes; // one thread's, and the smaller taps
    partita_plan_destroy(plan);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    if (shared_blocks) assert_int_equal(plan->threads, 3);
    assert_in_range(partita_plan_workspace(plan, PARTITA_FORWARD), 1, options.workspace_limit);
    partita_plan_destroy(plan);
}

static void error_budget_is_kept(void **state)
{
    (void)state;
    struct partita_problem problem = longish;
    struct partita_plan *plan;
    for (double budget = 1e-9; budget < 1; budget *= 1.5) {
        struct log_lines lines;
        struct partita_options options = {.error_budget = budget, .log = log_into(&lines)};
        enum partita_status status = partita_plan_create(&problem, &options, &plan);
        if (status == PARTITA_OK) {
            assert_true(plan->choice.error <= budget);
            partita_plan_destroy(plan);
        } else {
            assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
            assert_non_null(strstr(lines.text, "error"));
            assert_true(budget < 1e-6); // every engine has a smaller error in f32
        }
    }
    assert_int_equal(
        partita_plan_create(&problem, &(struct partita_options){.error_budget = 1e-9}, &plan),
        PARTITA_ERR_UNSUPPORTED);
    problem.signal = problem.taps = PARTITA_F64;
    assert_ok(
        partita_plan_create(&problem, &(struct partita_options){.error_budget = 1e-14}, &plan));
    partita_plan_destroy(plan);
}

// The predicted error is at most three times below and twenty times above the measured one.
static void error_is_predicted(void **state)
{
    const char *engine = *state;
    struct random random = random_start("predicted");
    static const size_t taps[] = {8, 64, 700, 3000};
    for (size_t i = 0; i < sizeof taps / sizeof *taps; i++) {
        struct partita_problem problem = {.kernel = {taps[i]}, .size = {6000}};
        struct rig rig;
        rig_open(&rig, &problem, &(struct partita_options){.engine = engine}, &random);
        rig_forward(&rig);
        double complex *expected = malloc(rig.n_y * sizeof *expected);
        reference_forward(&problem, expected, rig.x, rig.w);
        double error = error_against(PARTITA_F32, rig.y, expected, rig.n_y, 0),
               predicted = rig.plan->choice.error;
        if (!(error <= 3 * predicted && error >= predicted / 20)) {
            fail_msg("%zu taps: error %.3g, predicted %.3g", taps[i], error, predicted);
        }
        free(expected);
        rig_close(&rig);
    }
}

#ifdef HAVE_NATIVE_FFT
// Seconds to make the first plan of a process, because FFTW remembers plans.
static double fresh_plan_seconds(const struct partita_problem *problem)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct partita_plan *plan;
#ifdef M_PERTURB
        mallopt(M_PERTURB, 0); // filling all memory, which tests ask for, is no part of planning
#endif
        double start = process_seconds();
        double elapsed = partita_plan_create(problem, NULL, &plan) == PARTITA_OK
                             ? process_seconds() - start
                             : 1e9;
        _exit(write(ends[1], &elapsed, sizeof elapsed) != sizeof elapsed);
    }
    double taken = 1e9;
    assert_int_equal(read(ends[0], &taken, sizeof taken), sizeof taken);
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
    return taken;
}

// The fastest of up to 45 new processes: other programs share the machine's caches and its clock.
static double plan_seconds(const struct partita_problem *problem)
{
    double best = 1e9;
    for (int attempt = 0; attempt < 45 && best > 5e-3; attempt++)
        best = fmin(best, fresh_plan_seconds(problem));
    return best;
}

// Planning takes less than 5 ms for filters of up to 65536 taps.
static void plans_within_5_ms(void **state)
{
    (void)state;
    static const size_t taps[] = {1, 64, 1000, 4096, 30000, 65536};
    for (size_t i = 0; i < sizeof taps / sizeof *taps; i++) {
        for (int kind = 0; kind < 4; kind++) {
            enum partita_type type = kind % 2 ? PARTITA_CF64 : PARTITA_F32;
            struct partita_problem problem = {
                .signal = type, .taps = type, .kernel = {taps[i]}, .size = {10000000}};
            if (kind >= 2) {
                problem.size[0] = PARTITA_UNBOUNDED;
                problem.latency = PARTITA_UNBOUNDED;
            }
            double taken = plan_seconds(&problem);
            if (taken > 5e-3) fail_msg("%zu taps, kind %d: %.2f ms", taps[i], kind, 1e3 * taken);
        }
    }
}

// The same for layers with both gradients. The strides make each tap of backward data a pass of its
// own; large kernels without a stride have large tiles.
static void layers_plan_within_5_ms(void **state)
{
    (void)state;
    static const struct partita_problem problems[] = {
        {SIZE(256, 256), KERNEL(256, 256), STRIDE(256, 256)},
        {SIZE(1024, 1000), KERNEL(256, 256), STRIDE(256, 256), PAD_BEGIN(5, 7)},
        {SIZE(720, 720), KERNEL(60, 60), STRIDE(60, 60), CHANNELS(8, 8), GROUPS(8)},
        {SIZE(224, 224), KERNEL(16, 16), STRIDE(16, 16), CHANNELS(3, 768)},
        {LENGTH(1000000), KERNEL(65536), STRIDE(65536), CHANNELS(2, 2)},
        {SIZE(512, 512), KERNEL(256, 256), CHANNELS(3, 64)},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        double taken = plan_seconds(&problems[i]);
        if (taken > 5e-3) fail_msg("layer %zu: %.2f ms", i, 1e3 * taken);
    }
}
#endif

// More channels than any memory holds: a schedule of their tasks would take minutes to make.
static void many_channels_are_planned_in_time(void **state)
{
    (void)state;
    static const size_t channels[] = {1 << 18, (1 << 18) + 1, 777389127093};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        const struct partita_problem problem = {LENGTH(PARTITA_UNBOUNDED), KERNEL(2815),
                                                CHANNELS(channels[i], 3)};
        struct partita_plan *plan;
        const clock_t begin = clock();
        assert_ok(partita_plan_create(&problem, NULL, &plan));
        partita_plan_destroy(plan);
        assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 10);
    }
}

static void plans_name_the_instruction_set(void **state)
{
    (void)state;
    static const char *const names[] = {" c\n", " neon\n", " avx2\n", " avx512\n"};
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&longish, NULL, &plan));
    assert_non_null(strstr(explain(plan), names[plan->isa]));
    partita_plan_destroy(plan);
}

// The measured choice works, and a store provides it to later plans by estimate.
static void measured_choice_is_remembered(void **state)
{
    const struct partita_problem *problem = *state;
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    assert_ok(partita_wisdom_create(&wisdom));
    struct partita_options options = {.effort = PARTITA_MEASURE, .wisdom = wisdom};
    assert_ok(partita_plan_create(problem, &options, &plan));
    char *engine = strdup(partita_plan_engine(plan, PARTITA_FORWARD));
    size_t transform = plan->choice.transform;
    assert_non_null(strstr(explain(plan), "measurement"));
    partita_plan_destroy(plan);
    options.effort = PARTITA_ESTIMATE;
    double start = process_seconds();
    assert_ok(partita_plan_create(problem, &options, &plan));
    if (TEST_SLOWER == 1) assert_true(process_seconds() - start < 0.055);
    assert_string_equal(partita_plan_engine(plan, PARTITA_FORWARD), engine);
    assert_int_equal(plan->choice.transform, transform);
    assert_non_null(strstr(explain(plan), "measurement"));
    partita_plan_destroy(plan);
    options.wisdom = NULL;
    assert_ok(partita_plan_create(problem, &options, &plan));
    assert_non_null(strstr(explain(plan), "; chosen by the cost model"));
    partita_plan_destroy(plan);
    options.engine = engine;
    assert_ok(partita_plan_create(problem, &options, &plan));
    assert_non_null(strstr(explain(plan), "; the engine as asked, its sizes by the cost model"));
    partita_plan_destroy(plan);
    free(engine);
    partita_wisdom_destroy(wisdom);
}

// A stored choice is not used if it violates the options.
static void remembered_choice_obeys_options(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom;
    struct partita_plan *plan;
    assert_ok(partita_wisdom_create(&wisdom));
    assert_ok(partita_plan_create(
        &longish, &(struct partita_options){.effort = PARTITA_MEASURE, .wisdom = wisdom}, &plan));
    double error = plan->choice.error;
    size_t workspace = partita_plan_workspace(plan, PARTITA_FORWARD);
    partita_plan_destroy(plan);
    for (double share = 0.99; share > 0.3; share *= 0.8) {
        struct partita_options options = {.wisdom = wisdom, .error_budget = share * error};
        if (partita_plan_create(&longish, &options, &plan) == PARTITA_OK) {
            assert_true(plan->choice.error <= options.error_budget);
            partita_plan_destroy(plan);
        }
        options = (struct partita_options){.wisdom = wisdom,
                                           .workspace_limit = (size_t)(share * (double)workspace)};
        if (workspace && partita_plan_create(&longish, &options, &plan) == PARTITA_OK) {
            assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) <= options.workspace_limit);
            partita_plan_destroy(plan);
        }
    }
    partita_wisdom_destroy(wisdom);
}

int main(void)
{
    struct CMUnitTest tests[40];
    size_t n = 0;
#ifdef HAVE_NATIVE_FFT // FFTW takes longer to plan long transforms
    // Times are guaranteed for the library as it is built for use.
    if (TEST_SLOWER == 1) {
        tests[n++] = named_test(plans_within_5_ms, NULL, "plans-within-5-ms");
        tests[n++] = named_test(layers_plan_within_5_ms, NULL, "layers-plan-within-5-ms");
    }
#endif
    tests[n++] =
        named_test(explain_names_all_engines, &longish, "explain-names-all-engines-signal");
    tests[n++] = named_test(explain_names_all_engines, &live, "explain-names-all-engines-stream");
    tests[n++] = named_test(explain_truncates, NULL, "explain-counts-and-cuts");
    tests[n++] = named_test(forced_engine_is_chosen, &longish, "forced-engine-is-chosen-signal");
    tests[n++] = named_test(forced_engine_is_chosen, &live, "forced-engine-is-chosen-stream");
    tests[n++] = named_test(unknown_engine_is_named, NULL, "unknown-engine-is-named");
    tests[n++] = named_test(unsupported_names_every_reason, NULL, "unsupported-names-every-reason");
    for (int e = 0; e < N_SIGNAL_ENGINES; e++) {
        tests[n++] = named_test(workspace_limit_is_kept, engine_names[e],
                                "%s/workspace-limit-is-kept", engine_names[e]);
        tests[n++] = named_test(error_is_predicted, engine_names[e], "%s/error-is-predicted",
                                engine_names[e]);
    }
    static const char *const layers[] = {"cpu/direct", "cpu/gemm"};
    for (int e = 0; e < 2; e++)
        tests[n++] = named_test(workspace_limit_of_layers_is_kept, layers[e],
                                "%s/workspace-limit-of-layers-is-kept", layers[e]);
    tests[n++] = named_test(panels_of_many_taps_are_small, NULL, "panels-of-many-taps-are-small");
    tests[n++] =
        named_test(one_workspace_serves_all_threads, NULL, "one-workspace-serves-all-threads");
    tests[n++] = named_test(error_budget_is_kept, NULL, "error-budget-is-kept");
    tests[n++] = named_test(plans_name_the_instruction_set, NULL, "cpu-level-from-environment");
    tests[n++] =
        named_test(many_channels_are_planned_in_time, NULL, "many-channels-are-planned-in-time");
    tests[n++] =
        named_test(measured_choice_is_remembered, &longish, "measured-choice-is-remembered-signal");
    tests[n++] =
        named_test(measured_choice_is_remembered, &live, "measured-choice-is-remembered-stream");
    tests[n++] =
        named_test(remembered_choice_obeys_options, NULL, "remembered-choice-obeys-wishes");
    return run_test_list(tests, n);
}
