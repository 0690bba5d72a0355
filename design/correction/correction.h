// SPDX-License-Identifier: MIT
// Correction of measured responses, see partita/correction.h. Spectra are those of real samples in
// the order of their frequencies, [count]: bin k has k / n cycles per frame.
#ifndef PARTITA_DESIGN_CORRECTION_H
#define PARTITA_DESIGN_CORRECTION_H

#include <partita/correction.h>

#include "bins.h"

#include <complex.h> // after the transforms, whose fields its macros would rename

#define CORRECTION_GUARD 0.001 // pre-ringing is measured from this time before the peak

struct correction {
    struct partita_correction given; // with defaults filled in
    struct design_bins bins;
    size_t n, count;        // samples; bins up to half of the rate, n / 2 + 1
    size_t first, last;     // bins of the range
    double step;            // between the frequencies of bins, in the unit of the rate
    double complex *power;  // of the mean response, in the real parts
    double complex *vector; // its phase, with the largest sample at time 0
    double complex *filter, *scratch, *sums; // any spectra; sums [count + 1]
    double *gain;                            // wanted magnitude of the filter
    size_t peak;                             // of the first position
    struct partita_correction_report report;
};

// Checks and completes the caller's fields. filter: whether taps are wanted.
enum partita_status correction_read(struct correction *c, const struct partita_correction *given,
                                    size_t given_bytes, const double *responses, bool filter);

enum partita_status correction_open(struct correction *c, bool filter);
void correction_close(struct correction *c);

// x = spectrum of c->bins.samples, or of samples[frames], of which `origin` lies at time 0.
void correction_transform(struct correction *c, double complex *x);
void correction_forward(struct correction *c, double complex *x, const double *samples,
                        size_t frames, size_t origin);

// c->bins.samples = those of the spectrum x; and ret[frames], from `origin` before time 0 on.
void correction_inverse(struct correction *c, const double complex *x, double *ret, size_t frames,
                        size_t origin);

// Replaces x by the spectrum of minimum phase with its magnitudes, or -100 dB of the largest one.
void correction_minimum_phase(struct correction *c, double complex *x);

// Smooths by 1 / fraction octave; weights each frequency by the window around time 0.
void correction_smooth(struct correction *c, double complex *x, double fraction);
void correction_window(struct correction *c, double complex *x, double cycles);

// The mean of real parts within the range, over the logarithm of the frequency.
double correction_range_mean(const struct correction *c, const double complex *x);

// Designs taps from power and vector, which are destroyed, and completes the report.
void correction_fill(struct correction *c, double *taps);

// The index of the largest sample.
size_t correction_peak(const double *samples, size_t n);

#endif
