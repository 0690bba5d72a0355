// SPDX-License-Identifier: MIT
// On audio threads the library does not allocate, lock, sleep, make system calls or access files.
// All functions that are documented as real-time safe are watched (interpose.h), for every engine,
// type and mode of threads, while filters are swapped; but for the one that wakes idle threads.
// Also tests that a forbidden call ends the program.

#include "support/interpose.h"
#include "support/pool.h"
#include "support/stream_rig.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const engines_of_streams[] = {"cpu/direct", "cpu/overlap-save",
                                                 "cpu/partitioned"};
enum { N_ENGINES_OF_STREAMS = 3, FRAMES = 12000 };

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(2500)}},
    {"late", {STREAM(64), KERNEL(2500), LATENCY(700)}},
    {"matrix", {STREAM(64), CHANNELS(4, 4), KERNEL(900)}},
    {"decimate", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(600), STRIDE(3)}},
    {"resample", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(600), STRIDE(2), UP(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// The threads of a stream.
enum mode { ALONE, THREADS, POOL, SERIAL, N_MODES };
static const char *const mode_names[N_MODES] = {"alone", "threads", "pool", "serial"};

struct watched_case {
    struct stream_case stream;
    enum mode mode;
};

static struct partita_options options_of(enum mode mode, struct pool *pool)
{
    struct partita_options options = {.sample_rate = mode == ALONE ? 0 : 48000};
    if (mode != ALONE) options.threads = 3;
    if (mode == POOL) options.executor = pool_executor(pool);
    if (mode == SERIAL) options.executor = pool_executor_serial(pool);
    return options;
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

// Processes frames. A system call may wake the stream's threads, but only if 100 ms passed without
// a step (stream.h): between this call's end and the start of the one before, as either may have
// been kept from running. Returns how many there were.
static unsigned process(const struct stream_rig *rig, void **y, const void **x, size_t n,
                        bool strided)
{
    static double before; // start of the last call
    const double begin = seconds();
    watch_permit_wakes(1);
    watch_this_thread(true);
    if (strided) partita_stream_process_strided(rig->stream, y, 1, x, 1, n);
    else partita_stream_process(rig->stream, y, x, n);
    watch_this_thread(false);
    const unsigned woken = 1 - watch_permit_wakes(0);
    assert_true(!woken || seconds() - before >= 0.1);
    before = begin;
    return woken;
}

// Makes one call of each function at frame `at`.
static void live(const struct stream_rig *rig, char *y, size_t at, size_t n, bool silence)
{
    const void *x_at[8];
    void *y_at[8];
    size_t given = (at + rig->stride - 1) / rig->stride;
    for (size_t c = 0; c < rig->in; c++)
        x_at[c] = (char *)rig->x + (c * rig->n_frames + at) * rig->sample_bytes;
    for (size_t c = 0; c < rig->out; c++)
        y_at[c] = y + (c * rig->n_outputs + given) * rig->sample_bytes;
    watch_this_thread(true);
    partita_stream_output_frames(rig->stream, n);
    partita_stream_latency(rig->stream);
    partita_stream_tail(rig->stream);
    watch_this_thread(false);
    process(rig, y_at, silence ? NULL : x_at, n, at % 2 && !silence);
}

// Swaps to either filter and queries the stream.
static void control(const struct stream_rig *rig, const struct partita_filter *other,
                    struct random *random)
{
    struct partita_stream_stats stats;
    const struct partita_filter *next = random_below(random, 2) ? other : rig->filter;
    size_t fade = random_below(random, 400);
    watch_this_thread(true);
    partita_stream_swap(rig->stream, next, fade); // may be refused
    partita_stream_swapping(rig->stream);
    partita_stream_stats(rig->stream, &stats);
    partita_stream_state_size(rig->stream);
    watch_this_thread(false);
}

static void reset(const struct stream_rig *rig)
{
    watch_this_thread(true);
    partita_stream_reset(rig->stream);
    watch_this_thread(false);
}

static void makes_no_forbidden_call(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 64, 300, 4096, FRAMES};
    const struct watched_case *c = *state;
    struct pool pool;
    pool_open(&pool);
    pool.entering = watch_this_thread;
    struct partita_options options = options_of(c->mode, &pool);
    struct partita_problem problem = c->stream.named->problem;
    if (strncmp(c->stream.engine, "cpu/overlap", 11) == 0) problem.latency = 2400;
    struct random random = random_start("watch");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, &c->stream, &problem, &options, FRAMES, &random);
    struct partita_filter *other;
    random_samples(&random, rig.problem.taps, rig.w, rig.n_taps);
    assert_ok(partita_filter_create(rig.plan, rig.w, &other));
    char *y = stream_rig_alloc_output(&rig);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t at = 0, n; at < FRAMES; at += n) {
            n = sizes[i] ? sizes[i] : random_below(&random, 700);
            if (n > FRAMES - at) n = FRAMES - at;
            if (sizes[i] != 1 || at % 50 == 0) control(&rig, other, &random);
            live(&rig, y, at, n, i % 2 && at > FRAMES / 2);
        }
        reset(&rig);
    }
    partita_stream_close(rig.stream);
    rig.stream = NULL;
    partita_filter_destroy(other);
    guarded_free(y);
    stream_rig_close(&rig);
    pool_close(&pool);
}

// A stream with threads makes no system call while it is processed regularly, and one after a
// pause.
static void wakes_once_after_a_pause(void **state)
{
    enum { PAUSES = 4, CALLS = 100, BLOCK = 64 };
    static const struct stream_case c = {"cpu/partitioned", &type_pairs[0], NULL};
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(20000)};
    struct random random = random_start("pause");
    for (int threads = 1; threads <= 4; threads++) {
        const struct partita_options options = {.threads = threads};
        struct stream_rig rig;
        unsigned woken = 0;
        stream_rig_open_exactly(&rig, &c, &problem, &options, BLOCK, &random);
        float *y = stream_rig_alloc_output(&rig);
        for (int pause = 0; pause < PAUSES; pause++) {
            nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
            for (int call = 0; call < CALLS; call++)
                woken += process(&rig, &(void *){y}, &(const void *){rig.x}, BLOCK, false);
        }
        // All of them but where other programs kept the threads from running.
        assert_true(threads == 1 ? woken == 0 : woken > 0);
        guarded_free(y);
        stream_rig_close(&rig);
    }
    (void)state;
}

// Opens, swaps and closes slots of a bank between blocks; all of it is watched.
static void bank_makes_no_forbidden_call(void **state)
{
    (void)state;
    enum { SLOTS = 5, TAPS = 2500, BLOCK = 64 };
    const struct partita_bank_options options = {
        .slots = SLOTS, .n_taps = TAPS, .block = BLOCK, .sample_rate = 48000};
    struct random random = random_start("bank");
    struct partita_bank *bank;
    struct partita_filter *filters[2];
    float taps[TAPS];
    assert_ok(partita_bank_create(&options, &bank));
    for (int f = 0; f < 2; f++) {
        random_samples(&random, PARTITA_F32, taps, TAPS);
        assert_ok(partita_bank_filter_create(bank, taps, TAPS, &filters[f]));
    }
    for (int call = 0; call < 1500; call++) {
        const size_t slot = random_below(&random, SLOTS), fade = random_below(&random, 400);
        const struct partita_filter *filter = filters[random_below(&random, 2)];
        struct partita_stream_stats stats;
        size_t opened;
        if (call % 3 == 0)
            random_samples(&random, PARTITA_F32, partita_bank_input(bank, slot), BLOCK);
        watch_this_thread(true);
        if (call % 5 == 0) partita_bank_open(bank, filter, &opened);
        if (call % 7 == 0) partita_bank_swap(bank, slot, filter, fade);
        if (call % 31 == 0) partita_bank_close(bank, slot);
        partita_bank_process(bank);
        partita_bank_slot_state(bank, slot);
        partita_bank_lead(bank, slot);
        partita_bank_output(bank, slot);
        partita_bank_stats(bank, &stats);
        watch_this_thread(false);
    }
    for (int f = 0; f < 2; f++) partita_filter_destroy(filters[f]);
    partita_bank_destroy(bank);
}

// Forbidden calls.
static volatile uintptr_t sink;

static void call_malloc(void)
{
    sink = (uintptr_t)malloc(10);
}

static void call_calloc(void)
{
    sink = (uintptr_t)calloc(1, 10);
}

static void call_realloc(void)
{
    sink = (uintptr_t)realloc((void *)sink, 10);
}

static void call_free(void)
{
    free((void *)sink);
}

static void call_aligned_alloc(void)
{
    sink = (uintptr_t)aligned_alloc(64, 64);
}

static void call_posix_memalign(void)
{
    void *memory;
    sink = (uintptr_t)posix_memalign(&memory, 64, 64);
}

static void call_mmap(void)
{
    sink = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void call_munmap(void)
{
    sink = (uintptr_t)munmap(NULL, 4096);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static void call_pthread_mutex_lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void call_pthread_mutex_trylock(void)
{
    pthread_mutex_trylock(&mutex);
}

static void call_pthread_cond_wait(void)
{
    pthread_cond_wait(&condition, &mutex);
}

static void call_pthread_cond_signal(void)
{
    pthread_cond_signal(&condition);
}

static void call_pthread_cond_broadcast(void)
{
    pthread_cond_broadcast(&condition);
}

static void call_sem_wait(void)
{
    sem_wait(&semaphore);
}

static void call_sem_post(void)
{
    sem_post(&semaphore);
}

static void call_syscall(void)
{
    syscall(SYS_futex, &sink, 1, 1, NULL, NULL, 0); // wakes one
}

static void call_open(void)
{
    sink = (uintptr_t)open("/dev/null", O_RDONLY);
}

static void call_openat(void)
{
    sink = (uintptr_t)openat(AT_FDCWD, "/dev/null", O_RDONLY);
}

static void call_read(void)
{
    char byte;
    sink = (uintptr_t)read(-1, &byte, 1);
}

static void call_write(void)
{
    sink = (uintptr_t)write(-1, "", 1);
}

static void call_close(void)
{
    close(-1);
}

static void call_nanosleep(void)
{
    nanosleep(&(struct timespec){0, 1}, NULL);
}

static void call_usleep(void)
{
    usleep(1);
}

static void call_sched_yield(void)
{
    sched_yield();
}

static void call_printf(void)
{
    printf("%d", (int)sink);
}

static void call_fprintf(void)
{
    fprintf(stderr, "%d", (int)sink);
}

static void call_puts(void)
{
    puts("seen");
}

// A call of the shared library: making a plan allocates memory.
static void call_the_library(void)
{
    struct partita_plan *plan;
    struct partita_problem problem = {LENGTH(PARTITA_UNBOUNDED), KERNEL(5)};
    sink = (uintptr_t)partita_plan_create(&problem, NULL, &plan);
}

struct forbidden {
    const char *name; // is printed
    void (*call)(void);
};

static const struct forbidden forbidden_calls[] = {
    {"malloc", call_malloc},
    {"calloc", call_calloc},
    {"realloc", call_realloc},
    {"free", call_free},
    {"aligned_alloc", call_aligned_alloc},
    {"posix_memalign", call_posix_memalign},
    {"mmap", call_mmap},
    {"munmap", call_munmap},
    {"pthread_mutex_lock", call_pthread_mutex_lock},
    {"pthread_mutex_trylock", call_pthread_mutex_trylock},
    {"pthread_cond_wait", call_pthread_cond_wait},
    {"pthread_cond_signal", call_pthread_cond_signal},
    {"pthread_cond_broadcast", call_pthread_cond_broadcast},
    {"sem_wait", call_sem_wait},
    {"sem_post", call_sem_post},
    {"syscall", call_syscall},
    {"open", call_open},
    {"openat", call_openat},
    {"read", call_read},
    {"write", call_write},
    {"close", call_close},
    {"nanosleep", call_nanosleep},
    {"usleep", call_usleep},
    {"sched_yield", call_sched_yield},
    {"printf", call_printf},
    {"fprintf", call_fprintf},
    {"puts", call_puts},
    {"malloc", call_the_library},
};
enum { N_FORBIDDEN = sizeof forbidden_calls / sizeof *forbidden_calls };

// Makes one call in a child process; returns its status, and what it printed in `text`.
static int end_of_child(const struct forbidden *call, bool watched, char *text, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        watch_this_thread(watched);
        call->call();
        watch_this_thread(false);
        _exit(0);
    }
    assert_true(child > 0);
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void ends_the_program(void **state)
{
    const struct forbidden *call = *state;
    char text[200], expected[200];
    assert_int_equal(end_of_child(call, true, text, sizeof text), SIGABRT);
    snprintf(expected, sizeof expected, "%s called", call->name);
    assert_non_null(strstr(text, expected));
}

// On a thread that is not watched the library may allocate.
static void unwatched_threads_may_call(void **state)
{
    (void)state;
    char text[200];
    assert_int_equal(end_of_child(&forbidden_calls[N_FORBIDDEN - 1], false, text, sizeof text), 0);
    assert_string_equal(text, "");
}

int main(void)
{
    static struct watched_case cases[N_ENGINES_OF_STREAMS][N_TYPE_PAIRS][N_PROBLEMS][N_MODES];
    static struct CMUnitTest
        tests[N_ENGINES_OF_STREAMS * N_TYPE_PAIRS * N_PROBLEMS * N_MODES + N_FORBIDDEN + 3];
    size_t n = 0;
    for (size_t i = 0; i < N_FORBIDDEN; i++)
        tests[n++] =
            named_test(ends_the_program, &forbidden_calls[i], "sees-%s%s", forbidden_calls[i].name,
                       forbidden_calls[i].call == call_the_library ? "-of-the-library" : "");
    tests[n++] = named_test(unwatched_threads_may_call, NULL, "lets-others-pass");
    tests[n++] = named_test(wakes_once_after_a_pause, NULL, "wakes-once-after-a-pause");
    tests[n++] = named_test(bank_makes_no_forbidden_call, NULL, "bank");
    for (size_t e = 0; e < N_ENGINES_OF_STREAMS; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                for (enum mode mode = ALONE; mode < N_MODES; mode++) {
                    const char *engine = engines_of_streams[e];
                    bool partitioned = strcmp(engine, "cpu/partitioned") == 0;
                    if (mode > ALONE && !partitioned) continue; // others have no threads
                    struct watched_case *c = &cases[e][t][p][mode];
                    *c = (struct watched_case){{engine, &type_pairs[t], &problems[p]}, mode};
                    tests[n++] = named_test(makes_no_forbidden_call, c, "%s/%s/%s-%s", engine,
                                            mode_names[mode], problems[p].name, type_pairs[t].name);
                }
            }
        }
    }
    return run_test_list(tests, n);
}
