// SPDX-License-Identifier: MIT
#include "log.h"

#include <assert.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A constant of the C library, which allocates nothing for it.
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

__attribute__((format(printf, 3, 0))) static int
print_arguments(char *to, size_t size, const char *format, va_list arguments)
{
    const locale_t callers = uselocale(c_locale());
    const int length = vsnprintf(to, size, format, arguments);
    uselocale(callers);
    return length;
}

int text_print(char *to, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = print_arguments(to, size, format, arguments);
    va_end(arguments);
    return length;
}

double text_number(const char *text, char **ret_end)
{
    const locale_t callers = uselocale(c_locale());
    const double number = strtod(text, ret_end);
    uselocale(callers);
    return number;
}

bool log_line(const struct partita_log *log, const char *format, ...)
{
    if (!log->line) return false;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    print_arguments(line, sizeof line, format, arguments);
    va_end(arguments);
    log->line(log->user, line);
    return false;
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
        print_arguments(capacity ? text->at + text->length : NULL, capacity, format, arguments);
    va_end(arguments);
    if (length > 0) text->length += (size_t)length;
}
