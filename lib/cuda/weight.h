// SPDX-License-Identifier: MIT
// The gradient of the taps of one axis: windows of x correlated with blocks of gy, added up in the spectrum over all
// blocks and the batch, one inverse a cell (decision 18).
#ifndef PARTITA_CUDA_WEIGHT_H
#define PARTITA_CUDA_WEIGHT_H

#include "call.h"
#include "jobs.h"
#include "spectral.h"

struct cuda_weight {
    struct cuda_fft fft;
    struct cuda_windows of_x, of_gy;
    struct cuda_correlations correlations;
    struct cuda_lines lines;
};

// cuda_consider_fn
bool cuda_weight_consider(const struct request *request, const struct shape *shape, size_t points,
                          struct estimate *ret);

// For a plan of that estimate; cuda_fft_destroy(plan, &ret->fft) is to follow.
enum partita_status cuda_weight_create(struct partita_plan *plan, struct cuda_weight *ret);

enum partita_status cuda_weight_run(const struct partita_plan *plan, const struct cuda_weight *weight,
                                    const struct operands *operands, void *workspace);

#endif
