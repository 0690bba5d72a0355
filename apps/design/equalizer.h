// SPDX-License-Identifier: MIT
// `partita design eq` and `crossover`: their options, and their taps.
#ifndef PARTITA_APPS_EQUALIZER_H
#define PARTITA_APPS_EQUALIZER_H

#include "cli/options.h"
#include "sections.h"

struct equalizer {
    struct partita_crossover crossover;     // also of an equalizer, which has one band
    struct sections sections;               // of an equalizer
    bool exact_gains, lowers;               // lowers: as --gain auto
    struct partita_equalizer_result result; // of taps before they are stored
    double rounding; // by which stored taps change the response, root mean square over frequencies
};

// Reads the other options. False: wrong usage.
bool equalizer_parse(struct equalizer *ret, const struct settings *settings, struct fault *fault);

// Reads sections and crossings from operands, options and the list of another program.
bool equalizer_read(struct equalizer *equalizer, const struct settings *settings,
                    struct fault *fault);

// Sets *n, or with taps [bands][*n] fills them and the result.
enum partita_status equalizer_taps(struct equalizer *equalizer, double *taps, size_t *n);

#endif
