// SPDX-License-Identifier: MIT
// Batches of long signals with one or several long filters a channel: block engines in all
// directions against the oracle, gradients against the transpose identity, any number of threads,
// any workspace.
#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

struct sequence {
    const char *name;
    struct partita_problem problem;
    size_t partition; // imposed on cpu/blocks; 0: its own choice
};

#define CAUSAL(taps) KERNEL(taps), PAD_BEGIN((taps)-1)

static const struct sequence sequences[] = {
    {"one-sample", {.size = {1}}, 0},
    {"depthwise-causal", {LENGTH(1024), BATCH(3), CHANNELS(4, 4), GROUPS(4), CAUSAL(1024)}, 0},
    {"depthwise-causal-correlate",
     {LENGTH(997), CORRELATE, BATCH(2), CHANNELS(3, 3), GROUPS(3), CAUSAL(997)},
     128},
    {"depthwise-odd", {LENGTH(1535), BATCH(2), CHANNELS(2, 2), GROUPS(2), CAUSAL(731)}, 256},
    {"depthwise-more-taps", {LENGTH(500), BATCH(2), CHANNELS(2, 2), GROUPS(2), CAUSAL(2003)}, 128},
    {"depthwise-few-taps", {LENGTH(9001), BATCH(2), CHANNELS(2, 2), GROUPS(2), CAUSAL(5)}, 64},
    {"depthwise-multiplied",
     {LENGTH(700), CORRELATE, BATCH(2), CHANNELS(2, 6), GROUPS(2), CAUSAL(300)},
     64},
    {"matrix", {LENGTH(307), BATCH(2), CHANNELS(3, 5), CAUSAL(199)}, 64},
    {"groups", {LENGTH(600), CORRELATE, CHANNELS(4, 6), GROUPS(2), KERNEL(211)}, 64},
    {"lone", {CAUSAL(1499), .size = {1511}}, 256},
    {"full", {LENGTH(555), KERNEL(333), PAD(332)}, 128},
    {"anticausal", {LENGTH(700), CORRELATE, KERNEL(512), PAD_END(511)}, 128},
    {"dilated",
     {LENGTH(900), BATCH(2), CHANNELS(2, 2), GROUPS(2), KERNEL(101), DILATION(7), PAD_BEGIN(700)},
     128},
    {"dilated-correlate",
     {LENGTH(900), CORRELATE, KERNEL(101), DILATION(3), PAD_BEGIN(20), PAD_END(-7)},
     64},
    {"padding-beyond-taps", {LENGTH(90), KERNEL(20), PAD_BEGIN(150), PAD_END(230)}, 64},
    {"cropped", {LENGTH(2000), KERNEL(60), PAD_BEGIN(-700), PAD_END(-900)}, 64},
    {"outside", {LENGTH(50), KERNEL(9), PAD_BEGIN(400), PAD_END(-360)}, 64},
    {"batch", {LENGTH(64), BATCH(67), CHANNELS(2, 2), GROUPS(2), CAUSAL(64)}, 64},
    {"depthwise-long", {LENGTH(5000), CAUSAL(8200)}, 4096},
    {"depthwise-many-parts", {LENGTH(3000), BATCH(2), CHANNELS(2, 2), GROUPS(2), CAUSAL(700)}, 64},
    {"depthwise-many-rows", {LENGTH(1300), BATCH(6), CHANNELS(2, 2), GROUPS(2), CAUSAL(1200)}, 512},
};
enum { N_SEQUENCES = sizeof sequences / sizeof *sequences };

struct sequence_case {
    const char *engine;
    const struct sequence *sequence;
    enum partita_type type;
};

// Transforms of two partitions that are shorter than the taps, which a device's overlap-save then
// splits if channels have a filter each; 0: they are not, or have not.
static size_t reach_of(const struct partita_problem *problem, size_t partition)
{
    enum { SHORTEST = 16 };
    const size_t dilation = problem->dilation[0] ? problem->dilation[0] : 1,
                 span = (problem->kernel[0] - 1) * dilation + 1;
    const size_t groups = problem->groups ? problem->groups : 1,
                 in = problem->in_channels ? problem->in_channels : 1,
                 out = problem->out_channels ? problem->out_channels : 1;
    while (partition > SHORTEST && 2 * partition >= span) partition /= 2;
    return in == groups && out == groups && 2 * partition < span ? 2 * partition + 1 : 0;
}

static struct partita_options options_of(const struct sequence_case *c,
                                         const struct partita_problem *problem, int threads,
                                         size_t partition)
{
    struct partita_options options = {
        .engine = c->engine, .threads = threads, .directions = LAYER_ALL};
    if (strstr(c->engine, "/blocks"))
        options.parts = (struct partita_parts){.taps = partition, .signal = partition};
    else if (strstr(c->engine, "cuda/overlap-save") && partition)
        options.error_reach = reach_of(problem, partition);
    return options;
}

// Transforms have at most twice the size of taps and signal together.
static size_t longest_transform(const struct partita_problem *problem)
{
    const size_t dilation = problem->dilation[0] ? problem->dilation[0] : 1;
    return 2 * (problem->kernel[0] * dilation + problem->size[0]) + 256;
}

static void against_oracle(void **state)
{
    const struct sequence_case *c = *state;
    struct partita_problem problem = problem_of_type(&c->sequence->problem, c->type);
    struct random random = random_start(c->sequence->name);
    for (int imposed = 0; imposed <= (c->sequence->partition > 0); imposed++) {
        struct layer layer;
        const struct partita_options options =
            options_of(c, &problem, 1, imposed ? c->sequence->partition : 0);
        layer_open(&layer, &problem, &options, &random);
        layer.transform = longest_transform(&problem);
        for (unsigned d = 1; d <= 4; d *= 2)
            layer_assert_engine(partita_plan_engine(layer.plan, (enum partita_direction)d),
                                c->engine);
        layer_run(&layer);
        layer_check_inputs(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}

enum { RANDOM_SEQUENCES = 30 };

static struct partita_problem random_sequence(struct random *random)
{
    for (;;) {
        struct partita_problem p = layer_random(random);
        p.channels_last = false;
        if (p.rank == 1 && p.stride[0] <= 1) return p;
    }
}

static void random_sequences(void **state)
{
    const struct sequence_case *c = *state;
    struct random random = random_start("random");
    for (int i = 0; i < layer_repeats(RANDOM_SEQUENCES); i++) {
        const struct partita_problem drawn = random_sequence(&random),
                                     problem = problem_of_type(&drawn, c->type);
        const struct partita_options options = options_of(c, &problem, 1, i % 2 ? 64 : 0);
        struct layer layer;
        layer_open(&layer, &problem, &options, &random);
        layer.transform = longest_transform(&problem);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
}

static void transpose_identity(void **state)
{
    const struct sequence_case *c = *state;
    for (size_t i = 0; i < N_SEQUENCES; i++) {
        struct partita_problem problem = problem_of_type(&sequences[i].problem, c->type);
        struct random random = random_start("transpose");
        const struct partita_options options = options_of(c, &problem, 1, sequences[i].partition);
        struct layer layer;
        layer_open(&layer, &problem, &options, &random);
        layer_check_transpose(&layer, gate_transform(c->type, longest_transform(&problem)));
        layer_close(&layer);
    }
}

// Several groups and blocks, chunks of blocks and of the batch.
static const struct partita_problem busy[] = {
    {LENGTH(1700), BATCH(5), CHANNELS(6, 6), GROUPS(6), CAUSAL(1500)},
    {LENGTH(90000), CORRELATE, BATCH(2), CHANNELS(4, 6), GROUPS(2), CAUSAL(30)},
};
enum { N_BUSY = sizeof busy / sizeof *busy };

static void any_threads_same_bits(void **state)
{
    const struct sequence_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = problem_of_type(&busy[i], c->type);
        struct random random = random_start("threads");
        struct layer first;
        const struct partita_options one = options_of(c, &problem, 1, 512);
        layer_open(&first, &problem, &one, &random);
        layer_run(&first);
        for (int threads = 2; threads <= 5; threads += 3) {
            const struct partita_options several = options_of(c, &problem, threads, 512);
            layer_check_copy(&first, &several);
        }
        layer_close(&first);
    }
}

static void workspace_exact(void **state)
{
    const struct sequence_case *c = *state;
    for (int i = 0; i < N_BUSY; i++) {
        struct partita_problem problem = problem_of_type(&busy[i], c->type);
        struct random random = random_start("workspace");
        struct layer layer, other;
        const struct partita_options options = options_of(c, &problem, 3, 512);
        layer_open(&layer, &problem, &options, &random);
        layer_run(&layer);
        layer_open_copy(&other, &layer, &options);
        layer_check_workspace(&layer, &other);
        layer_close(&other);
        layer_close(&layer);
    }
}

static void workspace_limit_is_kept(void **state)
{
    const struct sequence_case *c = *state;
    const struct partita_problem few = {LENGTH(6000), BATCH(3), CHANNELS(2, 2), GROUPS(2),
                                        CAUSAL(20)};
    struct partita_problem problem = problem_of_type(&few, c->type);
    struct random random = random_start("limit");
    const struct partita_options options = options_of(c, &problem, 1, 0);
    const struct layer_limits limits = {64, (size_t)1 << 24, 3,
                                        longest_transform(&problem) + 65536};
    assert_true(layer_check_limits(&problem, &options, &limits, &random) > 1);
}

// With a stride, forward and the gradient of the taps are available; that of the samples is refused
// with a reason.
static void check_strided(const struct sequence_case *c, const struct partita_problem *every_third,
                          size_t partition)
{
    struct partita_problem problem = problem_of_type(every_third, c->type);
    struct random random = random_start("strided");
    struct partita_options options = options_of(c, &problem, 1, partition);
    options = layer_options(&options);
    struct log_lines log;
    struct partita_plan *plan;
    options.log = log_into(&log);
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(log.text, "stride"));
    // A layer with direct sums has the oracle's results too.
    struct layer layer, direct;
    layer_open(&direct, &problem,
               &(struct partita_options){.engine = "cpu/direct", .device = "cpu", .threads = 1},
               &random);
    options.directions = PARTITA_FORWARD | PARTITA_BACKWARD_WEIGHT;
    options.log = (struct partita_log){0};
    layer_open_copy(&layer, &direct, &options);
    layer_run(&direct);
    void **a = layer.array, **b = direct.array;
    assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL));
    assert_ok(partita_backward_weight(layer.plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], NULL));
    // The refused results are copied from it, so that all can be checked.
    const size_t bytes = partita_type_size(c->type);
    memcpy(a[LAYER_GX], b[LAYER_GX], layer.n[LAYER_GX] * bytes);
    memcpy(a[LAYER_GB], b[LAYER_GB], layer.n[LAYER_GB] * bytes);
    layer.transform = longest_transform(&problem) + 65536;
    layer_check(&layer);
    layer_close(&layer);
    layer_close(&direct);
}

static void strided(void **state)
{
    const struct sequence_case *c = *state;
    const struct partita_problem multiplied = {LENGTH(4001),   CORRELATE,   BATCH(3),
                                               CHANNELS(2, 4), GROUPS(2),   KERNEL(50),
                                               STRIDE(3),      DILATION(2), PAD_BEGIN(70)},
                                 depthwise = {LENGTH(2001), BATCH(3),     CHANNELS(2, 2),
                                              GROUPS(2),    KERNEL(50),   STRIDE(3),
                                              DILATION(2),  PAD_BEGIN(70)};
    check_strided(c, &multiplied, 0);
    if (strstr(c->engine, "cuda/overlap-save")) check_strided(c, &depthwise, 32);
}

// Partitions of two sizes have the schedule of divisions, which backward data has as well and
// backward weight has not.
static void imposed_parts(void **state)
{
    const char *engine = *state;
    const bool sums = !strncmp(engine, "cpu/", 4); // a device has only transforms
    const struct partita_problem matrix = {LENGTH(203), BATCH(2),    CHANNELS(4, 6),
                                           GROUPS(2),   CAUSAL(101), RELU};
    struct random random = random_start("imposed");
    struct layer layer, direct;
    layer_open(&direct, &matrix, &(struct partita_options){.engine = "cpu/direct", .threads = 1},
               &random);
    for (int in_time = 0; in_time < 1 + sums; in_time++) {
        struct partita_options options = {
            .engine = engine, .threads = 1, .directions = LAYER_ALL, .parts = {12, 10, in_time}};
        struct log_lines log;
        struct partita_plan *plan;
        options = layer_options(&options);
        options.log = log_into(&log);
        assert_int_equal(partita_plan_create(&matrix, &options, &plan), PARTITA_ERR_UNSUPPORTED);
        assert_non_null(strstr(log.text, "equal parts"));
        options.directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA;
        options.log = (struct partita_log){0};
        layer_open_copy(&layer, &direct, &options);
        layer_run(&direct);
        void **a = layer.array, **b = direct.array;
        assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL));
        assert_ok(partita_backward_data(layer.plan, layer.filter, a[LAYER_GX], a[LAYER_GY], NULL));
        memcpy(a[LAYER_GW], b[LAYER_GW], layer.n[LAYER_GW] * sizeof(float));
        memcpy(a[LAYER_GB], b[LAYER_GB], layer.n[LAYER_GB] * sizeof(float));
        layer.transform = longest_transform(&matrix);
        layer_check(&layer);
        layer_close(&layer);
    }
    layer_close(&direct);
}

// The planner's choice for filters as long as the signals.
static void planner_takes_blocks(void **state)
{
    (void)state;
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    for (int t = 0; t < 2; t++)
        for (size_t length = 4096; length <= (size_t)1 << 18; length *= 64) {
            const struct partita_problem problem = {LENGTH(length),
                                                    TYPE(types[t]),
                                                    BATCH(8),
                                                    CHANNELS(64, 64),
                                                    GROUPS(64),
                                                    KERNEL(length),
                                                    PAD_BEGIN((ptrdiff_t)length - 1)};
            struct partita_plan *plan;
            assert_ok(partita_plan_create(
                &problem, &(struct partita_options){.directions = LAYER_ALL}, &plan));
            for (unsigned d = 1; d <= 4; d *= 2) {
                const char *engine = partita_plan_engine(plan, (enum partita_direction)d);
                assert_true(strcmp(engine, "cpu/direct") != 0 && *engine);
            }
            partita_plan_destroy(plan);
        }
}

static const struct promise promises[] = {
    {"random-lines", random_sequences},
    {"transpose-identity", transpose_identity},
    {"any-threads-same-bits", any_threads_same_bits},
    {"workspace-exact", workspace_exact},
    {"workspace-limit-is-kept", workspace_limit_is_kept},
    {"strided", strided},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static const char *const engines[] = {"cpu/overlap-save",         "cpu/blocks",
                                          "cuda/overlap-save",        "cuda/overlap-save:1-sum",
                                          "cuda/overlap-save:2-sums", "cuda/blocks"};
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64};
    enum { N_BLOCK_ENGINES = sizeof engines / sizeof *engines };
    static struct sequence_case cases[N_BLOCK_ENGINES][2][N_SEQUENCES];
    static struct CMUnitTest tests[N_BLOCK_ENGINES * 2 * (N_SEQUENCES + N_PROMISES) + 2];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_BLOCK_ENGINES; e++)
        for (size_t t = 0; t < (layer_is_brief() ? 1 : 2) && layer_has_engine(engines[e]); t++) {
            const char *type = partita_type_name(types[t]);
            struct sequence_case *c = cases[e][t];
            for (size_t i = 0; i < N_SEQUENCES; i++, c++) {
                *c = (struct sequence_case){engines[e], &sequences[i], types[t]};
                tests[n++] =
                    named_test(against_oracle, c, "%s/%s-%s", engines[e], sequences[i].name, type);
            }
            // The variants of an engine differ only in the gradient of the taps.
            if (layer_is_brief() && strchr(engines[e], ':')) continue;
            for (size_t i = 0; i < N_PROMISES; i++)
                tests[n++] = named_test(promises[i].run, cases[e][t], "%s/%s-%s", engines[e],
                                        promises[i].name, type);
        }
    const bool on_cpu = layer_has_engine("cpu/blocks");
    const char *blocks = on_cpu ? "cpu/blocks" : "cuda/blocks";
    if (on_cpu) tests[n++] = named_test(planner_takes_blocks, NULL, "planner-takes-blocks");
    tests[n++] = named_test(imposed_parts, blocks, "%s/imposed-parts", blocks);
    return run_test_list(tests, n);
}
