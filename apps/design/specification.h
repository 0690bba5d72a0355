// SPDX-License-Identifier: MIT
// A design from the command line: what to design, and the table of its response.
#ifndef PARTITA_APPS_SPECIFICATION_H
#define PARTITA_APPS_SPECIFICATION_H

#include "cli/options.h"
#include "equalizer.h"
#include "io/points.h"

struct specification {
    struct partita_design design;
    const char *kind;    // its name on the command line
    struct points table; // released by specification_release
    bool equalizes;      // by `equalizer`, not by `design`
    struct equalizer equalizer;
    size_t ways;          // channels of OUT
    double amplification; // of a list's table, dB; not above 0 otherwise
};

// Reads operands and options except the table. False: wrong usage.
bool specification_parse(struct specification *ret, const struct settings *settings,
                         struct fault *fault);

// Reads the table or the list, if the design has one.
bool specification_load(struct specification *specification, const struct settings *settings,
                        struct fault *fault);

void specification_release(struct specification *specification);

// The name of OUT, the last operand.
const char *specification_out(const struct settings *settings);

#endif
