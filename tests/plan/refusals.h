// SPDX-License-Identifier: MIT
// Records the calls of a test of refusals, and compares the status and the log lines of each. Plans
// and what is made of them, for these calls.
#ifndef PARTITA_TESTS_REFUSALS_H
#define PARTITA_TESTS_REFUSALS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/test.h"

static int captured = -1;

// What stderr has received since the last call.
static const char *take_lines(int *ret_lines)
{
    static char text[8192];
    fflush(stderr);
    const ssize_t n = pread(captured, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    if (ftruncate(captured, 0) || lseek(captured, 0, SEEK_SET)) text[0] = 0;
    *ret_lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++) ++*ret_lines;
    return text;
}

// `function` is the call as it stands in the source; its name is kept for the comparison.
static const char *tested[256];
static size_t n_tested;

static void check_refusal(enum partita_status status, enum partita_status expected,
                          const char *call, const char *words)
{
    int lines;
    const char *text = take_lines(&lines);
    tested[n_tested++ % 256] = call;
    if (status == expected && lines == (words != NULL) && (!words || strstr(text, words))) return;
    printf("# %s: status %d instead of %d, %d lines: %s\n", call, (int)status, (int)expected, lines,
           text);
    fail(); // whose text goes to stderr
}
#define REFUSED(status, words, ...)                                                                \
    check_refusal(__VA_ARGS__, PARTITA_ERR_##status, #__VA_ARGS__, words)
// Real-time safe: without a line.
#define REFUSED_SILENTLY(status, ...)                                                              \
    check_refusal(__VA_ARGS__, PARTITA_ERR_##status, #__VA_ARGS__, NULL)

static _Alignas(64) char memory[1 << 16];

struct objects {
    struct partita_plan *layer, *other, *stream_plan;
    struct partita_filter *filter, *of_other, *of_stream;
    struct partita_stream *stream;
    struct partita_bank *bank;
    struct partita_spectrum *spectrum, *short_spectrum;
};
static struct objects o;

static const struct partita_problem layer = {SIZE(9, 9), CORRELATE, CHANNELS(3, 3), KERNEL(3, 3)};
static const struct partita_problem endless = {STREAM(64), KERNEL(5)};
static const struct partita_options forward_only = {.directions = PARTITA_FORWARD};

static int open_objects(void **state)
{
    const struct partita_bank_options slots = {.slots = 2, .n_taps = 4, .block = 16};
    (void)state;
    assert_ok(partita_plan_create(&layer, NULL, &o.layer));
    assert_ok(partita_plan_create(&layer, &forward_only, &o.other));
    assert_ok(partita_plan_create(&endless, NULL, &o.stream_plan));
    assert_ok(partita_filter_create(o.layer, memory, &o.filter));
    assert_ok(partita_filter_create(o.other, memory, &o.of_other));
    assert_ok(partita_filter_create(o.stream_plan, memory, &o.of_stream));
    assert_ok(partita_stream_open(o.stream_plan, o.of_stream, &o.stream));
    assert_ok(partita_bank_create(&slots, &o.bank));
    assert_ok(partita_spectrum_create(PARTITA_F32, memory, 100, 512, NULL, &o.spectrum));
    assert_ok(partita_spectrum_create(PARTITA_F32, memory, 100, 32, NULL, &o.short_spectrum));
    return 0;
}

static int close_objects(void **state)
{
    (void)state;
    partita_spectrum_destroy(o.spectrum);
    partita_spectrum_destroy(o.short_spectrum);
    partita_bank_destroy(o.bank);
    partita_stream_close(o.stream);
    partita_filter_destroy(o.filter);
    partita_filter_destroy(o.of_other);
    partita_filter_destroy(o.of_stream);
    partita_plan_destroy(o.layer);
    partita_plan_destroy(o.other);
    partita_plan_destroy(o.stream_plan);
    return 0;
}

#endif
