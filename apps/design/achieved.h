// SPDX-License-Identifier: MIT
// What the taps that were written achieve, for people, for programs and for the picture.
#ifndef PARTITA_APPS_ACHIEVED_H
#define PARTITA_APPS_ACHIEVED_H

#include <stdio.h>

#include "interference.h"
#include "io/samples/encoding.h"
#include "specification.h"

struct achieved {
    const struct specification *specification;
    const struct settings *settings;
    const double *taps; // as they are stored
    size_t n;
    struct encoding encoding;
    struct partita_design_result result;
    struct interference interference; // of symbols, of raised cosines
};

// A band of a design, in the unit of its frequencies.
struct band {
    double begin, end;
    bool pass;
};

enum { MAX_BANDS = 3 };

// Whether the filter is the pulse of a modem, whose symbols last *ret_period frames.
bool achieved_pulse(const struct achieved *achieved, double *ret_period);

// The bands in which the result was measured; returns how many there are.
int achieved_bands(const struct achieved *achieved, struct band bands[MAX_BANDS]);

// False: standard output cannot be written.
bool achieved_print(const struct achieved *achieved, FILE *to);
bool achieved_print_json(const struct achieved *achieved, FILE *to);

#endif
