// SPDX-License-Identifier: MIT
// The directions of a layer as passes (cuda/kernels/pass.h): forward is one pass; backward data is
// one pass for each residue of gx, modulo the stride, that any tap contributes to (decision 12).
#ifndef PARTITA_CUDA_PASSES_H
#define PARTITA_CUDA_PASSES_H

#include "core/plan.h"
#include "cuda/kernels/pass.h"

// Number of passes of a direction, SIZE_MAX on overflow; *ret_covers: whether they write the whole
// result.
size_t cuda_passes(const struct shape *shape, enum partita_direction direction, bool *ret_covers);

// Pass i of a direction; that of backward weight has forward's positions of x and gy. Some passes
// of backward data may have no outputs: then axis[a].n is 0.
struct cuda_pass cuda_pass_of(const struct shape *shape, enum partita_direction direction,
                              size_t i);

// Fills in the estimate of a variant of an engine.
typedef void cuda_variant_fn(const struct request *request, int variant, struct estimate *ret);

// The fastest of the variants that a request allows; one beyond the workspace limit does not
// replace another. More passes than max_passes are refused.
void cuda_passes_estimate(const struct request *request, int variants, int max_passes,
                          cuda_variant_fn *fill, struct estimate *ret);

#endif
