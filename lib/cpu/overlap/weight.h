// SPDX-License-Identifier: MIT
// Backward weight by the blocks of cpu/overlap-save: gw[r] = sum over the batch and outputs q of
// gy[q] x[begin + q + r], r < span, is what the window of a block of outputs and these outputs make
// when they are correlated. Spectra of these correlations add up over blocks and batch, and one
// inverse transform a cell ends them.
#ifndef PARTITA_SPECTRAL_WEIGHT_H
#define PARTITA_SPECTRAL_WEIGHT_H

#include "spectral.h"

void spectral_weight_estimate(const struct request *request, struct estimate *ret);

// Exact sizes, once the transform is there.
void spectral_weight_sizes(struct partita_plan *plan);

void spectral_weight_run(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                         void *workspace);

#endif
