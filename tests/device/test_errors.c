// SPDX-License-Identifier: MIT
// Every CUDA call may fail. Tests each engine in the module's table on a layer, a signal and a
// stream, if it serves them, with the k-th call failing, for every k until none fails. Each failure
// is returned as a status or has no effect, is logged once with its call, releases all device
// memory, and does not affect the CPU or other plans.
#include "core/plan.h"

#include <stdio.h>

#include "device/engines.h"
#include "hostdev/hostdev.h"
#include "stream/stream.h"
#include "support/reference.h"
#include "support/test.h"

enum { MAX_SAMPLES = 4096, TAPS = 16 };

enum call_class { LAYER_CALLS, SIGNAL_CALLS, STREAM_CALLS, N_CLASSES };

// An engine runs the first problem of each class that it serves. Taps are products of a factor for
// each axis, so that an engine for separable filters finds one.
static const struct {
    enum call_class calls;
    struct partita_problem problem;
} problems[] = {
    {LAYER_CALLS, STRIDED_LAYER},
    {LAYER_CALLS, {SIZE(9, 11), CORRELATE, BATCH(2), CHANNELS(3, 5), KERNEL(3, 3), PAD(1, 1)}},
    {LAYER_CALLS, {SIZE(19, 14), CHANNELS(2, 3), KERNEL(7, 7)}},
    {LAYER_CALLS, DEPTHWISE_LAYER},
    {LAYER_CALLS, {SIZE(20, 40), KERNEL(7, 7), PAD(3, 3), .separable = true}},
    {LAYER_CALLS,
     {LENGTH(90), CORRELATE, BATCH(2), CHANNELS(3, 3), GROUPS(3), KERNEL(40), PAD_BEGIN(39)}},
    {LAYER_CALLS, {SIZE(4, 6), BATCH(2), CHANNELS(6, 5), KERNEL(1, 1), RELU}},
    {SIGNAL_CALLS, {LENGTH(700), KERNEL(33), PAD(32)}},
    {SIGNAL_CALLS, {LENGTH(700), KERNEL(500), PAD(499)}},
    {SIGNAL_CALLS, {LENGTH(700), CORRELATE, KERNEL(600), PAD_BEGIN(9), PAD_END(-91)}},
    {SIGNAL_CALLS, {LENGTH(700), .signal = PARTITA_CF32, .taps = PARTITA_CF32, KERNEL(33)}},
    {SIGNAL_CALLS, {SIZE(20, 40), KERNEL(5, 5), PAD(2, 2)}},
    {STREAM_CALLS, {STREAM(32), CHANNELS(2, 2), KERNEL(200), LATENCY(32)}},
    {STREAM_CALLS, {STREAM(32), CHANNELS(2, 2), KERNEL(200), .whole_blocks = true}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// Results, in the order of their computation.
enum array { Y, GX, GW, GB, N_RESULTS };

struct arrays {
    struct partita_problem problem;
    unsigned directions;
    char x[MAX_SAMPLES * 8], w[MAX_SAMPLES * 8], gy[MAX_SAMPLES * 8], bias[64 * 8],
        result[N_RESULTS][MAX_SAMPLES * 8];
};

// The objects of a caller.
struct objects {
    struct partita_plan *plan;
    struct partita_filter *filter, *other;
    struct partita_stream *stream;
};

static size_t taps_of(const struct partita_problem *p)
{
    size_t n = 1;
    for (int a = 0; a < reference_rank(p); a++) n *= p->kernel[a];
    return n;
}

static void fill(struct arrays *a, const struct partita_problem *problem)
{
    struct random random = random_start("errors");
    a->problem = *problem;
    random_samples(&random, problem->signal, a->x, MAX_SAMPLES);
    random_samples(&random, problem->signal, a->gy, MAX_SAMPLES);
    random_samples(&random, problem->signal, a->bias, 64);
    const size_t taps = taps_of(problem), row = problem->rank == 2 ? problem->kernel[1] : taps;
    for (size_t i = 0; i < MAX_SAMPLES; i++) {
        const size_t r = i % taps;
        sample_put(problem->taps, a->w, i,
                   (double)(1 + r % row) * (double)(2 + r / row + i / taps) / 100);
    }
}

// Some calls of a stream during a swap to another filter with the same taps.
static void use_stream(struct arrays *a, const struct objects *o)
{
    enum { CALLS = 16, FRAMES = 32 };
    float *x = (float *)a->x, *y = (float *)a->result[Y];
    partita_stream_reset(o->stream);
    for (size_t i = 0; i < CALLS; i++) {
        const size_t at = i * FRAMES;
        if (i == 4)
            partita_stream_swap(o->stream, o->stream->filter == o->filter ? o->other : o->filter,
                                64);
        partita_stream_process(o->stream, (void *[]){y + at, y + 2000 + at},
                               (const void *[]){x + at, x + 2000 + at}, FRAMES);
    }
}

// All calls of a caller of a plan, up to the first failure.
static enum partita_status use(struct arrays *a, const struct objects *o)
{
    if (o->stream) {
        use_stream(a, o);
        return partita_stream_status(o->stream);
    }
    enum partita_status status = partita_filter_update(o->filter, a->w, NULL, NULL);
    if (status == PARTITA_OK)
        status = partita_forward(o->plan, o->filter, a->result[Y], a->x, NULL);
    if (a->directions == PARTITA_FORWARD) return status;
    if (status == PARTITA_OK)
        status = partita_backward_data(o->plan, o->filter, a->result[GX], a->gy, NULL);
    if (status == PARTITA_OK)
        status = partita_backward_weight(o->plan, a->result[GW], a->x, a->gy, NULL);
    if (status == PARTITA_OK) status = partita_backward_bias(o->plan, a->result[GB], a->gy, NULL);
    return status;
}

static enum partita_status create(struct arrays *a, const char *engine,
                                  const struct partita_log *log, struct objects *ret)
{
    const bool stream = a->problem.size[0] == PARTITA_UNBOUNDED;
    const struct partita_options options = {.engine = engine,
                                            .device = "cuda:0",
                                            .directions = stream ? 0 : a->directions,
                                            .log = *log};
    *ret = (struct objects){0};
    enum partita_status status = partita_plan_create(&a->problem, &options, &ret->plan);
    if (status == PARTITA_OK)
        status = a->directions == PARTITA_FORWARD
                     ? partita_filter_create(ret->plan, a->w, &ret->filter)
                     : filter_with_bias(ret->plan, a->w, a->bias, &ret->filter);
    if (status == PARTITA_OK && stream)
        status = partita_filter_create(ret->plan, a->w, &ret->other);
    if (status == PARTITA_OK && stream)
        status = partita_stream_open(ret->plan, ret->filter, &ret->stream);
    return status;
}

static void destroy(struct objects *o)
{
    partita_stream_close(o->stream);
    partita_filter_destroy(o->filter);
    partita_filter_destroy(o->other);
    partita_plan_destroy(o->plan);
}

// A plan of the CPU, made before any failure: its results must not change.
struct unaffected {
    struct partita_plan *plan;
    struct partita_filter *filter;
    float x[200], w[TAPS], y[200 - TAPS + 1], right[200 - TAPS + 1];
};

static void unaffected_open(struct unaffected *b)
{
    struct random random = random_start("bystander");
    const struct partita_problem problem = {LENGTH(200), KERNEL(TAPS)};
    random_samples(&random, PARTITA_F32, b->x, 200);
    random_samples(&random, PARTITA_F32, b->w, TAPS);
    assert_ok(partita_plan_create(&problem, &(struct partita_options){.threads = 1}, &b->plan));
    assert_ok(partita_filter_create(b->plan, b->w, &b->filter));
    assert_ok(partita_forward(b->plan, b->filter, b->right, b->x, NULL));
}

static void unaffected_check(struct unaffected *b)
{
    struct partita_filter *second;
    assert_ok(partita_filter_create(b->plan, b->w, &second));
    for (int i = 0; i < 2; i++) {
        memset(b->y, 0xff, sizeof b->y);
        assert_ok(partita_forward(b->plan, i ? second : b->filter, b->y, b->x, NULL));
        assert_memory_equal(b->y, b->right, sizeof b->y);
    }
    partita_filter_destroy(second);
}

static void unaffected_close(struct unaffected *b)
{
    partita_filter_destroy(b->filter);
    partita_plan_destroy(b->plan);
}

// Whether the engine serves a problem, in all directions or only forward; sets a->directions.
static bool serves(struct arrays *a, const char *engine, size_t i)
{
    const enum call_class calls = problems[i].calls;
    fill(a, &problems[i].problem);
    for (int all = calls == LAYER_CALLS; all >= 0; all--) {
        struct objects o;
        a->directions =
            PARTITA_FORWARD | (all ? PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT : 0);
        const enum partita_status status = create(a, engine, &(struct partita_log){0}, &o);
        destroy(&o);
        if (status == PARTITA_OK) return true;
        assert_int_equal(status, PARTITA_ERR_UNSUPPORTED);
    }
    return false;
}

// One attempt with the k-th call failing. Returns false if there were fewer calls.
static bool attempt(struct arrays *a, const char *engine, const struct arrays *right, size_t k,
                    cudaError_t error)
{
    const enum partita_status expected =
        error == cudaErrorMemoryAllocation ? PARTITA_ERR_NOMEM : PARTITA_ERR_DEVICE;
    struct log_lines lines;
    const struct partita_log log = log_into(&lines);
    struct objects o;
    memset(a->result, 0xff, sizeof a->result);
    hostdev_fail(k, error);
    enum partita_status status = create(a, engine, &log, &o);
    if (status == PARTITA_OK) status = use(a, &o);
    const bool failed = hostdev_calls() >= k;
    const bool harmless = status == PARTITA_OK;
    if (!failed) assert_true(harmless && lines.n_lines == 0);
    if (harmless)
        assert_memory_equal(a->result, right->result,
                            sizeof a->result); // some failures have no effect
    if (status != PARTITA_OK && o.plan) assert_int_equal(status, expected);
    if (!o.plan) assert_true(status == PARTITA_ERR_DEVICE || status == expected);
    if (o.plan && !harmless && expected == PARTITA_ERR_DEVICE) {
        assert_int_equal(lines.n_lines, 1);
        assert_non_null(strstr(lines.text, "lib/cuda/"));
        // Also if the device works again: it is lost to this plan, without another log line.
        hostdev_fail(0, cudaSuccess);
        struct partita_filter *filter = NULL;
        assert_int_equal(partita_filter_create(o.plan, a->w, &filter), expected);
        assert_null(filter);
        assert_int_equal(lines.n_lines, 1);
    }
    destroy(&o);
    return failed;
}

static void run_errors(const char *engine, size_t problem, cudaError_t error)
{
    static struct arrays arrays, right;
    static struct unaffected bystander;
    struct objects good;
    assert_true(serves(&arrays, engine, problem));
    right = arrays;
    memset(right.result, 0xff, sizeof right.result);
    unaffected_open(&bystander);
    assert_ok(create(&right, engine, &(struct partita_log){0}, &good));
    assert_ok(use(&right, &good));
    const size_t kept = hostdev_allocations();
    for (size_t k = 1; attempt(&arrays, engine, &right, k, error); k++) {
        unaffected_check(&bystander);
        hostdev_fail(0, cudaSuccess);
        assert_int_equal(hostdev_allocations(), kept);
    }
    hostdev_fail(0, cudaSuccess);
    arrays = right; // a plan that existed before
    memset(arrays.result, 0xff, sizeof arrays.result);
    assert_ok(use(&arrays, &good));
    assert_memory_equal(arrays.result, right.result, sizeof right.result);
    destroy(&good);
    unaffected_close(&bystander);
    assert_int_equal(hostdev_allocations(), 0);
}

// The first problem of each class that the engine serves; there must be one.
static void error_at_any_call(const char *engine, cudaError_t error)
{
    static struct arrays arrays;
    bool done[N_CLASSES] = {0}, any = false;
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        if (done[problems[i].calls] || !serves(&arrays, engine, i)) continue;
        run_errors(engine, i, error);
        done[problems[i].calls] = any = true;
    }
    if (!any) fail_msg("%s serves none of the problems here", engine);
}

static void lost_device(void **state)
{
    error_at_any_call(*state, cudaErrorIllegalAddress);
}

static void no_memory(void **state)
{
    error_at_any_call(*state, cudaErrorMemoryAllocation);
}

int main(void)
{
    static struct engine_name names[MAX_DEVICE_ENGINES];
    static struct CMUnitTest tests[2 * MAX_DEVICE_ENGINES];
    const size_t n = list_device_engines(names);
    if (!n)
        printf("Bail out! no engines of a CUDA device: PARTITA_CUDA_MODULE is to name the "
               "stand-in's module\n");
    for (size_t i = 0; i < n; i++) {
        tests[2 * i] = named_test(lost_device, names[i].text, "%s/lost-device", names[i].text);
        tests[2 * i + 1] = named_test(no_memory, names[i].text, "%s/no-memory", names[i].text);
    }
    return n ? run_test_list(tests, 2 * n) : 1;
}
