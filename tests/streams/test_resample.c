// SPDX-License-Identifier: MIT
// problem.up beyond the tables of the other tests: filters that are swapped, updated, sparse or
// given with a call; strided arrays; what is refused. Outputs are those of test_stream and
// test_engines.
#include "support/rig.h"

#include <math.h>

#include "support/allocators.h"

enum { TAPS = 90, FRAMES = 6000, LONG = 4000, MAX_OUTPUTS = 3 * FRAMES };

struct resample_case {
    const char *name, *engine;
    struct partita_problem problem;
};

static const struct resample_case cases[] = {
    {"direct-branches", "cpu/direct", {STREAM(64), KERNEL(TAPS), UP(2)}},
    {"direct-outputs", "cpu/direct", {STREAM(64), KERNEL(TAPS), STRIDE(7), UP(5)}},
    {"overlap-save",
     "cpu/overlap-save",
     {STREAM(64), KERNEL(TAPS), STRIDE(2), LATENCY(256), UP(3)}},
    {"partitioned", "cpu/partitioned", {STREAM(64), KERNEL(LONG), STRIDE(2), UP(3)}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static struct partita_plan *plan_of(const struct partita_problem *problem, const char *engine)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(problem, &(struct partita_options){.engine = engine}, &plan));
    return plan;
}

// The engine that computes no outputs of branches needs no memory for them; an engine that does
// keeps the limit with any number of threads.
static void workspace_limit_is_kept(void **state)
{
    (void)state;
    enum { N = 200000, UP_BY = 160 };
    const struct partita_problem problem = {LENGTH(N), KERNEL(3201), STRIDE(147), UP(UP_BY)};
    const size_t branches = sizeof(float) * UP_BY * (size_t)(N / 147);
    struct partita_options options = {.workspace_limit = 1 << 18};
    struct partita_plan *plan;
    assert_true(branches > options.workspace_limit);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) <= options.workspace_limit);
    partita_plan_destroy(plan);

    options = (struct partita_options){.engine = "cpu/overlap-save", .threads = 1};
    assert_ok(partita_plan_create(&problem, &options, &plan));
    const size_t one = partita_plan_workspace(plan, PARTITA_FORWARD);
    partita_plan_destroy(plan);
    options.threads = 8;
    options.workspace_limit = one + 4096;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_true(partita_plan_workspace(plan, PARTITA_FORWARD) <= options.workspace_limit);
    partita_plan_destroy(plan);
}

static struct partita_filter *filter_of(const struct partita_plan *plan, const void *taps)
{
    struct partita_filter *filter;
    assert_ok(partita_filter_create(plan, taps, &filter));
    return filter;
}

static size_t outputs_of(const struct partita_problem *problem, size_t frames)
{
    const size_t stride = or_one(problem->stride[0]);
    return (frames * problem->up + stride - 1) / stride;
}

// Feeds all frames in calls of 100, and posts `next` (unless NULL) before frame `at`.
static void run_stream(const struct partita_plan *plan, const struct partita_filter *filter,
                       const struct partita_filter *next, size_t at, size_t fade, const float *x,
                       float *y)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(plan, filter, &stream));
    for (size_t i = 0; i < FRAMES; i += 100) {
        if (next && i == at) assert_ok(partita_stream_swap(stream, next, fade));
        const size_t due = partita_stream_output_frames(stream, 100);
        partita_stream_process(stream, &y, &(const float *){x + i}, 100);
        y += due;
    }
    assert_false(partita_stream_swapping(stream));
    partita_stream_close(stream);
}

// Outputs are those of the old filter, then with cpu/direct the blend of frame f with the weight
// (f - at + 1) / (fade + 1), then those of the new filter. The blend rounds three times, each time
// by at most u of numbers that are not larger than the largest output.
static void swapped_filters_fade(void **state)
{
    const struct resample_case *c = *state;
    enum { AT = 2000, FADE = 500 };
    static float x[FRAMES], taps[2][LONG], y[3][MAX_OUTPUTS];
    struct random random = random_start(c->name);
    struct partita_load load;
    random_samples(&random, PARTITA_F32, x, FRAMES);
    for (int i = 0; i < 2; i++) random_samples(&random, PARTITA_F32, taps[i], LONG);
    struct partita_plan *plan = plan_of(&c->problem, c->engine);
    struct partita_filter *filters[] = {filter_of(plan, taps[0]), filter_of(plan, taps[1])};
    assert_ok(partita_plan_load(plan, &load));
    for (int i = 0; i < 2; i++) run_stream(plan, filters[i], NULL, 0, 0, x, y[i]);
    run_stream(plan, filters[0], filters[1], AT, FADE, x, y[2]);
    const size_t begin = outputs_of(&c->problem, AT), n = outputs_of(&c->problem, FRAMES);
    const size_t end = outputs_of(&c->problem, AT + load.swap_delay + FADE);
    float largest = 0;
    for (size_t p = 0; p < n; p++) largest = fmaxf(largest, fmaxf(fabsf(y[0][p]), fabsf(y[1][p])));
    assert_true(end < n);
    assert_memory_equal(y[2], y[0], begin * sizeof(float));
    assert_memory_equal(y[2] + end, y[1] + end, (n - end) * sizeof(float));
    for (size_t p = begin; p < end && !strcmp(c->engine, "cpu/direct"); p++) {
        const size_t frame = p * or_one(c->problem.stride[0]) / c->problem.up;
        const double weight = (double)(frame - AT + 1) / (FADE + 1);
        const double blend = (1 - weight) * (double)y[0][p] + weight * (double)y[1][p];
        assert_true(fabs((double)y[2][p] - blend) <= 4 * 0x1p-24 * (double)largest);
    }
    for (int i = 0; i < 2; i++) partita_filter_destroy(filters[i]);
    partita_plan_destroy(plan);
}

// Two of three channels of interleaved arrays, with sparse paths, have the bits of dense ones.
static void paths_and_strides(void **state)
{
    static const struct partita_problem problem = {STREAM(64), CHANNELS(2, 2), KERNEL(TAPS),
                                                   STRIDE(3), UP(4)};
    enum { OUTPUTS = (FRAMES * 4 + 2) / 3 };
    static float x[2][FRAMES], dense[2][2][TAPS], y[2][OUTPUTS];
    static float wide_x[FRAMES][3], wide_y[OUTPUTS][5];
    struct random random = random_start("paths");
    (void)state;
    random_samples(&random, PARTITA_F32, x, 2 * FRAMES);
    random_samples(&random, PARTITA_F32, dense[0][1], TAPS);
    random_samples(&random, PARTITA_F32, dense[1][0] + 30, 40);
    struct partita_plan *plan = plan_of(&problem, NULL);
    const struct partita_path paths[] = {
        {.out = 0, .in = 1, .length = TAPS, .taps = dense[0][1]},
        {.out = 1, .in = 0, .delay = 30, .length = 40, .taps = dense[1][0] + 30}};
    const struct partita_taps sparse = {.paths = paths, .path_count = 2};
    struct partita_filter *filters[2] = {filter_of(plan, dense)};
    assert_ok(partita_filter_create_from(plan, &sparse, &filters[1]));
    assert_int_equal(partita_plan_taps_count(plan), 4 * TAPS);
    struct partita_stream *streams[2];
    for (int i = 0; i < 2; i++) assert_ok(partita_stream_open(plan, filters[i], &streams[i]));
    for (size_t i = 0; i < FRAMES; i++) wide_x[i][0] = x[0][i], wide_x[i][2] = x[1][i];
    float *to[] = {y[0], y[1]}, *wide_to[] = {wide_y[0] + 1, wide_y[0] + 4};
    const float *from[] = {x[0], x[1]}, *wide_from[] = {wide_x[0], wide_x[0] + 2};
    partita_stream_process(streams[0], to, from, FRAMES);
    partita_stream_process_strided(streams[1], wide_to, 5, wide_from, 3, FRAMES);
    for (size_t p = 0; p < OUTPUTS; p++)
        assert_true(wide_y[p][1] == y[0][p] && wide_y[p][4] == y[1][p] && wide_y[p][0] == 0);
    for (int i = 0; i < 2; i++) {
        partita_stream_close(streams[i]);
        partita_filter_destroy(filters[i]);
    }
    partita_plan_destroy(plan);
}

// With a call's own taps, and with a filter that was updated, results have the bits of a filter.
// With a workspace an update allocates nothing.
static void taps_of_calls_and_updates(void **state)
{
    static const char *const engines[] = {"cpu/direct", "cpu/overlap-save"};
    static const struct partita_problem problem = {LENGTH(1000), KERNEL(TAPS), STRIDE(2), PAD(40),
                                                   UP(3)};
    static float x[1000], taps[2][TAPS], y[3][1600];
    struct random random = random_start("taps");
    (void)state;
    random_samples(&random, PARTITA_F32, x, 1000);
    random_samples(&random, PARTITA_F32, taps, 2 * TAPS);
    for (size_t e = 0; e < 2; e++) {
        struct meter meter = {0};
        const struct partita_options options = {.engine = engines[e],
                                                .allocator = meter_allocator(&meter)};
        struct partita_plan *plan;
        assert_ok(partita_plan_create(&problem, &options, &plan));
        struct partita_filter *filter = filter_of(plan, taps[1]), *other = filter_of(plan, taps[0]);
        assert_ok(partita_forward(plan, filter, y[0], x, NULL));
        assert_ok(partita_forward(plan, NULL, y[1], x, &(struct partita_call){.taps = taps[1]}));
        void *workspace =
            aligned_alloc(64, partita_plan_workspace(plan, PARTITA_FORWARD) / 64 * 64 + 64);
        const struct partita_call call = {.workspace = workspace};
        const size_t n_allocated = meter.n_allocated;
        assert_ok(partita_filter_update(other, taps[1], NULL, &call));
        assert_int_equal(meter.n_allocated, n_allocated);
        assert_ok(partita_forward(plan, other, y[2], x, &call));
        assert_memory_equal(y[1], y[0], sizeof y[0]);
        assert_memory_equal(y[2], y[0], sizeof y[0]);
        free(workspace);
        partita_filter_destroy(filter);
        partita_filter_destroy(other);
        partita_plan_destroy(plan);
    }
}

static void sizes(void **state)
{
    size_t size[PARTITA_MAX_RANK];
    const struct partita_problem full = {LENGTH(10),   KERNEL(7),  STRIDE(2),
                                         PAD_BEGIN(6), PAD_END(4), UP(3)};
    (void)state;
    assert_ok(partita_problem_output_size(&full, size)); // ((10 - 1) * 3 + 7 - 1) / 2 + 1
    assert_int_equal(size[0], 17);
    assert_int_equal(size[1], 1);
}

static void refused(void **state)
{
    static const struct partita_problem problem = {LENGTH(100), KERNEL(9), UP(2)};
    const float taps[9] = {1}, bias[1] = {1};
    struct partita_plan *plan = NULL;
    struct partita_filter *filter = NULL;
    struct log_lines lines;
    (void)state;
    struct partita_options options = {.log = log_into(&lines), .directions = PARTITA_BACKWARD_DATA};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "resampling problems have no gradients"));
    options.directions = 0;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    const struct partita_taps biased = {.dense = taps, .dense_count = 9, .bias = bias};
    assert_int_equal(partita_filter_create_from(plan, &biased, &filter), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "not of resampling ones"));
    partita_plan_destroy(plan);
}

int main(void)
{
    static struct CMUnitTest tests[N_CASES + 5];
    size_t n = 0;
    for (; n < N_CASES; n++)
        tests[n] = named_test(swapped_filters_fade, &cases[n], "%s: a swap fades", cases[n].name);
    tests[n++] = named_test(paths_and_strides, NULL, "sparse paths, strided arrays");
    tests[n++] = named_test(taps_of_calls_and_updates, NULL, "taps of calls, updated filters");
    tests[n++] = named_test(sizes, NULL, "sizes");
    tests[n++] = named_test(refused, NULL, "refused");
    tests[n++] = named_test(workspace_limit_is_kept, NULL, "the limit of the workspace is kept");
    return run_test_list(tests, n);
}
