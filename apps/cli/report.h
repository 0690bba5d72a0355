// SPDX-License-Identifier: MIT
// Messages to the user, and exit statuses.
#ifndef PARTITA_APPS_REPORT_H
#define PARTITA_APPS_REPORT_H

#include "io/audio.h"
#include "options.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_DEGRADED = 3, // success, but the input was truncated or samples were lost
    EXIT_LOST = 4,     // the audio device was lost
};

// Prints "partita convolve: <text>" on standard error, and the usage line if that is wrong, and
// empties the text; nothing if that is empty or `status` is a success. Returns the exit status.
int report_fault(enum command command, struct fault *fault, int status);

// A line if it is to be shown: a warning unless --quiet, a decision with --verbose only.
__attribute__((format(printf, 3, 4))) void report_line(const struct settings *settings, bool shown,
                                                       const char *format, ...);
#define report_warning(settings, ...) report_line(settings, !(settings)->quiet, __VA_ARGS__)
#define report_detail(settings, ...) report_line(settings, (settings)->verbose, __VA_ARGS__)

// Warnings of how an input contradicts its header. Returns whether samples are missing.
bool report_input(const struct settings *settings, const struct audio_reader *reader);

// A warning if the output `path` cannot store the sample rate of `info`.
void report_stored_rate(const struct settings *settings, const char *path,
                        const struct audio_info *info);

// The text of partita_plan_explain, which the caller frees. NULL: out of memory.
char *report_plan(const struct partita_plan *plan);

// Prints it on standard error, with --verbose only.
void report_plan_detail(const struct settings *settings, const struct partita_plan *plan);

// Reports the fault that a command failed with, and closes standard output. If that fails, success
// becomes failure. Returns the exit status.
int report_end(enum command command, struct fault *fault, int status);

#endif
