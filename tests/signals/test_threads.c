// SPDX-License-Identifier: MIT
// Objects shared by threads: one plan and one filter for many streams and forward calls, and plans
// made in parallel. Each thread compares with the results of a single thread. Also for the thread
// sanitizer.

#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 6, ROUNDS = 8, FRAMES = 6000, TAPS = 300 };

static const struct partita_problem live = {LENGTH(PARTITA_UNBOUNDED), CHANNELS(2, 2), KERNEL(TAPS),
                                            LATENCY(PARTITA_UNBOUNDED)};
static const struct partita_problem bounded = {LENGTH(FRAMES), CHANNELS(2, 2), KERNEL(TAPS),
                                               PAD_BEGIN(TAPS - 1)};

// What all threads share. Failures are counted, since cmocka is for the main thread only.
struct shared {
    const char *engine;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_wisdom *wisdom;
    float x[2][FRAMES], w[2][2][TAPS], y[2][FRAMES];
};

struct worker {
    pthread_t thread;
    struct shared *shared;
    uint64_t seed;
    int n_failed;
};

static int stream_once(const struct shared *s, struct random *random, float *y)
{
    struct partita_stream *stream;
    if (partita_stream_open(s->plan, s->filter, &stream) != PARTITA_OK) return 1;
    for (size_t at = 0, n; at < FRAMES; at += n) {
        n = random_below(random, 400);
        if (n > FRAMES - at) n = FRAMES - at;
        partita_stream_process(stream, (void *[]){y + at, y + FRAMES + at},
                               (const void *[]){s->x[0] + at, s->x[1] + at}, n);
    }
    partita_stream_close(stream);
    return memcmp(y, s->y, sizeof s->y) != 0;
}

static void *run_streams(void *argument)
{
    struct worker *worker = argument;
    struct random random = {worker->seed};
    float *y = malloc(sizeof worker->shared->y);
    for (int i = 0; i < ROUNDS; i++) worker->n_failed += stream_once(worker->shared, &random, y);
    free(y);
    return NULL;
}

static void *run_forwards(void *argument)
{
    struct worker *worker = argument;
    const struct shared *s = worker->shared;
    float *y = malloc(sizeof s->y);
    for (int i = 0; i < ROUNDS; i++) {
        worker->n_failed += partita_forward(s->plan, s->filter, y, s->x, NULL) != PARTITA_OK ||
                            memcmp(y, s->y, sizeof s->y) != 0;
    }
    free(y);
    return NULL;
}

// Each thread updates a filter of its own of the shared plan.
static void *run_updates(void *argument)
{
    static const float zeros[2][2][TAPS];
    struct worker *worker = argument;
    const struct shared *s = worker->shared;
    struct partita_filter *filter = NULL;
    float *y = malloc(sizeof s->y);
    bool failed = partita_filter_create(s->plan, zeros, &filter) != PARTITA_OK;
    for (int i = 0; i < ROUNDS && !failed; i++) {
        failed = partita_filter_update(filter, zeros, NULL, NULL) != PARTITA_OK ||
                 partita_filter_update(filter, s->w, NULL, NULL) != PARTITA_OK ||
                 partita_forward(s->plan, filter, y, s->x, NULL) != PARTITA_OK ||
                 memcmp(y, s->y, sizeof s->y) != 0;
    }
    worker->n_failed += failed;
    partita_filter_destroy(filter);
    free(y);
    return NULL;
}

// Makes a plan, a filter and one result.
static int plan_once(const struct shared *s, size_t taps, float *y)
{
    struct partita_problem problem = bounded;
    problem.kernel[0] = taps;
    problem.pad_begin[0] = (ptrdiff_t)taps - 1;
    struct partita_options options = {.engine = s->engine, .threads = 1, .wisdom = s->wisdom};
    struct partita_plan *plan = NULL;
    struct partita_filter *filter = NULL;
    int failed = partita_plan_create(&problem, &options, &plan) != PARTITA_OK ||
                 partita_filter_create(plan, s->w, &filter) != PARTITA_OK ||
                 partita_forward(plan, filter, y, s->x, NULL) != PARTITA_OK;
    if (taps == TAPS) failed += memcmp(y, s->y, sizeof s->y) != 0;
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    return failed;
}

static void *run_plans(void *argument)
{
    struct worker *worker = argument;
    struct random random = {worker->seed};
    float *y = malloc(sizeof worker->shared->y);
    for (int i = 0; i < ROUNDS; i++) {
        worker->n_failed +=
            plan_once(worker->shared, i % 2 ? TAPS : 1 + random_below(&random, TAPS), y);
    }
    free(y);
    return NULL;
}

static void run_workers(struct shared *shared, void *(*run)(void *argument))
{
    struct worker workers[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .seed = (uint64_t)i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    int n_failed = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        n_failed += workers[i].n_failed;
    }
    assert_int_equal(n_failed, 0);
}

static struct shared *shared_open(const char *engine, const struct partita_problem *problem,
                                  int threads)
{
    struct shared *s = calloc(1, sizeof *s);
    struct random random = random_start("threads");
    s->engine = engine;
    random_samples(&random, PARTITA_F32, s->x, 2 * FRAMES);
    random_samples(&random, PARTITA_F32, s->w, 4 * TAPS);
    assert_ok(partita_plan_create(
        problem, &(struct partita_options){.engine = engine, .threads = threads}, &s->plan));
    assert_ok(partita_filter_create(s->plan, s->w, &s->filter));
    return s;
}

static void shared_close(struct shared *s)
{
    partita_filter_destroy(s->filter);
    partita_plan_destroy(s->plan);
    partita_wisdom_destroy(s->wisdom);
    free(s);
}

static void streams(void **state)
{
    struct shared *s = shared_open(*state, &live, 0);
    struct partita_stream *stream;
    assert_ok(partita_stream_open(s->plan, s->filter, &stream));
    partita_stream_process(stream, (void *[]){s->y[0], s->y[1]}, (const void *[]){s->x[0], s->x[1]},
                           FRAMES);
    partita_stream_close(stream);
    run_workers(s, run_streams);
    shared_close(s);
}

static void forwards(void **state)
{
    struct shared *s = shared_open(*state, &bounded, 2);
    assert_ok(partita_forward(s->plan, s->filter, s->y, s->x, NULL));
    run_workers(s, run_forwards);
    run_workers(s, run_updates);
    shared_close(s);
}

static void plans(void **state)
{
    struct shared *s = shared_open(*state, &bounded, 1);
    assert_ok(partita_wisdom_create(&s->wisdom)); // one store for all threads
    assert_ok(partita_forward(s->plan, s->filter, s->y, s->x, NULL));
    run_workers(s, run_plans);
    shared_close(s);
}

// A child after fork() has none of the threads of its parent's loops; its calls do without.
static void forked(void **state)
{
    (void)state;
    struct shared *s = shared_open("cpu/overlap-save", &bounded, 2);
    assert_ok(partita_forward(s->plan, s->filter, s->y, s->x, NULL));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        static float y[2][FRAMES];
        alarm(60); // of a child that waits for ever; no call takes as long
        const bool failed = partita_forward(s->plan, s->filter, y, s->x, NULL) != PARTITA_OK ||
                            memcmp(y, s->y, sizeof y) != 0;
        _exit(failed);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    shared_close(s);
}

// More taps than a transform of 4 MiB has: with blocks at both ends of the signal only, and with
// several between them, which follow each other without a gap.
struct long_case {
    enum partita_type type;
    size_t taps, frames;
};
static const struct long_case long_cases[] = {{PARTITA_F32, 1100000, 900001},
                                              {PARTITA_F64, 530001, 4000003}};

static void long_forward(const struct long_case *c, int threads, const void *w, const void *x,
                         void *y)
{
    const struct partita_problem problem = {.signal = c->type,
                                            .taps = c->type,
                                            LENGTH(c->frames),
                                            KERNEL(c->taps),
                                            PAD((ptrdiff_t)c->taps - 1)};
    const struct partita_options options = {.engine = "cpu/overlap-save", .threads = threads};
    struct partita_plan *plan;
    struct partita_filter *filter;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static double long_value(const struct long_case *c, const void *samples, size_t i)
{
    return c->type == PARTITA_F64 ? ((const double *)samples)[i] : ((const float *)samples)[i];
}

// Transforms that several threads compute together have the bits of one thread and are right.
static void long_transforms(void **state)
{
    const struct long_case *c = *state;
    const size_t outputs = c->frames + c->taps - 1, bytes = partita_type_size(c->type);
    struct random random = random_start("long");
    void *x = malloc(c->frames * bytes), *w = malloc(c->taps * bytes), *y[3];
    random_samples(&random, c->type, x, c->frames);
    random_samples(&random, c->type, w, c->taps);
    for (int i = 0; i < 3; i++) {
        y[i] = malloc(outputs * bytes);
        memset(y[i], 0xff, outputs * bytes);
        long_forward(c, i + 1, w, x, y[i]);
        assert_memory_equal(y[i], y[0], outputs * bytes);
    }
    // An output has a size of about sqrt(taps)/3; rounding errors of transforms are below 30 u of
    // that.
    enum { STEPS = 23 };
    const double u = 30 * (c->type == PARTITA_F64 ? 0x1p-53 : 0x1p-24);
    for (size_t i = 0; i <= STEPS; i++) {
        const size_t at = (outputs - 1) * i / STEPS;
        long double sum = 0;
        for (size_t j = 0; j < c->taps; j++)
            if (j <= at && at - j < c->frames)
                sum += (long double)long_value(c, w, j) * long_value(c, x, at - j);
        assert_true(fabsl(long_value(c, y[0], at) - sum) < u * sqrt((double)c->taps) / 3);
    }
    for (int i = 0; i < 3; i++) free(y[i]);
    free(x), free(w);
}

int main(void)
{
    struct CMUnitTest tests[11];
    size_t n = 0;
    for (size_t e = 0; e < N_ENGINES; e++) {
        if (e < N_STREAM_ENGINES)
            tests[n++] = named_test(streams, engine_names[e], "%s/streams-share", engine_names[e]);
        tests[n++] =
            named_test(forwards, engine_names[e], "%s/forwards-and-updates", engine_names[e]);
        tests[n++] = named_test(plans, engine_names[e], "%s/plans-in-parallel", engine_names[e]);
    }
    tests[n++] = named_test(long_transforms, (void *)&long_cases[0], "long-transforms");
    tests[n++] = named_test(long_transforms, (void *)&long_cases[1], "long-transforms-inside");
    tests[n++] = named_test(forked, NULL, "forked");
    return run_test_list(tests, n);
}
