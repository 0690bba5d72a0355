// SPDX-License-Identifier: MIT
// Streams with threads that nobody processes: they use no processor time and wake nobody. Streams
// that are processed with long pauses have the bits of one thread, and can be copied and closed
// while their threads are blocked.

#include "support/stream_rig.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_STREAMS = 5, BLOCK = 64 };

static const struct stream_case of_f32 = {"cpu/partitioned", &type_pairs[0], NULL};

static void pause_for(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

struct usage {
    double seconds;
    long switches;
};

// What the process used while the calling thread slept; one voluntary switch is that thread's own.
static struct usage usage_of_pause(double seconds)
{
    struct rusage a, b;
    getrusage(RUSAGE_SELF, &a);
    pause_for(seconds);
    getrusage(RUSAGE_SELF, &b);
    const struct timeval *times[] = {&a.ru_utime, &a.ru_stime, &b.ru_utime, &b.ru_stime};
    double sums[2] = {0, 0};
    for (int i = 0; i < 4; i++)
        sums[i / 2] += (double)times[i]->tv_sec + 1e-6 * (double)times[i]->tv_usec;
    return (struct usage){sums[1] - sums[0], b.ru_nvcsw - a.ru_nvcsw};
}

// After 100 ms, or when other programs let the threads get there, nothing runs any more.
static void check_idle(void)
{
    pause_for(0.2);
    for (int i = 0; i < (TEST_SLOWER > 1 ? 5 : 50) && usage_of_pause(0.1).switches > 1; i++)
        continue;
    const struct usage usage = usage_of_pause(1);
    const long switches = TEST_SLOWER > 1 ? 30 : 2; // a sanitizer has a thread of its own
    if (usage.seconds > 0.01 || usage.switches > switches)
        fail_msg("%.4f s of processor time, %ld switches", usage.seconds, usage.switches);
}

static void open_threads(struct stream_rig *rig, int threads, size_t frames, bool whole)
{
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(30000), .whole_blocks = whole};
    const struct partita_options options = {.threads = threads};
    struct random random = random_start("idle"); // for the same taps and input
    stream_rig_open_exactly(rig, &of_f32, &problem, &options, frames, &random);
}

// One stream with 1 to 4 threads, as soon as it is open and after it was processed; then several.
static void idle_is_idle(void **state)
{
    static const struct call_split split = {"", BLOCK, false};
    struct stream_rig rigs[MAX_STREAMS];
    for (int i = 0; i < MAX_STREAMS; i++) {
        open_threads(&rigs[i], 1 + i % 4, 500 * BLOCK, i == 3);
        if (i == 0 || i == 3) check_idle();
        float *y = stream_rig_alloc_output(&rigs[i]);
        stream_rig_feed(&rigs[i], rigs[i].stream, y, &split, NULL);
        check_idle();
        guarded_free(y);
    }
    for (int i = 0; i < MAX_STREAMS; i++) stream_rig_close(&rigs[i]);
    (void)state;
}

// Pauses longer than those after which threads block: between calls of many blocks, of one block,
// and of a few frames, beside copies of the stream.
static void same_bits_with_pauses(void **state)
{
    static const size_t calls[] = {65536, BLOCK, 7, 3000, 65536};
    enum { N_CALLS = sizeof calls / sizeof *calls, FRAMES = 2 * 65536 + BLOCK + 7 + 3000 };
    struct stream_rig alone, rig;
    open_threads(&alone, 1, FRAMES, false);
    char *expected = stream_rig_alloc_output(&alone);
    stream_rig_feed(&alone, alone.stream, expected, &split_whole, NULL);
    for (int threads = 2; threads <= 4; threads++) {
        open_threads(&rig, threads, FRAMES, false);
        char *y = stream_rig_alloc_output(&rig);
        for (size_t i = 0, at = 0; i < N_CALLS; at += calls[i++]) {
            pause_for(0.25);
            struct partita_stream *clone = NULL;
            if (i == 2) assert_ok(partita_stream_clone(rig.stream, &clone));
            stream_rig_feed_span(&rig, rig.stream, y, at, at + calls[i], &split_whole, NULL);
            partita_stream_close(clone);
        }
        assert_memory_equal(y, expected, stream_rig_output_bytes(&rig));
        guarded_free(y);
        pause_for(0.25);
        stream_rig_close(&rig); // whose threads are blocked
    }
    guarded_free(expected);
    stream_rig_close(&alone);
    (void)state;
}

// In a child of fork() the threads do not exist: calls compute alone, and closing waits for none.
static void child_of_fork(void **state)
{
    struct stream_rig rig;
    int status;
    open_threads(&rig, 3, 10 * BLOCK, false);
    float *y = stream_rig_alloc_output(&rig);
    pause_for(0.25);
    const pid_t child = fork();
    if (child == 0) {
        stream_rig_feed(&rig, rig.stream, y, &split_whole, NULL);
        partita_stream_close(rig.stream);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, NULL);
    guarded_free(y);
    stream_rig_close(&rig);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_is_idle),
        cmocka_unit_test(same_bits_with_pauses),
        cmocka_unit_test(child_of_fork),
    };
    return run_all(tests);
}
