// SPDX-License-Identifier: MIT
// See json_values.h.
#include "json_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *bytes)
{
    json_t *value = json_string(bytes);
    if (value) return value;
    char *copy = strdup(bytes);
    for (char *c = copy; c && *c; c++)
        if (*c & 0x80) *c = '?';
    value = json_string(copy ? copy : "");
    free(copy);
    return value;
}

json_t *json_finite(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void *allocate_or_end(size_t n)
{
    void *memory = malloc(n);
    if (memory) return memory;
    fputs("partita: out of memory\n", stderr);
    exit(EXIT_FAILURE);
}

void json_end_without_memory(void)
{
    json_set_alloc_funcs(allocate_or_end, free);
}
