// SPDX-License-Identifier: MIT
// cuda/direct and, by names of their own, its variants.
#ifndef PARTITA_CUDA_DIRECT_H
#define PARTITA_CUDA_DIRECT_H

#include "core/plan.h"
#include "kernels.h"

extern const struct engine cuda_direct, cuda_direct_plain, cuda_direct_halo;

// Fills everything of an estimate of one variant, or applicable = false with a reason.
void cuda_direct_estimate(const struct request *request, enum cuda_direct_variant variant,
                          struct estimate *ret);

// Chunks of rows that the gradient of the taps is split into, by shape and workspace limit alone.
int64_t cuda_weight_chunks(const struct cuda_pass *pass, bool f64, size_t workspace_limit);

#endif
