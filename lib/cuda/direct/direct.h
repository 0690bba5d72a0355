// SPDX-License-Identifier: MIT
// cuda/direct: what it decides.
#ifndef PARTITA_CUDA_DIRECT_H
#define PARTITA_CUDA_DIRECT_H

#include "core/plan.h"
#include "kernels.h"

// Fills everything of an estimate for the cheapest variant that the request allows, or applicable =
// false with a reason.
void cuda_direct_estimate(const struct request *request, struct estimate *ret);

// Chunks of rows that the gradient of the taps is split into, by shape and workspace limit alone.
int64_t cuda_weight_chunks(const struct cuda_pass *pass, bool f64, size_t workspace_limit);

#endif
