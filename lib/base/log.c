// SPDX-License-Identifier: MIT
#include "log.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void log_line(const struct partita_log *log, const char *format, ...)
{
    if (!log->line) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log->line(log->user, line);
}

void partita_log_stderr(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "partita: %s\n", text);
}

struct partita_log log_default(void)
{
    static _Atomic int known = -1;
    if (known < 0) {
        const char *wish = getenv("PARTITA_LOG");
        known = wish && !strcmp(wish, "stderr");
    }
    return (struct partita_log){.line = known ? partita_log_stderr : NULL};
}

void text_add(struct text *text, const char *format, ...)
{
    assert(text->at || !text->size);
    const size_t capacity = text->length < text->size ? text->size - text->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(capacity ? text->at + text->length : NULL, capacity, format, arguments);
    va_end(arguments);
    if (length > 0) text->length += (size_t)length;
}
