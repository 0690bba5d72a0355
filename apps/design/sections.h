// SPDX-License-Identifier: MIT
// Sections of equalizers as texts: the words of --section, and the lists of Equalizer APO, Room EQ
// Wizard and AutoEq.
#ifndef PARTITA_APPS_SECTIONS_H
#define PARTITA_APPS_SECTIONS_H

#include <partita/partita.h>

#include "base/fault.h"

struct sections {
    double rate;                  // Hz
    struct partita_section *list; // in series
    size_t n, capacity;
    struct partita_design_point *points; // of a line GraphicEQ, or NULL
    size_t n_points, points_capacity;
};

// Appends a section; false, with a fault, if the library refuses it.
bool sections_add(struct sections *sections, const struct partita_section *section,
                  struct fault *fault);

// Appends the section of a text such as "peak 2200 -3.4 q 1.8".
bool sections_add_words(struct sections *sections, const char *text, struct fault *fault);

// Appends the sections of a text of lines, which it changes, from the file `path`, or sets points.
bool sections_add_list(struct sections *sections, const char *path, char *text,
                       struct fault *fault);

void sections_release(struct sections *sections);

#endif
