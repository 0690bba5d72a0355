// SPDX-License-Identifier: MIT
#include "table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_values.h"
#include "base/nearest.h"
#include "base/number.h"
#include "config/words.h"
#include "io/bytes/bytes.h"

enum { MAX_CHANNELS = 1 << 14, MAX_NAME = 100 };

static const struct column {
    const char *name, *noun, *example; // noun: of numbers
    enum quantity quantity;
    double low, high;
} columns[N_COLUMNS] = {
    [COLUMN_NAME] = {.name = "name"},
    [COLUMN_CENTRE] = {"centre", "a frequency in Hz", "-412.5k", QUANTITY_FREQUENCY, -1e18, 1e18},
    [COLUMN_FREQUENCY] = {"frequency", "a frequency in Hz", "145M", QUANTITY_FREQUENCY, 0, 1e18},
    [COLUMN_RATE] = {"rate", "a sample rate in Hz", "25k", QUANTITY_FREQUENCY, 1e-9, 1e18},
    [COLUMN_BANDWIDTH] = {"bandwidth", "a width in Hz", "12.5k", QUANTITY_FREQUENCY, 1e-9, 1e18},
    [COLUMN_TRANSITION] = {"transition", "a width in Hz", "1k", QUANTITY_FREQUENCY, 1e-9, 1e18},
    [COLUMN_ATTENUATION] = {"attenuation", "a number of decibels from 10 to 200", "80",
                            QUANTITY_DECIBELS, 10, 200},
    [COLUMN_TAPS] = {.name = "taps"},
};

bool table_fault(const struct table *table, const struct table_row *row, enum table_column column,
                 struct fault *fault, const char *format, ...)
{
    char text[sizeof fault->text], value[128] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (isfinite(row->value[column])) snprintf(value, sizeof value, " %.12g", row->value[column]);
    else if (column == COLUMN_TAPS) snprintf(value, sizeof value, " %.100s", row->taps);
    return fault_set(fault, "%s: row %zu (%.100s): %s%s: %s", table->path,
                     (size_t)(row - table->rows) + 1, row->name ? row->name : "",
                     columns[column].name, value, text);
}

static bool find_column(const struct table *table, const char *name, enum table_column *ret,
                        struct fault *fault)
{
    char hint[NEAREST_HINT_SIZE];
    const int found = nearest_find(name, columns, N_COLUMNS, sizeof *columns, hint);
    *ret = (enum table_column)found;
    if (found >= 0) return true;
    return fault_set(fault,
                     "%s: column '%.40s': no such column%s; there are name, centre, frequency, "
                     "rate, bandwidth, transition, attenuation and taps%s",
                     table->path, name, hint, strchr(name, ';') ? ", separated by commas" : "");
}

// The next cell of a line, which a comma ends, or a quotation mark if it begins with one; NULL at
// the end.
static char *next_cell(char **rest)
{
    char *cell = *rest, *end;
    if (!cell) return NULL;
    const size_t quote = strspn(cell, " \t");
    if (cell[quote] == '"' && (end = strchr(cell + quote + 1, '"'))) {
        cell += quote + 1;
        *end++ = 0;
        end += strcspn(end, ",");
    } else {
        end = cell + strcspn(cell, ",");
    }
    *rest = *end ? end + 1 : NULL;
    *end = 0;
    return words_trim(cell);
}

// Adds the cells of a line to *json, whose first element are the names of the columns.
static bool read_line(const struct table *table, char *line, struct fault *fault)
{
    const size_t n = json_array_size(table->json);
    const json_t *names = json_array_get(table->json, 0);
    json_t *row = n ? json_object() : json_array();
    size_t i = 0;
    json_array_append_new(table->json, row);
    for (char *rest = line, *cell; (cell = next_cell(&rest)); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (n && !name && *cell)
            return fault_set(fault, "%s: row %zu: has more cells than columns, at '%.40s'",
                             table->path, n, cell);
        if (!n) json_array_append_new(row, json_text(cell));
        else if (*cell) json_object_set_new(row, name, json_text(cell));
    }
    return true;
}

// Empty lines and those that begin with '#' are left out.
static bool read_csv(struct table *table, char *text, struct fault *fault)
{
    struct lines lines = {.rest = text};
    bool good = true;
    table->json = json_array();
    for (char *line; good && (line = lines_next(&lines));) {
        line = words_trim(line);
        if (*line && *line != '#') good = read_line(table, line, fault);
    }
    json_array_remove(table->json, 0);
    return good;
}

static bool read_cell(const struct table *table, struct table_row *row, const char *name,
                      const json_t *value, struct fault *fault)
{
    enum table_column at;
    if (!find_column(table, name, &at, fault)) return false;
    const struct column *c = &columns[at];
    const char *text = json_string_value(value);
    struct number number = {.value = json_is_number(value) ? json_number_value(value) : NAN};
    if (at == COLUMN_NAME) row->name = text;
    if (at == COLUMN_TAPS) row->taps = text;
    if (json_is_null(value) || (!c->noun && text)) return true;
    if (!c->noun) return table_fault(table, row, at, fault, "is no text");
    const bool good = !text || (at == COLUMN_RATE ? number_parse_rate(text, &number.value)
                                                  : number_parse(text, c->quantity, &number));
    if (!good || !(number.value >= c->low && number.value <= c->high))
        return table_fault(table, row, at, fault, "'%.40s' is not %s, such as %s",
                           text ? text : "the value", c->noun, c->example);
    row->value[at] = number.value;
    return true;
}

static bool check_row(const struct table *table, const struct table_row *row, struct fault *fault)
{
    const char *why = NULL;
    const double *value = row->value;
    enum table_column at = COLUMN_NAME;
    if (!row->name || *row->name == '.' || strchr(row->name, '/') || strlen(row->name) > MAX_NAME)
        why = "becomes a part of a file name; give 1 to 100 bytes without a slash";
    else if (isnan(value[at = COLUMN_RATE])) why = "is missing; give the rate of the output";
    else if (isnan(value[at = COLUMN_CENTRE]) == isnan(value[COLUMN_FREQUENCY]))
        why = "give either centre, relative to the middle of IN, or frequency";
    else if (row->taps && !(isnan(value[COLUMN_TRANSITION]) && isnan(value[COLUMN_ATTENUATION])))
        at = COLUMN_TAPS, why = "leave out transition and attenuation, which are for designs";
    for (const struct table_row *r = table->rows; !why && r < row; r++)
        if (strcmp(r->name, row->name) == 0) at = COLUMN_NAME, why = "an earlier row has this name";
    return !why || table_fault(table, row, at, fault, "%s", why);
}

static bool read_rows(struct table *table, struct fault *fault)
{
    const size_t n = json_array_size(table->json);
    if (n < 1 || n > MAX_CHANNELS)
        return fault_set(
            fault,
            "%s: has %zu channels; 1 to %d can be taken, in lines below the names of columns",
            table->path, n, MAX_CHANNELS);
    table->rows = calloc(n, sizeof *table->rows);
    if (!table->rows) return fault_set(fault, "out of memory");
    for (table->n = 0; table->n < n; table->n++) {
        struct table_row *row = &table->rows[table->n];
        json_t *object = json_array_get(table->json, table->n), *value;
        const char *name;
        if (!json_is_object(object))
            return fault_set(fault, "%s: row %zu: is no object", table->path, table->n + 1);
        for (int i = 0; i < N_COLUMNS; i++) row->value[i] = NAN;
        row->name = json_string_value(json_object_get(object, "name"));
        json_object_foreach(object, name,
                            value) if (!read_cell(table, row, name, value, fault)) return false;
        if (!check_row(table, row, fault)) return false;
    }
    return true;
}

bool table_read(struct table *ret, const char *path, struct fault *fault)
{
    const char *dot = strrchr(path, '.');
    json_error_t error = {.line = 1, .text = ""};
    *ret = (struct table){.path = path};
    struct fault said;
    char *text = regular_read_text(path, &said);
    bool good = true;
    if (!text) return fault_set(fault, "%s; TABLE is named before IN", said.text);
    if (!dot || strcasecmp(dot, ".json") != 0) good = read_csv(ret, text, fault);
    else ret->json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (good && !json_is_array(ret->json))
        good = fault_set(fault, "%s: line %d: is no array of objects%s%s", path,
                         error.line > 0 ? error.line : 1, *error.text ? "; " : "", error.text);
    return good && read_rows(ret, fault);
}

void table_release(struct table *table)
{
    json_decref(table->json);
    free(table->rows);
}
