// SPDX-License-Identifier: MIT
// JSON values of data that JSON cannot represent exactly.
#ifndef PARTITA_APPS_JSON_VALUES_H
#define PARTITA_APPS_JSON_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

// A file name or another string of any bytes. If it is not UTF-8, its non-ASCII bytes become '?'.
json_t *json_text(const char *bytes);

// A number; null for infinity and NaN.
json_t *json_finite(double x);

// A sample rate: a whole number if it is one; null if it is 0, which means unknown.
json_t *json_rate(double hz);

// An object with the fields that every output of the program begins with: `schema`, the name and
// version of a file of docs/schemas; `version` of the library; `command`.
json_t *json_report(const char *schema, const char *command);

// Prints a value on several lines and releases it. False if it cannot be written.
bool json_print(json_t *value, FILE *to);

// From here on the process ends with a message and status 1 when jansson gets no memory: its parser
// and its writer do not survive that. Unfinished files are removed.
void json_end_without_memory(void);

#endif
