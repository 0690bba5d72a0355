// SPDX-License-Identifier: MIT
// Details of failures, as single lines to the caller's callback.
#ifndef PARTITA_LOG_H
#define PARTITA_LOG_H

#include <partita/common.h>

// Formats one line (cut at 512 characters) and hands it on; does nothing without a callback.
__attribute__((format(printf, 2, 3))) void log_line(const struct partita_log *log,
                                                    const char *format, ...);

// A growing text in a caller's buffer, for explain: counts what it could not store.
struct text {
    char *at;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

#endif
