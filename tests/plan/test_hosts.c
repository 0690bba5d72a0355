// SPDX-License-Identifier: MIT
// What a host may do around the library: fork, block signals, set a locale with decimal commas,
// close the standard descriptors, run out of descriptors. Results have the same bits, and the
// library leaves the host's signals and descriptors as they were.
#include "support/comma_locale.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 60000, TAPS = 3000, THREADS = 3, PATIENCE = 250 };

static const struct partita_problem signal_problem = {LENGTH(FRAMES), KERNEL(TAPS),
                                                      PAD_BEGIN(TAPS - 1)};
static const struct partita_problem live_problem = {STREAM(64), KERNEL(TAPS)};
static float x[FRAMES], w[TAPS], y[FRAMES], filtered[FRAMES], streamed[FRAMES];
static char folder[] = "/tmp/partita-hosts-XXXXXX";

// A plan and its filter.
struct made {
    struct partita_plan *plan;
    struct partita_filter *filter;
};

static bool make(const struct partita_problem *problem, const char *engine, int threads,
                 struct made *ret)
{
    const struct partita_options options = {.engine = engine, .threads = threads};
    *ret = (struct made){0};
    return !partita_plan_create(problem, &options, &ret->plan) &&
           !partita_filter_create(ret->plan, w, &ret->filter);
}

static void unmake(struct made *made)
{
    partita_filter_destroy(made->filter);
    partita_plan_destroy(made->plan);
}

static void feed(struct partita_stream *stream)
{
    for (size_t at = 0; at < FRAMES; at += 100)
        partita_stream_process(stream, (float *[]){y + at}, (const float *[]){x + at}, 100);
}

// Whether new plans, a call and a stream give the results that they gave first.
static bool computes(int threads)
{
    struct made whole, live;
    struct partita_stream *stream = NULL;
    bool good = make(&signal_problem, "cpu/overlap-save", threads, &whole) &&
                !partita_forward(whole.plan, whole.filter, y, x, NULL) &&
                !memcmp(y, filtered, sizeof y);
    unmake(&whole);
    good = make(&live_problem, "cpu/partitioned", threads, &live) &&
           !partita_stream_open(live.plan, live.filter, &stream) && good;
    if (stream) feed(stream);
    partita_stream_close(stream);
    unmake(&live);
    return good && !memcmp(y, streamed, sizeof y);
}

static bool set_up(void)
{
    struct random random = random_start("hosts");
    struct made made;
    struct partita_stream *stream;
    random_samples(&random, PARTITA_F32, x, FRAMES);
    random_samples(&random, PARTITA_F32, w, TAPS);
    if (!make(&signal_problem, "cpu/overlap-save", 1, &made)) return false;
    if (partita_forward(made.plan, made.filter, filtered, x, NULL)) return false;
    unmake(&made);
    if (!make(&live_problem, "cpu/partitioned", 1, &made)) return false;
    if (partita_stream_open(made.plan, made.filter, &stream)) return false;
    feed(stream);
    memcpy(streamed, y, sizeof y);
    partita_stream_close(stream);
    unmake(&made);
    return mkdtemp(folder) != NULL;
}

static bool tear_down(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0;
}

// Runs `child` in a child of fork(), which fails if it waits for ever.
static void check_child(bool (*child)(void *), void *context)
{
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE);
        _exit(child(context) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("the child ended with status %#x", (unsigned)status);
}

// A sanitizer of threads ends children that start threads.
#if defined(__SANITIZE_THREAD__)
enum { CHILD_THREADS = 1 };
#else
enum { CHILD_THREADS = THREADS };
#endif

static bool compute_as_child(void *context)
{
    struct made *whole = context;
    memset(y, 0, sizeof y);
    return !partita_forward(whole->plan, whole->filter, y, x, NULL) &&
           !memcmp(y, filtered, sizeof y) && computes(CHILD_THREADS);
}

// After calls on several threads a child has none of these.
static void children_compute(void **state)
{
    (void)state;
    struct made whole;
    assert_true(make(&signal_problem, "cpu/overlap-save", THREADS, &whole));
    assert_ok(partita_forward(whole.plan, whole.filter, y, x, NULL));
    check_child(compute_as_child, &whole);
    assert_ok(partita_forward(whole.plan, whole.filter, y, x, NULL));
    assert_memory_equal(y, filtered, sizeof y);
    unmake(&whole);
}

static bool grandchild(void *context)
{
    fflush(NULL);
    const pid_t pid = fork();
    int status;
    if (pid == 0) {
        alarm(PATIENCE);
        _exit(compute_as_child(context) ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void grandchildren_compute(void **state)
{
    (void)state;
    struct made whole;
    assert_true(make(&signal_problem, "cpu/overlap-save", THREADS, &whole));
    assert_ok(partita_forward(whole.plan, whole.filter, y, x, NULL));
    check_child(grandchild, &whole);
    unmake(&whole);
}

static bool close_as_child(void *stream)
{
    partita_stream_close(stream);
    return computes(CHILD_THREADS);
}

// A stream with threads: the child has its memory, not its threads.
static void children_close_streams(void **state)
{
    (void)state;
    struct made live;
    struct partita_stream *stream;
    assert_true(make(&live_problem, "cpu/partitioned", THREADS, &live));
    assert_ok(partita_stream_open(live.plan, live.filter, &stream));
    feed(stream);
    check_child(close_as_child, stream);
    partita_stream_reset(stream);
    feed(stream);
    assert_memory_equal(y, streamed, sizeof y);
    partita_stream_close(stream);
    unmake(&live);
}

static volatile sig_atomic_t handled;

static void count_signal(int number)
{
    (void)number;
    handled++;
}

// A signal that the host's thread has blocked waits for it, and runs on no thread of a stream. This
// test is the first: OpenMP's threads, which calls of bounded problems leave behind, take signals.
static void helpers_take_no_signals(void **state)
{
    (void)state;
    struct made live;
    struct partita_stream *stream;
    const struct sigaction action = {.sa_handler = count_signal};
    struct sigaction before;
    sigset_t blocked, callers, pending, after;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    assert_true(make(&live_problem, "cpu/partitioned", THREADS, &live));
    pthread_sigmask(SIG_SETMASK, NULL, &callers);
    assert_ok(partita_stream_open(live.plan, live.filter, &stream));
    pthread_sigmask(SIG_BLOCK, &blocked, &after);
    for (int i = 1; i < NSIG; i++) // opening has changed nothing
        assert_int_equal(sigismember(&after, i), sigismember(&callers, i));
    kill(getpid(), SIGUSR1);
    feed(stream);
    partita_stream_close(stream); // its threads have ended, with what they had to handle
    assert_int_equal(handled, 0);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1));
    assert_memory_equal(y, streamed, sizeof y);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    assert_int_equal(handled, 1);
    sigaction(SIGUSR1, &before, NULL);
    unmake(&live);
}

static void handlers_stay(void **state)
{
    (void)state;
    struct sigaction before[NSIG], after;
    for (int i = 1; i < NSIG; i++)
        if (sigaction(i, NULL, &before[i])) before[i].sa_handler = SIG_ERR;
    assert_true(computes(THREADS));
    for (int i = 1; i < NSIG; i++)
        if (!sigaction(i, NULL, &after)) assert_true(after.sa_handler == before[i].sa_handler);
}

static bool compute_with_signals_blocked(void *context)
{
    sigset_t all;
    (void)context;
    sigfillset(&all);
    sigdelset(&all, SIGALRM); // ends a child that waits for ever
    return !sigprocmask(SIG_SETMASK, &all, NULL) && computes(CHILD_THREADS);
}

static void hosts_block_signals(void **state)
{
    (void)state;
    check_child(compute_with_signals_blocked, NULL);
}

static size_t open_descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    size_t n = 0;
    if (!list) return 0;
    while (readdir(list)) n++;
    closedir(list);
    return n;
}

static struct partita_wisdom *measured(void)
{
    struct partita_wisdom *wisdom;
    assert_ok(partita_wisdom_create(&wisdom));
    assert_ok(partita_wisdom_calibrate(wisdom));
    return wisdom;
}

// Without descriptors for more than what is open: files are refused, results are the same.
static bool compute_without_descriptors(void *context)
{
    const struct rlimit none = {0, 0};
    char path[96];
    for (int fd = 0; fd < 3; fd++) close(fd);
    snprintf(path, sizeof path, "%s/none", folder);
    if (!computes(CHILD_THREADS) || partita_wisdom_save(context, path)) return false;
    if (setrlimit(RLIMIT_NOFILE, &none)) return false;
    return computes(CHILD_THREADS) && partita_wisdom_load(context, path) == PARTITA_ERR_IO &&
           partita_wisdom_save(context, path) == PARTITA_ERR_IO;
}

static void descriptors(void **state)
{
    (void)state;
    struct partita_wisdom *wisdom = measured();
    const size_t before = open_descriptors();
    char path[96];
    snprintf(path, sizeof path, "%s/wisdom", folder);
    assert_true(computes(THREADS));
    assert_ok(partita_wisdom_save(wisdom, path));
    assert_ok(partita_wisdom_load(wisdom, path));
    assert_int_equal(open_descriptors(), before);
    check_child(compute_without_descriptors, wisdom);
    partita_wisdom_destroy(wisdom);
}

static size_t explained(char *text, size_t size)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&live_problem, NULL, &plan));
    const size_t length = partita_plan_explain(plan, text, size);
    partita_plan_destroy(plan);
    return length;
}

// Last: the locale stays.
static void locales_with_commas(void **state)
{
    (void)state;
    static char plain[1 << 16], comma[1 << 16];
    struct partita_wisdom *wisdom = measured();
    struct partita_plan *plan;
    struct log_lines lines;
    char path[96];
    snprintf(path, sizeof path, "%s/points", folder);
    assert_ok(partita_wisdom_save(wisdom, path));
    assert_in_range(explained(plain, sizeof plain), 1, sizeof plain);
    if (!comma_locale_set(folder)) {
        print_message("# no localedef: decimal commas not tested\n");
        partita_wisdom_destroy(wisdom);
        return;
    }
    explained(comma, sizeof comma);
    assert_string_equal(comma, plain);
    assert_ok(partita_wisdom_load(wisdom, path));
    snprintf(path, sizeof path, "%s/commas", folder);
    assert_ok(partita_wisdom_save(wisdom, path));
    const struct partita_options options = {.error_budget = -0.5, .log = log_into(&lines)};
    assert_int_equal(partita_plan_create(&live_problem, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "-0.5"));
    assert_true(computes(THREADS));
    setlocale(LC_ALL, "C");
    assert_ok(partita_wisdom_load(wisdom, path));
    partita_wisdom_destroy(wisdom);
}

// What threads do while others fork, and what a child does: plans, arrays of changing lengths, and
// wisdom that is read and written.
static bool work(struct random *random, struct partita_wisdom *wisdom, const char *path)
{
    static const float signal[3000], h[300];
    float result[3300];
    const size_t n = 1000 + random_below(random, 2000), m = 100 + random_below(random, 200);
    const struct partita_problem problem = {LENGTH(n), KERNEL(m)};
    const struct partita_options options = {.engine = "cpu/overlap-save", .wisdom = wisdom};
    struct partita_plan *plan;
    if (partita_convolve(PARTITA_F32, result, signal, n, h, m, NULL, NULL)) return false;
    if (partita_plan_create(&problem, &options, &plan)) return false;
    partita_plan_destroy(plan);
    return partita_wisdom_save(wisdom, path) == PARTITA_OK &&
           partita_wisdom_load(wisdom, path) == PARTITA_OK;
}

struct load {
    struct partita_wisdom *wisdom;
    atomic_bool done;
    atomic_int failed;
    atomic_int started;
    char folder[64];
};

static void *keep_working(void *argument)
{
    struct load *load = argument;
    char path[96];
    const int thread = load->started++;
    struct random random = {(uint64_t)thread};
    snprintf(path, sizeof path, "%s/%d", load->folder, thread);
    while (!load->done) load->failed += !work(&random, load->wisdom, path);
    remove(path);
    return NULL;
}

// Children that are forked at any moment find every lock free, and what it guards whole.
static void forks_under_load(void **state)
{
    enum { LOADS = 3, CHILDREN = 300, MAX_SECONDS = 60 };
    struct load load = {.folder = "/tmp/partita-forks-XXXXXX"};
    pthread_t threads[LOADS];
    char path[96];
    int failed = 0;
    (void)state;
    assert_non_null(mkdtemp(load.folder));
    assert_ok(partita_wisdom_create(&load.wisdom));
    snprintf(path, sizeof path, "%s/child", load.folder);
    for (int i = 0; i < LOADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_working, &load), 0);
    struct random random = random_start("forks");
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        nanosleep(&(struct timespec){.tv_nsec = (long)random_below(&random, 2000000)}, NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            alarm(MAX_SECONDS); // its signal is what a child that hangs ends by
            _exit(!work(&random, load.wisdom, path));
        }
        failed += waitpid(child, &status, 0) != child || status != 0;
    }
    load.done = true;
    for (int i = 0; i < LOADS; i++) pthread_join(threads[i], NULL);
    remove(path);
    rmdir(load.folder);
    partita_wisdom_destroy(load.wisdom);
    assert_int_equal(failed, 0);
    assert_int_equal(load.failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        named_test(helpers_take_no_signals, NULL, "helpers-take-no-signals"),
        named_test(handlers_stay, NULL, "handlers-stay"),
        named_test(children_compute, NULL, "children-compute"),
        named_test(grandchildren_compute, NULL, "grandchildren-compute"),
        named_test(children_close_streams, NULL, "children-close-streams"),
        named_test(hosts_block_signals, NULL, "hosts-block-signals"),
        named_test(descriptors, NULL, "descriptors"),
        named_test(locales_with_commas, NULL, "locales-with-commas"),
        named_test(forks_under_load, NULL, "forks-under-load"),
    };
    if (!set_up()) return 1;
    // The last one needs an allocator whose locks a child finds free, unlike those of sanitizers.
    const int failed = run_test_list(tests, sizeof tests / sizeof *tests - (TEST_SLOWER > 1));
    return tear_down() ? failed : 1;
}
