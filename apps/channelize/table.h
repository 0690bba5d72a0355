// SPDX-License-Identifier: MIT
// A table of channels: CSV, whose first line names the columns, or JSON, an array of objects with
// the same names.
#ifndef PARTITA_APPS_CHANNEL_TABLE_H
#define PARTITA_APPS_CHANNEL_TABLE_H

#include <jansson.h>

#include "base/fault.h"

// Centres are relative to the middle of IN, frequencies are absolute; rates are those of outputs.
enum table_column {
    COLUMN_NAME,
    COLUMN_CENTRE,
    COLUMN_FREQUENCY,
    COLUMN_RATE,
    COLUMN_BANDWIDTH,
    COLUMN_TRANSITION,
    COLUMN_ATTENUATION,
    COLUMN_TAPS, // a file
    N_COLUMNS,
};

struct table_row {
    const char *name, *taps;
    double value[N_COLUMNS]; // NaN: the cell is empty, or no number
};

struct table {
    const char *path;
    json_t *json; // an array of objects, also of CSV
    struct table_row *rows;
    size_t n;
};

// False, with a fault, if a cell cannot be read, or the cells of a row contradict each other. Every
// row has a rate, and a name that no other row has and that can be a part of a file name.
bool table_read(struct table *ret, const char *path, struct fault *fault);

// "PATH: row 3 (NAME): COLUMN VALUE: " and the message. Returns false.
__attribute__((format(printf, 5, 6))) bool
table_fault(const struct table *table, const struct table_row *row, enum table_column column,
            struct fault *fault, const char *format, ...);

void table_release(struct table *table);

#endif
