// SPDX-License-Identifier: MIT
// One stream on several threads, of the library or of an executor, always with the bits of one
// thread; streams that are opened and closed; many streams of one plan at once. Also for the thread
// sanitizer.

#include "support/pool.h"
#include "support/stream_rig.h"

#include <stdio.h>

static const struct named_problem problems[] = {
    {"long", {STREAM(64), KERNEL(60000)}},
    {"matrix", {STREAM(64), CHANNELS(4, 4), KERNEL(5000)}},
    {"late-matrix", {STREAM(64), CHANNELS(4, 4), KERNEL(5000), LATENCY(1000)}},
    {"groups", {STREAM(64), CHANNELS(6, 6), GROUPS(6), KERNEL(6000)}},
    {"short", {STREAM(64), KERNEL(150)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// The threads of a stream.
enum mode { ALONE, TWO, FOUR, POOL, POOL_OF_FOUR, ELSEWHERE, SERIAL, N_MODES };
static const char *const mode_names[N_MODES] = {
    "alone", "two-threads", "four-threads", "pool", "pool-of-four", "elsewhere", "serial"};

static struct partita_options options_of(enum mode mode, struct pool *pool)
{
    struct partita_options options = {.sample_rate = 48000};
    if (mode == ALONE) options.threads = 1;
    if (mode == TWO || mode == POOL) options.threads = 2;
    if (mode == FOUR || mode == POOL_OF_FOUR || mode == ELSEWHERE || mode == SERIAL)
        options.threads = 4;
    if (mode == POOL || mode == POOL_OF_FOUR) options.executor = pool_executor(pool);
    if (mode == ELSEWHERE) options.executor = pool_executor_other_thread(pool);
    if (mode == SERIAL) options.executor = pool_executor_serial(pool);
    return options;
}

static size_t frames_of(const struct partita_problem *problem)
{
    return 12000 + (TEST_SLOWER > 1 ? 0 : 2 * problem->kernel[0]);
}

// Compares every mode with a stream without options, in calls of several sizes.
static void modes_same_bits(void **state)
{
    static const struct call_split splits[] = {{"up-to-64", 64, true},
                                               {"up-to-3000", 3000, true},
                                               {"block", 64, false},
                                               {"whole", SIZE_MAX, false}};
    enum { N_SPLITS = sizeof splits / sizeof *splits };
    const struct stream_case *c = *state;
    const struct partita_problem *problem = &c->named->problem;
    struct stream_rig rig;
    struct random random = random_start(c->named->name);
    stream_rig_open_exactly(&rig, c, problem, NULL, frames_of(problem), &random);
    void *expected = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
    stream_rig_check_sampled(&rig, expected, &random);
    for (enum mode mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct partita_options options = options_of(mode, &pool);
        struct stream_rig other;
        random = random_start(c->named->name); // for the same taps and input
        stream_rig_open_exactly(&other, c, problem, &options, rig.n_frames, &random);
        stream_rig_check_splits(&other, expected, splits, TEST_SLOWER > 1 ? 2 : N_SPLITS, &random);
        stream_rig_close(&other);
        pool_close(&pool);
    }
    guarded_free(expected);
    stream_rig_close(&rig);
}

// The executor is called if there is enough work.
static void executor_is_used(void **state)
{
    const struct stream_case *c = *state;
    struct pool pool;
    pool_open(&pool);
    struct partita_options options = options_of(POOL, &pool);
    struct random random = random_start("used");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, c, &problems[1].problem, &options, 20000, &random);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 64, false}, &random);
    assert_true(atomic_load(&pool.calls) > 0);
    guarded_free(y);
    stream_rig_close(&rig);
    pool_close(&pool);
}

// Swaps, states and clones of streams on threads equal those of one thread.
static void swaps_and_states_on_threads(void **state)
{
    enum { FRAMES = 16000, SWAP = 3000 };
    struct partita_load load;
    const struct stream_case *c = *state;
    const struct partita_problem problem = {STREAM(64), CHANNELS(2, 2), KERNEL(1000)};
    void *expected = NULL;
    for (enum mode mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct partita_options options = options_of(mode, &pool);
        struct random random = random_start("life");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problem, &options, FRAMES, &random);
        assert_ok(partita_plan_load(rig.plan, &load));
        const size_t save = SWAP + 1000 + 2 * load.swap_delay;
        assert_true(save < FRAMES);
        struct partita_filter *filter;
        struct partita_stream *clone;
        random_samples(&random, rig.problem.taps, rig.w, rig.n_taps);
        assert_ok(partita_filter_create(rig.plan, rig.w, &filter));
        void *y = stream_rig_alloc_output(&rig);
        const struct call_split split = {"", 200, true};
        stream_rig_feed_span(&rig, rig.stream, y, 0, SWAP, &split, &random);
        assert_ok(partita_stream_swap(rig.stream, filter, 500));
        stream_rig_feed_span(&rig, rig.stream, y, SWAP, save, &split, &random);
        if (partita_stream_swapping(rig.stream)) fail_msg("still swapping");
        assert_ok(partita_stream_clone(rig.stream, &clone));
        void *kept = malloc(partita_stream_state_size(rig.stream));
        assert_ok(partita_stream_save(rig.stream, kept));
        stream_rig_feed_span(&rig, rig.stream, y, save, FRAMES, &split, &random);
        assert_ok(partita_stream_restore(rig.stream, kept, partita_stream_state_size(rig.stream)));
        if (!expected) {
            expected = stream_rig_alloc_output(&rig);
            memcpy(expected, y, stream_rig_output_bytes(&rig));
        }
        for (int i = 0; i < 3; i++) { // the saved stream, restored, cloned
            if (i)
                stream_rig_feed_span(&rig, i == 1 ? rig.stream : clone, y, save, FRAMES, &split,
                                     &random);
            if (memcmp(y, expected, stream_rig_output_bytes(&rig)))
                fail_msg("%s, stream %d: other bits", mode_names[mode], i);
            memset((char *)y + save * rig.sample_bytes, 0x55, (FRAMES - save) * rig.sample_bytes);
        }
        partita_stream_close(clone);
        partita_stream_close(rig.stream);
        rig.stream = NULL;
        free(kept);
        guarded_free(y);
        partita_filter_destroy(filter);
        stream_rig_close(&rig);
        pool_close(&pool);
    }
    guarded_free(expected);
}

// Streams that are opened, used or not, and closed.
static void open_and_close(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("open");
    for (enum mode mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct partita_options options = options_of(mode, &pool);
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problems[1].problem, &options, 3000, &random);
        void *y = stream_rig_alloc_output(&rig);
        for (int i = 0; i < 40; i++) {
            struct partita_stream *stream;
            assert_ok(partita_stream_open(rig.plan, rig.filter, &stream));
            stream_rig_feed_span(&rig, stream, y, 0, i % 4 ? random_below(&random, 3000) : 0,
                                 &(struct call_split){"", 100, true}, &random);
            partita_stream_close(stream);
        }
        guarded_free(y);
        stream_rig_close(&rig);
        pool_close(&pool);
    }
}

// A thread with streams of a shared plan. Failures are counted, since cmocka is for the main thread
// only.
struct user {
    pthread_t thread;
    const struct stream_rig *rig;
    const void *expected;
    uint64_t seed;
    int n_failed;
};

enum { N_USERS = 4 };

static int use_once(const struct user *user, struct random *random, char *y)
{
    const struct stream_rig *rig = user->rig;
    const size_t bytes = rig->sample_bytes, n_frames = rig->n_frames;
    struct partita_stream *stream;
    struct partita_stream_stats stats;
    if (partita_stream_open(rig->plan, rig->filter, &stream) != PARTITA_OK) return 1;
    for (size_t at = 0, n; at < n_frames; at += n) {
        const char *x = (const char *)rig->x + at * bytes;
        n = random_below(random, 300);
        if (n > n_frames - at) n = n_frames - at;
        partita_stream_process(stream, (void *[]){y + at * bytes, y + (n_frames + at) * bytes},
                               (const void *[]){x, x + n_frames * bytes}, n);
    }
    int failed = partita_stream_stats(stream, &stats) != PARTITA_OK || stats.calls == 0;
    partita_stream_close(stream);
    return failed + (memcmp(y, user->expected, stream_rig_output_bytes(rig)) != 0);
}

static void *use(void *argument)
{
    struct user *user = argument;
    struct random random = {user->seed};
    char *y = malloc(stream_rig_output_bytes(user->rig));
    for (int i = 0; i < 3; i++) user->n_failed += use_once(user, &random, y);
    free(y);
    return NULL;
}

static void many_at_once(void **state)
{
    const struct stream_case *c = *state;
    const struct partita_problem problem = {STREAM(64), CHANNELS(2, 2), KERNEL(4000)};
    for (int threads = 1; threads <= 3; threads++) {
        struct partita_options options = {.threads = threads, .sample_rate = 48000};
        struct random random = random_start("many");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problem, &options, 9000, &random);
        void *expected = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
        struct user users[N_USERS];
        int n_failed = 0;
        for (int i = 0; i < N_USERS; i++) {
            users[i] = (struct user){.rig = &rig, .expected = expected, .seed = (uint64_t)i};
            assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
        }
        for (int i = 0; i < N_USERS; i++) {
            pthread_join(users[i].thread, NULL);
            n_failed += users[i].n_failed;
        }
        assert_int_equal(n_failed, 0);
        guarded_free(expected);
        stream_rig_close(&rig);
    }
}

// Another thread reads the statistics during calls of the stream.
struct reader {
    const struct partita_stream *stream;
    atomic_bool done;
    int n_failed;
};

static void *read_stats(void *argument)
{
    struct reader *reader = argument;
    uint64_t calls = 0;
    while (!atomic_load(&reader->done)) {
        struct partita_stream_stats stats = {0};
        reader->n_failed +=
            partita_stream_stats(reader->stream, &stats) != PARTITA_OK || stats.calls < calls;
        calls = stats.calls;
    }
    return NULL;
}

static void stats_from_another_thread(void **state)
{
    struct random random = random_start("stats");
    struct stream_rig rig;
    stream_rig_open_exactly(&rig, *state, &problems[1].problem,
                            &(struct partita_options){.sample_rate = 48000, .threads = 2}, 20000,
                            &random);
    void *y = stream_rig_alloc_output(&rig);
    struct reader reader = {.stream = rig.stream};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_stats, &reader), 0);
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 64, true}, &random);
    atomic_store(&reader.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(reader.n_failed, 0);
    guarded_free(y);
    stream_rig_close(&rig);
}

static const struct promise promises[] = {
    {"executor-is-used", executor_is_used},
    {"life-on-threads", swaps_and_states_on_threads},
    {"open-and-close", open_and_close},
    {"many-at-once", many_at_once},
    {"stats-from-another-thread", stats_from_another_thread},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static const size_t types[] = {0, 3}; // f32 and cf64
    static struct stream_case cases[2][N_PROBLEMS];
    static struct CMUnitTest tests[2 * (N_PROBLEMS + N_PROMISES)];
    size_t n = 0;
    for (size_t t = 0; t < 2; t++) {
        const char *name = type_pairs[types[t]].name;
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            cases[t][p] =
                (struct stream_case){"cpu/partitioned", &type_pairs[types[t]], &problems[p]};
            tests[n++] = named_test(modes_same_bits, &cases[t][p], "modes-same-bits/%s-%s",
                                    problems[p].name, name);
        }
        for (size_t p = 0; p < N_PROMISES; p++)
            tests[n++] = named_test(promises[p].run, &cases[t][0], "%s-%s", promises[p].name, name);
    }
    return run_test_list(tests, n);
}
