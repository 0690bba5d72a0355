// SPDX-License-Identifier: MIT
// Records the calls of a test of refusals, and compares the status and the log lines of each.
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

#endif
