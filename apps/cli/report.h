// SPDX-License-Identifier: MIT
// What the program says to its user, and its exit status.
#ifndef PARTITA_APPS_REPORT_H
#define PARTITA_APPS_REPORT_H

#include "options.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_DEGRADED = 3, // done, but the input was cut short, or samples were lost
    EXIT_LOST = 4,     // the audio device went away
};

// "partita convolve: <text>" on standard error; returns status.
int report_fault(enum command command, const struct fault *fault, enum exit_status status);

// The same for a usage error, with a hint at --help.
int report_usage(enum command command, const struct fault *fault);

// A warning, unless --quiet.
__attribute__((format(printf, 2, 3))) void report_warning(const struct settings *settings,
                                                          const char *format, ...);

// What was decided, with --verbose only.
__attribute__((format(printf, 2, 3))) void report_detail(const struct settings *settings,
                                                         const char *format, ...);

// The whole of partita_plan_explain; to be freed. NULL: out of memory.
char *report_plan(const struct partita_plan *plan);

// Closes standard output; a failure there turns success into failure.
int report_close(enum command command, int status);

#endif
