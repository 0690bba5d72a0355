// SPDX-License-Identifier: MIT
// The response between a known signal and its recording, by division of their spectra. H = R
// conj(S) p / (p^2 + t^2), where p is |S|^2 and t lies REGULARISATION_DB below its largest value:
// within the band of the signal H = R / S, and beyond it H goes to 0, where division would amplify
// noise.
#ifndef PARTITA_APPS_DIVISION_H
#define PARTITA_APPS_DIVISION_H

#include <stddef.h>

#include "base/fault.h"

struct division;

// For recordings of up to n_recording samples. The signal is copied.
bool division_open(struct division **ret, const double *signal, size_t n_signal, size_t n_recording,
                   struct fault *fault);

// The peak of the response of a path of gain 1, which is below 1 if the band is limited.
double division_unit_peak(const struct division *division);

// The response from lag 0 on, of n_recording samples, valid until the next call. `recording` has
// every `step`th value for one channel.
const double *division_run(struct division *division, const double *recording, size_t step);

void division_close(struct division *division);

#endif
