// SPDX-License-Identifier: MIT
#include "json_values.h"

#include <math.h>
#include <partita/problem.h>
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

json_t *json_rate(double hz)
{
    if (hz == 0) return json_null();
    return hz < 0x1p53 && hz == floor(hz) ? json_integer((json_int_t)hz) : json_real(hz);
}

json_t *json_report(const char *schema, const char *command)
{
    return json_pack("{s:s, s:s, s:s}", "schema", schema, "version", partita_version(), "command",
                     command);
}

bool json_print(json_t *value, FILE *to)
{
    const bool good = value && json_dumpf(value, to, JSON_INDENT(2)) == 0 && fputc('\n', to) != EOF;
    json_decref(value);
    return good && fflush(to) == 0;
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
