// SPDX-License-Identifier: MIT
// What `partita correlate` says about its peaks: lines or JSON, one for each; and the list of them
// for annotations.
#ifndef PARTITA_APPS_PEAK_REPORT_H
#define PARTITA_APPS_PEAK_REPORT_H

#include <stdio.h>

#include "peaks.h"

// A peak in the samples of the signal.
struct match {
    int64_t sample;  // where the template begins; negative: before the signal
    double position; // the same, interpolated
    double magnitude, phase;
    size_t channel;
};

struct peak_report {
    FILE *to;
    bool json, flush;  // flush: after each peak
    double rate;       // Hz; 0: unknown
    int64_t first_lag; // of the first result
    int64_t stride;    // lags from one result to the next
    bool keep;         // keep a list
    // Of templates, of which peaks have the numbers in place of channels; NULL: of channels.
    const char *const *names;
    // Filled:
    uint64_t n;
    struct match *matches; // n, if a list is kept, for free
    size_t capacity;
};

// The header of the lines, before the first.
void peak_report_begin(const struct peak_report *report);

// For struct peaks_request; context: the report.
bool peak_report_add(void *context, const struct peak *peak, struct fault *fault);

#endif
