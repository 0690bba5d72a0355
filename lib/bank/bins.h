// SPDX-License-Identifier: MIT
// Frequencies of the bins of a transform, whose order is private to its provider. All bins have
// frequencies (j + offset) / n cycles per sample, 0 <= j < n, where the offset is 0, or a half if
// the provider wraps negacyclically.
#ifndef PARTITA_BINS_H
#define PARTITA_BINS_H

#include "fft/fft.h"
#include "select_kernels.h"

// Bins of a line of a spectrum.
static inline size_t bins_lanes(bool f64)
{
    return SPECTRUM_LANES_BYTES / (f64 ? sizeof(double) : sizeof(float));
}

struct bins {
    bool half;       // the offset is a half
    uint32_t *index; // [n] see select_kernels.h
};

// Finds the indices by transforms of unit impulses.
// Errors: PARTITA_ERR_NOMEM. bins_release accepts bins that are zero.
enum partita_status bins_find(const struct fft *fft, struct bins *ret);
void bins_release(const struct fft *fft, struct bins *bins);

#endif
