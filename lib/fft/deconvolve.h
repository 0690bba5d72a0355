// SPDX-License-Identifier: MIT
#ifndef PARTITA_FFT_DECONVOLVE_H
#define PARTITA_FFT_DECONVOLVE_H

#include "base/mem.h"

// h[n] = the filter by which signal[m] becomes recording[n]; n + m samples have a good size
// (fft.h). Errors: PARTITA_ERR_NOMEM.
enum partita_status fft_deconvolve(double *h, const double *recording, size_t n,
                                   const double *signal, size_t m,
                                   const struct partita_allocator *allocator);

#endif
