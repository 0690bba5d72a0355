// SPDX-License-Identifier: MIT
#include "arguments.h"

// The name of the function that a program calls: an inline one passes the size of a struct on.
static int public_length(const char *function)
{
    const char *sized = strstr(function, "_sized");
    return (int)(sized ? (size_t)(sized - function) : strlen(function));
}

bool arguments_check_null(struct partita_log log, const char *function, const char *names,
                          const void *const *pointers)
{
    for (; *pointers; pointers++) {
        const char *comma = strchr(names, ',');
        if (!comma) return true;
        names = comma + 2;
    }
    return log_line(&log, "%.*s: %.*s is NULL", public_length(function), function,
                    (int)strcspn(names, ","), names);
}

static bool overlap(const struct call_array *a, const struct call_array *b)
{
    const uintptr_t at = (uintptr_t)a->data, other = (uintptr_t)b->data;
    if (!a->data || !b->data || !a->bytes || !b->bytes) return false;
    return at < other ? other - at < a->bytes : at - other < b->bytes;
}

bool arrays_check(struct partita_log log, const char *function, const struct call_array *arrays)
{
    const int length = public_length(function);
    for (const struct call_array *a = arrays; a->name; a++) {
        if (a->alignment && (uintptr_t)a->data % a->alignment)
            return log_line(&log, "%.*s: %s is not aligned to %zu bytes", length, function, a->name,
                            a->alignment);
        for (const struct call_array *b = arrays; b != a; b++)
            if ((a->written || b->written) && overlap(a, b))
                return log_line(&log, "%.*s: %s overlaps %s; use separate arrays", length, function,
                                b->name, a->name);
    }
    return true;
}
