// SPDX-License-Identifier: MIT
// Numbers of threads that no machine can use, and a system that gives fewer threads than wanted:
// calls end with the results of one thread, or are refused. The system is asked once how many cores
// there are, since that reads a file.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "support/test.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

static int threads_left = -1; // -1: any number

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    if (threads_left == 0) return EAGAIN;
    if (threads_left > 0) threads_left--;
    return __real_pthread_create(thread, attributes, run, context);
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);

static int questions; // that the system was asked

long __wrap_sysconf(int name)
{
    questions++;
    return __real_sysconf(name);
}

enum { TASKS = 1000, THREADS = 8 };

struct loop {
    atomic_int done[TASKS], largest_worker;
};

static void task(void *context, size_t number, int worker)
{
    struct loop *loop = context;
    atomic_fetch_add(&loop->done[number], 1);
    int largest = atomic_load(&loop->largest_worker);
    while (worker > largest &&
           !atomic_compare_exchange_weak(&loop->largest_worker, &largest, worker)) {
    }
}

// In a thread of its own, for which OpenMP has made no threads yet.
static void *run_loop(void *context)
{
    thread_loop(THREADS, TASKS, task, context);
    return NULL;
}

static void loops_use_the_threads_there_are(void **state)
{
    (void)state;
    for (int left = 0; left < THREADS; left++) {
        struct loop loop = {0};
        pthread_t caller;
        threads_left = left;
        assert_int_equal(__real_pthread_create(&caller, NULL, run_loop, &loop), 0);
        pthread_join(caller, NULL);
        for (int i = 0; i < TASKS; i++) assert_int_equal(loop.done[i], 1);
        assert_true(loop.largest_worker <= left);
    }
    threads_left = -1;
}

static void bounds(void **state)
{
    (void)state;
    assert_int_equal(thread_bound(0), 0);
    assert_int_equal(thread_bound(16), 16);
    assert_true(thread_bound(MAX_THREADS) >= 16);
    assert_true(thread_bound(1000000) <= MAX_THREADS);
    assert_true(thread_default() <= thread_bound(MAX_THREADS));
}

static const int absurd[] = {MAX_THREADS, MAX_THREADS + 1, 100000, 2147483647, -1};
enum { N_ABSURD = sizeof absurd / sizeof *absurd };

enum { FRAMES = 30000, TAPS = 6000 };
static float x[FRAMES], w[TAPS], y[FRAMES], expected[FRAMES];

static void fill(const char *name)
{
    struct random random = random_start(name);
    random_samples(&random, PARTITA_F32, x, FRAMES);
    random_samples(&random, PARTITA_F32, w, TAPS);
}

static void check_kind(const struct partita_problem *problem, int threads)
{
    struct partita_plan *plan;
    const bool stream = problem->size[0] == PARTITA_UNBOUNDED;
    const struct partita_options options = {
        .engine = stream ? "cpu/partitioned" : "cpu/overlap-save", .threads = threads};
    const enum partita_status status = partita_plan_create(problem, &options, &plan);
    if (threads < 0 || threads > MAX_THREADS) {
        assert_int_equal(status, PARTITA_ERR_ARG);
        return;
    }
    assert_ok(status);
    struct partita_filter *filter;
    assert_ok(partita_filter_create(plan, w, &filter));
    if (stream) {
        struct partita_stream *running;
        assert_ok(partita_stream_open(plan, filter, &running));
        for (size_t at = 0; at < FRAMES; at += 100)
            partita_stream_process(running, (float *[]){y + at}, (const float *[]){x + at}, 100);
        partita_stream_close(running);
    } else {
        assert_ok(partita_forward(plan, filter, y, x, NULL));
    }
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void plans_and_streams(void **state)
{
    (void)state;
    const struct partita_problem kinds[] = {
        {.kernel = {TAPS}, .size = {FRAMES}, .pad_begin = {TAPS - 1}},
        {.kernel = {TAPS}, .size = {PARTITA_UNBOUNDED}, .block = 64}};
    fill("plans");
    for (int kind = 0; kind < 2; kind++) {
        check_kind(&kinds[kind], 1);
        memcpy(expected, y, sizeof y);
        for (int i = 0; i < N_ABSURD; i++) {
            memset(y, 0, sizeof y);
            check_kind(&kinds[kind], absurd[i]);
            if (absurd[i] == MAX_THREADS) assert_memory_equal(y, expected, sizeof y);
        }
    }
}

static void spectra_and_calls(void **state)
{
    (void)state;
    fill("spectra");
    for (int i = 0; i < N_ABSURD; i++) {
        const struct partita_options options = {.threads = absurd[i]};
        struct partita_spectrum *spectrum;
        const enum partita_status wanted = absurd[i] == MAX_THREADS ? PARTITA_OK : PARTITA_ERR_ARG;
        const enum partita_status status =
            partita_spectrum_create(PARTITA_F32, x, FRAMES, 0, &options, &spectrum);
        assert_int_equal(status, wanted);
        if (status == PARTITA_OK) partita_spectrum_destroy(spectrum);
        assert_int_equal(partita_convolve(PARTITA_F32, y, x, FRAMES, w, TAPS,
                                          &(struct partita_slice){.mode = PARTITA_SAME}, &options),
                         wanted);
    }
}

static void cores_are_counted_once(void **state)
{
    (void)state;
    check_kind(&(struct partita_problem){.kernel = {TAPS}, .size = {FRAMES}}, MAX_THREADS);
    questions = 0;
    for (int threads = 0; threads <= MAX_THREADS; threads += MAX_THREADS / 2)
        check_kind(&(struct partita_problem){.kernel = {TAPS}, .size = {FRAMES}}, threads);
    assert_int_equal(questions, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        named_test(bounds, NULL, "bounds"),
        named_test(loops_use_the_threads_there_are, NULL, "loops-use-the-threads-there-are"),
        named_test(plans_and_streams, NULL, "plans-and-streams"),
        named_test(spectra_and_calls, NULL, "spectra-and-calls"),
        named_test(cores_are_counted_once, NULL, "cores-are-counted-once"),
    };
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
