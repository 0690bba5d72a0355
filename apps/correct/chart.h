// SPDX-License-Identifier: MIT
// The picture of a response, or of a correction: each channel before and after it, and its filter.
#ifndef PARTITA_APPS_CHART_H
#define PARTITA_APPS_CHART_H

#include "measured.h"

struct chart {
    const double *taps; // [channels][n], of the filter or of a response
    size_t channels, n;
    double rate;
    // Of a correction; else NULL.
    const struct partita_correction *correction;
    const double *responses;                         // [channels][positions][frames]
    const struct partita_correction_report *reports; // [channels]
};

// Writes the picture `path`, which appears only when it is complete.
#ifdef HAVE_CAIRO
bool chart_write(const struct chart *chart, const char *path, struct fault *fault);
#else // main.c refuses --plot
#define chart_write(chart, ...) ((void)(chart), true)
#endif

#endif
