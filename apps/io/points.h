// SPDX-License-Identifier: MIT
// Tables of frequencies in text files: wanted gains, and measured responses as REW exports them.
#ifndef PARTITA_APPS_POINTS_H
#define PARTITA_APPS_POINTS_H

#include <partita/design.h>

#include "base/fault.h"

struct points {
    struct partita_design_point *list;
    double *degrees; // the third column; NULL: a line has none
    size_t n;
};

// Reads lines of a frequency, decibels and perhaps a phase in degrees, with points or commas as
// decimal marks. Lines before the first point that begin with a letter, empty lines, and comments
// from '#' on or after a first '*' are left out. False, with a fault that names the line; nothing
// is to be released then.
bool points_read(struct points *ret, const char *path, struct fault *fault);

// Whether the first line with a number has two of them: a table, and not taps.
bool points_begin(const char *path);

// Writes them in columns, with commas between if the name ends with .csv. The file appears only
// when it is complete.
bool points_write(const struct points *points, const char *path, struct fault *fault);

void points_release(struct points *points);

#endif
