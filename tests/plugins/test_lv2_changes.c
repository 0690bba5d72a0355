// SPDX-License-Identifier: MIT
// Impulse responses that change while a plug-in plays: fades, files that cannot be used, hosts
// whose queues are full, states. run() is watched for calls that are not real-time safe.
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lv2_rig.h"

static const struct host_request mono = {.uri = "urn:partita:lv2:mono"};

static struct host *open_with(const char *file)
{
    char path[HOST_PATH];
    struct host *host = host_open(&mono);
    rig_write_state("first", mono.uri, file);
    host_restore(host, rig_path("first", path));
    host_activate(host);
    return host;
}

static void choose(struct host *host, const char *name)
{
    char path[HOST_PATH];
    host_choose(host, rig_path(name, path));
}

// Signals of a run, and of runs with one file only; all have the same input.
struct compared {
    struct rig_signal run, a, b;
};

static void compared_open(struct compared *c)
{
    struct random random = random_start("input"), same = random_start("input"),
                  again = random_start("input");
    rig_signal_open(&c->run, &random);
    rig_signal_open(&c->a, &same);
    rig_signal_open(&c->b, &again);
}

static void compared_close(struct compared *c)
{
    rig_signal_close(&c->run);
    rig_signal_close(&c->a);
    rig_signal_close(&c->b);
}

// Whether the run fades from `a` to `b` from frame `begin` on, as partita_stream_swap does, and is
// `b` after that up to `end`. Outputs of random samples and responses have a deviation of 0.6 and
// are below 4. Sums of transforms of two plans differ by less than 1e-5 of that, five deviations of
// the error; the fade rounds three times.
static bool fades_at(const struct compared *c, const struct rig_signal *a,
                     const struct rig_signal *b, size_t begin, size_t end)
{
    const float limit = 4 * 3 * 6e-8f + 0.6f * 1e-5f;
    for (size_t i = begin; i < end; i++) {
        const float old = a->y[0][i], new = b->y[0][i];
        const float share = i - begin < RIG_FADE ? (float)(i - begin + 1) / (RIG_FADE + 1) : 1;
        if (fabsf(c->run.y[0][i] - (old + (new - old) * share)) > limit) return false;
    }
    return true;
}

// Checks that the run is `a` from frame `from` up to the start of a fade to `b`, which is returned,
// and then as fades_at says. The first steps of a fade may be as small as rounding errors.
static size_t check_fade(const struct compared *c, const struct rig_signal *a,
                         const struct rig_signal *b, size_t from, size_t end)
{
    size_t differs = from, begin;
    while (differs < end && fabsf(c->run.y[0][differs] - a->y[0][differs]) < 1e-5f) differs++;
    for (begin = differs; begin > from && !fades_at(c, a, b, begin, end); begin--)
        assert_true(differs - begin < 8);
    assert_true(fades_at(c, a, b, begin, end));
    return begin;
}

// Responses of similar length: both are as if they had been there all along.
static void fades_within_a_plan(void **state)
{
    const size_t *taps = *state;
    struct random random = random_start("swap");
    struct compared c;
    char log[HOST_LOG];
    rig_write_random("a.wav", 3000, &random);
    rig_write_random("b.wav", *taps, &random);
    compared_open(&c);
    rig_run_alone(&c.a, "a.wav", 0, &random);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    struct host *host = open_with("a.wav");
    rig_run(host, &c.run, 0, 5000, true, &random);
    choose(host, "b.wav");
    rig_run(host, &c.run, 5000, 16000, true, &random);
    const size_t begin = check_fade(&c, &c.a, &c.b, 5000, 16000);
    // The fade begins when what the new filter needs is computed: within its length.
    assert_in_range(begin, 5000, 5000 + 2 * 700 + 4096);
    choose(host, "a.wav");
    rig_run(host, &c.run, 16000, RIG_FRAMES, true, &random);
    assert_in_range(check_fade(&c, &c.b, &c.a, 16000, RIG_FRAMES), 16000, 16000 + 1400 + 4096);
    assert_string_equal(host_take_log(log), "");
    host_close(host);
    compared_close(&c);
}

// Responses of other lengths: the new one starts with the input of the fade.
static void fades_to_another_plan(void **state)
{
    const size_t *taps = *state;
    struct random random = random_start("replan");
    struct compared c;
    rig_write_random("a.wav", 1000, &random);
    rig_write_random("b.wav", *taps, &random);
    compared_open(&c);
    rig_run_alone(&c.a, "a.wav", 0, &random);
    struct host *host = open_with("a.wav");
    rig_run(host, &c.run, 0, 5000, true, &random);
    choose(host, "b.wav");
    host_run(host, (float *[]){NULL}, (float *[]){NULL}, 0);
    host_work(host);
    rig_run(host, &c.run, 5000, RIG_FRAMES, true, &random);
    rig_run_alone(&c.b, "b.wav", 5000, &random);
    assert_int_equal(check_fade(&c, &c.a, &c.b, 0, RIG_FRAMES), 5000);
    host_close(host);
    compared_close(&c);
}

// The first file of an instance fades in from silence.
static void fades_in_from_silence(void **state)
{
    (void)state;
    struct random random = random_start("silence");
    struct compared c;
    char path[HOST_PATH], chosen[HOST_PATH];
    rig_write_random("b.wav", 2000, &random);
    compared_open(&c);
    struct host *host = host_open(&mono);
    host_activate(host);
    rig_run(host, &c.run, 0, 3000, true, &random);
    assert_string_equal(host_take_notified(host, path), "");
    choose(host, "b.wav");
    host_run(host, (float *[]){NULL}, (float *[]){NULL}, 0);
    host_work(host);
    rig_run(host, &c.run, 3000, 12000, true, &random);
    rig_run_alone(&c.b, "b.wav", 3000, &random);
    assert_int_equal(check_fade(&c, &c.a, &c.b, 0, 12000), 3000);
    assert_string_equal(host_take_notified(host, path), rig_path("b.wav", chosen));
    host_ask(host);
    rig_run(host, &c.run, 12000, 13000, true, &random);
    assert_string_equal(host_take_notified(host, path), chosen);
    host_close(host);
    compared_close(&c);
}

// Of several files that are chosen during a change only the last is loaded, after it.
static void takes_the_last_of_several(void **state)
{
    (void)state;
    struct random random = random_start("several");
    struct compared c;
    char path[HOST_PATH], chosen[HOST_PATH];
    for (int i = 0; i < 4; i++)
        rig_write_random((const char *[]){"a.wav", "b.wav", "c.wav", "d.wav"}[i],
                         (size_t[]){2000, 2000, 500, 2000}[i], &random);
    compared_open(&c);
    rig_run_alone(&c.a, "d.wav", 0, &random);
    struct host *host = open_with("a.wav");
    choose(host, "b.wav");
    rig_run(host, &c.run, 0, 700, false, &random);
    choose(host, "c.wav");
    rig_run(host, &c.run, 700, 1400, false, &random);
    choose(host, "a.wav");
    choose(host, "d.wav");
    rig_run(host, &c.run, 1400, 2100, false, &random);
    assert_int_equal(host_work(host), 1); // b.wav
    rig_run(host, &c.run, 2100, 20000, true, &random);
    assert_memory_equal(c.run.y[0] + 18000, c.a.y[0] + 18000, 2000 * sizeof(float));
    assert_string_equal(host_take_notified(host, path), rig_path("d.wav", chosen));
    host_close(host);
    compared_close(&c);
}

static void write_bad_files(void)
{
    char path[HOST_PATH];
    const float not_finite[] = {1, NAN};
    rig_write_taps("nan.wav", not_finite, 1, 2, RIG_RATE);
    rig_write_taps("three.wav", (float[3]){1, 1, 1}, 3, 1, RIG_RATE);
    rig_write_taps("slow.wav", (float[]){1}, 1, 1, 1);
    FILE *file = fopen(rig_path("text.wav", path), "w");
    fputs("no samples", file);
    fclose(file);
    mkdir(rig_path("folder.wav", path), 0777);
}

// What cannot be used is logged with its name, and what plays goes on.
static void keeps_the_old_filter_on_errors(void **state)
{
    (void)state;
    static const struct {
        const char *file, *says;
    } cases[] = {
        {"absent.wav", "No such file"},
        {"text.wav", "begins like text"},
        {"nan.wav", "finite"},
        {"three.wav", "3 channels; Partita Mono takes a file with 1"},
        {"folder.wav", ""},
        {"slow.wav", "48000 Hz"},
    };
    struct random random = random_start("errors");
    struct compared c;
    char log[HOST_LOG], path[HOST_PATH], first[HOST_PATH];
    rig_write_random("a.wav", 1000, &random);
    rig_write_random("b.wav", 1000, &random);
    write_bad_files();
    compared_open(&c);
    rig_run_alone(&c.a, "a.wav", 0, &random);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    struct host *host = open_with("a.wav");
    size_t at = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++, at += 1000) {
        choose(host, cases[i].file);
        rig_run(host, &c.run, at, at + 1000, true, &random);
        host_take_log(log);
        assert_non_null(strstr(log, cases[i].file));
        assert_non_null(strstr(log, cases[i].says));
        assert_non_null(strstr(log, "; the previous impulse response stays\n"));
        assert_string_equal(host_take_notified(host, path), i ? "" : rig_path("a.wav", first));
    }
    assert_memory_equal(c.run.y[0], c.a.y[0], at * sizeof(float));
    choose(host, "b.wav");
    rig_run(host, &c.run, at, RIG_FRAMES, true, &random);
    check_fade(&c, &c.a, &c.b, at, RIG_FRAMES);
    host_close(host);
    compared_close(&c);
}

// Queues that are full delay a change, or refuse it with a line in the log.
static void survives_full_queues(void **state)
{
    (void)state;
    struct random random = random_start("queues");
    struct compared c;
    char log[HOST_LOG];
    rig_write_random("a.wav", 1000, &random);
    rig_write_random("b.wav", 1000, &random);
    rig_write_random("long.wav", 5000, &random);
    compared_open(&c);
    rig_run_alone(&c.a, "a.wav", 0, &random);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    struct host *host = open_with("a.wav");
    for (int i = 0; i < 2; i++) {
        host_refuse(host, 0, 1);
        choose(host, i ? "long.wav" : "b.wav");
        rig_run(host, &c.run, (size_t)i * 2000, (size_t)i * 2000 + 2000, true, &random);
        host_take_log(log);
        assert_non_null(strstr(log, i ? "long.wav" : "b.wav"));
    }
    assert_memory_equal(c.run.y[0], c.a.y[0], 4000 * sizeof(float));
    host_refuse(host, 3, 0);
    choose(host, "b.wav");
    rig_run(host, &c.run, 4000, 12000, true, &random);
    check_fade(&c, &c.a, &c.b, 4000, 12000);
    host_close(host);
    compared_close(&c);
}

// An instance may end, or be activated again, at any point of a change.
static void ends_at_any_point(void **state)
{
    (void)state;
    struct random random = random_start("ends");
    struct compared c;
    rig_write_random("a.wav", 1000, &random);
    rig_write_random("b.wav", 900, &random);
    rig_write_random("long.wav", 5000, &random);
    compared_open(&c);
    for (size_t point = 0; point < 24; point++) {
        struct host *host = open_with("a.wav");
        choose(host, point % 2 ? "b.wav" : "long.wav");
        rig_run(host, &c.run, 0, 500, point % 4 < 2, &random);
        rig_run(host, &c.run, 500, 500 + 250 * point, point % 8 < 4, &random);
        if (point % 3 == 0) {
            host_deactivate(host);
            host_activate(host);
            rig_run(host, &c.run, 500 + 250 * point, 9000, point % 8 < 4, &random);
        }
        host_close(host);
    }
    compared_close(&c);
}

// A saved state restores the file: before activation from the first sample on, later with a fade.
static void states_are_restored(void **state)
{
    (void)state;
    struct random random = random_start("states");
    struct compared c;
    char path[HOST_PATH], log[HOST_LOG];
    rig_write_random("a.wav", 1500, &random);
    rig_write_random("b.wav", 1500, &random);
    compared_open(&c);
    rig_run_alone(&c.a, "a.wav", 0, &random);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    mkdir(rig_path("saved", path), 0777);
    struct host *host = open_with("b.wav");
    host_save(host, path);
    host_close(host);
    host = host_open(&mono);
    host_restore(host, path);
    host_activate(host);
    rig_run(host, &c.run, 0, 3000, true, &random);
    assert_memory_equal(c.run.y[0], c.b.y[0], 3000 * sizeof(float));
    host_close(host);
    host = open_with("a.wav");
    rig_run(host, &c.run, 0, 3000, true, &random);
    host_restore(host, rig_path("saved", path));
    rig_run(host, &c.run, 3000, RIG_FRAMES, true, &random);
    const size_t begin = check_fade(&c, &c.a, &c.b, 3000, RIG_FRAMES);
    assert_in_range(begin, 3000, 3000 + 3 * 700 + 4096);
    assert_string_equal(host_take_log(log), "");
    host_close(host);
    compared_close(&c);
}

// A state that is restored between runs replaces a file that was chosen before and is not loaded.
static void states_replace_older_choices(void **state)
{
    (void)state;
    struct random random = random_start("older");
    struct compared c;
    char path[HOST_PATH];
    rig_write_random("a.wav", 1500, &random);
    rig_write_random("b.wav", 1500, &random);
    compared_open(&c);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    struct host *host = host_open(&mono);
    host_activate(host);
    choose(host, "a.wav");
    host_refuse(host, 1, 0);
    host_run(host, (float *[]){NULL}, (float *[]){NULL}, 0);
    host_deactivate(host);
    host_restore_text(host, rig_path("b.wav", path));
    host_activate(host);
    rig_run(host, &c.run, 0, 9000, true, &random);
    assert_memory_equal(c.run.y[0], c.b.y[0], 9000 * sizeof(float));
    host_close(host);
    compared_close(&c);
}

// A host that passes texts without types, and no features for paths.
static void texts_are_restored(void **state)
{
    (void)state;
    struct random random = random_start("texts");
    struct compared c;
    char path[HOST_PATH];
    rig_write_random("b.wav", 1500, &random);
    compared_open(&c);
    rig_run_alone(&c.b, "b.wav", 0, &random);
    struct host *host = host_open(&mono);
    host_restore_text(host, rig_path("b.wav", path));
    host_activate(host);
    rig_run(host, &c.run, 0, 3000, true, &random);
    assert_memory_equal(c.run.y[0], c.b.y[0], 3000 * sizeof(float));
    host_close(host);
    compared_close(&c);
}

// A file that is missing when a state is restored is still named by the next saved state.
static void states_keep_missing_files(void **state)
{
    (void)state;
    struct random random = random_start("missing");
    struct compared c;
    char path[HOST_PATH], log[HOST_LOG];
    compared_open(&c);
    struct host *host = open_with("later.wav");
    assert_non_null(strstr(host_take_log(log), "later.wav"));
    rig_run(host, &c.run, 0, 1000, true, &random);
    for (size_t i = 0; i < 1000; i++) assert_true(c.run.y[0][i] == 0);
    mkdir(rig_path("again", path), 0777);
    host_save(host, path);
    host_close(host);
    rig_write_random("later.wav", 1500, &random);
    rig_run_alone(&c.b, "later.wav", 0, &random);
    host = host_open(&mono);
    host_restore(host, rig_path("again", path));
    host_activate(host);
    rig_run(host, &c.run, 0, 3000, true, &random);
    assert_memory_equal(c.run.y[0], c.b.y[0], 3000 * sizeof(float));
    host_close(host);
    compared_close(&c);
}

// A state of someone else's may name anything: a pipe would keep the host waiting.
static void states_name_regular_files(void **state)
{
    (void)state;
    char path[HOST_PATH], log[HOST_LOG];
    struct host *host = host_open(&mono);
    assert_int_equal(mkfifo(rig_path("pipe.wav", path), 0600), 0);
    host_restore_text(host, path);
    assert_non_null(strstr(host_take_log(log), "pipe.wav: is not a regular file"));
    host_restore_text(host, "/dev/zero");
    assert_non_null(strstr(host_take_log(log), "/dev/zero: is not a regular file"));
    host_close(host);
}

// Worker and audio thread at once: many changes, whose samples stay below the largest of any.
static void threads_change_files(void **state)
{
    (void)state;
    static const char *const files[] = {"a.wav", "b.wav", "long.wav", "absent.wav"};
    struct random random = random_start("threads");
    struct compared c;
    char path[HOST_PATH], log[HOST_LOG], saved[HOST_PATH];
    struct host_request request = mono;
    request.thread = true;
    rig_write_random("a.wav", 1000, &random);
    rig_write_random("b.wav", 900, &random);
    rig_write_random("long.wav", 5000, &random);
    mkdir(rig_path("threads", saved), 0777);
    compared_open(&c);
    struct host *host = host_open(&request);
    host_activate(host);
    for (int changes = 0, i = 0; changes < 12; i++) {
        choose(host, files[random_below(&random, 4)]);
        rig_run(host, &c.run, 0, RIG_FRAMES / 4, false, &random);
        if (*host_take_notified(host, path)) changes++;
        if (i % 5 == 0) host_save(host, saved);
    }
    for (size_t i = 0; i < RIG_FRAMES; i++) assert_true(fabsf(c.run.y[0][i]) < 16);
    host_take_log(log);
    host_close(host);
    compared_close(&c);
}

int main(void)
{
    static const size_t similar[] = {3000, 2400, 1500}, other[] = {400, 2500, 10000};
    static struct CMUnitTest tests[18];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++)
        tests[n++] = named_test(fades_within_a_plan, &similar[i], "fade-to-%zu-taps", similar[i]);
    for (size_t i = 0; i < 3; i++)
        tests[n++] = named_test(fades_to_another_plan, &other[i], "plan-for-%zu-taps", other[i]);
    tests[n++] = named_test(fades_in_from_silence, NULL, "from-silence");
    tests[n++] = named_test(takes_the_last_of_several, NULL, "last-of-several");
    tests[n++] = named_test(keeps_the_old_filter_on_errors, NULL, "errors");
    tests[n++] = named_test(survives_full_queues, NULL, "full-queues");
    tests[n++] = named_test(ends_at_any_point, NULL, "ends");
    tests[n++] = named_test(states_are_restored, NULL, "states");
    tests[n++] = named_test(states_replace_older_choices, NULL, "older-choices");
    tests[n++] = named_test(texts_are_restored, NULL, "texts");
    tests[n++] = named_test(states_keep_missing_files, NULL, "missing-files");
    tests[n++] = named_test(states_name_regular_files, NULL, "pipes");
    tests[n++] = named_test(threads_change_files, NULL, "threads");
    return run_test_list(tests, n);
}
