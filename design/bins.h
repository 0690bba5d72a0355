// SPDX-License-Identifier: MIT
// A discrete Fourier transform of the library's provider, bin by bin, in the order of frequencies:
// bin k has k / n cycles per frame.
#ifndef PARTITA_DESIGN_BINS_H
#define PARTITA_DESIGN_BINS_H

#include "fft/fft.h"

struct design_bins {
    struct fft *fft;
    size_t n;         // samples and bins
    size_t *index;    // [n] of each bin in the provider's order
    double *samples;  // complex, interleaved
    double *spectrum; // lines of bins, see design_bin
    void *scratch;
    struct partita_allocator allocator;
};

// At least n samples, zeroed.
enum partita_status design_bins_open(struct design_bins *bins, size_t n,
                                     const struct partita_allocator *allocator);
void design_bins_close(struct design_bins *bins);

// spectrum = transform of the samples.
void design_bins_forward(struct design_bins *bins);

// samples = inverse transform of the spectrum, which is destroyed.
void design_bins_inverse(struct design_bins *bins);

// Addresses of the real and imaginary part of bin k.
void design_bin(const struct design_bins *bins, size_t k, double *ret[2]);

// Transforms taps[n] at `points` frequencies or more and calls visit for those from 0 to 1/2.
typedef void design_visit(void *context, double frequency, double gain);
enum partita_status design_bins_gains(const double *taps, size_t n, size_t points,
                                      const struct partita_allocator *allocator,
                                      design_visit *visit, void *context);

// Writes the right half of the symmetric response of gains, at `points` frequencies or more, 2 n.
typedef double design_gain(const void *context, double frequency);
enum partita_status design_bins_symmetric(double *half, size_t n, size_t points, design_gain *gain,
                                          const void *context,
                                          const struct partita_allocator *allocator);

// Logarithms of magnitudes, in real parts, become their spectrum of minimum phase; uses samples.
void design_bins_minimum_phase(struct design_bins *bins);

#endif
