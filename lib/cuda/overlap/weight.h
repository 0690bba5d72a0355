// SPDX-License-Identifier: MIT
// The gradient of the taps of one axis: windows of x correlated with blocks of gy, added up in the
// spectrum over all blocks and the batch, one inverse a cell (decision 18), by one kernel that
// makes spectra and adds their products up (decision 23).
#ifndef PARTITA_CUDA_WEIGHT_H
#define PARTITA_CUDA_WEIGHT_H

#include "cuda/device/call.h"
#include "gradient.h"
#include "spectral.h"

// A thread block makes one sum or two; an estimate's variant is so many times the runs, plus the
// sums less one.
enum { CUDA_WEIGHT_SUMS = 2 };

struct cuda_weight {
    struct cuda_fft fft;
    int sums; // that a thread block makes
    struct cuda_gradient gradient;
    struct cuda_lines lines;
};

// Each a cuda_consider_fn: the way that takes the fewest seconds, and each by itself.
cuda_consider_fn cuda_weight_consider, cuda_weight_consider_1_sum, cuda_weight_consider_2_sums;

// For a plan of that estimate; cuda_fft_destroy(plan, &ret->fft) is to follow.
enum partita_status cuda_weight_create(struct partita_plan *plan, struct cuda_weight *ret);

enum partita_status cuda_weight_run(const struct partita_plan *plan,
                                    const struct cuda_weight *weight,
                                    const struct operands *operands, void *workspace);

// How it is cut, into as many runs as are good if `runs` is 0; false
// where it does not apply, or not within so many bytes. And what it would cost.
bool cuda_gradient_cut(const struct shape *shape, size_t points, int sums, size_t limit,
                       size_t runs, struct cuda_gradient *ret);
size_t cuda_gradient_bytes(const struct shape *shape,
                           const struct cuda_gradient *gradient); // of all runs' sums
bool cuda_gradient_consider(const struct request *request, const struct shape *shape, size_t points,
                            int sums, struct estimate *ret);

#endif
