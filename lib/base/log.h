// SPDX-License-Identifier: MIT
// Reports details of failures as single lines to the caller's callback.
#ifndef PARTITA_LOG_H
#define PARTITA_LOG_H

#include <partita/problem.h>

// Formats one line (truncated to 1024 characters) and passes it to the callback; does nothing
// without a callback. For checks, whose last words these are, log_line returns false, and log_error
// the status.
__attribute__((format(printf, 2, 3))) bool log_line(const struct partita_log *log,
                                                    const char *format, ...);
#define log_error(log, status, ...) (log_line(log, __VA_ARGS__), status)

// The log of plans whose caller gives none: partita_log_stderr if the environment variable
// PARTITA_LOG, read once a process, is "stderr"; otherwise none.
struct partita_log log_default(void);

// The log of a caller's struct, which may be NULL.
#define log_given(given) ((given) && (given)->log.line ? (given)->log : log_default())

// snprintf in the C locale: numbers have a point, whatever locale the application has set. All
// texts with numbers that are not whole are made by it, log_line and text_add.
__attribute__((format(printf, 3, 4))) int text_print(char *to, size_t size, const char *format,
                                                     ...);

// strtod in the C locale.
double text_number(const char *text, char **ret_end);

// A growing text in a caller's buffer, for explain. The length also counts text that did not fit.
struct text {
    char *at;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

#endif
