// SPDX-License-Identifier: MIT
#include "arguments.h"

// The name of the function that a program calls: an inline one passes the size of a struct on.
static int public_length(const char *function)
{
    const char *sized = strstr(function, "_sized");
    return (int)(sized ? (size_t)(sized - function) : strlen(function));
}

bool arguments_check_null(struct partita_log log, const char *function, const char *names,
                          const void *const *pointers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (pointers[i]) continue;
        for (; i > 0; i--) names = strchr(names, ',') + 2;
        return log_line(&log, "%.*s: %.*s is NULL", public_length(function), function,
                        (int)strcspn(names, ","), names);
    }
    return true;
}

bool arrays_check(struct partita_log log, const char *function, const struct call_array *arrays)
{
    for (const struct call_array *a = arrays; a->name; a++) {
        if (a->alignment && ((uintptr_t)a->data & (a->alignment - 1))) // a power of two
            return log_line(&log, "%.*s: %s is not aligned to %zu bytes", public_length(function),
                            function, a->name, a->alignment);
        for (const struct call_array *b = arrays; b != a; b++)
            if ((a->written || b->written) && a->data && b->data && a->bytes && b->bytes &&
                !arrays_apart(a->data, a->bytes, b->data, b->bytes))
                return log_line(&log, "%.*s: %s overlaps %s; use separate arrays",
                                public_length(function), function, b->name, a->name);
    }
    return true;
}
