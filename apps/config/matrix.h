// SPDX-License-Identifier: MIT
// The filter that a network is: one response from each input to each output, computed from the
// files that the configuration names.
#ifndef PARTITA_APPS_MATRIX_H
#define PARTITA_APPS_MATRIX_H

#include "cli/options.h"
#include "impulse_file.h"
#include "network.h"

// taps[k] belongs to frame delay + k - lead; the last `lead` taps follow the end of the response.
// Resampling makes the lead.
struct fir {
    double *taps; // n; NULL: there is no response
    size_t n, delay, lead;
    bool recursive; // of recursive filters, whose response is endless
};

struct matrix {
    size_t out_channels, in_channels;
    struct fir *firs;           // [out_channels][in_channels]
    struct impulse_notes notes; // of `live`, which says them when they concern it; else printed
};

// Reads the files of a network, resamples what has another rate than `rate` Hz if --resample-ir
// allows it, and computes its stages one after the other. Rate 0 is unknown. False, with a fault
// that names the configuration, its line and the file.
bool matrix_load(struct matrix *ret, const struct network *network, double rate,
                 const struct settings *settings, struct fault *fault);

// Adds a unit impulse times `gain`.
bool matrix_add_unit(struct matrix *matrix, size_t out, size_t in, double gain,
                     struct fault *fault);

// Resamples a response from rates[0] to rates[1], that of the signal times --up, if both are known
// and differ, as far as --resample-ir allows it; *ret_lead is that of frames_resample.
bool matrix_fit_rate(struct frames *frames, size_t *ret_lead, const double rates[2],
                     const char *name, const struct settings *settings, struct fault *fault);

void matrix_release(struct matrix *matrix);

// The rate of a configuration, or of the first file that it names; 0: neither has one.
double matrix_rate(const struct network *network);

#endif
